/*
 * Turns JSON into rules. One pass over the document compiles every schema that
 * keywords lead to. Local references are resolved after that pass, so they may
 * point forward and in circles. The recursion is as deep as the text is nested,
 * which json_scan() bounds.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "num.h"
#include "schema_internal.h"

enum kind {
	KW_NOTE,   /* an annotation: any value, not judged */
	KW_DEFS,   /* an object of schemas that only references reach */
	KW_SCHEMA, /* a schema */
	KW_LIST,   /* a non-empty array of schemas */
	KW_MAP,    /* an object of schemas */
	KW_NUMBER,
	KW_COUNT, /* an integer from 0 */
	KW_TYPE,
	KW_REQUIRED,
	KW_ENUM,
	KW_CONST,
	KW_MULTIPLE,
	KW_UNIQUE,
	KW_PATTERN,
	KW_REF,
	KW_NAMED,   /* an object of schemas; its names are patterns */
	KW_NEEDS,   /* an object whose members are arrays of names */
	KW_NOT_HERE /* refused, with advice */
};

#define AT(member) offsetof(struct rule, member), NULL
static const struct keyword {
	const char *name;
	enum kind kind;
	size_t at; /* member of struct rule */
	const char *advice;
} keywords[] = {
    {"$anchor", KW_NOTE, 0, NULL},
    {"$comment", KW_NOTE, 0, NULL},
    {"$defs", KW_DEFS, 0, NULL},
    {"$id", KW_NOTE, 0, NULL},
    {"$ref", KW_REF, AT(ref)},
    {"$schema", KW_NOTE, 0, NULL},
    {"additionalProperties", KW_SCHEMA, AT(additional)},
    {"allOf", KW_LIST, AT(all)},
    {"anyOf", KW_LIST, AT(any)},
    {"const", KW_CONST, AT(constant)},
    {"default", KW_NOTE, 0, NULL},
    {"definitions", KW_NOT_HERE, 0, "write $defs"},
    {"contains", KW_SCHEMA, AT(contains)},
    {"dependencies", KW_NOT_HERE, 0,
	"write dependentRequired or dependentSchemas"},
    {"dependentRequired", KW_NEEDS, AT(needs)},
    {"dependentSchemas", KW_MAP, AT(implied)},
    {"deprecated", KW_NOTE, 0, NULL},
    {"description", KW_NOTE, 0, NULL},
    {"else", KW_SCHEMA, AT(otherwise)},
    {"enum", KW_ENUM, AT(values)},
    {"examples", KW_NOTE, 0, NULL},
    {"exclusiveMaximum", KW_NUMBER, AT(below)},
    {"exclusiveMinimum", KW_NUMBER, AT(above)},
    {"format", KW_NOTE, 0, NULL},
    {"if", KW_SCHEMA, AT(condition)},
    {"items", KW_SCHEMA, AT(items)},
    {"maxContains", KW_COUNT, AT(max_contains)},
    {"maxItems", KW_COUNT, AT(max_items)},
    {"maxLength", KW_COUNT, AT(max_length)},
    {"maxProperties", KW_COUNT, AT(max_members)},
    {"maximum", KW_NUMBER, AT(maximum)},
    {"minContains", KW_COUNT, AT(min_contains)},
    {"minItems", KW_COUNT, AT(min_items)},
    {"minLength", KW_COUNT, AT(min_length)},
    {"minProperties", KW_COUNT, AT(min_members)},
    {"minimum", KW_NUMBER, AT(minimum)},
    {"multipleOf", KW_MULTIPLE, AT(multiple)},
    {"not", KW_SCHEMA, AT(not)},
    {"nullable", KW_NOT_HERE, 0, "add \"null\" to type"},
    {"oneOf", KW_LIST, AT(one)},
    {"pattern", KW_PATTERN, AT(pattern)},
    {"patternProperties", KW_NAMED, AT(named)},
    {"prefixItems", KW_LIST, AT(prefix)},
    {"properties", KW_MAP, AT(properties)},
    {"propertyNames", KW_SCHEMA, AT(names)},
    {"readOnly", KW_NOTE, 0, NULL},
    {"required", KW_REQUIRED, AT(required)},
    {"then", KW_SCHEMA, AT(then)},
    {"title", KW_NOTE, 0, NULL},
    {"type", KW_TYPE, AT(types)},
    {"unevaluatedItems", KW_NOT_HERE, 0, "use items"},
    {"unevaluatedProperties", KW_NOT_HERE, 0, "use additionalProperties"},
    {"uniqueItems", KW_UNIQUE, AT(unique)},
    {"writeOnly", KW_NOTE, 0, NULL},
};

