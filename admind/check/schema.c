/*
 * From JSON to rules. One pass over the document compiles every schema it can
 * reach by a keyword; local references are resolved after it, so that they
 * may point forward and in circles. Recursion follows the nesting of the
 * text, which json_scan bounds.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "num.h"
#include "schema.h"

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
    {"dependencies", KW_NOT_HERE, 0, "use anyOf"},
    {"dependentRequired", KW_NOT_HERE, 0, "use anyOf with required"},
    {"deprecated", KW_NOTE, 0, NULL},
    {"description", KW_NOTE, 0, NULL},
    {"else", KW_NOT_HERE, 0, "use anyOf"},
    {"enum", KW_ENUM, AT(values)},
    {"examples", KW_NOTE, 0, NULL},
    {"exclusiveMaximum", KW_NUMBER, AT(below)},
    {"exclusiveMinimum", KW_NUMBER, AT(above)},
    {"format", KW_NOTE, 0, NULL},
    {"if", KW_NOT_HERE, 0, "use anyOf"},
    {"items", KW_SCHEMA, AT(items)},
    {"maxItems", KW_COUNT, AT(max_items)},
    {"maxLength", KW_COUNT, AT(max_length)},
    {"maxProperties", KW_COUNT, AT(max_members)},
    {"maximum", KW_NUMBER, AT(maximum)},
    {"minItems", KW_COUNT, AT(min_items)},
    {"minLength", KW_COUNT, AT(min_length)},
    {"minProperties", KW_COUNT, AT(min_members)},
    {"minimum", KW_NUMBER, AT(minimum)},
    {"multipleOf", KW_MULTIPLE, AT(multiple)},
    {"not", KW_SCHEMA, AT(not)},
    {"nullable", KW_NOT_HERE, 0, "add \"null\" to type"},
    {"oneOf", KW_LIST, AT(one)},
    {"pattern", KW_PATTERN, AT(pattern)},
    {"patternProperties", KW_NOT_HERE, 0,
	"name the properties, or give additionalProperties a schema"},
    {"prefixItems", KW_LIST, AT(prefix)},
    {"properties", KW_MAP, AT(properties)},
    {"readOnly", KW_NOTE, 0, NULL},
    {"required", KW_REQUIRED, AT(required)},
    {"then", KW_NOT_HERE, 0, "use anyOf"},
    {"title", KW_NOTE, 0, NULL},
    {"type", KW_TYPE, AT(types)},
    {"uniqueItems", KW_UNIQUE, AT(unique)},
    {"writeOnly", KW_NOTE, 0, NULL},
};

struct compile {
	struct schema *s;
	struct report *r;
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
	/* Pairs compared: 1,000 names need half of it. */
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

/* Several schemas below one keyword. */
static void
schemas(struct compile *c, const struct doc_node *v, const struct path *at)
{
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(&c->s->doc, v, i);
		struct path p = {at, m->name, m->namelen, i};

		schema(c, m, &p);
	}
}

static void
pattern(struct compile *c, struct rule *rule, const struct doc_node *v,
    const struct path *at)
{
	struct err e;

	if (v->kind != DOC_STRING)
		report_add(c->r, at, "must be a regular expression");
	else if (c->s->patterns++ >= PATTERNS_MAX)
		report_add(c->r, at, "is one pattern too many: %d are allowed",
		    PATTERNS_MAX);
	else if ((rule->pattern = pattern_new(v->str, v->len, &e)) == NULL)
		report_add(
		    c->r, at, "is no regular expression we take: %s", e.text);
}

static void
count(struct compile *c, const struct doc_node *v, uint64_t *out,
    const struct path *at)
{
	struct num num;

	if (v->kind == DOC_NUMBER) {
		num = num_read(v->raw, v->rawlen);
		/* A limit beyond any text we take limits nothing. */
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

/* One keyword of a schema. `index` and not a pointer to the rule, since
 * compiling schemas below may move the array. */
static void
keyword(struct compile *c, uint32_t index, const struct keyword *kw,
    const struct doc_node *v, const struct path *at)
{
#define MEMBER(T) ((T *)(void *)((char *)&c->s->rule[index] + kw->at))
	if (kw->kind == KW_SCHEMA || kw->kind == KW_LIST ||
	    kw->kind == KW_MAP || kw->kind == KW_NUMBER ||
	    kw->kind == KW_REQUIRED || kw->kind == KW_ENUM ||
	    kw->kind == KW_CONST || kw->kind == KW_MULTIPLE ||
	    kw->kind == KW_REF)
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
	    .max_members = UINT64_MAX};
	s->of_node[v - s->doc.node] = index + 1;
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *m = doc_kid(&s->doc, v, i);
		struct path p = {at, m->name, m->namelen, 0};
		const struct keyword *kw = find_keyword(m);

		if (kw != NULL)
			keyword(c, index, kw, m, &p);
		else if (m->namelen < 2 || memcmp(m->name, "x-", 2) != 0)
			report_add(c->r, &p,
			    "the keyword %.*s is not supported",
			    report_cut(m->name, m->namelen),
			    (const char *)m->name);
	}
}

