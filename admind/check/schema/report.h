/*
 * Gathers all errors of one check as the JSON array that CHECK_ERRORS carries.
 * Each error is a JSON Pointer (RFC 6901) and a sentence.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "jsonw.h"

enum { REPORT_MAX = 32 }; /* more errors would help no reader */

/* A place in a value: a list of frames on the C stack, linked from the value up
 * to the root. A frame has a name, or an index if its name is NULL. A NULL path
 * is the root itself. */
struct path {
	const struct path *up;
	const uint8_t *name;
	size_t len;
	uint32_t index;
};

struct report {
	struct buf *json; /* NULL: errors are counted, only the first is kept */
	struct jsonw w;
	unsigned n;         /* errors so far; json has at most REPORT_MAX */
	char first[200];    /* "pointer: sentence", cut */
	const char *prefix; /* put before every pointer, or NULL */
	/* Returns the demand of a pattern in words, or NULL if there are no
	 * words for this pattern. The function pointer may be NULL. */
	const char *(*rule)(const uint8_t *pattern, size_t n);
};

/* Opens a report. json must live as long as the report. It may be NULL. */
void report_open(struct report *, struct buf *json);
void report_add(struct report *, const struct path *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Closes the array. */
void report_close(struct report *);

/* Bytes of untrusted text shown in one sentence. */
enum { REPORT_QUOTE = 80 };
/* Returns the length of p's longest prefix of at most REPORT_QUOTE bytes that
 * ends at a character; for %.*s. */
int report_cut(const uint8_t *p, size_t n);

#endif
