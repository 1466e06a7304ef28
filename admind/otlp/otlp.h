/*
 * Telemetry as OTLP/HTTP writes it in JSON (opentelemetry-proto 1.x,
 * docs/specification.md, "JSON Protobuf Encoding"), with the names of the
 * semantic conventions for MCP. No I/O and no clock.
 *
 *  otlp_span.c    an ended call as a span
 *  otlp_series.c  counts and durations of ended calls, as metrics
 *  otlp.c         the envelope and the attributes
 *
 * No field of struct otlp_call can carry arguments, output, the text of an
 * error or the URI of a resource, so none can leave by it
 * (docs/decisions/0107).
 */
#ifndef OTLP_H
#define OTLP_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "bytes.h"
#include "jsonw.h"
#include "trace.h"

enum {
	/* Spans of one request. With the longest names they are 600 kB, and all
	 * series 300 kB; ARGUMENTS_MAX is 1 MiB. */
	OTLP_SPANS_MAX = 200,
	OTLP_BUCKETS = 15, /* one more than bounds */
	/* Names of tools that metrics tell apart; the others are `other`. */
	OTLP_TOOLS_MAX = 64,
	/* Kinds of ends of these tools; the others count without a name. */
	OTLP_SERIES_MAX = 256,
	OTLP_NAME_MAX = 64
};

enum otlp_method { OTLP_TOOL, OTLP_PROMPT, OTLP_RESOURCE };

/* The sender. Borrowed. */
struct otlp_who {
	const char *node;
	bool principals; /* spans name them */
};

/* An ended call. Borrowed. */
struct otlp_call {
	struct ipc_id id;   /* of the record */
	struct trace trace; /* the client's; all zero: none */
	enum otlp_method method;
	struct ipc_bytes tool;    /* exposed name */
	struct ipc_bytes server;  /* empty: none */
	struct ipc_bytes outcome; /* as records have it */
	struct ipc_bytes failure; /* our name; empty: done */
	struct ipc_bytes listener, principal;
	struct ipc_bytes protocol; /* untrusted */
	struct ipc_bytes version;  /* hash of the version, or empty */
	uint64_t begin_us, end_us; /* Unix time */
};

/* ---- otlp.c ---- */
/* Opens and closes the text of a request: of spans, or of metrics. */
void otlp_begin(struct jsonw *, const struct otlp_who *, bool spans);
void otlp_end(struct jsonw *);
/* Writes one attribute into an open array. */
void otlp_attr(struct jsonw *, const char *key, struct ipc_bytes value);
/* Writes us as the nanoseconds of a member. */
void otlp_time(struct jsonw *, const char *name, uint64_t us);
/* Writes a number as the text that 64-bit numbers are in JSON. */
void otlp_u64(struct jsonw *, const char *name, uint64_t);
/* Writes the attributes that spans and metrics share. tool: in the place of the
 * call's; empty: none. */
void otlp_call_attrs(struct jsonw *, enum otlp_method, struct ipc_bytes tool,
    struct ipc_bytes failure);
const char *otlp_method_name(enum otlp_method);

/* ---- otlp_span.c ---- */
/* Writes a call as a span into an open array. Its ids follow from the record's
 * id, so a span that is sent twice is the same span. */
void otlp_span(
    struct jsonw *, const struct otlp_who *, const struct otlp_call *);

/* ---- otlp_series.c ---- */
struct otlp_series {
	enum otlp_method method;
	char tool[OTLP_NAME_MAX + 1], failure[OTLP_NAME_MAX + 1];
	uint64_t bucket[OTLP_BUCKETS], count, sum_us;
};

/* Counts of ended calls since start_us. */
struct otlp_counts {
	uint64_t start_us;
	char tool[OTLP_TOOLS_MAX][OTLP_NAME_MAX + 1]; /* those with a name */
	unsigned ntools;
	struct otlp_series series[OTLP_SERIES_MAX];
	unsigned n;
};

void otlp_count(struct otlp_counts *, const struct otlp_call *);
/* Writes the histogram into an open array of metrics, if there is a call. */
void otlp_durations(
    struct jsonw *, const struct otlp_counts *, uint64_t now_us);
/* A number with its `error.type`; NULL: without. */
struct otlp_number {
	const char *failure;
	uint64_t n;
};
/* Writes numbers as one metric. sum: they only rise, from start_us on;
 * otherwise they are gauges. */
void otlp_numbers(struct jsonw *, const char *name, const char *unit,
    const char *help, bool sum, const struct otlp_number *, unsigned n,
    uint64_t start_us, uint64_t now_us);

#endif
