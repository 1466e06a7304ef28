/*
 * Makes messages from the template of a static prompt.
 *
 * `{name}` is replaced by an argument, `{{name}}` by the text `{name}`; any
 * other brace is text. A value that was put in is never scanned again, and it
 * goes into one string of one message. So an argument can't become another
 * placeholder, nor JSON.
 *
 * A template that is a JSON array, [{role, content}], holds the messages, and
 * placeholders are replaced inside its strings. Any other template becomes one
 * user message.
 */
#include <string.h>

#include "forms.h"
#include "jsonw.h"

enum {
	MESSAGES_MAX = 100, /* a person can't review more */
};

struct render {
	struct report *r;
	const struct doc *given; /* arguments, or their declarations if
				  * `declared` */
	bool declared;
	struct buf text; /* the string that is being filled */
	struct jsonw w;
};

static bool
name_char(uint8_t c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	    (!first && c >= '0' && c <= '9');
}

/* Returns the length of the name in `{name}` at s, or 0 if s is not a
 * placeholder. */
static size_t
placeholder(const uint8_t *s, size_t n)
{
	size_t i = 1;

	while (i < n && name_char(s[i], i == 1))
		i++;
	return s[0] == '{' && i > 1 && i < n && s[i] == '}' ? i - 1 : 0;
}

/* Reports a name that is not among the declared arguments. */
static void
known(const struct render *x, const struct path *at, const uint8_t *name,
    size_t n)
{
	const struct doc_node *list = &x->given->node[0], *v;

	for (uint32_t i = 0; i < list->count; i++) {
		v = doc_get(x->given, doc_kid(x->given, list, i), "name");
		if (v != NULL && v->kind == DOC_STRING && v->len == n &&
		    memcmp(v->str, name, n) == 0)
			return;
	}
	report_add(x->r, at,
	    "{%.*s} is not among the arguments; write {{%.*s}} for the text",
	    report_cut(name, n), (const char *)name, report_cut(name, n),
	    (const char *)name);
}

static void
put_value(
    struct render *x, const struct path *at, const uint8_t *name, size_t n)
{
	const struct doc_node *v;

	if (x->declared) {
		known(x, at, name, n);
		return;
	}
	v = doc_member(x->given, &x->given->node[0], name, n);
	/* The arguments satisfied the schema. So an argument that is not given
	 * is optional, and nothing is put in its place. */
	if (v != NULL && v->kind == DOC_STRING)
		buf_put(&x->text, v->str, v->len);
}

/* Writes s with its placeholders filled, as a JSON string. */
static void
fill(struct render *x, const struct path *at, const uint8_t *s, size_t n)
{
	size_t i, from = 0, len;

	/* The output is too long already. Filling the rest could make it much
	 * longer. */
	if (x->w.out->failed)
		return;
	buf_clear(&x->text);
	for (i = 0; i < n && !x->text.failed; i++) {
		if (s[i] != '{')
			continue;
		if (i + 1 < n && s[i + 1] == '{' &&
		    (len = placeholder(s + i + 1, n - i - 1)) > 0 &&
		    i + len + 3 < n && s[i + len + 3] == '}') {
			buf_put(&x->text, s + from, i - from);
			buf_put(&x->text, s + i + 1, len + 2);
			i += len + 3;
			from = i + 1;
		} else if ((len = placeholder(s + i, n - i)) > 0) {
			buf_put(&x->text, s + from, i - from);
			put_value(x, at, s + i + 1, len);
			i += len + 1;
			from = i + 1;
		}
	}
	buf_put(&x->text, s + from, n - from);
	if (x->text.failed)
		x->w.out->failed = true;
	jsonw_strn(&x->w, x->text.p, x->text.len);
}

/* Copies a value and fills every string in it. json_scan() has bounded the
 * depth of the recursion. */
static void
copy(struct render *x, const struct path *at, const struct doc *d,
    const struct doc_node *v)
{
	if (v->kind == DOC_STRING) {
		fill(x, at, v->str, v->len);
		return;
	}
	if (v->kind != DOC_ARRAY && v->kind != DOC_OBJECT) {
		jsonw_raw(&x->w, v->raw, v->rawlen);
		return;
	}
	if (v->kind == DOC_ARRAY)
		jsonw_arr(&x->w);
	else
		jsonw_obj(&x->w);
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *kid = doc_kid(d, v, i);
		struct path down = {at, kid->name, kid->namelen, i};

		if (v->kind == DOC_OBJECT)
			jsonw_name(&x->w, (const char *)kid->name);
		copy(x, &down, d, kid);
	}
	if (v->kind == DOC_ARRAY)
		jsonw_arr_end(&x->w);
	else
		jsonw_obj_end(&x->w);
}

static bool
has_text(const struct doc *d, const struct doc_node *o, const char *name)
{
	const struct doc_node *v = doc_get(d, o, name);

	return v != NULL && v->kind == DOC_STRING;
}

