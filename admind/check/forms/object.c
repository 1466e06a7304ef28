/* Checks prompts and resources that are created or updated, and makes the JSON
 * Schema for the arguments of their calls. The schema is made only of names
 * that were judged. With it, the calls of all kinds of objects are checked in
 * one way. */
#include <stdlib.h>
#include <string.h>

#include "jsonw.h"
#include "management_tools.h"
#include "object.h"
#include "schema.h"
#include "tlv.h"
#include "uri_template.h"

static const struct doc_node *
get(const struct doc *d, const char *name)
{
	return doc_get(d, &d->node[0], name);
}

static void
wrong(struct report *r, const char *name, const char *text)
{
	struct path at = {NULL, (const uint8_t *)name, strlen(name), 0};

	report_add(r, &at, "%s", text);
}

/* ---- schemas ---- */

static void
open_schema(struct jsonw *w, struct buf *b)
{
	jsonw_open(w, b);
	jsonw_obj(w);
	jsonw_kv_str(w, "type", "object");
	jsonw_name(w, "properties");
	jsonw_obj(w);
}

static int
put_schema(struct check *c, struct jsonw *w, struct buf *b, struct err *e)
{
	int rc = 0;

	jsonw_kv_bool(w, "additionalProperties", false);
	jsonw_obj_end(w);
	if (b->failed)
		rc = err_set(e, FAILURE_LIMIT,
		    "the arguments' schema would have more than %d bytes",
		    SCHEMA_MAX);
	else
		tlv_put(&c->fields, MF_OBJECT_SCHEMA, b->p, b->len);
	buf_free(b);
	return rc;
}

/* ---- prompts ---- */

/* Reports a name that two arguments have. The management tool's schema made
 * sure that each argument is an object with a name of letters. */
static void
arguments(struct report *r, const struct doc *d, const struct doc_node *list)
{
	struct path top = {NULL, (const uint8_t *)"arguments", 9, 0};
	const struct doc_node *a, *b;
	uint32_t i, k;

	for (i = 0; i < list->count; i++) {
		struct path at = {&top, NULL, 0, i};

		a = doc_get(d, doc_kid(d, list, i), "name");
		for (k = 0; k < i; k++) {
			b = doc_get(d, doc_kid(d, list, k), "name");
			if (a->len == b->len &&
			    memcmp(a->str, b->str, a->len) == 0)
				report_add(r, &at,
				    "has the name of an argument before it");
		}
	}
}

static int
prompt_schema(struct check *c, const struct doc *d, const struct doc_node *list,
    struct err *e)
{
	const struct doc_node *a, *v;
	bool any = false;
	struct jsonw w;
	struct buf b;
	uint32_t i, n = list != NULL ? list->count : 0;

	buf_init(&b, SCHEMA_MAX);
	open_schema(&w, &b);
	for (i = 0; i < n; i++) {
		a = doc_kid(d, list, i);
		v = doc_get(d, a, "name");
		jsonw_name(&w, (const char *)v->str);
		jsonw_obj(&w);
		jsonw_kv_str(&w, "type", "string");
		if ((v = doc_get(d, a, "description")) != NULL)
			jsonw_kv_strn(
			    &w, "description", (const char *)v->str, v->len);
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
	for (i = 0; i < n; i++) {
		a = doc_kid(d, list, i);
		if ((v = doc_get(d, a, "required")) == NULL ||
		    v->kind != DOC_TRUE)
			continue;
		if (!any) {
			jsonw_name(&w, "required");
			jsonw_arr(&w);
		}
		any = true;
		v = doc_get(d, a, "name");
		jsonw_strn(&w, (const char *)v->str, v->len);
	}
	if (any)
		jsonw_arr_end(&w);
	return put_schema(c, &w, &b, e);
}

/* Checks that at most one of these names is given, and for `create` exactly
 * one. */
static void
one_of(struct report *r, const struct doc *d, bool create,
    const char *const *names, const char *text)
{
	unsigned n = 0;

	for (; *names != NULL; names++)
		n += get(d, *names) != NULL;
	if (n > 1 || (create && n == 0))
		report_add(r, NULL, "%s", text);
}

int
object_prompt(struct check *c, struct report *r, const struct doc *d,
    bool create, struct err *e)
{
	static const char *const content[] = {"text", "python_code", NULL};
	const struct doc_node *list = get(d, "arguments");

	one_of(r, d, create, content,
	    "a prompt is made of text or of python_code, one of them");
	if (list != NULL)
		arguments(r, d, list);
	else if (!create)
		return 0;
	else
		tlv_puts(&c->fields, MF_ARGUMENTS, "[]");
	return r->n > 0 ? 0 : prompt_schema(c, d, list, e);
}

/* ---- resources ---- */

/* Returns whether v is base64 (RFC 4648 section 4) in its canonical form. Other
 * forms are refused, so that one content has one hash. */
static bool
base64(const struct doc_node *v)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = v->len, pads = 0;
	const char *last;

