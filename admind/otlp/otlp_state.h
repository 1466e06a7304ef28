/* The state of sending telemetry. telemetry_send.c keeps it; people read it
 * with the access document. */
#ifndef OTLP_STATE_H
#define OTLP_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "otlp.h"

enum { OTLP_WHY_MAX = 320 };

struct otlp_state {
	struct buf source;      /* the record of the document; empty: none */
	unsigned documents;     /* collectors of documents so far */
	bool running;           /* a run is under way */
	unsigned failures;      /* runs in a row that did not send all */
	uint64_t next_ms;       /* since boot: when the next run is due */
	uint64_t sent_us;       /* Unix time of the last good run; 0: none */
	uint64_t spans;         /* sent by this process */
	uint64_t rejected;      /* of those, left out by the collector */
	uint64_t dropped;       /* calls that were never sent, of all nodes */
	uint64_t waiting;       /* calls that wait, about */
	char why[OTLP_WHY_MAX]; /* the fault of the last run, or "" */
	struct otlp_counts counts;
};

#endif
