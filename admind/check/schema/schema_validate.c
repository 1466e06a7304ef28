/*
 * Judges a value by compiled rules. Every step is counted, patterns have limits
 * of their own, and the nesting of evaluations is bounded. So no schema and
 * value can make a check long. The check ends with a typed error long before
 * the timer of admind-check kills the process.
 */
#include <string.h>
#include <time.h>

#include "schema_internal.h"

enum {
	STEPS = 300 * 1000, /* some 10 ms */
	DEPTH = 400,        /* nested evaluations: enough for 64 levels of
			     * value, through references and alternatives */
	PATTERN_MS = 20,    /* processor time after which no match starts */
};

static void eval(struct run *, const struct rule *, const struct doc_node *,
    const struct path *, struct report *);

/* Returns whether the value satisfies the schema. Errors are not reported. */
static bool
fits(struct run *run, const struct doc_node *schema, const struct doc_node *v)
{
	struct report quiet;

	report_open(&quiet, NULL);
	eval(run, schema_rule(run->s, schema), v, NULL, &quiet);
	return quiet.n == 0;
}

static void
contains(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < v->count && run->ended == NULL; i++)
		n += fits(run, rule->contains, doc_kid(run->d, v, i));
	if (run->ended != NULL)
		return;
	if (n < rule->min_contains)
		report_add(r, at,
		    "must have at least %llu elements of the form that "
		    "\"contains\" gives, has %llu",
		    (unsigned long long)rule->min_contains,
		    (unsigned long long)n);
	if (n > rule->max_contains)
		report_add(r, at,
		    "must have at most %llu elements of the form that "
		    "\"contains\" gives, has %llu",
		    (unsigned long long)rule->max_contains,
		    (unsigned long long)n);
}

static void
array(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	uint32_t first = 0;

	if (v->count < rule->min_items)
		report_add(r, at, "must have at least %llu elements, has %u",
		    (unsigned long long)rule->min_items, v->count);
	if (v->count > rule->max_items)
		report_add(r, at, "must have at most %llu elements, has %u",
		    (unsigned long long)rule->max_items, v->count);
	if (rule->unique)
		schema_leaf_unique(run, v, at, r);
	if (rule->contains != NULL)
		contains(run, rule, v, at, r);
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

/* Checks that the object has the members that a list names. with: the member
 * that makes the list apply, or NULL. */
static void
required(struct run *run, const struct doc_node *list, const struct doc_node *v,
    const struct doc_node *with, const struct path *at, struct report *r)
{
	for (uint32_t i = 0; i < list->count; i++) {
		const struct doc_node *want = doc_kid(&run->s->doc, list, i);
		struct path p = {at, want->str, want->len, 0};

		run->steps--;
		if (doc_member(run->d, v, want->str, want->len) != NULL)
			continue;
		if (with == NULL)
			report_add(r, &p, "is required");
		else
			report_add(r, &p, "is required beside %.*s",
			    report_cut(with->name, with->namelen),
			    (const char *)with->name);
	}
}

/* Applies dependentRequired and dependentSchemas for the members that the
 * object has. */
static void
dependent(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	const struct doc *sd = &run->s->doc;
	const struct doc_node *m;

	for (uint32_t i = 0; rule->needs != NULL && i < rule->needs->count;
	    i++) {
		m = doc_kid(sd, rule->needs, i);
		run->steps--;
		if (doc_member(run->d, v, m->name, m->namelen) != NULL)
			required(run, m, v, m, at, r);
	}
	for (uint32_t i = 0; rule->implied != NULL && i < rule->implied->count;
	    i++) {
		m = doc_kid(sd, rule->implied, i);
		run->steps--;
		if (doc_member(run->d, v, m->name, m->namelen) != NULL)
			eval(run, schema_rule(run->s, m), v, at, r);
	}
}

/* Judges one member by the schemas that its name selects: by `properties`, and
 * by each entry of `patternProperties` whose pattern matches. If no name and no
 * pattern fits, judges by `additionalProperties`. */
static void
member(struct run *run, const struct rule *rule, const struct doc_node *m,
    const struct path *p, struct report *r)
{
	const struct doc *sd = &run->s->doc;
	const struct doc_node *sub = NULL;
	bool known = false;

	if (rule->names != NULL) {
		struct doc_node name = doc_name(m);

		eval(run, schema_rule(run->s, rule->names), &name, p, r);
	}
	if (rule->properties != NULL)
		sub = doc_member(sd, rule->properties, m->name, m->namelen);
	if (sub != NULL) {
		known = true;
		eval(run, schema_rule(run->s, sub), m, p, r);
	}
	for (uint32_t i = 0; rule->named != NULL && i < rule->named->count;
	    i++) {
		int rc = schema_leaf_match(
		    run, rule->name_pattern[i], m->name, m->namelen);

		if (rc == -1)
			return;
		if (rc == 0)
			continue;
		known = true;
		eval(run, schema_rule(run->s, doc_kid(sd, rule->named, i)), m,
		    p, r);
	}
	if (known || rule->additional == NULL)
		return;
	if (rule->additional->kind == DOC_FALSE)
		schema_leaf_unknown(run, rule, p, r);
	else
		eval(run, schema_rule(run->s, rule->additional), m, p, r);
}

static void
object(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	if (v->count < rule->min_members)
		report_add(r, at, "must have at least %llu members, has %u",
		    (unsigned long long)rule->min_members, v->count);
	if (v->count > rule->max_members)
		report_add(r, at, "must have at most %llu members, has %u",
		    (unsigned long long)rule->max_members, v->count);
	if (rule->required != NULL)
		required(run, rule->required, v, NULL, at, r);
	for (uint32_t i = 0; i < v->count && run->ended == NULL; i++) {
		const struct doc_node *m = doc_kid(run->d, v, i);
		struct path p = {at, m->name, m->namelen, 0};

		if (--run->steps < 0)
			return;
		member(run, rule, m, &p, r);
	}
	dependent(run, rule, v, at, r);
}

/* Returns how many alternatives fit. `why` gets the first error of each
 * alternative that does not fit, as long as there is room. */
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
	if (rule->not!= NULL && fits(run, rule->not, v) && run->ended == NULL)
		report_add(r, at, "is of a form that is excluded");
	if (rule->condition != NULL) {
		const struct doc_node *then = fits(run, rule->condition, v)
		    ? rule->then
		    : rule->otherwise;

		if (then != NULL)
			eval(run, schema_rule(run->s, then), v, at, r);
	}
}

static void
eval(struct run *run, const struct rule *rule, const struct doc_node *v,
    const struct path *at, struct report *r)
{
	unsigned is;

	if (run->ended != NULL)
		return;
	/* Without r->json only the verdict counts, and the first error decides
	 * it. */
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
	is = schema_leaf_types(v);
	if (rule->types != 0 && (rule->types & is) == 0) {
		schema_leaf_wrong_type(rule->types, is, at, r);
	} else {
		schema_leaf_values(run, rule, v, at, r);
		if (v->kind == DOC_NUMBER)
			schema_leaf_number(rule, v, at, r);
		else if (v->kind == DOC_STRING)
			schema_leaf_string(run, rule, v, at, r);
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
