/* Shared by call.c and call_*.c only. */
#ifndef CALL_INTERNAL_H
#define CALL_INTERNAL_H

#include "call.h"
#include "parked.h"
#include "questions.h"

struct event;

enum call_state {
	CALL_NEW,
	CALL_CHECKING,
	CALL_AUTHORISING,
	CALL_CONFIRMING, /* a person has to say yes; ex may be away */
	CALL_RUNNING,
	CALL_ASKING, /* it asked its client; ex may be away */
	CALL_KEPT,   /* it ended while its client was away */
	CALL_ENDED
};

/* How a call ended while nobody was there to be told. */
struct call_kept {
	bool refused;
	struct refusal refusal;
	enum failure failure;
	struct buf body, meta; /* of a result */
	size_t bytes;          /* of it, counted */
};

struct call {
	TAILQ_ENTRY(call) all;
	struct gateway *gw;
	/* Who waits for the answer. NULL in ASKING, CONFIRMING and KEPT: its
	 * request was answered "input_required", and the client will come back.
	 */
	struct exchange *ex;
	enum call_state state;
	bool cancelled; /* its client asked; CANCEL as soon as there is an id */
	char tool[MCP_NAME_MAX + 1]; /* for the log */
	struct ipc_id execution;     /* from RUNNING on */
	uint64_t request;            /* RUN's id at `asked`; 0: answered */
	struct ipc_peer *asked;      /* until then: is there, closing or not */
	uint64_t limit_ms;           /* of the run, with a margin */
	struct event *late;          /* RUNNING: nothing came within it */
	struct event *quiet;         /* nothing was heard for a while */
	struct questions *questions; /* the newest, or NULL */
	uint32_t put;                /* number of those its client was told */
	struct parked *parked;       /* the conversation, or NULL */
	struct call_kept *kept;      /* KEPT */
	struct share *share; /* of whoever called: what is kept counts */
	/* --- from CONFIRMING on --- */
	struct ipc_id approval; /* the request; zero: none */
	uint64_t expires_ms;    /* its: Unix time */
	bool decided;           /* somebody did while it was authorised */
	bool held;              /* its client came back: kept waiting a while */
	struct event *again;
};

/* call.c: the only place where a call changes state. */
void call_set_state(struct call *, enum call_state);
/* Begins to watch for a client that waits in silence. */
void call_watch(struct call *);
/* Ends a call without telling anybody. */
void call_drop(struct call *);
/* Asks admind, for the first time or once more. */
void call_authorise(struct call *);

/* call_end.c: each ends the call, or keeps how it ended for a client that is
 * away. */
void call_end_refused(struct call *, const struct refusal *);
void call_end_failure(
    struct call *, enum failure, uint64_t retry_ms, const char *text);
/* admind or sandboxd is not there. */
void call_end_away(struct call *, bool sandboxd);
/* A result from elsewhere; f: why it is an isError result, or NONE. */
void call_end_result(struct call *, enum failure f, struct ipc_bytes body,
    struct ipc_bytes meta);
/* An answer that is one already; never while the client is away. Takes b. */
void call_end_answer(struct call *, int status, struct buf *b);
/* KEPT: its client is back. */
void call_end_kept(struct call *);
/* Frees what was kept. */
void call_end_forget(struct call *);

/* call_event.c */
void call_event(struct call *, const struct ipc_call_event *);

/* call_confirm.c */
void call_confirm(struct call *, const struct ipc_pending *);
/* CONFIRMING: ends it. */
void call_confirm_end(struct call *);
/* All whose clients wait here: these are told to call again later. */
void call_confirm_all_later(struct gateway *);

/* call_ask.c: CALL_EVENT of kind 3. */
void call_ask_questions(struct call *, const struct ipc_call_event *);

#endif
