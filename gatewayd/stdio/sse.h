/*
 * Server-sent events (WHATWG HTML, section 9.2) from bytes to events. No I/O.
 */
#ifndef SSE_H
#define SSE_H

#include "buf.h"

enum {
	SSE_ID_MAX = 512, /* bytes of an event id; gatewayd's are shorter */
};

struct sse {
	struct buf line, data;
	char id[SSE_ID_MAX + 1]; /* of the newest event that had one */
	unsigned long retry_ms;  /* 0: the server named none */
	bool cr;                 /* the last byte was CR; an LF now belongs to
				  * the same line end */
	bool has_data;
};

/* data: the event's data lines joined by LF, valid during the call. */
typedef void sse_event(void *arg, const void *data, size_t n);

/* max: bytes of one line, and of one event's data. */
void sse_init(struct sse *, size_t max);
void sse_free(struct sse *);
/* Takes the next bytes; calls back for each whole event with data. 0, or -1:
 * a line or event is longer than max, or memory ran out. */
int sse_feed(struct sse *, const void *, size_t, sse_event *, void *arg);

#endif
