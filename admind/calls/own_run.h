/*
 * Executions that admind runs itself, on its own listener: inspections, tests
 * of drafts and fetches of modules. own_run.c also sends RUN for inner calls
 * (inner.h) and tasks. Decision 0095.
 */
#ifndef OWN_RUN_H
#define OWN_RUN_H

#include "admind.h"

/* A run to start. Everything borrowed is copied. */
struct own_what {
	enum context_kind kind;         /* CONTEXT_INSPECT, _TEST or _MODULE */
	const char *noun;               /* name for people: "inspection" */
	const struct ipc_id *execution; /* NULL: a new one */
	/* For the row. client and protocol are untrusted and may be NULL. */
	const char *tool, *principal, *client, *protocol;
	const struct ipc_id *version; /* the tested version; NULL: no test */
	const struct ipc_hash *version_hash;
	struct ipc_bytes arguments; /* JSON, as RUN carries it */
	struct ipc_bytes kept;      /* the arguments as records keep them */
	/* Members of the context (context.h) that only this kind of run has.
	 * own_run() adds the name, the digest of the arguments, the times and
	 * the intent. */
	const struct buf *material;
	uint32_t timeout_ms; /* after this, sandboxd ends the run */
	uint32_t wait_ms;    /* for queue, start of a runner, run, and answer;
			      * wait_ms() makes it longer (waits.h) */
};

enum own_how {
	OWN_RAN,      /* the sandbox said how it ended */
	OWN_REFUSED,  /* it did not run, or its end is not known */
	OWN_MALFORMED /* the sandbox said something else */
};

/* The end of a run. Everything borrowed lives until own_cb returns. */
struct own_end {
	enum own_how how;
	struct ipc_id execution;
	enum failure failure; /* NONE: without error */
	const char *text;     /* a remedy, or a description of the failure */
	/* for OWN_RAN only */
	enum outcome outcome;
	struct ipc_bytes body, meta;
	uint64_t duration_us;
	const struct ipc_module_stored *stored; /* NULL: no module was stored */
};
typedef void own_cb(void *arg, const struct own_end *);

/* Starts one run. Calls cb once, perhaps before this function returns. */
void own_run(struct admind *, const struct own_what *, own_cb *, void *arg);

/* Sends RUN for a context that is held for LISTENER_ADMIND already, and tells
 * how the run ended. Returns 0, or -1: RUN was not sent, and sandboxd was told
 * to drop the context. */
int own_run_held(struct admind *, const struct ipc_id *execution,
    struct ipc_bytes arguments, const char *noun, uint32_t wait_ms, own_cb *,
    void *arg);
/* Sends RUN like own_run_held(), but passes each frame of the answer to
 * heard(). */
int own_run_send(struct admind *, const struct ipc_id *execution,
    struct ipc_bytes arguments, uint32_t wait_ms, ipc_answer_cb *heard,
    void *arg);

#endif
