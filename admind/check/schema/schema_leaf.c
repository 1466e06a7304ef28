/* Checks one value alone: types, numbers, texts, equality. */
#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "schema_internal.h"

unsigned
schema_leaf_types(const struct doc_node *v)
{
	struct num num;

	switch (v->kind) {
	case DOC_NULL:
		return SCHEMA_NULL;
	case DOC_FALSE:
	case DOC_TRUE:
		return SCHEMA_BOOLEAN;
	case DOC_STRING:
		return SCHEMA_STRING;
	case DOC_ARRAY:
		return SCHEMA_ARRAY;
	case DOC_OBJECT:
		return SCHEMA_OBJECT;
	case DOC_NUMBER:
		break;
	}
	num = num_read(v->raw, v->rawlen);
	return SCHEMA_NUMBER | (num_integer(&num) ? SCHEMA_INTEGER : 0u);
}

/* Writes "a string or null". */
static void
say_types(unsigned types, char *out, size_t len)
{
	static const struct {
		unsigned bit;
		const char *say;
	} names[] = {{SCHEMA_OBJECT, "an object"}, {SCHEMA_ARRAY, "an array"},
	    {SCHEMA_STRING, "a string"}, {SCHEMA_INTEGER, "an integer"},
	    {SCHEMA_NUMBER, "a number"}, {SCHEMA_BOOLEAN, "true or false"},
	    {SCHEMA_NULL, "null"}};
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t add = strlen(names[i].say);

		if ((types & names[i].bit) == 0 || used + add + 5 > len)
			continue;
		if (used > 0) {
			memcpy(out + used, " or ", 4);
			used += 4;
		}
		memcpy(out + used, names[i].say, add + 1);
		used += add;
	}
}

void
schema_leaf_wrong_type(
    unsigned types, unsigned is, const struct path *at, struct report *r)
{
	char wanted[128], got[128];

	say_types(types, wanted, sizeof(wanted));
	say_types(
	    (is & SCHEMA_INTEGER) != 0 ? SCHEMA_INTEGER : is, got, sizeof(got));
	report_add(r, at, "must be %s, not %s", wanted, got);
}

void
schema_leaf_number(const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	const struct {
		const struct doc_node *limit;
		const char *say;
		int low, high; /* allowed results of the comparison */
	} rows[] = {{rule->minimum, "at least", 0, 1},
	    {rule->maximum, "at most", -1, 0}, {rule->above, "more than", 1, 1},
	    {rule->below, "less than", -1, -1}};
	struct num x = num_read(v->raw, v->rawlen), y;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int c;

		if (rows[i].limit == NULL)
			continue;
		y = num_read(rows[i].limit->raw, rows[i].limit->rawlen);
		c = num_cmp(&x, &y);
		if (c < rows[i].low || c > rows[i].high)
			report_add(r, at, "must be %s %.*s", rows[i].say,
			    QUOTE(rows[i].limit));
	}
	if (rule->multiple != NULL) {
		y = num_read(rule->multiple->raw, rule->multiple->rawlen);
		if (!num_multiple(&x, &y))
			report_add(r, at, "must be a multiple of %.*s",
			    QUOTE(rule->multiple));
	}
}

int
schema_leaf_match(
    struct run *run, const struct pattern *p, const uint8_t *s, size_t n)
{
	int rc;

	/* pattern.c checks the time during the match, too. */
	run->steps -= 50;
	if (clock() > run->until) {
		run->ended = "its patterns take too long";
		return -1;
	}
	if ((rc = pattern_match(p, s, n, run->until)) == -1)
		run->ended = "a pattern of the schema takes too long on it";
	return rc;
}

