/* Checks the parts of a declared REST call that come from its caller
 * (parameters), and the fixed parts (query and headers, with the places for
 * secrets). Makes the input schema that follows from the parameters. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http_spec.h"

static const char *const places[] = {
    [HTTP_PATH] = "path",
    [HTTP_QUERY] = "query",
    [HTTP_HEADER] = "header",
    [HTTP_COOKIE] = "cookie",
    [HTTP_BODY] = "body",
};

enum {
	SCALAR = SCHEMA_STRING | SCHEMA_NUMBER | SCHEMA_INTEGER | SCHEMA_BOOLEAN
};

static bool
name_char(uint8_t c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	    (!first && c >= '0' && c <= '9');
}

size_t
http_placeholder(const uint8_t *s, size_t n)
{
	size_t i = 1;

	if (n < 3 || s[0] != '{' || !name_char(s[1], true))
		return 0;
	while (i < n && name_char(s[i], false))
		i++;
	return i < n && s[i] == '}' ? i - 1 : 0;
}

bool
http_token(const uint8_t *s, size_t n)
{
	static const char tchar[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < n; i++)
		if (s[i] == 0 || strchr(tchar, s[i]) == NULL)
			return false;
	return n > 0;
}

/* Returns whether a header of this name may be declared. If not, reports it.
 * Headers that are made from the URL and the body may not be declared. */
static bool
field_name(struct report *r, const struct path *at, const uint8_t *s, size_t n)
{
	static const char *const ours[] = {"host", "content-length",
	    "transfer-encoding", "connection", "keep-alive", "upgrade", "te",
	    "trailer", "expect", "proxy-authorization", "proxy-connection",
	    "accept-encoding"};

	/* The method decides whether a call is confirmed: calls that replace or
	 * delete are. A POST with a header that says DELETE would delete
	 * without being confirmed. */
	static const char *const overrides[] = {
	    "x-http-method", "x-http-method-override", "x-method-override"};

	if (!http_token(s, n) || n > HTTP_WIRE_MAX) {
		report_add(r, at, "is no name of a header");
		return false;
	}
	for (size_t i = 0; i < sizeof(overrides) / sizeof(overrides[0]); i++)
		if (n == strlen(overrides[i]) &&
		    strncasecmp((const char *)s, overrides[i], n) == 0) {
			report_add(r, at,
			    "says another method: `method` is the place for "
			    "it");
			return false;
		}
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (n == strlen(ours[i]) &&
		    strncasecmp((const char *)s, ours[i], n) == 0) {
			report_add(r, at,
			    "is a header that is made from the URL and the "
			    "body");
			return false;
		}
	return true;
}

void
http_used(struct http *h, const struct path *at, const uint8_t *name, size_t n)
{
	for (unsigned i = 0; i < h->nparameter; i++) {
		struct http_parameter *p = &h->parameter[i];

		if (p->src->namelen == n && p->in == HTTP_PATH &&
		    memcmp(p->src->name, name, n) == 0) {
			p->used = true;
			return;
		}
	}
	report_add(h->r, at, "{%.*s} is no parameter with in: path",
	    report_cut(name, n), (const char *)name);
}

/* ---- one parameter ---- */

static const struct doc_node *
member(const struct http *h, const struct doc_node *o, const char *name)
{
	return doc_get(h->d, o, name);
}

static void
only(const struct http *h, const struct path *at, const struct doc_node *o,
    const char *const *names, size_t n)
{
	for (uint32_t i = 0; i < o->count; i++) {
		const struct doc_node *kid = doc_kid(h->d, o, i);
		size_t k = 0;

		while (k < n &&
		    (kid->namelen != strlen(names[k]) ||
			memcmp(kid->name, names[k], kid->namelen) != 0))
			k++;
		if (k == n) {
			struct path p = {at, kid->name, kid->namelen, 0};

			report_add(h->r, &p, "is unknown");
		}
	}
}

/* Checks the types of a parameter. A type is allowed if its values have only
 * one form in a URL or a header. In a query or a header, lists of such values
 * are allowed, too. */
