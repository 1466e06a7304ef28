/*
 * Local references: "#", "#/pointer" and "#anchor". Each is looked up once,
 * after the whole document was compiled, so references may point forward and in
 * circles.
 */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "num.h"
#include "schema_internal.h"

/* Reads one reference token. ~1 is a slash and ~0 a tilde (RFC 6901 section 4);
 * %XX is a byte, because the pointer is in a URI fragment. out must be as long
 * as the reference. */
static bool
token(const uint8_t **pp, const uint8_t *end, uint8_t *out, size_t *n)
{
	const uint8_t *p = *pp;

	for (*n = 0; p < end && *p != '/'; p++) {
		int c = *p;

		if (c == '%') {
			if (end - p < 3 || (c = hex_number(p + 1, 2)) < 0)
				return false;
			p += 2;
		}
		out[(*n)++] = (uint8_t)c;
	}
	*pp = p;
	/* The ~ escapes are decoded after the percent escapes. */
	{
		size_t k = 0;

		for (size_t i = 0; i < *n; i++) {
			if (out[i] != '~') {
				out[k++] = out[i];
			} else if (i + 1 < *n &&
			    (out[i + 1] == '0' || out[i + 1] == '1')) {
				out[k++] = out[++i] == '0' ? '~' : '/';
			} else {
				return false;
			}
		}
		*n = k;
	}
	return true;
}

/* Returns the schema whose $anchor is `name`, or NULL if none or several have
 * it. */
static const struct doc_node *
anchored(const struct schema *s, const uint8_t *name, size_t n)
{
	const struct doc_node *found = NULL, *anchor;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct doc_node *v = s->rule[i].src;

		if (v->kind != DOC_OBJECT)
			continue;
		anchor = doc_get(&s->doc, v, "$anchor");
		if (anchor == NULL || anchor->kind != DOC_STRING ||
		    anchor->len != n || memcmp(anchor->str, name, n) != 0)
			continue;
		if (found != NULL)
			return NULL;
		found = v;
	}
	return found;
}

/* Returns the element whose index is `name` in digits without a leading zero,
 * or NULL. */
static const struct doc_node *
element(const struct schema *s, const struct doc_node *v, const uint8_t *name,
    size_t n)
{
	struct num num;
	uint64_t i;

	for (size_t k = 0; k < n; k++)
		if (name[k] < '0' || name[k] > '9')
			return NULL;
	if (n == 0 || (name[0] == '0' && n > 1))
		return NULL;
	num = num_read(name, n);
	return num_u64(&num, UINT32_MAX, &i) && i < v->count
	    ? doc_kid(&s->doc, v, (uint32_t)i)
	    : NULL;
}

/* Returns the node that a local reference names. NULL: none. */
static const struct doc_node *
resolve(const struct schema *s, const struct doc_node *ref)
{
	const uint8_t *p = ref->str, *end = p + ref->len;
	const struct doc_node *v = &s->doc.node[0];
	uint8_t *name;
	size_t n;

	if (ref->len == 0 || *p++ != '#')
		return NULL;
	if (p < end && *p != '/')
		return anchored(s, p, (size_t)(end - p));
	if ((name = malloc(ref->len)) == NULL)
		return NULL;
	while (v != NULL && p < end) {
		bool slash = *p == '/';

		p++;
		if (!slash || !token(&p, end, name, &n))
			v = NULL;
		else if (v->kind == DOC_OBJECT)
			v = doc_member(&s->doc, v, name, n);
		else
			v = v->kind == DOC_ARRAY ? element(s, v, name, n)
						 : NULL;
	}
	free(name);
	return v;
}

static void
unknown(const struct schema *s, const struct doc_node *ref,
    const struct doc_node *v, const struct path *at, struct report *r)
{
	/* Find the path from v down to ref. A node's descendants come after the
	 * node and before its next sibling. So the path to ref leads through
	 * the last child that does not come after ref. */
	uint32_t lo = 0, hi = v->count;
	const struct doc_node *kid;

	if (v == ref) {
		report_add(r, at,
		    "\"%.*s\" names no schema of this document; write "
		    "#/$defs/NAME",
		    report_cut(ref->str, ref->len), (const char *)ref->str);
		return;
	}
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (doc_kid(&s->doc, v, mid) <= ref)
			lo = mid;
		else
			hi = mid;
	}
	kid = doc_kid(&s->doc, v, lo);
	unknown(
	    s, ref, kid, &(struct path){at, kid->name, kid->namelen, lo}, r);
}

void
schema_ref_all(struct schema *s, struct report *r)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct doc_node *ref = s->rule[i].ref, *to;

		if (ref == NULL || ref->kind != DOC_STRING)
			continue;
		to = resolve(s, ref);
		if (to == NULL || s->of_node[to - s->doc.node] == 0)
			unknown(s, ref, &s->doc.node[0], NULL, r);
		else
			s->rule[i].target = s->of_node[to - s->doc.node] - 1;
	}
}
