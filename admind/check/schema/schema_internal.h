/* Shared by the schema_*.c files only. */
#ifndef SCHEMA_INTERNAL_H
#define SCHEMA_INTERNAL_H

#include <time.h>

#include "schema.h"

/* --- Compiling. -------------------------------------------------------- */

/* schema_ref.c: resolves every $ref, or reports it. */
void schema_ref_all(struct schema *, struct report *);

enum {
	/* The limits of gatewayd when it compares arguments with headers
	 * (mcp_param.h). */
	LINT_HEADERS_MAX = 32,
	LINT_DEPTH_MAX = 8, /* properties inside properties */
	LINT_NAME_MAX = 64  /* bytes of a header's name */
};

/* schema_lint.c: the x-mcp-header marks seen so far. */
struct schema_lint {
	const struct doc_node *mark[LINT_HEADERS_MAX];
	unsigned n;
};

bool schema_lint_is(const struct doc_node *member);
/* Checks an x-mcp-header mark in the schema `v`, whose path is `at`. */
void schema_lint(struct schema_lint *, const struct doc *,
    const struct doc_node *v, const struct doc_node *mark,
    const struct path *at, struct report *);

/* --- Judging. ---------------------------------------------------------- */

struct run {
	const struct schema *s;
	const struct doc *d;
	long steps;
	unsigned depth;
	clock_t until;     /* after this time no match of a pattern starts */
	const char *ended; /* why the check had to end, or NULL */
};

#define QUOTE(v) report_cut((v)->raw, (v)->rawlen), (const char *)(v)->raw

/* schema_leaf.c: these functions check one value and nothing below it. */
unsigned schema_leaf_types(const struct doc_node *);
/* Reports "must be a string or null, not 7". */
void schema_leaf_wrong_type(
    unsigned types, unsigned is, const struct path *, struct report *);
void schema_leaf_number(const struct rule *, const struct doc_node *,
    const struct path *, struct report *);
void schema_leaf_string(struct run *, const struct rule *,
    const struct doc_node *, const struct path *, struct report *);
void schema_leaf_unique(struct run *, const struct doc_node *,
    const struct path *, struct report *);
/* enum and const */
void schema_leaf_values(struct run *, const struct rule *,
    const struct doc_node *, const struct path *, struct report *);
/* Matches a pattern. Returns 1, 0, or -1 with `ended` set if the time or a
 * limit is used up. */
int schema_leaf_match(
    struct run *, const struct pattern *, const uint8_t *, size_t);
/* Reports a member that the schema does not know; the known names help the
 * caller. */
void schema_leaf_unknown(
    struct run *, const struct rule *, const struct path *, struct report *);

#endif
