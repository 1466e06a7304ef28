/*
 * All errors of one check together: each a JSON Pointer (RFC 6901) and a
 * sentence, gathered as the JSON array that CHECK_ERRORS carries.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "jsonw.h"

enum { REPORT_MAX = 32 }; /* more would help no reader */

/* A place in a value: frames on the C stack, from the value up to the root. A
 * frame is a name, or an index if name is NULL. NULL is the root. */
struct path {
	const struct path *up;
	const uint8_t *name;
	size_t len;
	uint32_t index;
};

struct report {
	struct buf *json; /* NULL: count and keep the first only */
	struct jsonw w;
	unsigned n;      /* errors so far; those past REPORT_MAX only count */
	char first[200]; /* "pointer: sentence", cut */
	const char *prefix; /* put before every pointer, or NULL */
	/* Returns a pattern's demand in words, or NULL; the function may be
	 * NULL. */
	const char *(*rule)(const uint8_t *pattern, size_t n);
};

/* Opens a report. json may be NULL; it must live as long as the report. */
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
