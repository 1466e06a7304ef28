/*
 * Regular expressions of schemas, over PCRE2 with every limit set. Both the
 * pattern and the text are hostile: an LLM's, or a web page's through it.
 * Interpreted, never JIT-compiled; no callouts; no start-of-pattern verbs.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "err.h"

struct pattern;

enum {
	PATTERN_MAX = 1000, /* bytes: longer ones are mistakes or attacks */
	PATTERNS_MAX = 64,  /* in one schema: each costs time to compile */
};

/* Compiles a pattern. NULL with err if it is not one that we take. */
struct pattern *pattern_new(const uint8_t *, size_t, struct err *);
void pattern_free(struct pattern *);
/* Searches a text. 1: it contains a match (unanchored, as JSON Schema has it).
 * 0: none. -1: a limit or `until` (clock(3): processor time) was reached, so
 * there is no verdict. */
int pattern_match(
    const struct pattern *, const uint8_t *, size_t, clock_t until);

#endif