void
schema_leaf_string(struct run *run, const struct rule *rule,
    const struct doc_node *v, const struct path *at, struct report *r)
{
	size_t points = doc_points(v);

	run->steps -= (long)(v->len / 64);
	if (points < rule->min_length)
		report_add(r, at, "must have at least %llu characters, has %zu",
		    (unsigned long long)rule->min_length, points);
	if (points > rule->max_length)
		report_add(r, at, "must have at most %llu characters, has %zu",
		    (unsigned long long)rule->max_length, points);
	if (rule->pattern == NULL)
		return;
	if (schema_leaf_match(run, rule->pattern, v->str, v->len) == 0) {
		const struct doc_node *p =
		    doc_get(&run->s->doc, rule->src, "pattern");

		const char *words =
		    r->rule != NULL ? r->rule(p->str, p->len) : NULL;

		if (words != NULL)
			report_add(r, at, "%s", words);
		else
			report_add(
			    r, at, "must match the pattern %.*s", QUOTE(p));
	}
}

struct element {
	uint32_t hash, index;
};

static int
by_hash(const void *va, const void *vb)
{
	const struct element *a = va, *b = vb;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* Returns whether all elements differ. If not, *one and *two are the indices of
 * two equal ones. Equal elements have equal hashes, so the elements are sorted
 * by hash, and only elements with the same hash are compared. Each comparison
 * costs steps. */
static bool
all_differ(
    struct run *run, const struct doc_node *v, uint32_t *one, uint32_t *two)
{
	const struct doc *d = run->d;
	struct element *list;
	bool differ = true;

	run->steps -= (long)v->count;
	if (v->count < 2 || run->steps < 0)
		return true;
	list = reallocarray(NULL, v->count, sizeof(*list));
	if (list == NULL) {
		run->ended = "memory is out";
		return true;
	}
	for (uint32_t i = 0; i < v->count; i++)
		list[i] = (struct element){doc_kid(d, v, i)->hash, i};
	qsort(list, v->count, sizeof(*list), by_hash);
	for (uint32_t i = 0; differ && i < v->count; i++)
		for (uint32_t k = i + 1; k < v->count && run->steps >= 0 &&
		    list[k].hash == list[i].hash;
		    k++)
			if (doc_equal(d, doc_kid(d, v, list[i].index), d,
				doc_kid(d, v, list[k].index), &run->steps)) {
				*one = list[i].index;
				*two = list[k].index;
				differ = false;
				break;
			}
	free(list);
	return differ;
}

void
schema_leaf_unique(struct run *run, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	uint32_t one, two;

	if (!all_differ(run, v, &one, &two))
		report_add(r, at, "elements %u and %u are equal", one, two);
}

/* Bytes of known names that are shown with an unknown name: enough for a
 * dozen. */
enum { KNOWN_MAX = 400 };

void
schema_leaf_unknown(struct run *run, const struct rule *rule,
    const struct path *at, struct report *r)
{
	const struct doc_node *props = rule->properties;
	struct buf known;

	buf_init(&known, KNOWN_MAX);
	for (uint32_t i = 0; props != NULL && i < props->count; i++) {
		const struct doc_node *m = doc_kid(&run->s->doc, props, i);

		if (known.len + m->namelen + sizeof(", , ...") > KNOWN_MAX) {
			buf_puts(&known, ", ...");
			break;
		}
		if (known.len > 0)
			buf_puts(&known, ", ");
		buf_put(&known, m->name, m->namelen);
	}
	if (known.len == 0)
		report_add(r, at, "is unknown: there are no arguments here");
	else
		report_add(r, at, "is unknown; known are %.*s", (int)known.len,
		    (const char *)known.p);
	buf_free(&known);
}

void
schema_leaf_values(struct run *run, const struct rule *rule,
    const struct doc_node *v, const struct path *at, struct report *r)
{
	const struct doc *sd = &run->s->doc;

	if (rule->constant != NULL &&
	    !doc_equal(sd, rule->constant, run->d, v, &run->steps))
		report_add(r, at, "must be %.*s", QUOTE(rule->constant));
	if (rule->values != NULL) {
		uint32_t i;

		for (i = 0; i < rule->values->count; i++)
			if (doc_equal(sd, doc_kid(sd, rule->values, i), run->d,
				v, &run->steps))
				break;
		if (i == rule->values->count)
			report_add(
			    r, at, "must be one of %.*s", QUOTE(rule->values));
	}
}
