#include <stdio.h>
#include <string.h>

#include "access_read.h"
#include "bounds.h"
#include "num.h"
#include "tlv.h"

enum { KNOWN_MAX = 512 }; /* bytes of the list of an object's members */

static const struct path *
place(const struct access_at *at)
{
	return at->root ? NULL : &at->path;
}

void
access_fault(
    struct access_doc *a, const struct access_at *at, const char *sentence)
{
	report_add(a->r, place(at), "%s", sentence);
}

/* Writes the members' names with a comma between two. */
static void
list_members(const struct access_member *m, char out[KNOWN_MAX])
{
	size_t n = 0;

	out[0] = '\0';
	for (; m->name != NULL && n < KNOWN_MAX; m++)
		n += (size_t)snprintf(
		    out + n, KNOWN_MAX - n, "%s%s", n > 0 ? ", " : "", m->name);
}

bool
access_object(struct access_doc *a, const struct access_at *at,
    const struct access_member *members)
{
	const struct access_member *m;
	const struct doc_node *kid;
	char known[KNOWN_MAX];

	if (at->v == NULL || at->v->kind != DOC_OBJECT) {
		access_fault(a, at, "must be an object");
		return false;
	}
	for (uint32_t i = 0; i < at->v->count; i++) {
		kid = doc_kid(a->d, at->v, i);
		for (m = members; m->name != NULL; m++)
			if (strlen(m->name) == kid->namelen &&
			    memcmp(m->name, kid->name, kid->namelen) == 0)
				break;
		if (m->name == NULL) {
			struct path p = {place(at), kid->name, kid->namelen, 0};

			list_members(members, known);
			report_add(a->r, &p,
			    "is unknown here: the members are %s", known);
		}
	}
	for (m = members; m->name != NULL; m++)
		if (m->needed && doc_get(a->d, at->v, m->name) == NULL)
			report_add(
			    a->r, place(at), "must have \"%s\"", m->name);
	return true;
}

struct access_at
access_get(
    struct access_doc *a, const struct access_at *object, const char *name)
{
	return (struct access_at){.v = doc_get(a->d, object->v, name),
	    .path = {place(object), (const uint8_t *)name, strlen(name), 0}};
}

struct access_at
access_entry(struct access_doc *a, const struct access_at *array, uint32_t i)
{
	return (struct access_at){.v = doc_kid(a->d, array->v, i),
	    .path = {place(array), NULL, 0, i}};
}

uint32_t
access_count(struct access_doc *a, const struct access_at *at, unsigned max)
{
	if (at->v == NULL)
		return 0;
	if (at->v->kind != DOC_ARRAY) {
		access_fault(a, at, "must be an array");
		return 0;
	}
	if (at->v->count <= max)
		return at->v->count;
	report_add(a->r, place(at), "has %u entries, and may have %u",
	    at->v->count, max);
	return max;
}

bool
access_text(struct access_doc *a, const struct access_at *at, access_form *form)
{
	const char *fault;

	if (at->v == NULL)
		return false;
	if (at->v->kind != DOC_STRING) {
		access_fault(a, at, "must be a string");
		return false;
	}
	if ((fault = form(at->v->str, at->v->len)) != NULL)
		access_fault(a, at, fault);
	return fault == NULL;
}

/* Tells whether an entry before the i-th is the same text. */
static bool
is_again(struct access_doc *a, const struct doc_node *list, uint32_t i)
{
	const struct doc_node *v = doc_kid(a->d, list, i), *w;

	for (uint32_t k = 0; k < i; k++) {
		w = doc_kid(a->d, list, k);
		if (w->hash == v->hash && w->kind == DOC_STRING &&
		    w->len == v->len && memcmp(w->str, v->str, v->len) == 0)
			return true;
	}
	return false;
}

bool
access_texts(struct access_doc *a, const struct access_at *at,
    const struct access_list *list)
{
	uint32_t n = access_count(a, at, list->max);
	bool good = true;

	if (at->v == NULL || at->v->kind != DOC_ARRAY)
		return false;
	if (at->v->count < list->min) {
		access_fault(a, at, list->none);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct access_at one = access_entry(a, at, i);

		if (!access_text(a, &one, list->form)) {
			good = false;
		} else if (is_again(a, at->v, i)) {
			access_fault(a, &one, "is in the list already");
			good = false;
		}
	}
	return good && n == at->v->count;
}

unsigned
access_word(struct access_doc *a, const struct access_at *at,
    const char *const *words, unsigned usual)
{
	char known[KNOWN_MAX] = "";
	size_t n = 0;

	if (at->v == NULL)
		return usual;
	for (unsigned i = 0; words[i] != NULL; i++)
		if (doc_is(at->v, words[i]))
			return i;
	for (; *words != NULL && n < sizeof(known); words++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s\"%s\"",
		    n > 0 ? " or " : "", *words);
	report_add(a->r, place(at), "must be %s", known);
	return usual;
}

bool
access_bool(struct access_doc *a, const struct access_at *at)
{
	if (at->v == NULL)
		return false;
	if (at->v->kind != DOC_TRUE && at->v->kind != DOC_FALSE)
		access_fault(a, at, "must be true or false");
	return at->v->kind == DOC_TRUE;
}

uint64_t
access_number(struct access_doc *a, const struct access_at *at, uint64_t max,
    uint64_t usual)
{
	struct num num;
	uint64_t u;

	if (at->v == NULL)
		return usual;
	if (at->v->kind == DOC_NUMBER) {
		num = num_read(at->v->raw, at->v->rawlen);
		if (num_u64(&num, max, &u))
			return u;
	}
	report_add(a->r, place(at), "must be an integer from 0 to %llu",
	    (unsigned long long)max);
	return usual;
}

void
access_put_u8(struct buf *b, uint8_t tag, unsigned value)
{
	uint8_t u = (uint8_t)value;

	tlv_put(b, tag, &u, 1);
}

void
access_put_texts(struct access_doc *a, const struct access_at *at,
    struct buf *b, uint8_t tag)
{
	for (uint32_t i = 0; i < at->v->count; i++) {
		const struct doc_node *v = doc_kid(a->d, at->v, i);

		tlv_put(b, tag, v->str, v->len);
	}
}

void
access_put_record(struct access_doc *a, uint8_t tag, struct buf *record)
{
	if (record->failed)
		a->fields->failed = true;
	tlv_put(a->fields, tag, record->p, record->len);
	buf_free(record);
}

void
access_unique(struct access_doc *a, const struct access_at *list, uint32_t i,
    const char *member)
{
	struct access_at entry = access_entry(a, list, i);
	struct access_at at = access_get(a, &entry, member);
	const struct doc_node *other;

	if (at.v == NULL || at.v->kind != DOC_STRING)
		return;
	for (uint32_t k = 0; k < i; k++) {
		other = doc_get(a->d, doc_kid(a->d, list->v, k), member);
		if (other != NULL && other->kind == DOC_STRING &&
		    other->len == at.v->len &&
		    memcmp(other->str, at.v->str, other->len) == 0) {
			report_add(a->r, &at.path,
			    "is the \"%s\" of an entry before it", member);
			return;
		}
	}
}
