/* See answer.h. */
#include "answer.h"
#include "result.h"

bool
answer_call(struct ipc_peer *peer, uint64_t request, const struct answer *a)
{
	struct ipc_call_result m = {
	    .execution = *a->execution,
	    .outcome = (uint8_t)a->outcome,
	    .failure = (uint16_t)a->failure,
	    .duration_us = a->duration_us,
	    .body_len = (uint32_t)a->body.n,
	};
	struct buf b;
	bool sent = false;

	if (peer == NULL)
		return false;
	/* Only a failure of the platform is sent as REFUSED. A failure of the
	 * tool is sent as CALL_RESULT, with the tool's text. */
	if (failure_info(a->failure)->side == FAILURE_PLATFORM &&
	    a->failure != FAILURE_TOOL_PROTOCOL)
		return ipc_refuse(peer, request, a->failure, a->message,
			   a->retry_ms) == 0;
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, a->body.p, a->body.n);
	result_meta(&b, a->execution, a->duration_us, a->printed, &a->dropped,
	    a->failure, a->message, a->body);
	if (b.failed) {
		/* The tool ran, so the answer must not invite the client to
		 * call again. */
		(void)ipc_refuse(
		    peer, request, FAILURE_LOST, "no memory for the result", 0);
	} else {
		m.body_meta = ipc_bytes(b.p, b.len);
		sent = ipc_answer(peer, request, IPC_CALL_RESULT, &m) == 0;
	}
	buf_free(&b);
	return sent;
}

const char *
answer_reason(enum failure f)
{
	switch (f) {
	case FAILURE_REVOKED:
		return "the tool's approval was withdrawn while it ran";
	case FAILURE_STOPPED:
		return "the tool or its server was stopped while it ran";
	default:
		return "The call was cancelled.";
	}
}
