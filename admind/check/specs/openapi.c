/*
 * Turns an OpenAPI 3 document into declared REST calls. The document may come
 * from anybody. Each operation becomes a specification that a person could have
 * written by hand, and is judged like one (check_http). So the document can
 * declare nothing that an author may not declare. An operation that can't be
 * expressed as a specification is left out, and the reason is reported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "management_tools.h"
#include "openapi.h"
#include "specs.h"
#include "tlv.h"

enum {
	OPERATIONS_MAX = 50, /* at once, because a person reviews each */
	SPEC_MAX = CODE_MAX,
	/* Nodes read for the schemas of all operations together. That takes
	 * some ten of the fifty milliseconds of INPUT_MS (main.c). */
	SCHEMA_NODES = 20000,
};

static const char *const methods[] = {
    "get", "head", "options", "post", "put", "patch", "delete"};

static bool
letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
tool_name(const struct openapi_operation *p, char out[OPENAPI_TOOL_MAX + 1])
{
	const struct doc_node *id = openapi_get(p, p->src, "operationId");
	char text[1024];
	size_t from = 0;

	if (id != NULL && id->kind == DOC_STRING && id->len > 0)
		snprintf(text, sizeof(text), "%.*s", (int)id->len,
		    (const char *)id->str);
	else
		snprintf(text, sizeof(text), "%s_%.*s", p->method,
		    (int)p->path->namelen, (const char *)p->path->name);
	if (!letter((uint8_t)text[0])) {
		memcpy(out, "op_", 3);
		from = 3;
	}
	if (openapi_snake((const uint8_t *)text, strlen(text), out + from,
		OPENAPI_TOOL_MAX + 1 - from) == 0)
		snprintf(out, OPENAPI_TOOL_MAX + 1, "operation");
}

/* ---- the specification ---- */

static void
put_part(struct openapi_operation *p, struct jsonw *w,
    const struct openapi_part *part)
{
	bool text = part->text != NULL && part->text->kind == DOC_STRING &&
	    part->text->len > 0 && part->text->len <= HTTP_TEXT_MAX;

	jsonw_name(w, part->name);
	jsonw_obj(w);
	jsonw_kv_str(w, "in", part->in);
	if (strcmp(part->in, "path") != 0 &&
	    (strlen(part->name) != part->wirelen ||
		memcmp(part->name, part->wire, part->wirelen) != 0))
		jsonw_kv_strn(w, "name", part->wire, part->wirelen);
	if (part->required && strcmp(part->in, "path") != 0)
		jsonw_kv_bool(w, "required", true);
	if (part->schema != NULL) {
		jsonw_name(w, "schema");
		openapi_schema(p->o, w, part->schema, !text, 0);
	}
	if (text)
		jsonw_kv_strn(
		    w, "description", part->text->str, part->text->len);
	if (part->comma)
		jsonw_kv_str(w, "style", "comma");
	jsonw_obj_end(w);
}

/* Puts the path. Its placeholders are renamed to the names of the arguments. */
static void
put_path(const struct openapi_operation *p, struct buf *b)
{
	const uint8_t *s = p->path->name;
	size_t n = p->path->namelen;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *end =
		    s[i] == '{' ? memchr(s + i, '}', n - i) : NULL;
		size_t len = end != NULL ? (size_t)(end - s) - i - 1 : 0;
		unsigned k = 0;

		while (end != NULL && k < p->n &&
		    (strcmp(p->part[k].in, "path") != 0 ||
			p->part[k].wirelen != len ||
			memcmp(p->part[k].wire, s + i + 1, len) != 0))
			k++;
		if (end == NULL || k == p->n) {
			buf_putc(b, s[i]);
			continue;
		}
		buf_putf(b, "{%s}", p->part[k].name);
		i += len + 1;
	}
}

/* Puts a server's URL, with its variables replaced by their defaults. */
static void
put_server(const struct openapi_operation *p, const struct doc_node *server,
    struct buf *b)
{
	const struct doc_node *url = openapi_get(p, server, "url"), *v;
	const struct doc_node *variables = openapi_get(p, server, "variables");
	char name[HTTP_NAME_MAX + 1];

	if (url == NULL || url->kind != DOC_STRING)
		return;
	for (size_t i = 0; i < url->len; i++) {
		size_t len = http_placeholder(url->str + i, url->len - i);

		if (len == 0 || len > HTTP_NAME_MAX) {
			buf_putc(b, url->str[i]);
			continue;
		}
		memcpy(name, url->str + i + 1, len);
		name[len] = '\0';
		v = openapi_get(p, openapi_get(p, variables, name), "default");
		if (v != NULL && v->kind == DOC_STRING)
			buf_put(b, v->str, v->len);
		i += len + 1;
	}
}

