/*
 * Executions that admind runs itself, on its own listener: inspections, tests
 * of drafts, fetches of modules; and RUN, for inner calls (inner.h) and tasks
 * too. Decision 0095.
 */
#ifndef OWN_RUN_H
#define OWN_RUN_H

#include "admind.h"

/* A run to start. Everything borrowed is copied. */
struct own_what {
	enum context_kind kind;         /* CONTEXT_INSPECT, _TEST or _MODULE */
	const char *noun;               /* "inspection": for people */
	const struct ipc_id *execution; /* NULL: a new one */
	/* the row; client and protocol are untrusted and may be NULL */
	const char *tool, *principal, *client, *protocol;
	const struct ipc_id *version; /* of a test, with its hash; else NULL */
	const struct ipc_hash *version_hash;
	struct ipc_bytes arguments; /* JSON, as RUN carries it */
	struct ipc_bytes kept;      /* the same, as records keep it */
	/* Members of the context (context.h) that this kind of run adds to a
	 * name, the digest of arguments, times and the intent. */
	const struct buf *material;
	uint32_t timeout_ms; /* sandboxd ends it then */
	uint32_t wait_ms; /* queue, a runner's start, the run, the way back */
};

enum own_how {
	OWN_RAN,      /* the sandbox said how it ended */
	OWN_REFUSED,  /* it did not run, or its end is unknown here */
	OWN_MALFORMED /* the sandbox said something else */
};

/* The end of a run. Everything borrowed lives until own_cb returns. */
struct own_end {
	enum own_how how;
	struct ipc_id execution;
	enum failure failure; /* NONE: without error */
	const char *text;     /* the remedy, or the failure itself */
	/* of OWN_RAN */
	enum outcome outcome;
	struct ipc_bytes body, meta;
	uint64_t duration_us;
	const struct ipc_module_stored
	    *stored; /* NULL: sandboxd told of none */
};
typedef void own_cb(void *arg, const struct own_end *);

/* Runs it, once. Calls cb once, perhaps before it returns. */
void own_run(struct admind *, const struct own_what *, own_cb *, void *arg);

/* Sends RUN for a context that is held for LISTENER_ADMIND already, and tells
 * how the run ended. Returns 0, or -1: RUN was not sent, and sandboxd was told
 * to drop the context. */
int own_run_held(struct admind *, const struct ipc_id *execution,
    struct ipc_bytes arguments, const char *noun, uint32_t wait_ms, own_cb *,
    void *arg);
/* The same; heard gets each frame of the answer. */
int own_run_send(struct admind *, const struct ipc_id *execution,
    struct ipc_bytes arguments, uint32_t wait_ms, ipc_answer_cb *heard,
    void *arg);

#endif