/* Returns whether v is a ContentBlock of MCP that a message may have. */
static bool
block(const struct doc *d, const struct doc_node *v)
{
	const struct doc_node *type, *res;

	if (v->kind != DOC_OBJECT || (type = doc_get(d, v, "type")) == NULL)
		return false;
	if (doc_is(type, "text"))
		return has_text(d, v, "text");
	if (doc_is(type, "image") || doc_is(type, "audio"))
		return has_text(d, v, "data") && has_text(d, v, "mimeType");
	if (doc_is(type, "resource_link"))
		return has_text(d, v, "uri") && has_text(d, v, "name");
	if (!doc_is(type, "resource") ||
	    (res = doc_get(d, v, "resource")) == NULL ||
	    res->kind != DOC_OBJECT)
		return false;
	return has_text(d, res, "uri") &&
	    has_text(d, res, "text") != has_text(d, res, "blob");
}

static void
text_block(struct render *x, const struct path *at, const uint8_t *s, size_t n)
{
	jsonw_obj(&x->w);
	jsonw_kv_str(&x->w, "type", "text");
	jsonw_name(&x->w, "text");
	fill(x, at, s, n);
	jsonw_obj_end(&x->w);
}

static void
message(struct render *x, const struct path *at, const struct doc *d,
    const struct doc_node *m)
{
	const struct doc_node *role, *content;
	struct path in = {at, (const uint8_t *)"content", 7, 0};

	if (m->kind != DOC_OBJECT || m->count != 2 ||
	    (role = doc_get(d, m, "role")) == NULL ||
	    (content = doc_get(d, m, "content")) == NULL) {
		report_add(x->r, at, "must be {\"role\", \"content\"}");
		return;
	}
	if (!doc_is(role, "user") && !doc_is(role, "assistant")) {
		report_add(x->r, at, "role must be user or assistant");
		return;
	}
	jsonw_obj(&x->w);
	jsonw_kv_strn(&x->w, "role", (const char *)role->str, role->len);
	jsonw_name(&x->w, "content");
	if (content->kind == DOC_STRING) {
		text_block(x, &in, content->str, content->len);
	} else if (block(d, content)) {
		copy(x, &in, d, content);
	} else {
		report_add(
		    x->r, &in, "must be a string or an MCP content object");
		jsonw_null(&x->w);
	}
	jsonw_obj_end(&x->w);
}

static void
messages(struct render *x, const struct doc *d)
{
	const struct doc_node *top = &d->node[0];

	if (top->count == 0 || top->count > MESSAGES_MAX)
		report_add(
		    x->r, NULL, "must have 1 to %d messages", MESSAGES_MAX);
	for (uint32_t i = 0; i < top->count && i < MESSAGES_MAX; i++) {
		struct path at = {NULL, NULL, 0, i};

		message(x, &at, d, doc_kid(d, top, i));
	}
}

/* Returns whether the document is a JSON array. A text that only begins with a
 * bracket was not parsed and is text. */
static bool
is_array(const struct doc *d)
{
	return d->n > 0 && d->node[0].kind == DOC_ARRAY;
}

void
check_render(struct check *c, struct ipc_bytes text, struct ipc_bytes given)
{
	struct doc d = {0}, args = {0};
	struct render x = {.given = &args};
	struct report r;
	struct err e;
	bool parsed;
	int rc;

	check_begin(c, &r);
	buf_init(&c->fields, RESULT_MAX);
	buf_init(&x.text, RESULT_MAX);
	x.r = &r;
	rc = doc_parse(&args, given.p, given.n, &e);
	if (rc == 0 && args.node[0].kind != DOC_OBJECT && !is_array(&args))
		rc = err_set(&e, FAILURE_INVALID_ARGUMENTS,
		    "the arguments must be an object");
	if (rc == 0) {
		x.declared = is_array(&args);
		r.prefix = "/text";
		jsonw_open(&x.w, &c->fields);
		jsonw_obj(&x.w);
		jsonw_name(&x.w, "messages");
		jsonw_arr(&x.w);
		parsed = doc_parse(&d, text.p, text.n, &e) == 0;
		if (!parsed && e.failure == FAILURE_INTERNAL) {
			rc = -1;
		} else if (parsed && is_array(&d)) {
			messages(&x, &d);
		} else {
			jsonw_obj(&x.w);
			jsonw_kv_str(&x.w, "role", "user");
			jsonw_name(&x.w, "content");
			text_block(&x, NULL, text.p, text.n);
			jsonw_obj_end(&x.w);
		}
		jsonw_arr_end(&x.w);
		jsonw_obj_end(&x.w);
		r.prefix = NULL;
		if (rc == 0 && c->fields.failed)
			rc = err_set(&e, FAILURE_LIMIT,
			    "the prompt would have more than %d bytes",
			    RESULT_MAX);
	}
	check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
	    "the prompt's text cannot be used", &e);
	buf_free(&x.text);
	doc_free(&d);
	doc_free(&args);
}
