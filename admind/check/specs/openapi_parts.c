/* Reads the arguments of an operation. They come from its own parameters, from
 * the parameters of its path, and from its body. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "openapi.h"

const struct doc_node *
openapi_get(const struct openapi_operation *p, const struct doc_node *v,
    const char *name)
{
	v = openapi_resolve(p->o, v);
	if (v == NULL || v->kind != DOC_OBJECT)
		return NULL;
	return openapi_resolve(p->o, doc_get(p->o->d, v, name));
}

static bool
is_set(const struct openapi_operation *p, const struct doc_node *v,
    const char *name)
{
	const struct doc_node *m = openapi_get(p, v, name);

	return m != NULL && m->kind == DOC_TRUE;
}

void
openapi_leave_out(struct openapi_operation *p, const char *why)
{
	if (p->reason[0] == '\0')
		snprintf(p->reason, sizeof(p->reason), "%s", why);
}

/* ---- names ---- */

static bool
letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* Makes an argument's name: pet-id becomes pet_id. If another argument has that
 * name, the parameter's place is appended (pet_id_query). */
static void
argument_name(struct openapi_operation *p, const struct openapi_part *part,
    const uint8_t *s, size_t n)
{
	char *out = p->part[p->n].name;
	size_t len = 0;

	if (n == 0 || digit(s[0]))
		out[len++] = '_';
	for (size_t i = 0; i < n && len < HTTP_NAME_MAX - 8; i++)
		out[len++] = letter(s[i]) || digit(s[i]) ? (char)s[i] : '_';
	out[len] = '\0';
	for (unsigned i = 0; i < p->n; i++)
		if (strcmp(p->part[i].name, out) == 0) {
			snprintf(out + len, HTTP_NAME_MAX + 1 - len, "_%s",
			    part->in);
			break;
		}
}

static struct openapi_part *
add_part(
    struct openapi_operation *p, const char *in, const uint8_t *wire, size_t n)
{
	struct openapi_part *part;

	if (p->n == OPENAPI_PARTS_MAX || n > HTTP_WIRE_MAX) {
		openapi_leave_out(p,
		    "it has more than 64 parameters, or one whose "
		    "name is too long");
		return NULL;
	}
	part = &p->part[p->n];
	*part = (struct openapi_part){.in = in, .wire = wire, .wirelen = n};
	argument_name(p, part, wire, n);
	p->n++;
	return part;
}

size_t
openapi_snake(const uint8_t *s, size_t n, char *out, size_t max)
{
	size_t len = 0;

	for (size_t i = 0; i < n && len + 2 < max; i++) {
		bool upper = s[i] >= 'A' && s[i] <= 'Z';

		if (!letter(s[i]) && !digit(s[i])) {
			if (len > 0 && out[len - 1] != '_')
				out[len++] = '_';
			continue;
		}
		if (upper && len > 0 && out[len - 1] != '_' &&
		    (!(s[i - 1] >= 'A' && s[i - 1] <= 'Z') ||
			(i + 1 < n && s[i + 1] >= 'a' && s[i + 1] <= 'z')))
			out[len++] = '_';
		out[len++] = (char)(upper ? s[i] + 'a' - 'A' : s[i]);
	}
	while (len > 0 && out[len - 1] == '_')
		len--;
	out[len] = '\0';
	return len;
}

/* ---- parameters ---- */

/* Returns the schema of a parameter: its member `schema`, or the schema of its
 * only content. */
static const struct doc_node *
schema_of(const struct openapi_operation *p, const struct doc_node *v)
{
	const struct doc_node *s = openapi_get(p, v, "schema"), *content;

	if (s != NULL)
		return s;
	content = openapi_get(p, v, "content");
	if (content == NULL || content->kind != DOC_OBJECT ||
	    content->count == 0)
		return NULL;
	return openapi_get(p, doc_kid(p->o->d, content, 0), "schema");
}

