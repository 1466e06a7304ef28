/*
 * Compiles a closed subset of JSON Schema 2020-12. A keyword that we do not
 * judge is refused when the schema is stored, so no schema makes a promise that
 * is not checked. Annotations are kept and not judged; docs/SCHEMAS.md names
 * them.
 */
#ifndef SCHEMA_H
#define SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "doc.h"
#include "pattern.h"
#include "report.h"

enum schema_type {
	SCHEMA_NULL = 1,
	SCHEMA_BOOLEAN = 2,
	SCHEMA_OBJECT = 4,
	SCHEMA_ARRAY = 8,
	SCHEMA_NUMBER = 16,
	SCHEMA_STRING = 32,
	SCHEMA_INTEGER = 64
};

/* One compiled schema: an object, true or false. Absent keywords are NULL, 0,
 * or a limit that has no effect. Nodes belong to the schema's own doc. */
struct rule {
	const struct doc_node *src;
	bool never;     /* the schema `false` */
	unsigned types; /* enum schema_type, 0: any */
	const struct doc_node *properties, *required, *values, *constant;
	const struct doc_node *minimum, *maximum, *above, *below, *multiple;
	const struct doc_node *prefix, *all, *any, *one;
	const struct doc_node *ref, *additional, *items, *not;
	const struct doc_node *condition, *then, *otherwise; /* if then else */
	const struct doc_node *named; /* patternProperties */
	const struct doc_node *names, *contains, *needs, *implied;
	uint64_t min_length, max_length, min_items, max_items, min_members,
	    max_members, min_contains, max_contains;
	bool unique;
	uint32_t target; /* rule that `ref` names */
	struct pattern *pattern;
	struct pattern **name_pattern; /* one for each member of `named` */
};

/* The use of a schema. */
enum schema_use {
	/* Arguments of a tool, when the tool is saved. The root must be an
	 * object schema ({"type": "object"}), as MCP demands. x-mcp-header must
	 * follow the rules that clients enforce (schema_lint.c). */
	SCHEMA_INPUT,
	/* A schema of results, or a schema that was saved before. */
	SCHEMA_ANY
};

struct schema {
	struct doc doc;
	struct rule *rule; /* rule[0] is the root */
	uint32_t n, cap;
	uint32_t *of_node; /* node number to rule number + 1; 0: none */
	unsigned patterns;
};

/* Compiles a schema. Every fault goes to the report. The schema can be used if
 * the report is empty. The text must outlive the schema. 0, or -1 without
 * memory (err set). */
int schema_compile(struct schema *, enum schema_use, const uint8_t *, size_t,
    struct report *, struct err *);
void schema_free(struct schema *);
/* Returns the rule compiled from a node of the schema's doc. */
const struct rule *schema_rule(const struct schema *, const struct doc_node *);

/* Judges a value; faults go to the report. 0, or -1 with FAILURE_LIMIT if the
 * check itself had to end: a limit on steps, depth, patterns or memory was
 * reached. */
int schema_validate(
    const struct schema *, const struct doc *, struct report *, struct err *);

#endif
