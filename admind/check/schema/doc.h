/*
 * A JSON text as a tree over its own bytes, for exact judgement: numbers stay
 * the digits that were sent, strings are unescaped once, members of an object
 * can be found by name. The text must have passed json_scan, so names are
 * unique and depth and size are bounded.
 */
#ifndef DOC_H
#define DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum doc_kind {
	DOC_NULL,
	DOC_FALSE,
	DOC_TRUE,
	DOC_NUMBER,
	DOC_STRING,
	DOC_ARRAY,
	DOC_OBJECT
};

struct doc_node {
	enum doc_kind kind;
	const uint8_t *raw; /* its bytes in the text */
	size_t rawlen;
	const uint8_t *name; /* unescaped name if it is a member, else NULL */
	size_t namelen;
	const uint8_t *str; /* a string unescaped, NUL-terminated */
	size_t len;         /* its bytes */
	uint32_t count;     /* members or elements */
	uint32_t *kids;     /* their node numbers, in text order */
	uint32_t *byname;   /* object: the same sorted by name */
	uint32_t hash;      /* equal values have equal hashes */
};

struct doc {
	struct doc_node *node; /* node[0] is the value itself */
	uint32_t n;
	uint8_t *strings; /* storage of unescaped bytes */
	uint32_t *index;  /* storage of kids and byname */
};

/* Scans and builds. The text must outlive the doc. 0, or -1 with err (a refusal
 * of json_scan, or no memory); free with doc_free either way. */
int doc_parse(struct doc *, const uint8_t *text, size_t n, struct err *);
void doc_free(struct doc *);

/* Returns the member of this (unescaped) name, or NULL. */
const struct doc_node *doc_member(const struct doc *,
    const struct doc_node *object, const void *name, size_t n);
const struct doc_node *doc_get(
    const struct doc *, const struct doc_node *object, const char *name);
const struct doc_node *doc_kid(
    const struct doc *, const struct doc_node *, uint32_t i);
/* Compares as JSON Schema means equality: numbers by value, members in any
 * order. Costs *steps, one a node; gives up (false) when they are used up. */
bool doc_equal(const struct doc *, const struct doc_node *, const struct doc *,
    const struct doc_node *, long *steps);
/* Returns a member's name as a string node, to be judged like one. */
struct doc_node doc_name(const struct doc_node *member);
/* Returns the number of code points in a string. */
size_t doc_points(const struct doc_node *);
bool doc_is(const struct doc_node *, const char *); /* string equal to */

#endif
