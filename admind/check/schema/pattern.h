/*
 * Regular expressions of schemas, by PCRE2 with every limit set. The pattern
 * and the text are both hostile: they come from an LLM, or through it from a
 * web page. Patterns are interpreted and never JIT-compiled. They have no
 * callouts and no start-of-pattern verbs.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "err.h"

struct pattern;

enum {
	PATTERN_MAX = 1000, /* bytes; longer patterns are mistakes or attacks */
	PATTERNS_MAX = 64,  /* in one schema; each costs time to compile */
};

/* Compiles a pattern. Returns NULL with err if the pattern is not accepted. */
struct pattern *pattern_new(const uint8_t *, size_t, struct err *);
void pattern_free(struct pattern *);
/* Searches a text. Returns 1 if it contains a match (unanchored, as JSON Schema
 * demands), else 0. Returns -1 without a verdict if a limit or `until`
 * (clock(3): processor time) was reached. */
int pattern_match(
    const struct pattern *, const uint8_t *, size_t, clock_t until);

#endif
