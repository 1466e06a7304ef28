#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "bounds.h"
#include "num.h"
#include "doc.h"
#include "json_scan.h"
#include "fnv.h"
#include "utf8.h"
#include "walk.h"

/* The state while the tree is built. The recursion is at most JSON_DEPTH_MAX
 * deep. */
struct build {
	struct doc *d;
	const uint8_t *p;
	uint8_t *out;    /* next free byte of strings */
	uint32_t *slots; /* next free number of index */
	uint32_t cap;
};

static void
space(struct build *b)
{
	/* space() is called only where more text must follow (json_scan made
	 * sure of that), so there is always a byte to look at. */
	while (walk_space(*b->p))
		b->p++;
}

/* Unescapes the string at b->p. No escape is shorter than its character, and
 * the NUL takes less room than the two quotes, so the strings together are
 * never longer than the text. */
static void
string(struct build *b, const uint8_t **s, size_t *n)
{
	uint8_t utf8[UTF8_MAX];
	size_t len;

	*s = b->out;
	for (b->p++; *b->p != '"';)
		if (*b->p != '\\') {
			*b->out++ = *b->p++;
		} else {
			len = utf8_encode(json_slice_point(&b->p), utf8);
			memcpy(b->out, utf8, len);
			b->out += len;
		}
	b->p++;
	*n = (size_t)(b->out - *s);
	*b->out++ = '\0';
}

/* Hashes a string as a value. */
static uint32_t
hash_string(const uint8_t *p, size_t n)
{
	return fnv_bytes(fnv_add(DOC_STRING, 0), p, n);
}

static int
name_order(const uint8_t *a, size_t n, const uint8_t *b, size_t m)
{
	int c = memcmp(a, b, n < m ? n : m);

	return c != 0 ? c : (n > m) - (n < m);
}

static int
by_name(const void *va, const void *vb, void *arg)
{
	const struct doc_node *node = arg;
	const struct doc_node *a = &node[*(const uint32_t *)va];
	const struct doc_node *b = &node[*(const uint32_t *)vb];

	return name_order(a->name, a->namelen, b->name, b->namelen);
}

/* value() appends a node for the value at b->p. container() appends the nodes
 * of the children of `me`, each child followed by its own children. finish()
 * lists the children's numbers later, when all nodes are there. */
static int value(struct build *, struct err *);

static int
container(struct build *b, uint32_t me, struct err *e)
{
	struct doc *d = b->d;
	bool object = *b->p == '{';
	uint32_t count = 0, kid;

	b->p++;
	for (;;) {
		const uint8_t *name = NULL;
		size_t n = 0;

		space(b);
		if (*b->p == (object ? '}' : ']'))
			break;
		if (*b->p == ',') {
			b->p++;
			space(b);
		}
		if (object) {
			string(b, &name, &n);
			space(b);
			b->p++; /* colon */
		}
		kid = d->n;
		if (value(b, e) == -1)
			return -1;
		d->node[kid].name = name;
		d->node[kid].namelen = n;
		count++;
	}
	b->p++;
	d->node[me].count = count;
	return 0;
}

static int
value(struct build *b, struct err *e)
{
	struct doc *d = b->d;
	struct doc_node *v;
	uint32_t me = d->n;
	const uint8_t *s;
	size_t n;

	if (d->n == b->cap) {
		uint32_t cap = b->cap ? b->cap * 2 : 32;
		struct doc_node *node =
		    reallocarray(d->node, cap, sizeof(*node));

		if (node == NULL)
			return err_set(e, FAILURE_INTERNAL, "out of memory");
		d->node = node;
		b->cap = cap;
	}
	space(b);
	v = &d->node[d->n++];
	memset(v, 0, sizeof(*v));
	v->raw = b->p;
	switch (*b->p) {
	case '{':
	case '[':
		v->kind = *b->p == '{' ? DOC_OBJECT : DOC_ARRAY;
		if (container(b, me, e) == -1)
			return -1;
		break;
	case '"':
		v->kind = DOC_STRING;
		string(b, &s, &n);
		v->str = s;
		v->len = n;
		break;
	case 't':
		v->kind = DOC_TRUE;
		b->p += 4;
		break;
	case 'n':
		v->kind = DOC_NULL;
		b->p += 4;
		break;
	case 'f':
		v->kind = DOC_FALSE;
		b->p += 5;
		break;
	default:
		v->kind = DOC_NUMBER;
		while ((*b->p >= '0' && *b->p <= '9') || *b->p == '-' ||
		    *b->p == '+' || *b->p == '.' || (*b->p | 32) == 'e')
			b->p++;
	}
	v = &d->node[me]; /* container() may have moved the array */
	v->rawlen = (size_t)(b->p - v->raw);
	return 0;
}

/*
 * Lists and hashes the children of each node, from the last node to the first.
 * A node's children come right after it, each followed by its own children.
 * size[] is the number of nodes of a child with everything below it, so
 * skipping that many nodes leads to the next child. Children have higher
 * numbers than their parent, so their sizes are known in time.
 */