struct compile {
	struct schema *s;
	struct report *r;
	struct schema_lint *lint; /* or NULL */
	/* Number of schemas with an $id that enclose the current one. The root
	 * does not count. */
	unsigned ids;
	bool oom;
};

static void schema(
    struct compile *, const struct doc_node *, const struct path *);

static const struct keyword *
find_keyword(const struct doc_node *m)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strlen(keywords[i].name) == m->namelen &&
		    memcmp(keywords[i].name, m->name, m->namelen) == 0)
			return &keywords[i];
	return NULL;
}

static unsigned
type_bit(const struct doc_node *v)
{
	static const struct {
		const char *name;
		enum schema_type bit;
	} types[] = {{"null", SCHEMA_NULL}, {"boolean", SCHEMA_BOOLEAN},
	    {"object", SCHEMA_OBJECT}, {"array", SCHEMA_ARRAY},
	    {"number", SCHEMA_NUMBER}, {"string", SCHEMA_STRING},
	    {"integer", SCHEMA_INTEGER}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (doc_is(v, types[i].name))
			return types[i].bit;
	return 0;
}

static void
type(struct compile *c, struct rule *rule, const struct doc_node *v,
    const struct path *at)
{
	static const char say[] =
	    "must be null, boolean, object, array, number, string or integer, "
	    "or an array of these without repetition";
	unsigned bit;

	if (v->kind != DOC_ARRAY) {
		if ((rule->types = type_bit(v)) == 0)
			report_add(c->r, at, "%s", say);
		return;
	}
	for (uint32_t i = 0; i < v->count; i++) {
		bit = type_bit(doc_kid(&c->s->doc, v, i));
		if (bit == 0 || (rule->types & bit) != 0) {
			report_add(c->r, at, "%s", say);
			return;
		}
		rule->types |= bit;
	}
	if (v->count == 0)
		report_add(c->r, at, "%s", say);
}

static void
required(struct compile *c, const struct doc_node *v, const struct path *at)
{
	/* The most pairs of names that are compared. 1,000 names have half a
	 * million pairs. */
	long steps = 1000000;

	if (v->kind != DOC_ARRAY) {
		report_add(c->r, at, "must be an array of names (never null)");
		return;
	}
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(&c->s->doc, v, i);
		struct path p = {at, NULL, 0, i};

		if (m->kind != DOC_STRING) {
			report_add(c->r, &p, "must be a property's name");
			continue;
		}
		for (uint32_t k = 0; k < i; k++)
			if (doc_equal(&c->s->doc, m, &c->s->doc,
				doc_kid(&c->s->doc, v, k), &steps))
				report_add(c->r, &p, "is listed twice");
		if (steps < 0) {
			report_add(c->r, at, "lists too many names");
			return;
		}
	}
}

/* Checks {"name": ["other", ...], ...}. */
static void
needs(struct compile *c, const struct doc_node *v, const struct path *at)
{
	if (v->kind != DOC_OBJECT) {
		report_add(c->r, at, "must be an object of arrays of names");
		return;
	}
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(&c->s->doc, v, i);
		struct path p = {at, m->name, m->namelen, 0};

		required(c, m, &p);
	}
}

/* Compiles the schemas below one keyword. */
static void
schemas(struct compile *c, const struct doc_node *v, const struct path *at)
{
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(&c->s->doc, v, i);
		struct path p = {at, m->name, m->namelen, i};

		schema(c, m, &p);
	}
}

/* Compiles a pattern. If it can't be used, reports that and returns NULL. */
static struct pattern *
pattern_of(
    struct compile *c, const uint8_t *text, size_t n, const struct path *at)
{
	struct pattern *p = NULL;
	struct err e;

	if (c->s->patterns++ >= PATTERNS_MAX)
		report_add(c->r, at, "is one pattern too many: %d are allowed",
		    PATTERNS_MAX);
	else if ((p = pattern_new(text, n, &e)) == NULL)
		report_add(
		    c->r, at, "is no regular expression we take: %s", e.text);
	return p;
}

static void
pattern(struct compile *c, struct rule *rule, const struct doc_node *v,
    const struct path *at)
{
	if (v->kind != DOC_STRING)
		report_add(c->r, at, "must be a regular expression");
	else
		rule->pattern = pattern_of(c, v->str, v->len, at);
}

