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

/* How a call ended while its client was away. */
struct call_kept {
	bool refused;
	struct refusal refusal;
	enum failure failure;
	struct buf body, meta; /* of a result */
	size_t bytes;          /* of body and meta, as counted */
};

struct call {
	TAILQ_ENTRY(call) all;
	struct gateway *gw;
	/* The request that waits for the answer. NULL while the client is away
	 * (in ASKING, CONFIRMING or KEPT): its request was answered
	 * "input_required", and the client will come back. */
	struct exchange *ex;
	enum call_state state;
	bool cancelled; /* by its client; CANCEL goes once there is an id */
	char tool[MCP_NAME_MAX + 1]; /* for the log */
	struct ipc_id execution;     /* from RUNNING on */
	uint64_t request;            /* RUN's id at `asked`; 0: answered */
	struct ipc_peer *asked;      /* until answered: exists, closing or
				      * not */
	uint64_t limit_ms;           /* of the run, with a margin */
	struct event *late;          /* RUNNING: no result within limit_ms */
	struct event *quiet;         /* nothing was heard for a while */
	struct questions *questions; /* the newest, or NULL */
	uint32_t put;                /* number of the questions its client
				      * got */
	struct parked *parked;       /* the conversation, or NULL */
	struct call_kept *kept;      /* KEPT */
	struct share *share; /* the caller's; kept results count there */
	/* --- from CONFIRMING on --- */
	struct ipc_id approval; /* the request; zero: none */
	uint64_t expires_ms;    /* of the request, Unix time */
	bool decided;           /* a decision came during AUTHORISING */
	bool held;              /* its client came back and waits a while */
	struct event *again;
};

/* call.c: the only place where a call changes state. */
void call_set_state(struct call *, enum call_state);
/* Begins to watch for a client that waits in silence. */
void call_watch(struct call *);
/* Ends a call without an answer and frees it. */
void call_drop(struct call *);
/* Asks admind, for the first time or once more. */
void call_authorise(struct call *);

/* call_end.c: each ends the call, or keeps how it ended for a client that is
 * away. */
void call_end_refused(struct call *, const struct refusal *);
void call_end_failure(
    struct call *, enum failure, uint64_t retry_ms, const char *text);
/* Ends the call because sandboxd, or else admind, is not connected. */
void call_end_away(struct call *, bool sandboxd);
/* Ends the call with a result from elsewhere. f: why it is an isError result,
 * or NONE. */
void call_end_result(struct call *, enum failure f, struct ipc_bytes body,
    struct ipc_bytes meta);
/* Ends the call with a finished answer; never while the client is away. Takes
 * b. */
void call_end_answer(struct call *, int status, struct buf *b);
/* Answers the client of a KEPT call, which is back. */
void call_end_kept(struct call *);
/* Frees the kept end. */
void call_end_forget(struct call *);

/* call_event.c */
void call_event(struct call *, const struct ipc_call_event *);

/* call_confirm.c */
void call_confirm(struct call *, const struct ipc_pending *);
/* Ends a call in CONFIRMING. */
void call_confirm_end(struct call *);
/* Tells each client that waits here to call again later. */
void call_confirm_all_later(struct gateway *);

/* call_ask.c: CALL_EVENT of kind 3. */
void call_ask_questions(struct call *, const struct ipc_call_event *);

#endif