static void
finish(struct build *b, uint32_t *size)
{
	struct doc *d = b->d;

	for (uint32_t i = d->n; i-- > 0;) {
		struct doc_node *v = &d->node[i];
		uint32_t kid = i + 1, h = FNV_START;
		struct num num;

		v->kids = b->slots;
		b->slots += v->count;
		for (uint32_t k = 0; k < v->count; k++, kid += size[kid]) {
			const struct doc_node *c = &d->node[kid];
			uint32_t one = fnv_bytes(h, c->name, c->namelen);

			v->kids[k] = kid;
			/* The order of members does not count, that of elements
			 * does. */
			if (v->kind == DOC_OBJECT)
				v->hash += fnv_add(one, c->hash);
			else
				v->hash = fnv_add(v->hash, c->hash);
		}
		size[i] = kid - i;
		v->hash = fnv_add(v->hash, (uint32_t)v->kind);
		if (v->kind == DOC_STRING)
			v->hash = hash_string(v->str, v->len);
		if (v->kind == DOC_NUMBER) {
			num = num_read(v->raw, v->rawlen);
			v->hash ^= num_hash(&num);
		}
		if (v->kind == DOC_OBJECT && v->count > 0) {
			v->byname = b->slots;
			b->slots += v->count;
			memcpy(v->byname, v->kids, v->count * sizeof(*v->kids));
			qsort_r(v->byname, v->count, sizeof(*v->byname),
			    by_name, d->node);
		}
	}
}

int
doc_parse(struct doc *d, const uint8_t *text, size_t n, struct err *e)
{
	struct build b = {.d = d};
	uint32_t *size = NULL;
	int rc = -1;

	memset(d, 0, sizeof(*d));
	if (json_scan(text, n, e) == -1)
		return -1;
	if ((d->strings = malloc(n + 1)) == NULL)
		goto oom;
	b.out = d->strings;
	b.p = text;
	/* If a number ends the text, no byte after it shows the end of the
	 * number. Such a text is read from a copy that ends with a NUL. */
	if (text[n - 1] >= '0' && text[n - 1] <= '9') {
		b.p = memcpy(d->strings, text, n);
		d->strings[n] = '\0';
	}
	if (value(&b, e) == -1)
		goto out;
	if ((size = reallocarray(NULL, d->n, sizeof(*size))) == NULL ||
	    (d->index = reallocarray(
		 NULL, 2 * (size_t)d->n, sizeof(*d->index))) == NULL)
		goto oom;
	b.slots = d->index;
	finish(&b, size);
	rc = 0;
	goto out;
oom:
	err_set(e, FAILURE_INTERNAL, "out of memory");
out:
	free(size);
	return rc;
}

void
doc_free(struct doc *d)
{
	free(d->node);
	free(d->strings);
	free(d->index);
	memset(d, 0, sizeof(*d));
}

const struct doc_node *
doc_member(
    const struct doc *d, const struct doc_node *o, const void *name, size_t n)
{
	uint32_t lo = 0, hi = o->kind == DOC_OBJECT ? o->count : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct doc_node *m = &d->node[o->byname[mid]];
		int c = name_order(m->name, m->namelen, name, n);

		if (c == 0)
			return m;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct doc_node *
doc_get(const struct doc *d, const struct doc_node *o, const char *name)
{
	return doc_member(d, o, name, strlen(name));
}

const struct doc_node *
doc_kid(const struct doc *d, const struct doc_node *v, uint32_t i)
{
	return &d->node[v->kids[i]];
}

bool
doc_equal(const struct doc *da, const struct doc_node *a, const struct doc *db,
    const struct doc_node *b, long *steps)
{
	struct num x, y;

	if (--*steps < 0 || a->hash != b->hash || a->kind != b->kind ||
	    a->count != b->count)
		return false;
	switch (a->kind) {
	case DOC_STRING:
		*steps -= (long)(a->len / 64);
		return a->len == b->len && memcmp(a->str, b->str, a->len) == 0;
	case DOC_NUMBER:
		x = num_read(a->raw, a->rawlen);
		y = num_read(b->raw, b->rawlen);
		*steps -= (long)(a->rawlen / 64);
		return num_cmp(&x, &y) == 0;
	case DOC_ARRAY:
		for (uint32_t i = 0; i < a->count; i++)
			if (!doc_equal(da, doc_kid(da, a, i), db,
				doc_kid(db, b, i), steps))
				return false;
		return true;
	case DOC_OBJECT:
		/* The members of both objects are sorted by name, so equal
		 * members have equal positions. */
		for (uint32_t i = 0; i < a->count; i++) {
			const struct doc_node *m = &da->node[a->byname[i]];
			const struct doc_node *o = &db->node[b->byname[i]];

			if (name_order(m->name, m->namelen, o->name,
				o->namelen) != 0 ||
			    !doc_equal(da, m, db, o, steps))
				return false;
		}
		return true;
	default:
		return true;
	}
}

struct doc_node
doc_name(const struct doc_node *m)
{
	return (struct doc_node){.kind = DOC_STRING,
	    .str = m->name,
	    .len = m->namelen,
	    .raw = m->name,
	    .rawlen = m->namelen,
	    .hash = hash_string(m->name, m->namelen)};
}

size_t
doc_points(const struct doc_node *v)
{
	size_t points = 0;

	for (size_t i = 0; i < v->len; i++)
		points += (v->str[i] & 0xc0) != 0x80;
	return points;
}

bool
doc_is(const struct doc_node *v, const char *s)
{
	return v->kind == DOC_STRING && v->len == strlen(s) &&
	    memcmp(v->str, s, v->len) == 0;
}