/* Compiles patternProperties: schemas whose names are patterns. */
static void
named(struct compile *c, uint32_t index, const struct doc_node *v,
    const struct path *at)
{
	struct pattern **list;

	if (v->kind != DOC_OBJECT) {
		report_add(c->r, at, "must be an object of schemas");
		return;
	}
	if ((list = calloc(v->count + (size_t)1, sizeof(*list))) == NULL) {
		c->oom = true;
		return;
	}
	c->s->rule[index].name_pattern = list;
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(&c->s->doc, v, i);
		struct path p = {at, m->name, m->namelen, 0};

		list[i] = pattern_of(c, m->name, m->namelen, &p);
	}
	schemas(c, v, at);
}

static void
count(struct compile *c, const struct doc_node *v, uint64_t *out,
    const struct path *at)
{
	struct num num;

	if (v->kind == DOC_NUMBER) {
		num = num_read(v->raw, v->rawlen);
		/* No text or list that we accept is longer than UINT32_MAX. So
		 * a larger limit has no effect and becomes UINT32_MAX. */
		if (num_integer(&num) && num.sign >= 0) {
			if (!num_u64(&num, UINT32_MAX, out))
				*out = UINT32_MAX;
			return;
		}
	}
	report_add(c->r, at, "must be an integer from 0");
}

static void
multiple(struct compile *c, const struct doc_node *v, const struct path *at)
{
	struct num num;

	if (v->kind == DOC_NUMBER) {
		num = num_read(v->raw, v->rawlen);
		if (num.sign > 0 && num.n <= NUM_DIVISOR_DIGITS)
			return;
	}
	report_add(c->r, at,
	    "must be a number above 0 with at most %d significant digits",
	    NUM_DIVISOR_DIGITS);
}

/* Compiles one keyword of the rule number `index`. A pointer to the rule would
 * not stay valid, since compiling the schemas below may move the array. */
static void
keyword(struct compile *c, uint32_t index, const struct keyword *kw,
    const struct doc_node *v, const struct path *at)
{
#define MEMBER(T) ((T *)(void *)((char *)&c->s->rule[index] + kw->at))
	if (kw->kind == KW_SCHEMA || kw->kind == KW_LIST ||
	    kw->kind == KW_MAP || kw->kind == KW_NUMBER ||
	    kw->kind == KW_REQUIRED || kw->kind == KW_ENUM ||
	    kw->kind == KW_CONST || kw->kind == KW_MULTIPLE ||
	    kw->kind == KW_REF || kw->kind == KW_NAMED || kw->kind == KW_NEEDS)
		*MEMBER(const struct doc_node *) = v;
	switch (kw->kind) {
	case KW_NOTE:
	case KW_CONST:
		break;
	case KW_SCHEMA:
		if (v->kind == DOC_ARRAY && strcmp(kw->name, "items") == 0)
			report_add(c->r, at,
			    "must be a schema; for a schema "
			    "each write prefixItems");
		else
			schema(c, v, at);
		break;
	case KW_LIST:
		if (v->kind != DOC_ARRAY || v->count == 0)
			report_add(c->r, at, "must be an array of schemas");
		else
			schemas(c, v, at);
		break;
	case KW_DEFS:
	case KW_MAP:
		if (v->kind != DOC_OBJECT)
			report_add(c->r, at, "must be an object of schemas");
		else
			schemas(c, v, at);
		break;
	case KW_NUMBER:
		if (v->kind != DOC_NUMBER)
			report_add(c->r, at, "must be a number");
		break;
	case KW_COUNT:
		count(c, v, MEMBER(uint64_t), at);
		break;
	case KW_TYPE:
		type(c, &c->s->rule[index], v, at);
		break;
	case KW_REQUIRED:
		required(c, v, at);
		break;
	case KW_ENUM:
		if (v->kind != DOC_ARRAY || v->count == 0)
			report_add(c->r, at, "must be an array of values");
		break;
	case KW_MULTIPLE:
		multiple(c, v, at);
		break;
	case KW_UNIQUE:
		if (v->kind != DOC_TRUE && v->kind != DOC_FALSE)
			report_add(c->r, at, "must be true or false");
		*MEMBER(bool) = v->kind == DOC_TRUE;
		break;
	case KW_PATTERN:
		pattern(c, &c->s->rule[index], v, at);
		break;
	case KW_REF:
		if (v->kind != DOC_STRING)
			report_add(c->r, at, "must be a string");
		/* The reference would be resolved relative to the enclosing $id
		 * (RFC 3986). No reader would expect that. */
		else if (c->ids > 0)
			report_add(c->r, at,
			    "is below an $id that is not the root's: "
			    "remove that $id");
		break;
	case KW_NAMED:
		named(c, index, v, at);
		break;
	case KW_NEEDS:
		needs(c, v, at);
		break;
	case KW_NOT_HERE:
		report_add(c->r, at, "the keyword %s is not supported: %s",
		    kw->name, kw->advice);
		break;
	}
#undef MEMBER
}