static void
check_types(
    const struct http *h, const struct path *at, const struct http_parameter *p)
{
	bool list = p->in == HTTP_QUERY || p->in == HTTP_HEADER;
	unsigned may = SCALAR | (p->in == HTTP_PATH ? 0 : SCHEMA_NULL) |
	    (list ? SCHEMA_ARRAY : 0);
	const struct doc_node *items, *type;

	if (p->types == 0 || (p->types & ~may) != 0) {
		report_add(h->r, at,
		    "its type must be string, number, integer or boolean%s",
		    list ? ", or array of these" : "");
		return;
	}
	if ((p->types & SCHEMA_ARRAY) == 0)
		return;
	items = member(h, p->schema, "items");
	type = items != NULL && items->kind == DOC_OBJECT
	    ? member(h, items, "type")
	    : NULL;
	if (type == NULL || type->kind != DOC_STRING || doc_is(type, "array") ||
	    doc_is(type, "object") || doc_is(type, "null"))
		report_add(h->r, at,
		    "its items must have one type: string, number, integer or "
		    "boolean");
}

static int
check_schema_of(const struct http *h, const struct path *at,
    struct http_parameter *p, struct err *e)
{
	struct path in = {at, (const uint8_t *)"schema", 6, 0};
	struct report quiet;
	struct schema s;
	int rc;

	p->types = SCHEMA_STRING;
	if (p->schema == NULL)
		return 0;
	if (p->schema->kind != DOC_OBJECT) {
		report_add(h->r, &in, "must be a JSON Schema object");
		return 0;
	}
	report_open(&quiet, NULL);
	rc = schema_compile(
	    &s, SCHEMA_ANY, p->schema->raw, p->schema->rawlen, &quiet, e);
	if (rc == 0 && quiet.n > 0)
		report_add(h->r, &in, "cannot be used: %s", quiet.first);
	else if (rc == 0)
		p->types = s.rule[0].types;
	schema_free(&s);
	if (rc == 0 && quiet.n == 0 && p->in != HTTP_BODY)
		check_types(h, &in, p);
	return rc;
}

/* Reads the parameter's name on the wire. Checks that no other parameter has
 * the same name in the same place. */
static void
check_wire(
    const struct http *h, const struct path *at, struct http_parameter *p)
{
	const struct doc_node *v = member(h, p->src, "name");
	struct path in = {at, (const uint8_t *)"name", 4, 0};

	p->wire = p->src->name;
	p->wirelen = p->src->namelen;
	if (v != NULL) {
		if (v->kind != DOC_STRING || v->len == 0 ||
		    v->len > HTTP_WIRE_MAX || p->in == HTTP_PATH) {
			report_add(h->r, &in,
			    p->in == HTTP_PATH
				? "a path parameter has the name in the URL"
				: "must be a string of 1 to %d bytes",
			    HTTP_WIRE_MAX);
			return;
		}
		p->wire = v->str;
		p->wirelen = v->len;
	}
	if (p->in == HTTP_HEADER)
		(void)field_name(h->r, &in, p->wire, p->wirelen);
	else if (p->in == HTTP_COOKIE && !http_token(p->wire, p->wirelen))
		report_add(h->r, &in, "is no name of a cookie");
	for (const struct http_parameter *o = h->parameter; o < p; o++)
		if (o->in == p->in && o->wirelen == p->wirelen &&
		    (p->in == HTTP_HEADER
			    ? strncasecmp((const char *)o->wire,
				  (const char *)p->wire, p->wirelen) == 0
			    : memcmp(o->wire, p->wire, p->wirelen) == 0))
			report_add(h->r, &in, "another parameter has it, too");
}

static bool
flag(const struct http *h, const struct path *at, const struct doc_node *o,
    const char *name, bool otherwise)
{
	struct path in = {at, (const uint8_t *)name, strlen(name), 0};
	const struct doc_node *v = member(h, o, name);

	if (v == NULL)
		return otherwise;
	if (v->kind != DOC_TRUE && v->kind != DOC_FALSE)
		report_add(h->r, &in, "must be true or false");
	return v->kind == DOC_TRUE;
}

static int
check_parameter(struct http *h, const struct path *at, const struct doc_node *v,
    struct err *e)
{
	static const char *const names[] = {
	    "in", "name", "required", "schema", "description", "style"};
	struct http_parameter *p = &h->parameter[h->nparameter];
	const struct doc_node *in, *style;
	size_t i = 0;
	bool ok = v->namelen <= HTTP_NAME_MAX && v->namelen > 0;