	if (n % 4 != 0)
		return false;
	while (n > 0 && pads < 2 && v->str[n - 1] == '=') {
		n--;
		pads++;
	}
	for (size_t i = 0; i < n; i++)
		if (v->str[i] == 0 || strchr(digits, v->str[i]) == NULL)
			return false;
	if (pads == 0)
		return true;
	/* In the canonical form, the bits of the last digit that belong to no
	 * byte are zero. */
	last = strchr(digits, v->str[n - 1]);
	return ((last - digits) & (pads == 1 ? 3 : 15)) == 0;
}

static int
template_schema(struct check *c, const struct uri_template *t, struct err *e)
{
	struct jsonw w;
	struct buf b;
	size_t i;

	buf_init(&b, SCHEMA_MAX);
	open_schema(&w, &b);
	for (i = 0; i < t->parts; i++) {
		char name[NAME_VARIABLE_MAX + 1] = "";

		if (!t->part[i].variable)
			continue;
		memcpy(name, t->part[i].p, t->part[i].n);
		jsonw_name(&w, name);
		jsonw_obj(&w);
		jsonw_kv_str(&w, "type", "string");
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
	jsonw_name(&w, "required");
	jsonw_arr(&w);
	for (i = 0; i < t->parts; i++)
		if (t->part[i].variable)
			jsonw_strn(&w, t->part[i].p, t->part[i].n);
	jsonw_arr_end(&w);
	return put_schema(c, &w, &b, e);
}

/* Checks that each described argument is a variable of the template. */
static void
variables(struct report *r, const struct doc *d, const struct doc_node *list,
    const struct uri_template *t)
{
	struct path top = {NULL, (const uint8_t *)"arguments", 9, 0};
	const struct doc_node *a;
	bool found;

	for (uint32_t i = 0; i < list->count; i++) {
		struct path at = {&top, NULL, 0, i};

		a = doc_get(d, doc_kid(d, list, i), "name");
		found = false;
		for (size_t k = 0; k < t->parts; k++)
			found = found ||
			    (t->part[k].variable && t->part[k].n == a->len &&
				memcmp(t->part[k].p, a->str, a->len) == 0);
		if (!found)
			report_add(r, &at, "is no variable of uri_template");
	}
}

static int template(struct check *c, struct report *r, const struct doc *d,
    const struct doc_node *v, struct err *e)
{
	const struct doc_node *list = get(d, "arguments");
	struct uri_template t;
	struct err why;

	if (get(d, "text") != NULL || get(d, "blob") != NULL)
		wrong(r, "uri_template",
		    "a template's resources are read by python_code");
	if (uri_template_parse((const char *)v->str, v->len, &t, &why) == -1) {
		wrong(r, "uri_template", why.text);
		return 0;
	}
	if (list != NULL)
		variables(r, d, list, &t);
	return r->n > 0 ? 0 : template_schema(c, &t, e);
}

int
object_resource(struct check *c, struct report *r, const struct doc *d,
    bool create, struct err *e)
{
	static const char *const content[] = {
	    "text", "blob", "python_code", NULL};
	static const char *const where[] = {"uri", "uri_template", NULL};
	const struct doc_node *uri = get(d, "uri"), *list, *v;
	struct jsonw w;
	struct err why;
	struct buf b;

	one_of(r, d, create, where,
	    "a resource has uri, a template uri_template; one of them");
	one_of(r, d, create, content,
	    "a resource is made of text, blob or python_code, one of them");
	if ((v = get(d, "blob")) != NULL && !base64(v))
		wrong(r, "blob", "must be base64 (RFC 4648 section 4)");
	if ((list = get(d, "arguments")) != NULL)
		arguments(r, d, list);
	if ((v = get(d, "uri_template")) != NULL)
		return template(c, r, d, v, e);
	if (uri != NULL && list != NULL)
		wrong(r, "arguments", "are for uri_template only");
	if (uri != NULL &&
	    uri_check((const char *)uri->str, uri->len, &why) == -1)
		wrong(r, "uri", why.text);
	if (uri == NULL || r->n > 0)
		return 0;
	buf_init(&b, SCHEMA_MAX);
	open_schema(&w, &b);
	jsonw_obj_end(&w);
	return put_schema(c, &w, &b, e);
}