static void
parameter(struct openapi_operation *p, const struct doc_node *v)
{
	static const char *const places[] = {
	    "path", "query", "header", "cookie"};
	static const char *const ignored[] = {
	    "Accept", "Content-Type", "Authorization"};
	const struct doc_node *name = openapi_get(p, v, "name"),
			      *in = openapi_get(p, v, "in");
	const struct doc_node *explode = openapi_get(p, v, "explode");
	struct openapi_part *part;
	size_t i = 0;

	while (i < 4 && (in == NULL || !doc_is(in, places[i])))
		i++;
	if (i == 4 || name == NULL || name->kind != DOC_STRING) {
		openapi_leave_out(p, "a parameter has no usable `in` and name");
		return;
	}
	for (size_t k = 0; i == 2 && k < 3; k++)
		if (strcasecmp((const char *)name->str, ignored[k]) == 0)
			return; /* OpenAPI 3 says that these are no
				 * parameters */
	for (unsigned k = 0; k < p->n; k++)
		if (strcmp(p->part[k].in, places[i]) == 0 &&
		    p->part[k].wirelen == name->len &&
		    memcmp(p->part[k].wire, name->str, name->len) == 0)
			return; /* the operation's own parameter came first */
	if ((part = add_part(p, places[i], name->str, name->len)) == NULL)
		return;
	part->schema = schema_of(p, v);
	part->text = openapi_get(p, v, "description");
	part->required = is_set(p, v, "required") || i == 0;
	part->comma = i == 1 && explode != NULL && explode->kind == DOC_FALSE;
}

static void
parameters(struct openapi_operation *p, const struct doc_node *list)
{
	if (list == NULL || list->kind != DOC_ARRAY)
		return;
	for (uint32_t i = 0; i < list->count; i++)
		parameter(p, openapi_resolve(p->o, doc_kid(p->o->d, list, i)));
}

/* ---- the body ---- */

static bool
lists(const struct openapi_operation *p, const struct doc_node *names,
    const struct doc_node *member)
{
	for (uint32_t i = 0;
	    names != NULL && names->kind == DOC_ARRAY && i < names->count;
	    i++) {
		const struct doc_node *v = doc_kid(p->o->d, names, i);

		if (v->kind == DOC_STRING && v->len == member->namelen &&
		    memcmp(v->str, member->name, v->len) == 0)
			return true;
	}
	return false;
}

/* Makes each member of an object an argument. Returns false if the schema has
 * no named members, or too many, or combines schemas. */
static bool
by_members(
    struct openapi_operation *p, const struct doc_node *schema, bool required)
{
	const struct doc_node *all = openapi_get(p, schema, "properties");
	const struct doc_node *need = openapi_get(p, schema, "required");

	if (all == NULL || all->kind != DOC_OBJECT || all->count == 0 ||
	    all->count > OPENAPI_PARTS_MAX - p->n ||
	    openapi_get(p, schema, "allOf") != NULL ||
	    openapi_get(p, schema, "oneOf") != NULL ||
	    openapi_get(p, schema, "anyOf") != NULL)
		return false;
	for (uint32_t i = 0; i < all->count; i++) {
		const struct doc_node *kid = doc_kid(p->o->d, all, i);
		struct openapi_part *part;

		if (is_set(p, kid, "readOnly"))
			continue;
		part = add_part(p, "body", kid->name, kid->namelen);
		if (part == NULL)
			return true; /* the operation is left out */
		part->schema = kid;
		part->required = required && lists(p, need, kid);
	}
	return true;
}

static void
request_body(struct openapi_operation *p)
{
	static const struct {
		const char *media, *body;
	} kinds[] = {{"application/json", "json"},
	    {"application/x-www-form-urlencoded", "form"},
	    {"text/plain", "text"}};
	const struct doc_node *v = openapi_get(p, p->src, "requestBody");
	const struct doc_node *content = openapi_get(p, v, "content"),
			      *media = NULL;
	const struct doc_node *schema;
	bool required = is_set(p, v, "required");
	struct openapi_part *part;

	if (v == NULL)
		return;
	for (size_t i = 0; i < 3 && media == NULL; i++) {
		media = openapi_get(p, content, kinds[i].media);
		if (media != NULL)
			p->body = kinds[i].body;
	}
	if (media == NULL) {
		if (required)
			openapi_leave_out(p,
			    "its body is neither JSON nor a form nor "
			    "text");
		return;
	}
	schema = openapi_get(p, media, "schema");
	if (strcmp(p->body, "text") != 0 && by_members(p, schema, required))
		return;
	if (strcmp(p->body, "form") == 0) {
		openapi_leave_out(p, "its form has no named members");
		return;
	}
	if (strcmp(p->body, "json") == 0)
		p->body = "whole";
	if ((part = add_part(p, "body", (const uint8_t *)"body", 4)) == NULL)
		return;
	part->schema = strcmp(p->body, "text") == 0 ? NULL : schema;
	part->text = openapi_get(p, v, "description");
	part->required = required;
}

void
openapi_parts(struct openapi_operation *p)
{
	parameters(p, openapi_get(p, p->src, "parameters"));
	parameters(p, openapi_get(p, p->item, "parameters"));
	request_body(p);
}