	for (size_t k = 0; ok && k < v->namelen; k++)
		ok = name_char(v->name[k], k == 0);
	if (!ok)
		report_add(h->r, at,
		    "its name must be at most %d letters, digits and "
		    "underscores; `name` says another one on the wire",
		    HTTP_NAME_MAX);
	if (v->kind != DOC_OBJECT) {
		report_add(h->r, at, "must be an object");
		return 0;
	}
	only(h, at, v, names, sizeof(names) / sizeof(names[0]));
	in = member(h, v, "in");
	while (i < sizeof(places) / sizeof(places[0]) &&
	    (in == NULL || !doc_is(in, places[i])))
		i++;
	if (i == sizeof(places) / sizeof(places[0])) {
		report_add(h->r, at,
		    "its `in` must be path, query, header, cookie or body");
		return 0;
	}
	*p = (struct http_parameter){.src = v,
	    .in = (enum http_in)i,
	    .schema = member(h, v, "schema"),
	    .text = member(h, v, "description")};
	p->required = flag(h, at, v, "required", p->in == HTTP_PATH);
	if (p->in == HTTP_PATH && !p->required)
		report_add(h->r, at, "a path parameter is required");
	if (p->text != NULL &&
	    (p->text->kind != DOC_STRING || p->text->len > HTTP_TEXT_MAX ||
		(p->schema != NULL && p->schema->kind == DOC_OBJECT &&
		    member(h, p->schema, "description") != NULL))) {
		report_add(h->r, at,
		    "its description must be one string of at most %d bytes, "
		    "here or in the schema",
		    HTTP_TEXT_MAX);
		p->text = NULL;
	}
	style = member(h, v, "style");
	if (style != NULL &&
	    (p->in != HTTP_QUERY ||
		(!doc_is(style, "repeat") && !doc_is(style, "comma"))))
		report_add(h->r, at,
		    "its style is for query parameters: repeat or comma");
	check_wire(h, at, p);
	h->nparameter++;
	return check_schema_of(h, at, p, e);
}

/* ---- fixed texts, with secrets ---- */

static void
add_secret(struct http *h, const struct path *at, const uint8_t *s, size_t n)
{
	for (unsigned i = 0; i < h->nsecret; i++)
		if (strlen(h->secret[i]) == n &&
		    memcmp(h->secret[i], s, n) == 0)
			return;
	if (h->nsecret == HTTP_SECRETS_MAX)
		report_add(
		    h->r, at, "names more than %d secrets", HTTP_SECRETS_MAX);
	else
		snprintf(h->secret[h->nsecret++], HTTP_SECRET_NAME, "%.*s",
		    (int)n, (const char *)s);
}

/* Finds each {secret:NAME} in a text. */
static void
find_secrets(struct http *h, const struct path *at, const struct doc_node *v)
{
	static const char mark[] = "{secret:";
	const size_t len = sizeof(mark) - 1;
	size_t n;

	for (size_t i = 0; i + len <= v->len; i++) {
		if (memcmp(v->str + i, mark, len) != 0)
			continue;
		for (n = 0; i + len + n < v->len; n++) {
			uint8_t c = v->str[i + len + n];

			if ((c < 'A' || c > 'Z') &&
			    (n == 0 || (c != '_' && (c < '0' || c > '9'))))
				break;
		}
		if (n == 0 || n >= HTTP_SECRET_NAME || i + len + n >= v->len ||
		    v->str[i + len + n] != '}')
			report_add(h->r, at,
			    "{secret:NAME} wants a name in upper case");
		else
			add_secret(h, at, v->str + i + len, n);
	}
}

static void
check_fixed(struct http *h, const char *what, const struct doc_node *o)
{
	struct path top = {NULL, (const uint8_t *)what, strlen(what), 0};
	bool header = strcmp(what, "headers") == 0;

	if (o == NULL)
		return;
	if (o->kind != DOC_OBJECT || o->count > HTTP_FIXED_MAX) {
		report_add(h->r, &top,
		    "must be an object of at most %d strings", HTTP_FIXED_MAX);
		return;
	}
	for (uint32_t i = 0; i < o->count; i++) {
		const struct doc_node *v = doc_kid(h->d, o, i);
		struct path at = {&top, v->name, v->namelen, 0};
		bool control = false;

		if (header && !field_name(h->r, &at, v->name, v->namelen))
			continue;
		if (v->kind != DOC_STRING || v->len > HTTP_TEXT_MAX) {
			report_add(h->r, &at,
			    "must be a string of at most %d bytes",
			    HTTP_TEXT_MAX);
			continue;
		}
		for (size_t k = 0; k < v->len; k++)
			control =
			    control || v->str[k] < ' ' || v->str[k] == 0x7f;
		if (control)
			report_add(
			    h->r, &at, "must not have control characters");
		find_secrets(h, &at, v);
		for (unsigned k = 0; k < h->nparameter; k++) {
			const struct http_parameter *p = &h->parameter[k];

			if (p->in == (header ? HTTP_HEADER : HTTP_QUERY) &&
			    p->wirelen == v->namelen &&
			    strncasecmp((const char *)p->wire,
				(const char *)v->name, v->namelen) == 0)
				report_add(h->r, &at,
				    "is a parameter, too: it can't be both");
		}
	}
}

