/*
 * The one answer to a RUN: CALL_RESULT, or REFUSED if the platform failed and
 * not the tool.
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
	uint64_t retry_ms; /* if the platform failed: when to retry */
};

/* Sends the answer. peer may be NULL: no client waits. true if a live
 * connection took it. */
bool answer_call(struct ipc_peer *, uint64_t request, const struct answer *);
/* Returns the error text for a call that was ended from outside. */
const char *answer_reason(enum failure);

#endif
