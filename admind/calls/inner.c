/* See inner.h. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "hold.h"
#include "ids.h"
#include "inner.h"
#include "jobs.h"
#include "log.h"

enum {
	/* The longest possible call, with its queue and the way back. Its own
	 * limit, which sandboxd enforces, ends it earlier. */
	WAIT_MS = QUEUE_MS + 600 * 1000 + 10 * 1000
};

struct inner {
	struct admind *a;
	enum inner_mode mode;
	struct ipc_id execution;
	struct ipc_hash version;
	inner_cb *cb;
	void *arg;
};

bool
inner_may_lack_secrets(const struct job *j)
{
	return j->inner != NULL && j->inner->mode == INNER_TOKENS;
}

static void
end(struct inner *in, enum failure f, const char *text, struct ipc_bytes body)
{
	struct inner_end e = {.failure = f,
	    .text = text,
	    .body = body,
	    .execution = in->execution,
	    .version = in->version};
	inner_cb *cb = in->cb;
	void *arg = in->arg;

	free(in);
	cb(arg, &e);
}

static void
ran(void *arg, struct ipc_frame *f, enum failure gone)
{
	const struct ipc_bytes none = ipc_bytes(NULL, 0);
	struct inner *in = arg;
	struct ipc_call_result m;
	enum failure failure;
	struct err err;

	if (f != NULL && f->type == IPC_CALL_EVENT)
		return; /* nobody listens to its log */
	if (f == NULL || f->type != IPC_CALL_RESULT) {
		answer_err(f, gone, &err);
		if (f == NULL) {
			hold_cancel(in->a, &in->execution, FAILURE_KILLED);
			err_set(&err, FAILURE_SANDBOX_UNAVAILABLE,
			    "the sandbox ended during the call");
		}
		end(in, err.failure, err.text, none);
		return;
	}
	if (ipc_decode(f, &m, &err) == -1 || m.body_len > m.body_meta.n ||
	    m.failure >= FAILURE_COUNT) {
		end(in, FAILURE_INTERNAL, "malformed result", none);
		return;
	}
	failure = (enum failure)m.failure;
	if (m.outcome != OUTCOME_DONE && failure == FAILURE_NONE)
		failure = FAILURE_INTERNAL;
	end(in, failure, failure_info(failure)->fix,
	    ipc_bytes(m.body_meta.p, m.body_len));
}

void
inner_run(struct job *j)
{
	struct ipc_peer *peer = ipc_client_peer(j->a->sandboxd);
	struct ipc_run m = {.execution = j->execution,
	    .arguments = ipc_bytes(j->arguments.p, j->arguments.len)};
	struct inner *in = j->inner;
	uint64_t id;

	in->execution = j->execution;
	in->version = j->version_hash;
	if (peer == NULL ||
	    ipc_request(peer, IPC_RUN, &m, WAIT_MS, ran, in, &id) == -1) {
		hold_cancel(j->a, &j->execution, FAILURE_KILLED);
		job_refuse(j, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
		return;
	}
	j->inner = NULL;
	(void)job_enter(j, JOB_DONE);
	job_free(j);
}

void
inner_refused(struct job *j, enum failure f, const char *text)
{
	struct inner *in = j->inner;

	if (in == NULL)
		return;
	j->inner = NULL;
	in->execution = j->execution;
	end(in, f == FAILURE_NONE ? FAILURE_INTERNAL : f, text,
	    ipc_bytes(NULL, 0));
}

void
inner_call(struct admind *a, const char *name, const char *principal,
    enum inner_mode mode, struct ipc_bytes arguments, inner_cb *cb, void *arg)
{
	struct inner *in = calloc(1, sizeof(*in));
	struct inner_end e = {.failure = FAILURE_BUSY};
	struct job *j;
	struct err err;

	j = in == NULL ? NULL : job_inner(a, name, principal, arguments, &err);
	if (j == NULL) {
		e.text = in == NULL ? "out of memory" : err.text;
		free(in);
		cb(arg, &e);
		return;
	}
	in->a = a;
	in->mode = mode;
	in->cb = cb;
	in->arg = arg;
	j->inner = in;
	/* A run that renews tokens must not wait for their renewal. */
	j->fresh_tokens = mode == INNER_TOKENS;
	call_inner(j);
}