static void
put_url(struct openapi_operation *p, struct buf *b)
{
	const struct doc_node *const from[] = {
	    p->src, p->item, &p->o->d->node[0]};
	const struct doc_node *servers = NULL;

	for (size_t i = 0; i < 3 && servers == NULL; i++) {
		servers = openapi_get(p, from[i], "servers");
		if (servers != NULL &&
		    (servers->kind != DOC_ARRAY || servers->count == 0))
			servers = NULL;
	}
	if (p->base.n > 0)
		buf_put(b, p->base.p, p->base.n);
	else if (servers != NULL)
		put_server(
		    p, openapi_resolve(p->o, doc_kid(p->o->d, servers, 0)), b);
	if (b->len < 8 || memcmp(b->p, "http", 4) != 0)
		openapi_leave_out(p,
		    "the document has no absolute URL of a server: "
		    "give base_url");
	while (b->len > 0 && b->p[b->len - 1] == '/')
		b->len--;
	put_path(p, b);
}

/* Makes the NAME of {secret:NAME} from a security scheme's name. */
static void
secret_name(const struct doc_node *scheme, char out[HTTP_NAME_MAX + 1])
{
	size_t len =
	    openapi_snake(scheme->name, scheme->namelen, out, HTTP_NAME_MAX);

	if (len == 0 || !letter((uint8_t)out[0]))
		snprintf(out, HTTP_NAME_MAX + 1, "API_KEY");
	for (char *s = out; *s != '\0'; s++)
		if (*s >= 'a' && *s <= 'z')
			*s = (char)(*s - 'a' + 'A');
}

/* Puts the header or the query member that carries the secret of one scheme.
 * Puts nothing if the scheme uses the other of the two places. */
static void
put_scheme(struct openapi_operation *p, const struct doc_node *named,
    bool header, struct jsonw *w)
{
	const struct doc_node *all = openapi_get(p,
	    openapi_get(p, &p->o->d->node[0], "components"), "securitySchemes");
	const struct doc_node *s, *type, *in, *name, *scheme;
	char secret[HTTP_NAME_MAX + 1], value[HTTP_NAME_MAX + 32];
	char wire[HTTP_WIRE_MAX + 1];
	bool key, basic;

	s = all == NULL || all->kind != DOC_OBJECT
	    ? NULL
	    : openapi_resolve(
		  p->o, doc_member(p->o->d, all, named->name, named->namelen));
	type = openapi_get(p, s, "type");
	if (type == NULL) {
		openapi_leave_out(
		    p, "its security scheme is not in the document");
		return;
	}
	key = doc_is(type, "apiKey");
	in = openapi_get(p, s, "in");
	name = openapi_get(p, s, "name");
	scheme = openapi_get(p, s, "scheme");
	basic = scheme != NULL && scheme->kind == DOC_STRING &&
	    strcasecmp((const char *)scheme->str, "basic") == 0;
	if (key &&
	    (name == NULL || name->kind != DOC_STRING ||
		name->len > HTTP_WIRE_MAX || in == NULL ||
		(!doc_is(in, "header") && !doc_is(in, "query")))) {
		openapi_leave_out(p,
		    "its key goes neither into a header nor into the "
		    "query");
		return;
	}
	if (header == (key && doc_is(in, "query")))
		return;
	secret_name(named, secret);
	snprintf(wire, sizeof(wire), "%s",
	    key ? (const char *)name->str : "Authorization");
	snprintf(value, sizeof(value), "%s{secret:%s}",
	    key         ? ""
		: basic ? "Basic "
			: "Bearer ",
	    secret);
	jsonw_kv_str(w, wire, value);
}

/* Puts the schemes of the first alternative. Puts nothing if any alternative is
 * empty, because then no security is needed. */
static void
put_security(struct openapi_operation *p, bool header, struct jsonw *w)
{
	const struct doc_node *v = openapi_get(p, p->src, "security"), *first;

	if (v == NULL)
		v = openapi_get(p, &p->o->d->node[0], "security");
	if (v == NULL || v->kind != DOC_ARRAY || v->count == 0)
		return;
	for (uint32_t i = 0; i < v->count; i++)
		if (doc_kid(p->o->d, v, i)->count == 0)
			return;
	first = doc_kid(p->o->d, v, 0);
	for (uint32_t i = 0; first->kind == DOC_OBJECT && i < first->count; i++)
		put_scheme(p, doc_kid(p->o->d, first, i), header, w);
}

