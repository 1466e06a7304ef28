/*
 * Writes schemas of OpenAPI 3.0 and 3.1 in the subset of docs/SCHEMAS.md.
 */
#include <stdio.h>
#include <string.h>

#include "openapi.h"

enum { DEPTH_MAX = 10, HOPS_MAX = 8 };

static bool
same(const struct doc_node *member, const char *name)
{
	return member->namelen == strlen(name) &&
	    memcmp(member->name, name, member->namelen) == 0;
}

/* Returns the node of this document that a reference like "#/a/b~1c" names, or
 * NULL. */
static const struct doc_node *
follow(const struct openapi *o, const struct doc_node *ref)
{
	const struct doc_node *v = &o->d->node[0];
	const uint8_t *s = ref->str, *end = ref->str + ref->len;
	uint8_t name[256];

	if (ref->kind != DOC_STRING || ref->len < 2 || s[0] != '#' ||
	    s[1] != '/')
		return NULL;
	for (s += 2; v != NULL && v->kind == DOC_OBJECT; s++) {
		size_t n = 0;

		for (; s < end && *s != '/'; s++) {
			if (n == sizeof(name))
				return NULL;
			name[n++] = *s;
			if (*s == '~' && s + 1 < end)
				name[n - 1] = *++s == '1' ? '/' : '~';
		}
		v = doc_member(o->d, v, name, n);
		if (s >= end)
			return v;
	}
	return NULL;
}

const struct doc_node *
openapi_resolve(const struct openapi *o, const struct doc_node *v)
{
	for (unsigned hops = 0; v != NULL && v->kind == DOC_OBJECT; hops++) {
		const struct doc_node *ref = doc_get(o->d, v, "$ref");

		if (ref == NULL)
			return v;
		if (hops == HOPS_MAX)
			return NULL;
		v = follow(o, ref);
	}
	return v;
}

static bool
is_true(const struct openapi *o, const struct doc_node *v, const char *name)
{
	const struct doc_node *m = doc_get(o->d, v, name);

	return m != NULL && m->kind == DOC_TRUE;
}

