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
	TRACE_PARENT_LEN = 55,  /* bytes of version 00: "00-" 32 "-" 16 "-" 2
				 * digits */
	TRACE_PARENT_MAX = 128, /* a later version may have more after a dash */
	TRACE_SPAN_LEN = 8
};

struct trace {
	struct ipc_id id; /* all zero: no trace */
	uint8_t span[TRACE_SPAN_LEN];
};

/* Parses a traceparent. 0; or -1 if the text is no traceparent, and *out is all
 * zero. The W3C Recommendation says to ignore such a text. */
int trace_parse(const void *text, size_t n, struct trace *out);

#endif
