/*
 * The one answer to a RUN: CALL_RESULT, or REFUSED where the platform failed
 * and not the tool.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "ipc_peer.h"
#include "result.h"

struct answer {
	const struct ipc_id *execution;
	enum outcome outcome;
	enum failure failure;
	const char *message;      /* or NULL */
	struct ipc_bytes body;    /* CallToolResult, already redacted */
	struct ipc_bytes printed; /* captured output, already redacted */
	uint64_t duration_us;
	struct result_dropped dropped;
	uint64_t retry_ms; /* where the platform failed: when to try again */
};

/* peer may be NULL: nobody waits. true if it was handed to a live
 * connection. */
bool answer_call(struct ipc_peer *, uint64_t request, const struct answer *);
/* The text of a call that was ended from outside. */
const char *answer_reason(enum failure);

#endif