/* ---- the body ---- */

static void
check_body(const struct http *h, const struct doc_node *v, bool bodiless)
{
	struct path at = {NULL, (const uint8_t *)"body", 4, 0};
	const struct http_parameter *one = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < h->nparameter; i++)
		if (h->parameter[i].in == HTTP_BODY) {
			one = &h->parameter[i];
			n++;
		}
	if (n > 0 && bodiless)
		report_add(h->r, &at, "GET, HEAD and OPTIONS have no body");
	if (v == NULL)
		return;
	if (n == 0)
		report_add(h->r, &at, "there is no parameter with in: body");
	else if (doc_is(v, "whole") || doc_is(v, "text")) {
		if (n != 1)
			report_add(h->r, &at,
			    "one parameter is the body: there must be no other "
			    "with in: body");
		else if (doc_is(v, "text") && one->types != SCHEMA_STRING)
			report_add(
			    h->r, &at, "its parameter must be of type string");
	} else if (doc_is(v, "form")) {
		for (unsigned i = 0; i < h->nparameter; i++)
			if (h->parameter[i].in == HTTP_BODY &&
			    (h->parameter[i].types == 0 ||
				(h->parameter[i].types & SCHEMA_OBJECT) != 0))
				report_add(h->r, &at,
				    "a form's parameters are text, numbers and "
				    "booleans, or lists of them");
	} else if (!doc_is(v, "json"))
		report_add(h->r, &at, "must be json, form, whole or text");
}

int
http_parameters(
    struct http *h, const struct doc_node *top, bool bodiless, struct err *e)
{
	struct path at = {NULL, (const uint8_t *)"parameters", 10, 0};
	const struct doc_node *v = member(h, top, "parameters");

	if (v != NULL &&
	    (v->kind != DOC_OBJECT || v->count > HTTP_PARAMETERS_MAX))
		report_add(h->r, &at,
		    "must be an object of at most %d parameters",
		    HTTP_PARAMETERS_MAX);
	else if (v != NULL)
		for (uint32_t i = 0; i < v->count; i++) {
			const struct doc_node *kid = doc_kid(h->d, v, i);
			struct path in = {&at, kid->name, kid->namelen, 0};

			if (check_parameter(h, &in, kid, e) == -1)
				return -1;
		}
	check_fixed(h, "query", member(h, top, "query"));
	check_fixed(h, "headers", member(h, top, "headers"));
	check_body(h, member(h, top, "body"), bodiless);
	return 0;
}

void
http_schema(const struct http *h, struct buf *out)
{
	struct jsonw w;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "object");
	jsonw_name(&w, "properties");
	jsonw_obj(&w);
	for (unsigned i = 0; i < h->nparameter; i++) {
		const struct http_parameter *p = &h->parameter[i];
		char name[HTTP_NAME_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)p->src->namelen,
		    (const char *)p->src->name);
		jsonw_name(&w, name);
		if (p->schema != NULL && p->text == NULL) {
			jsonw_raw(&w, p->schema->raw, p->schema->rawlen);
			continue;
		}
		jsonw_obj(&w);
		/* The schema's members, without its braces. */
		if (p->schema == NULL)
			jsonw_kv_str(&w, "type", "string");
		else if (p->schema->count > 0)
			jsonw_raw(
			    &w, p->schema->raw + 1, p->schema->rawlen - 2);
		if (p->text != NULL)
			jsonw_kv_strn(
			    &w, "description", p->text->str, p->text->len);
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
	jsonw_name(&w, "required");
	jsonw_arr(&w);
	for (unsigned i = 0; i < h->nparameter; i++)
		if (h->parameter[i].required)
			jsonw_strn(&w, h->parameter[i].src->name,
			    h->parameter[i].src->namelen);
	jsonw_arr_end(&w);
	jsonw_kv_bool(&w, "additionalProperties", false);
	jsonw_obj_end(&w);
}