static void
put_spec(struct openapi_operation *p, struct buf *out)
{
	char method[8];
	struct jsonw w;
	struct buf url;

	snprintf(method, sizeof(method), "%s", p->method);
	for (char *s = method; *s != '\0'; s++)
		*s = (char)(*s - 'a' + 'A');
	buf_init(&url, HTTP_TEXT_MAX);
	put_url(p, &url);
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "method", method);
	jsonw_kv_strn(&w, "url", url.p, url.len);
	jsonw_name(&w, "parameters");
	jsonw_obj(&w);
	for (unsigned i = 0; i < p->n; i++)
		put_part(p, &w, &p->part[i]);
	jsonw_obj_end(&w);
	jsonw_name(&w, "headers");
	jsonw_obj(&w);
	put_security(p, true, &w);
	jsonw_obj_end(&w);
	jsonw_name(&w, "query");
	jsonw_obj(&w);
	put_security(p, false, &w);
	jsonw_obj_end(&w);
	if (p->body != NULL)
		jsonw_kv_str(&w, "body", p->body);
	jsonw_obj_end(&w);
	if (url.failed || out->failed)
		openapi_leave_out(p, "its specification would be too large");
	if (p->o->budget < 0)
		openapi_leave_out(p, "its schemas are too many");
	buf_free(&url);
}

/* ---- operations ---- */

static void
skip(struct check *c, const struct openapi_operation *p, const char *why)
{
	struct buf b;

	buf_init(&b, 2 * OPENAPI_REASON_MAX);
	buf_putf(&b, "%s %.*s: %s", p->method,
	    report_cut(p->path->name, p->path->namelen),
	    (const char *)p->path->name, why);
	if (!b.failed)
		tlv_put(&c->fields, OPENAPI_SKIPPED, b.p, b.len);
	buf_free(&b);
}

/* Puts text for people, cut at a character to at most max bytes, without
 * U+0000. */
static void
put_text(struct check *c, uint8_t tag, struct buf *b, size_t max)
{
	size_t n = b->len;

	if (n > max) {
		n = max;
		while (n > 0 && (b->p[n] & 0xc0) == 0x80)
			n--;
	}
	for (size_t i = 0; i < n; i++)
		if (b->p[i] == 0)
			b->p[i] = ' ';
	if (!b->failed && n > 0)
		tlv_put(&c->fields, tag, b->p, n);
}

static void
put_texts(struct check *c, const struct openapi_operation *p)
{
	const struct doc_node *summary = openapi_get(p, p->src, "summary");
	const struct doc_node *text = openapi_get(p, p->src, "description");
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	if (summary != NULL && summary->kind == DOC_STRING)
		buf_put(&b, summary->str, summary->len);
	put_text(c, OPENAPI_TITLE, &b, 200);
	if (text != NULL && text->kind == DOC_STRING && text->len > 0) {
		if (b.len > 0)
			buf_puts(&b, "\n\n");
		buf_put(&b, text->str, text->len);
	}
	put_text(c, OPENAPI_DESCRIPTION, &b, DESCRIPTION_MAX);
	buf_free(&b);
}

static void
put_annotations(struct check *c, const struct openapi_operation *p)
{
	bool reads = strcmp(p->method, "get") == 0 ||
	    strcmp(p->method, "head") == 0 || strcmp(p->method, "options") == 0;
	bool twice = reads || strcmp(p->method, "put") == 0 ||
	    strcmp(p->method, "delete") == 0;
	struct buf b;

	buf_init(&b, 512);
	buf_putf(&b,
	    "{\"readOnlyHint\":%s,\"destructiveHint\":%s,"
	    "\"idempotentHint\":%s,\"openWorldHint\":true}",
	    reads ? "true" : "false", reads ? "false" : "true",
	    twice ? "true" : "false");
	tlv_put(&c->fields, OPENAPI_ANNOTATIONS, b.p, b.len);
	buf_free(&b);
}

/* Puts the fields of one operation, or the reason why it is left out. Returns 1
 * if the fields were put, else 0. */
static int
operation(struct check *c, struct openapi_operation *p)
{
	char name[OPENAPI_TOOL_MAX + 1];
	struct check judged;
	struct buf spec;
	int made = 0;

	if (p->o->budget < 0) {
		skip(c, p, "the document's schemas are too many");
		return 0;
	}
	openapi_parts(p);
	buf_init(&spec, SPEC_MAX);
	put_spec(p, &spec);
	if (p->reason[0] != '\0') {
		skip(c, p, p->reason);
		buf_free(&spec);
		return 0;
	}
	check_http(&judged, 0, ipc_bytes(spec.p, spec.len));
	if (!judged.ok) {
		skip(c, p, judged.summary);
	} else {
		tool_name(p, name);
		tlv_puts(&c->fields, OPENAPI_NAME, name);
		put_texts(c, p);
		put_annotations(c, p);
		tlv_put(&c->fields, OPENAPI_SPEC, spec.p, spec.len);
		tlv_put(&c->fields, OPENAPI_FOLLOWS, judged.fields.p,
		    judged.fields.len);
		made = 1;
	}
	check_free(&judged);
	buf_free(&spec);
	return made;
}

