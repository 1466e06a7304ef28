/*
 * A value against compiled rules. Every step is counted, patterns have limits
 * of their own and the nesting of evaluations is bounded, so schema and value
 * together cannot make it long: the check ends with a typed error far before
 * the timer of admind-check kills the process.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "num.h"
#include "schema.h"

enum {
	STEPS = 300 * 1000, /* some 10 ms */
	DEPTH = 400,        /* evaluations inside evaluations: 64 levels of
			     * value, through references and alternatives */
	PATTERN_MS = 20,    /* processor time after which no match starts */
};

struct run {
	const struct schema *s;
	const struct doc *d;
	long steps;
	unsigned depth;
	clock_t until;     /* no match of a pattern starts after it */
	const char *ended; /* why the check had to end, or NULL */
};

static void eval(struct run *, const struct rule *, const struct doc_node *,
    const struct path *, struct report *);

static unsigned
types_of(const struct doc_node *v)
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

/* "a string or null" */
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

#define QUOTE(v) report_cut((v)->raw, (v)->rawlen), (const char *)(v)->raw

static void
numbers(const struct rule *rule, const struct doc_node *v,
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

static void
string(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
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
	run->steps -= 50;
	if (clock() > run->until) {
		run->ended = "its patterns take too long";
		return;
	}
	switch (pattern_match(rule->pattern, v->str, v->len, run->until)) {
	case -1:
		run->ended = "a pattern of the schema takes too long on it";
		break;
	case 0: {
		const struct doc_node *p =
		    doc_get(&run->s->doc, rule->src, "pattern");

		report_add(r, at, "must match the pattern %.*s", QUOTE(p));
	}
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

/* Equal elements have equal hashes, so only neighbours in hash order need
 * comparing; colliding hashes pay with steps. */
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

static void
array(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	uint32_t one, two, first = 0;

	if (v->count < rule->min_items)
		report_add(r, at, "must have at least %llu elements, has %u",
		    (unsigned long long)rule->min_items, v->count);
	if (v->count > rule->max_items)
		report_add(r, at, "must have at most %llu elements, has %u",
		    (unsigned long long)rule->max_items, v->count);
	if (rule->unique && !all_differ(run, v, &one, &two))
		report_add(r, at, "elements %u and %u are equal", one, two);
	if (rule->prefix != NULL)
		first = rule->prefix->count;
	for (uint32_t i = 0; i < v->count && run->ended == NULL; i++) {
		struct path p = {at, NULL, 0, i};
		const struct doc_node *sub = i < first
		    ? doc_kid(&run->s->doc, rule->prefix, i)
		    : rule->items;

		if (sub == NULL)
			break;
		if (i >= first && sub->kind == DOC_FALSE)
			report_add(r, &p, "is one element too many");
		else
			eval(run, schema_rule(run->s, sub),
			    doc_kid(run->d, v, i), &p, r);
	}
}

/* Bytes of known names shown beside an unknown one: enough for a dozen. */
enum { KNOWN_MAX = 400 };

/* A member that the schema does not know. Its known names help the caller. */
static void
unknown_member(struct run *run, const struct rule *rule, const struct path *at,
    struct report *r)
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

static void
object(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	const struct doc *sd = &run->s->doc;

	if (v->count < rule->min_members)
		report_add(r, at, "must have at least %llu members, has %u",
		    (unsigned long long)rule->min_members, v->count);
	if (v->count > rule->max_members)
		report_add(r, at, "must have at most %llu members, has %u",
		    (unsigned long long)rule->max_members, v->count);
	for (uint32_t i = 0;
	    rule->required != NULL && i < rule->required->count; i++) {
		const struct doc_node *want = doc_kid(sd, rule->required, i);
		struct path p = {at, want->str, want->len, 0};

		run->steps--;
		if (doc_member(run->d, v, want->str, want->len) == NULL)
			report_add(r, &p, "is required");
	}
	for (uint32_t i = 0; i < v->count && run->ended == NULL; i++) {
		const struct doc_node *m = doc_kid(run->d, v, i), *sub = NULL;
		struct path p = {at, m->name, m->namelen, 0};

		if (--run->steps < 0)
			return;
		if (rule->properties != NULL)
			sub = doc_member(
			    sd, rule->properties, m->name, m->namelen);
		if (sub == NULL)
			sub = rule->additional;
		if (sub == NULL)
			continue;
		if (sub == rule->additional && sub->kind == DOC_FALSE)
			unknown_member(run, rule, &p, r);
		else
			eval(run, schema_rule(run->s, sub), m, &p, r);
	}
}

static void
values(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
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

/* How many alternatives fit; `why` gets the first error of the first ones. */
static uint32_t
fitting(struct run *run, const struct doc_node *list, const struct doc_node *v,
    bool stop_at_first, char *why, size_t len)
{
	uint32_t fit = 0;
	size_t used = 0;

	why[0] = '\0';
	for (uint32_t i = 0; i < list->count && run->ended == NULL; i++) {
		struct report quiet;
		size_t n;

		report_open(&quiet, NULL);
		eval(run, schema_rule(run->s, doc_kid(&run->s->doc, list, i)),
		    v, NULL, &quiet);
		if (run->ended != NULL)
			break;
		if (quiet.n == 0) {
			fit++;
			if (stop_at_first)
				break;
			continue;
		}
		n = strlen(quiet.first);
		if (used + n + 5 > len)
			continue;
		if (used > 0) {
			memcpy(why + used, "; ", 2);
			used += 2;
		}
		memcpy(why + used, quiet.first, n + 1);
		used += n;
	}
	return fit;
}

static void
combined(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	char why[500];
	uint32_t fit;

	if (rule->ref != NULL)
		eval(run, &run->s->rule[rule->target], v, at, r);
	for (uint32_t i = 0; rule->all != NULL && i < rule->all->count; i++)
		eval(run,
		    schema_rule(run->s, doc_kid(&run->s->doc, rule->all, i)), v,
		    at, r);
	if (rule->any != NULL &&
	    fitting(run, rule->any, v, true, why, sizeof(why)) == 0)
		report_add(r, at, "fits none of its %u alternatives: %s",
		    rule->any->count, why);
	if (rule->one != NULL) {
		fit = fitting(run, rule->one, v, false, why, sizeof(why));
		if (fit == 0)
			report_add(r, at,
			    "fits none of its %u alternatives: %s",
			    rule->one->count, why);
		else if (fit > 1)
			report_add(r, at,
			    "fits %u of its alternatives, must fit just one",
			    fit);
	}
	if (rule->not!= NULL) {
		struct report quiet;

		report_open(&quiet, NULL);
		eval(run, schema_rule(run->s, rule->not), v, at, &quiet);
		if (quiet.n == 0)
			report_add(r, at, "is of a form that is excluded");
	}
}

static void
eval(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	char wanted[128], got[128];

	if (run->ended != NULL)
		return;
	/* When only the verdict counts, the first error decides it. */
	if (r->json == NULL && r->n > 0)
		return;
	if (--run->steps < 0) {
		run->ended = "it takes too many steps";
		return;
	}
	if (run->depth == DEPTH) {
		run->ended = "its references nest too deeply";
		return;
	}
	if (rule->src->kind == DOC_TRUE)
		return;
	if (rule->never) {
		report_add(r, at, "is not allowed here");
		return;
	}
	run->depth++;
	if (rule->types != 0 && (rule->types & types_of(v)) == 0) {
		unsigned is = types_of(v);

		say_types(rule->types, wanted, sizeof(wanted));
		say_types((is & SCHEMA_INTEGER) != 0 ? SCHEMA_INTEGER : is, got,
		    sizeof(got));
		report_add(r, at, "must be %s, not %s", wanted, got);
	} else {
		values(run, rule, v, at, r);
		if (v->kind == DOC_NUMBER)
			numbers(rule, v, at, r);
		else if (v->kind == DOC_STRING)
			string(run, rule, v, at, r);
		else if (v->kind == DOC_ARRAY)
			array(run, rule, v, at, r);
		else if (v->kind == DOC_OBJECT)
			object(run, rule, v, at, r);
		combined(run, rule, v, at, r);
	}
	run->depth--;
	if (run->steps < 0 && run->ended == NULL)
		run->ended = "it takes too many steps";
}

int
schema_validate(const struct schema *s, const struct doc *d, struct report *r,
    struct err *e)
{
	struct run run = {.s = s,
	    .d = d,
	    .steps = STEPS,
	    .until = clock() + PATTERN_MS * (CLOCKS_PER_SEC / 1000)};

	eval(&run, &s->rule[0], &d->node[0], NULL, r);
	if (run.ended != NULL)
		return err_set(e, FAILURE_LIMIT,
		    "the value cannot be checked: %s", run.ended);
	return 0;
}