/* One reference token: ~1 is a slash, ~0 a tilde (RFC 6901 section 4), and in
 * a URI fragment %XX a byte. Into out, which is as long as the reference. */
static bool
token(const uint8_t **pp, const uint8_t *end, uint8_t *out, size_t *n)
{
	const uint8_t *p = *pp;

	for (*n = 0; p < end && *p != '/'; p++) {
		unsigned c = *p;

		if (c == '%') {
			c = 0;
			for (int i = 0; i < 2; i++) {
				if (++p >= end)
					return false;
				if (*p >= '0' && *p <= '9')
					c = c << 4 | (unsigned)(*p - '0');
				else if ((*p | 32) >= 'a' && (*p | 32) <= 'f')
					c = c << 4 |
					    (unsigned)((*p | 32) - 'a' + 10);
				else
					return false;
			}
		}
		out[(*n)++] = (uint8_t)c;
	}
	*pp = p;
	/* ~ escapes come after the percent decoding. */
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

/* The node a local reference names: "#" or "#/pointer". NULL if none. */
static const struct doc_node *
resolve(const struct schema *s, const struct doc_node *ref)
{
	const uint8_t *p = ref->str, *end = p + ref->len;
	const struct doc_node *v = &s->doc.node[0];
	uint8_t *name;
	size_t n;

	if (ref->len == 0 || *p != '#' || (name = malloc(ref->len)) == NULL)
		return NULL;
	p++;
	while (v != NULL && p < end) {
		bool slash = *p == '/';

		p++;
		if (!slash || !token(&p, end, name, &n)) {
			v = NULL;
		} else if (v->kind == DOC_OBJECT) {
			v = doc_member(&s->doc, v, name, n);
		} else if (v->kind == DOC_ARRAY) {
			struct num num;
			uint64_t i;

			/* Digits only, no leading zero. */
			for (size_t k = 0; k < n; k++)
				if (name[k] < '0' || name[k] > '9')
					n = 0;
			num = num_read(name, n);
			v = n > 0 && (name[0] != '0' || n == 1) &&
				num_u64(&num, UINT32_MAX, &i) && i < v->count
			    ? doc_kid(&s->doc, v, (uint32_t)i)
			    : NULL;
		} else {
			v = NULL;
		}
	}
	free(name);
	return v;
}

static void
resolve_all(struct compile *c)
{
	struct schema *s = c->s;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct doc_node *ref = s->rule[i].ref, *to;

		if (ref == NULL || ref->kind != DOC_STRING)
			continue;
		to = resolve(s, ref);
		if (to == NULL || s->of_node[to - s->doc.node] == 0)
			report_add(c->r, NULL,
			    "$ref \"%.*s\" names no schema of this document; "
			    "write #/$defs/NAME",
			    report_cut(ref->str, ref->len),
			    (const char *)ref->str);
		else
			s->rule[i].target = s->of_node[to - s->doc.node] - 1;
	}
}

int
schema_compile(struct schema *s, const uint8_t *text, size_t n,
    struct report *r, struct err *e)
{
	struct compile c = {.s = s, .r = r};
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
	schema(&c, &s->doc.node[0], NULL);
	if (c.oom)
		return err_set(e, FAILURE_INTERNAL, "out of memory");
	resolve_all(&c);
	/* The word itself and not ["object"]: clients compare with it. */
	if (r->n == 0 &&
	    (s->rule[0].types != SCHEMA_OBJECT ||
		doc_get(&s->doc, s->rule[0].src, "type")->kind != DOC_STRING))
		report_add(r, NULL,
		    "the schema must have \"type\": "
		    "\"object\": arguments are an object");
	return 0;
}

void
schema_free(struct schema *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		pattern_free(s->rule[i].pattern);
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