/* Returns whether the caller asked for this operation: one of the lines is its
 * operationId or "get /path", or there are no lines. */
static bool
wanted(const struct openapi_operation *p, struct ipc_bytes lines)
{
	const struct doc_node *id = openapi_get(p, p->src, "operationId");
	char key[1024];

	if (lines.n == 0)
		return true;
	snprintf(key, sizeof(key), "%s %.*s", p->method,
	    p->path->namelen < 900 ? (int)p->path->namelen : 0,
	    (const char *)p->path->name);
	for (const uint8_t *s = lines.p, *end = s + lines.n; s < end;) {
		const uint8_t *nl = memchr(s, '\n', (size_t)(end - s));
		size_t n = (size_t)((nl != NULL ? nl : end) - s);

		if ((n == strlen(key) &&
			strncasecmp((const char *)s, key, n) == 0) ||
		    (id != NULL && id->kind == DOC_STRING && id->len == n &&
			memcmp(id->str, s, n) == 0))
			return true;
		s += n + (nl != NULL);
		if (nl == NULL)
			break;
	}
	return false;
}

static int
walk(struct check *c, struct openapi *o, const struct ipc_check_openapi *m,
    struct ipc_bytes lines, struct report *r, struct err *e)
{
	const struct doc_node *paths = doc_get(o->d, &o->d->node[0], "paths");
	struct openapi_operation *p = malloc(sizeof(*p));
	unsigned found = 0;

	if (p == NULL)
		return err_set(e, FAILURE_BUSY, "out of memory");
	o->budget = SCHEMA_NODES;
	for (uint32_t i = 0;
	    paths != NULL && paths->kind == DOC_OBJECT && i < paths->count;
	    i++) {
		const struct doc_node *path = doc_kid(o->d, paths, i);
		const struct doc_node *item = openapi_resolve(o, path);

		for (size_t k = 0; item != NULL && item->kind == DOC_OBJECT &&
		    k < sizeof(methods) / sizeof(methods[0]);
		    k++) {
			const struct doc_node *src =
			    doc_get(o->d, item, methods[k]);

			if (src == NULL || src->kind != DOC_OBJECT)
				continue;
			memset(p, 0, sizeof(*p));
			*p = (struct openapi_operation){.o = o,
			    .method = methods[k],
			    .path = path,
			    .item = item,
			    .src = src,
			    .base = m->base_url};
			if (!wanted(p, lines))
				continue;
			if (++found <= OPERATIONS_MAX)
				(void)operation(c, p);
		}
	}
	free(p);
	if (found == 0)
		report_add(r, NULL,
		    lines.n > 0 ? "has none of these operations"
				: "has no operations");
	else if (found > OPERATIONS_MAX)
		report_add(r, NULL,
		    "has %u operations: name at most %d in `operations`, by "
		    "operationId or as \"get /path\"",
		    found, OPERATIONS_MAX);
	return 0;
}

void
check_openapi(struct check *c, const struct ipc_check_openapi *m)
{
	struct ipc_bytes all = m->document_operations;
	size_t n = m->document_len < all.n ? m->document_len : all.n;
	const struct doc_node *version;
	struct openapi o = {0};
	struct doc d = {0};
	struct report r;
	struct err e;
	int rc;

	check_begin(c, &r);
	r.prefix = "/document";
	if ((rc = doc_parse(&d, all.p, n, &e)) == 0) {
		o.d = &d;
		version = d.node[0].kind == DOC_OBJECT
		    ? doc_get(&d, &d.node[0], "openapi")
		    : NULL;
		if (version == NULL || version->kind != DOC_STRING ||
		    version->len < 2 || memcmp(version->str, "3.", 2) != 0)
			report_add(&r, NULL,
			    "is no OpenAPI 3 document in JSON: it must have "
			    "`openapi` 3.x");
		else
			rc = walk(
			    c, &o, m, ipc_bytes(all.p + n, all.n - n), &r, &e);
	}
	if (rc == -1 && e.failure == FAILURE_PARSE) {
		e.failure = FAILURE_INVALID_ARGUMENTS;
		(void)err_wrap(&e,
		    "the document is not JSON (YAML has to be "
		    "converted first)");
	}
	r.prefix = NULL;
	check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
	    "the document cannot be used", &e);
	doc_free(&d);
}
