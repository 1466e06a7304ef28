/*
 * A JSON text as a tree that points into the text's bytes, so that values can
 * be judged exactly. Numbers stay the digits that were sent, strings are
 * unescaped once, and members of an object can be found by name. The text must
 * have passed json_scan(), so names are unique, and depth and size are bounded.
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
	const uint8_t *raw; /* the value's bytes in the text */
	size_t rawlen;
	const uint8_t *name; /* unescaped name of a member; else NULL */
	size_t namelen;
	const uint8_t *str; /* a string: unescaped, NUL-terminated */
	size_t len;         /* number of bytes in str */
	uint32_t count;     /* members or elements */
	uint32_t *kids;     /* node numbers of those, in text order */
	uint32_t *byname;   /* object: kids sorted by name */
	uint32_t hash;      /* equal values have equal hashes */
};

struct doc {
	struct doc_node *node; /* node[0] is the value itself */
	uint32_t n;
	uint8_t *strings; /* storage of unescaped bytes */
	uint32_t *index;  /* storage of kids and byname */
};

/* Scans a text and builds the tree. The text must outlive the doc. 0, or -1
 * with err (a refusal of json_scan(), or no memory). Free with doc_free() in
 * both cases. */
int doc_parse(struct doc *, const uint8_t *text, size_t n, struct err *);
void doc_free(struct doc *);

/* Returns the member of this (unescaped) name, or NULL. */
const struct doc_node *doc_member(const struct doc *,
    const struct doc_node *object, const void *name, size_t n);
const struct doc_node *doc_get(
    const struct doc *, const struct doc_node *object, const char *name);
const struct doc_node *doc_kid(
    const struct doc *, const struct doc_node *, uint32_t i);
/* Compares as JSON Schema defines equality: numbers by value, members in any
 * order. Takes at least one step from *steps for each node. Returns false when
 * no steps are left. */
bool doc_equal(const struct doc *, const struct doc_node *, const struct doc *,
    const struct doc_node *, long *steps);
/* Returns a member's name as a string node, so that it can be judged like a
 * string. */
struct doc_node doc_name(const struct doc_node *member);
/* Returns the number of code points in a string. */
size_t doc_points(const struct doc_node *);
/* Returns whether the node is a string with this text. */
bool doc_is(const struct doc_node *, const char *);

#endif
