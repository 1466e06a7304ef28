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
	CALL_CONFIRMING, /* a person has to approve; ex may be NULL */
	CALL_RUNNING,
	CALL_ASKING, /* the tool asked the client; ex may be NULL */
	CALL_KEPT,   /* the call ended while its client was away */
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
	bool cancelled; /* by the client; CANCEL waits for `execution` */
	char tool[MCP_NAME_MAX + 1]; /* for the log */
	struct ipc_id execution;     /* from RUNNING on */
	uint64_t request;            /* id of RUN sent to `asked`; 0: none */
	struct ipc_peer *asked;      /* valid until RUN is answered, even if the
				      * peer is closing */
	uint64_t limit_ms;           /* of the run, with a margin */
	struct event *late;          /* fires if no result came in limit_ms */
	struct event *quiet;         /* fires if the client waits quiet_ms */
	struct questions *questions; /* the newest, or NULL */
	uint32_t put;                /* number of the questions last put to the
				      * client */
	struct parked *parked;       /* conversation with the client, or NULL */
	struct call_kept *kept;      /* KEPT */
	struct share *share; /* of the caller; kept results count in it */
	/* --- from CONFIRMING on --- */
	struct ipc_id approval; /* the approval request; zero: none */
	uint64_t expires_ms;    /* end of that request, Unix time */
	bool decided;           /* a decision came during AUTHORISING */
	bool held;              /* the client called again and waits here */
	struct event *again;
};

/* call.c: the only place where a call changes state. */
void call_set_state(struct call *, enum call_state);
/* Starts the timer for a client that waits in silence (exchange_quiet). */
void call_watch(struct call *);
/* Ends a call without an answer and frees it. */
void call_drop(struct call *);
/* Returns the sentence for a cancelled call that did not begin: its client
 * cancelled it, or its credential ended. */
const char *call_why_cancelled(const struct call *);
/* Sends AUTHORISE to admind, for the first time or again. */
void call_authorise(struct call *);

/* call_end.c: each of these functions ends the call. While the client is away,
 * the end is kept for the client. */
void call_end_refused(struct call *, const struct refusal *);
void call_end_failure(
    struct call *, enum failure, uint64_t retry_ms, const char *text);
/* Ends the call because sandboxd (true) or admind (false) is not connected. */
void call_end_away(struct call *, bool sandboxd);
/* Ends the call with a result of sandboxd or admind. f: why the result has
 * isError, or FAILURE_NONE. */
void call_end_result(struct call *, enum failure f, struct ipc_bytes body,
    struct ipc_bytes meta);
/* Ends the call with a finished answer. Frees b's content. Must not be called
 * while the client is away. */
void call_end_answer(struct call *, int status, struct buf *b);
/* Answers the client of a KEPT call. The client is back. */
void call_end_kept(struct call *);
/* Frees the kept end, if there is one. */
void call_end_forget(struct call *);

/* call_event.c */
void call_event(struct call *, const struct ipc_call_event *);

/* call_confirm.c */
void call_confirm(struct call *, const struct ipc_pending *);
/* Ends a call in CONFIRMING. */
void call_confirm_end(struct call *);
/* Tells each client whose call is in CONFIRMING to call again later. */
void call_confirm_all_later(struct gateway *);

/* call_ask.c: takes a CALL_EVENT of kind CALL_EVENT_ASK. */
void call_ask_questions(struct call *, const struct ipc_call_event *);

#endif
