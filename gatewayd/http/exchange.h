/*
 * One HTTP request to /mcp, and the ways to answer it.
 *
 *	exchange_begin.c  HTTP request -> exchange: copies what is needed
 *	exchange.c        the sender, the session, each message in turn
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "answer.h"
#include "gateway.h"
#include "httpd.h"
#include "identity.h"
#include "refusal.h"
#include "session_state.h"
#include "share.h"

struct stream_post;

/* One HTTP request to /mcp. Lives until it is answered. A legacy client that
 * leaves does not cancel its call, so then the struct lives until the call has
 * ended. */
struct exchange {
	TAILQ_ENTRY(exchange) all;
	struct gateway *gw;
	struct httpd_req *req; /* NULL: the client is gone */
	uint8_t *body;         /* owned; messages point into it */
	size_t body_len;
	/* These follow the body in the same memory. */
	struct credential credential; /* its text follows, too */
	bool unread;                  /* it can't be read, which is refused */
	char *version, *method, *name, *session_text, *agent,
	    *last_event;             /* or NULL */
	bool is_delete;              /* DELETE of a session: no message */
	bool is_get;                 /* GET of an event stream: no message */
	bool accepts_sse, names_sse; /* by Accept; Accept names SSE */
	struct identity who;
	struct share *share; /* of who, once the request was counted */
	bool ended;          /* the credential has ended */
	bool has_session;
	struct session session;

	struct mcp_body members;
	size_t at;            /* the member being served */
	struct mcp_message m; /* that member, classified */
	struct buf answers;   /* to the members of an array so far */
	struct buf made;      /* arguments from a URI's variables */
	uint64_t ttl_ms;      /* resources/read: caching hint */
	struct buf mime;      /* resources/read: type, a JSON string */

	bool streaming, slow;     /* SSE was begun; the client reads slowly */
	struct stream_post *post; /* keeps the events for a resume, or NULL */
	struct call *call;        /* the running one, or NULL */
};

/* Functions of folders that this folder may not include (docs/ARCHITECTURE.md).
 * The daemon sets gw->ops before the first request. */
struct exchange_ops {
	/* Serve ex->m, which is of the function's era and has no error. */
	void (*serve_legacy)(struct exchange *);
	void (*serve_modern)(struct exchange *);
	/* DELETE of ex's session. */
	void (*delete_session)(struct exchange *);
	/* The client of a modern call closed the response. */
	void (*cancel)(struct call *);
};

#define JSON_TYPE "application/json"
#define SSE_TYPE  "text/event-stream"

void exchange_begin(struct gateway *, struct httpd_req *, bool is_delete);
void exchange_free(struct exchange *);
/* Takes the answer to identity_ask: the exchange goes on, or is refused. */
void exchange_identified(
    void *exchange, const struct identity *, const struct refusal *);
void exchange_gone(struct exchange *);
/* Answers the message being served with a status and JSON; an empty buffer
 * means no answer (a notification). Frees b's content. May free ex. */
void exchange_answer(struct exchange *, int status, struct buf *b);
/* Answers with a refusal, through exchange_answer. */
void exchange_refuse(struct exchange *, const struct refusal *);
/* Returns whether the sender may read one of these lists: mask of 1 << enum
 * mcp_list. If another token of the sender could, answers with the scopes to
 * ask for, and returns false. */
bool exchange_may_read(struct exchange *, unsigned lists);
/* Answers with an error and the HTTP status given. data: further members of the
 * error's data, as JSON, or NULL. */
void exchange_error(struct exchange *, int status, enum failure,
    const char *message, const char *data);
/* Answers a method of the table that nothing here serves. */
void exchange_no_method(struct exchange *);
struct answer_to exchange_to(const struct exchange *);
/* Sends a notification on the answer's stream, and begins the stream if need
 * be. A slow client misses notifications. false: the answer can't be a
 * stream. */
bool exchange_notify(
    struct exchange *, const char *method, struct ipc_bytes params);

/* Sends a JSON-RPC request of ours on the answer's stream, and begins the
 * stream if need be. A slow client gets the request, too. false: the request
 * can't be sent. */
bool exchange_request(struct exchange *, const struct buf *json);

/* Begins the answer's stream, for a client that accepts event streams. */
void exchange_stream(struct exchange *);
/* Sends the head of an event stream, the same for every stream here. */
void exchange_stream_head(struct httpd_req *);
/* Gives the request to another owner; ex is freed. */
struct httpd_req *exchange_release(struct exchange *);
/* Gives ex another HTTP request, whose stream was begun. slow: the client has
 * to read before ex sends more notifications. */
void exchange_attach(struct exchange *, struct httpd_req *, bool slow);

/* Begins the answer's stream with a comment, so that a long wait is not silent.
 * Does nothing if the client's Accept does not name event streams. */
void exchange_quiet(struct exchange *);

/* Returns the instructions of the request's endpoint; NULL: the usual ones. */
const char *exchange_instructions(const struct exchange *);
/* Answers with a list: the text before its items, the items, the text after
 * them. Frees both buffers. */
void exchange_answer_parts(struct exchange *, struct buf *head,
    struct ipc_bytes items, struct buf *tail);
/* Returns the kind of object that the message being served calls. The kind
 * decides the form of the result. */
enum call_method exchange_call_method(const struct exchange *);

#endif
