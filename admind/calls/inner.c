/* See inner.h. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "inner.h"
#include "jobs.h"
#include "own_run.h"

enum {
	/* Time for the longest possible call, with its queue and its answer.
	 * sandboxd ends the call earlier, at the call's own limit. */
	WAIT_MS = QUEUE_MS + 600 * 1000 + 10 * 1000
};

struct inner {
	enum inner_mode mode;
	struct ipc_id execution;
	struct ipc_hash version;
	struct ipc_hash seen; /* zero: none was given */
	inner_cb *cb;
	void *arg;
};

bool
inner_may_lack_secrets(const struct job *j)
{
	return j->inner != NULL && j->inner->mode == INNER_TOKENS;
}

bool
inner_is_person(const struct job *j)
{
	return j->inner != NULL && j->inner->mode == INNER_PERSON;
}

const struct ipc_hash *
inner_seen(const struct job *j)
{
	static const struct ipc_hash none;

	return j->inner != NULL &&
		memcmp(&j->inner->seen, &none, sizeof(none)) != 0
	    ? &j->inner->seen
	    : NULL;
}

const char *
inner_change_source(const struct job *j)
{
	return inner_is_person(j) ? "manual" : "llm";
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
ran(void *arg, const struct own_end *e)
{
	end(arg, e->failure, e->text, e->body);
}

void
inner_run(struct job *j)
{
	struct inner *in = j->inner;

	in->execution = j->execution;
	in->version = j->version_hash;
	if (own_run_held(j->a, &j->execution,
		ipc_bytes(j->arguments.p, j->arguments.len), "call", WAIT_MS,
		ran, in) == -1) {
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
inner_answered(struct job *j)
{
	struct inner *in = j->inner;

	if (!inner_is_person(j))
		return;
	j->inner = NULL;
	in->execution = j->execution;
	end(in, j->is_error ? j->failure : FAILURE_NONE, "",
	    ipc_bytes(j->body.p, j->body.len));
}

static void
make(struct admind *a, const char *name, const char *principal,
    enum inner_mode mode, struct ipc_bytes arguments,
    const struct ipc_hash *seen, inner_cb *cb, void *arg)
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
	in->mode = mode;
	in->seen = *seen;
	in->cb = cb;
	in->arg = arg;
	j->inner = in;
	/* A run that renews tokens must not wait for a renewal of these
	 * tokens. */
	j->fresh_tokens = mode == INNER_TOKENS;
	call_inner(j);
}

void
inner_call(struct admind *a, const char *name, const char *principal,
    enum inner_mode mode, struct ipc_bytes arguments, inner_cb *cb, void *arg)
{
	static const struct ipc_hash none;

	make(a, name, principal, mode, arguments, &none, cb, arg);
}

void
inner_person(struct admind *a, const char *name, const char *principal,
    struct ipc_bytes arguments, const struct ipc_hash *seen, inner_cb *cb,
    void *arg)
{
	make(a, name, principal, INNER_PERSON, arguments, seen, cb, arg);
}