/* Returns whether m is a keyword that is taken over as it is. */
static bool
is_plain(const struct doc_node *m)
{
	static const char *const names[] = {"title", "enum", "const",
	    "multipleOf", "maxLength", "minLength", "pattern", "maxItems",
	    "minItems", "uniqueItems", "minProperties", "maxProperties",
	    "default", "format", "deprecated", "writeOnly"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (same(m, names[i]))
			return true;
	return false;
}

static void
name_of(struct jsonw *w, const struct doc_node *m)
{
	char name[HTTP_WIRE_MAX + 1];

	snprintf(name, sizeof(name), "%.*s",
	    m->namelen < sizeof(name) ? (int)m->namelen : 0,
	    (const char *)m->name);
	jsonw_name(w, name);
}

/* Writes `type`. In OpenAPI 3.0 `nullable` adds null to it. */
static void
type_of(const struct openapi *o, struct jsonw *w, const struct doc_node *v,
    const struct doc_node *type)
{
	if (type->kind != DOC_STRING || !is_true(o, v, "nullable")) {
		jsonw_kv_raw(w, "type", type->raw, type->rawlen);
		return;
	}
	jsonw_name(w, "type");
	jsonw_arr(w);
	jsonw_raw(w, type->raw, type->rawlen);
	jsonw_str(w, "null");
	jsonw_arr_end(w);
}

/* Writes a bound and its exclusive form, such as minimum and exclusiveMinimum.
 * In OpenAPI 3.0 the exclusive form is a boolean. */
static void
bound(const struct openapi *o, struct jsonw *w, const struct doc_node *v,
    const char *name, const char *exclusive)
{
	const struct doc_node *m = doc_get(o->d, v, name);
	const struct doc_node *x = doc_get(o->d, v, exclusive);

	if (x != NULL && x->kind == DOC_NUMBER)
		jsonw_kv_raw(w, exclusive, x->raw, x->rawlen);
	if (m != NULL && m->kind == DOC_NUMBER)
		jsonw_kv_raw(w,
		    x != NULL && x->kind == DOC_TRUE ? exclusive : name, m->raw,
		    m->rawlen);
}

/* Returns whether only the server sends this property, so that it can't be an
 * argument. */
static bool
is_read_only(const struct openapi *o, const struct doc_node *property)
{
	const struct doc_node *v = openapi_resolve(o, property);

	return v != NULL && v->kind == DOC_OBJECT && is_true(o, v, "readOnly");
}

static void
properties_of(struct openapi *o, struct jsonw *w, const struct doc_node *v,
    const struct doc_node *all, unsigned depth)
{
	const struct doc_node *need = doc_get(o->d, v, "required");

	jsonw_name(w, "properties");
	jsonw_obj(w);
	for (uint32_t i = 0; i < all->count; i++) {
		const struct doc_node *kid = doc_kid(o->d, all, i);

		if (kid->namelen > HTTP_WIRE_MAX || is_read_only(o, kid))
			continue;
		name_of(w, kid);
		openapi_schema(o, w, kid, true, depth + 1);
	}
	jsonw_obj_end(w);
	if (need == NULL || need->kind != DOC_ARRAY)
		return;
	jsonw_name(w, "required");
	jsonw_arr(w);
	for (uint32_t i = 0; i < need->count; i++) {
		const struct doc_node *name = doc_kid(o->d, need, i);
		const struct doc_node *p = name->kind == DOC_STRING
		    ? doc_member(o->d, all, name->str, name->len)
		    : NULL;

		if (p == NULL || !is_read_only(o, p))
			jsonw_raw(w, name->raw, name->rawlen);
	}
	jsonw_arr_end(w);
}

static void
list_of(struct openapi *o, struct jsonw *w, const struct doc_node *m,
    unsigned depth)
{
	name_of(w, m);
	jsonw_arr(w);
	for (uint32_t i = 0; i < m->count; i++)
		openapi_schema(o, w, doc_kid(o->d, m, i), true, depth + 1);
	jsonw_arr_end(w);
}

void
openapi_schema(struct openapi *o, struct jsonw *w, const struct doc_node *given,
    bool described, unsigned depth)
{
	const struct doc_node *v = openapi_resolve(o, given);

	/* A schema that contains itself is cut at DEPTH_MAX, and allows
	 * anything there. */
	if (v == NULL || v->kind != DOC_OBJECT || depth > DEPTH_MAX ||
	    --o->budget < 0) {
		if (v != NULL && v->kind == DOC_FALSE)
			jsonw_raw(w, v->raw, v->rawlen);
		else {
			jsonw_obj(w);
			jsonw_obj_end(w);
		}
		return;
	}
	jsonw_obj(w);
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(o->d, v, i);

		if (is_plain(m) || (described && same(m, "description"))) {
			name_of(w, m);
			jsonw_raw(w, m->raw, m->rawlen);
		} else if (same(m, "type")) {
			type_of(o, w, v, m);
		} else if (same(m, "properties") && m->kind == DOC_OBJECT) {
			properties_of(o, w, v, m, depth);
		} else if (same(m, "items") || same(m, "not") ||
		    (same(m, "additionalProperties"))) {
			name_of(w, m);
			openapi_schema(o, w, m, true, depth + 1);
		} else if ((same(m, "allOf") || same(m, "anyOf") ||
			       same(m, "oneOf")) &&
		    m->kind == DOC_ARRAY) {
			list_of(o, w, m, depth);
		}
	}
	bound(o, w, v, "minimum", "exclusiveMinimum");
	bound(o, w, v, "maximum", "exclusiveMaximum");
	if (doc_get(o->d, v, "properties") == NULL) {
		const struct doc_node *need = doc_get(o->d, v, "required");

		if (need != NULL && need->kind == DOC_ARRAY)
			jsonw_kv_raw(w, "required", need->raw, need->rawlen);
	}
	jsonw_obj_end(w);
}