static void
schema(struct compile *c, const struct doc_node *v, const struct path *at)
{
	struct schema *s = c->s;
	uint32_t index = s->n;
	const struct doc_node *m;
	bool own_id;

	if (c->oom)
		return;
	if (v->kind != DOC_OBJECT && v->kind != DOC_TRUE &&
	    v->kind != DOC_FALSE) {
		report_add(c->r, at,
		    "must be a schema: an object, true or "
		    "false");
		return;
	}
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 16;
		struct rule *rule = reallocarray(s->rule, cap, sizeof(*rule));

		if (rule == NULL) {
			c->oom = true;
			return;
		}
		s->rule = rule;
		s->cap = cap;
	}
	s->rule[s->n++] = (struct rule){.src = v,
	    .never = v->kind == DOC_FALSE,
	    .max_length = UINT64_MAX,
	    .max_items = UINT64_MAX,
	    .max_members = UINT64_MAX,
	    .min_contains = 1,
	    .max_contains = UINT64_MAX};
	s->of_node[v - s->doc.node] = index + 1;
	own_id = index > 0 && (m = doc_get(&s->doc, v, "$id")) != NULL &&
	    m->kind == DOC_STRING;
	c->ids += own_id;
	for (uint32_t i = 0; i < v->count; i++) {
		const struct keyword *kw;
		struct path p = {at, NULL, 0, 0};

		m = doc_kid(&s->doc, v, i);
		p.name = m->name;
		p.len = m->namelen;
		kw = find_keyword(m);

		if (kw != NULL)
			keyword(c, index, kw, m, &p);
		else if (c->lint != NULL && schema_lint_is(m))
			schema_lint(c->lint, &s->doc, v, m, at, c->r);
		else if (m->namelen < 2 || memcmp(m->name, "x-", 2) != 0)
			report_add(c->r, &p,
			    "the keyword %.*s is not supported",
			    report_cut(m->name, m->namelen),
			    (const char *)m->name);
	}
	c->ids -= own_id;
}

static const char must_be_object[] =
    "the schema must have \"type\": \"object\": arguments are an object";

int
schema_compile(struct schema *s, enum schema_use use, const uint8_t *text,
    size_t n, struct report *r, struct err *e)
{
	struct schema_lint lint = {0};
	struct compile c = {
	    .s = s, .r = r, .lint = use == SCHEMA_INPUT ? &lint : NULL};
	struct err parse;

	memset(s, 0, sizeof(*s));
	if (n > SCHEMA_MAX) {
		report_add(r, NULL, "is longer than %d bytes", SCHEMA_MAX);
		return 0;
	}
	if (doc_parse(&s->doc, text, n, &parse) == -1) {
		if (parse.failure == FAILURE_INTERNAL)
			return err_set(e, FAILURE_INTERNAL, "%s", parse.text);
		report_add(r, NULL, "is not strict JSON: %s", parse.text);
		return 0;
	}
	s->of_node = calloc(s->doc.n, sizeof(*s->of_node));
	if (s->of_node == NULL)
		return err_set(e, FAILURE_INTERNAL, "out of memory");
	if (s->doc.node[0].kind != DOC_OBJECT) {
		report_add(r, NULL, "%s",
		    use == SCHEMA_INPUT ? must_be_object
					: "must be a schema: an object");
		return 0;
	}
	schema(&c, &s->doc.node[0], NULL);
	if (c.oom)
		return err_set(e, FAILURE_INTERNAL, "out of memory");
	schema_ref_all(s, r);
	/* The type must be the string "object", not ["object"], because clients
	 * compare with that string. */
	if (r->n == 0 && use == SCHEMA_INPUT &&
	    (s->rule[0].types != SCHEMA_OBJECT ||
		doc_get(&s->doc, s->rule[0].src, "type")->kind != DOC_STRING))
		report_add(r, NULL, "%s", must_be_object);
	return 0;
}

void
schema_free(struct schema *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct rule *rule = &s->rule[i];

		pattern_free(rule->pattern);
		for (uint32_t k = 0;
		    rule->name_pattern != NULL && k < rule->named->count; k++)
			pattern_free(rule->name_pattern[k]);
		free(rule->name_pattern);
	}
	free(s->rule);
	free(s->of_node);
	doc_free(&s->doc);
	memset(s, 0, sizeof(*s));
}

const struct rule *
schema_rule(const struct schema *s, const struct doc_node *v)
{
	return &s->rule[s->of_node[v - s->doc.node] - 1];
}
