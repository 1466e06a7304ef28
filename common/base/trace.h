/*
 * W3C Trace Context (Recommendation of 2021-11-23), section 3.2: traceparent.
 * No I/O.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum {
	TRACE_PARENT_LEN = 55,  /* "00-" 32 "-" 16 "-" 2: all of version 00 */
	TRACE_PARENT_MAX = 128, /* a later version may have more after a dash */
	TRACE_SPAN_LEN = 8
};

struct trace {
	struct ipc_id id; /* zero: none */
	uint8_t span[TRACE_SPAN_LEN];
};

/* Parses a traceparent. 0, or -1: not a traceparent (then, as the
 * Recommendation says, there is none) and out is all zero. */
int trace_parse(const void *text, size_t n, struct trace *out);

#endif
