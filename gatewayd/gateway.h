/*
 * Shared by the files of gatewayd: the process and one HTTP request.
 *
 *	front.c     HTTP request -> exchange (Host, Origin, path, method)
 *	exchange.c  exchange: its identity, session, and messages in turn
 *	legacy.c, modern.c   one message -> answer
 *	call.c      one tools/call
 *	listing.c, resource.c, complete.c   methods that read the catalogue
 *	identity.c, catalogue.c   admind's answers, cached
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include <sys/queue.h>

#include "answer.h"
#include "catalogue.h"
#include "httpd.h"
#include "ipc_peer.h"
#include "proc.h"
#include "session_state.h"
#include "share.h"

enum {
	PRINCIPAL_MAX = 320,   /* an e-mail address has at most 254 bytes */
	CREDENTIAL_MAX = 4096, /* a JWT of an identity provider fits */
	/* Time for an answer that admind can give at once. */
	ADMIND_ASK_MS = 10 * 1000,
	/* Time to authorise: management tools inspect code in a runner first,
	 * which may wait for a slot and take its own limit of 30 s. */
	AUTHORISE_MS = 90 * 1000,
	/* Added to a call's own limit before a missing answer counts as lost:
	 * killing, reaping and recording take part of it. */
	RUN_MARGIN_MS = 15 * 1000,
	/*
	 * Time for the links of a process that was just started, while its
	 * clients wait at the service manager's socket. The links take some ms
	 * when all else runs. After this time a typed answer serves the clients
	 * better.
	 */
	PATIENCE_MS = 2000,
	RETRY_MS = 500, /* hint while something restarts */
	/* A call that is silent for this long gets an event stream and a
	 * comment on it: nginx gives up after 60 s without a byte, Node's fetch
	 * after 300 s without a head. */
	QUIET_MS = 15 * 1000,
	/* Descriptors beside those of clients: listener, log, links, blobs on
	 * their way, refused connections that are still being told so. */
	FILES_RESERVED = 192,
	/* Bytes of all bodies of requests being served, together. */
	EXCHANGE_BYTES_MAX = 256 * 1024 * 1024,
	/* Bytes of results kept for clients that were asked and are not back
	 * yet. Beyond it a client is told that its result was lost. */
	KEPT_BYTES_MAX = 16 * 1024 * 1024,
	EXCHANGES_MAX = 4096 /* = IPC_WAITERS_MAX */
};

struct call;
struct parked_set;
struct exchange;
struct identity_cache;
struct streams;
struct stream_post;

TAILQ_HEAD(call_list, call);
TAILQ_HEAD(exchange_list, exchange);
TAILQ_HEAD(catalogue_list, catalogue);

struct gateway {
	struct proc proc;
	struct httpd *httpd;
	struct ipc_client *admind, *sandboxd;
	enum listener listener;
	const char *allowed_origins; /* comma-separated */
	uint64_t session_ttl_ms, quiet_ms;
	size_t page_size; /* items of a list in one answer */
	unsigned quirks;  /* allowed: mask of 1 << enum mcp_quirk */
	struct {
		uint64_t logged; /* boot ms, 0: never */
		unsigned more;   /* since then */
	} quirk[MCP_QUIRKS];

	bool draining; /* the process ends (drain.c) */
	/* With an inherited listener, clients wait there until both links are
	 * up or this fires. */
	struct event *patience;
	bool attached; /* GW_CONFIG came on this connection */
	bool has_key;  /* kept while admind is away */
	uint8_t session_key[KEY_LEN];
	struct event *attach_retry;
	struct session_ended *ended;
	struct session_states *states;
	struct streams *streams;
	bool seen;         /* admind told a revision */
	uint64_t revision; /* of the catalogue, as admind told it last */
	struct identity_cache *identities;
	struct shares *shares;
	unsigned requests_max; /* served at once: max_connections */
	struct catalogue_list catalogues;
	struct call_list calls;
	struct parked_set *parked;
	size_t kept_bytes; /* results of calls whose clients are away */
	struct exchange_list exchanges;
	size_t exchange_bytes;
	unsigned exchange_count;
};

struct identity {
	char principal[PRINCIPAL_MAX + 1];
	char permission_set[PRINCIPAL_MAX + 1];
};

/* A failure of the platform or of authority, on its way to an answer. */
struct refusal {
	enum failure failure;
	uint64_t retry_after_ms;
	char message[MCP_MESSAGE_MAX];
	char data[MCP_DATA_MAX]; /* JSON members of error.data, or "" */
};

/* One HTTP request to /mcp. Lives until it is answered. If a legacy client
 * left, it lives until its call has ended: leaving does not cancel there. */
struct exchange {
	TAILQ_ENTRY(exchange) all;
	struct gateway *gw;
	struct httpd_req *req; /* NULL: the client is gone */
	uint8_t *body;         /* owned; messages point into it */
	size_t body_len;
	/* These follow the body in the same memory. */
	char *credential; /* bearer token, "" if none */
	char *version, *method, *name, *session_text, *agent,
	    *last_event;             /* or NULL */
	bool is_delete;              /* DELETE of a session, not a message */
	bool is_get;                 /* GET of an event stream, likewise */
	bool accepts_sse, names_sse; /* by Accept; Accept names SSE */
	struct identity who;
	struct share *share; /* of who, once the request counts there */
	bool ended;          /* its credential has ended */
	bool has_session;
	struct session session;

	struct mcp_body members;
	size_t at;            /* the member being served */
	struct mcp_message m; /* that member, classified */
	struct buf answers;   /* of an array, so far */
	struct buf made;      /* arguments from a URI's variables */
	uint64_t ttl_ms;      /* resources/read: caching hint */
	struct buf mime;      /* and declared type, a JSON string */

	bool streaming, slow;     /* SSE was begun; its client reads slowly */
	struct stream_post *post; /* keeps its events for a resume, or NULL */
	struct call *call;        /* the running one, or NULL */
};

/* gateway.c. gw->proc must be filled in before. 0 or -1. */
int gateway_init(struct gateway *);
int gateway_connect(struct gateway *, struct err *);
/* Accepts no connections until both links are up, for PATIENCE_MS at most. Call
 * it before gateway_connect. */
void gateway_wait_for_links(struct gateway *);
void gateway_free(struct gateway *);

/* drain.c, for proc_on_stop: ends calls and streams in order, answers the rest,
 * then leaves the loop. */
void gateway_drain(void *gateway);

/* front.c */
extern const struct httpd_handlers front_handlers;

/* exchange.c, exchange_begin.c */
#define EXCHANGE_CHALLENGE "Bearer realm=\"mcpbox\"" /* of every 401 */
/* RFC 6750 section 3.1: the credential is not valid; it is valid, but not for
 * this request. */
#define EXCHANGE_INVALID EXCHANGE_CHALLENGE ", error=\"invalid_token\""
#define EXCHANGE_SCOPE   EXCHANGE_CHALLENGE ", error=\"insufficient_scope\""
void exchange_begin(struct gateway *, struct httpd_req *, bool is_delete);
void exchange_free(struct exchange *);
/* Takes the answer to identity_ask: the exchange goes on, or is refused. */
void exchange_identified(
    void *exchange, const struct identity *, const struct refusal *);
void exchange_gone(struct exchange *);
/* Answers the message being served with a status and JSON; an empty buffer
 * means no answer (a notification). Frees b's content. May free ex. */
void exchange_answer(struct exchange *, int status, struct buf *b);
/* Shorter forms. */
void exchange_refuse(struct exchange *, const struct refusal *);
/* Answers with an error and the HTTP status given. data: further members of the
 * error's data, as JSON, or NULL. */
void exchange_error(struct exchange *, int status, enum failure,
    const char *message, const char *data);
/* Answers a method of the table that nothing here serves. */
void exchange_no_method(struct exchange *);
struct answer_to exchange_to(const struct exchange *);
/* Sends a notification on the answer's stream, beginning it if need be; lossy
 * for a slow client. false: this exchange has no stream. */
bool exchange_notify(
    struct exchange *, const char *method, struct ipc_bytes params);

/* Sends a JSON-RPC request of ours on the answer's stream, beginning it if need
 * be; never dropped for slowness. false: this exchange has no stream. */
bool exchange_request(struct exchange *, const struct buf *json);

/* Begins the answer's stream, for a client that takes one. */
void exchange_stream(struct exchange *);
/* Sends the head of an event stream, the same for every stream here. */
void exchange_stream_head(struct httpd_req *);
/* Gives the request to another owner; ex is freed. */
struct httpd_req *exchange_release(struct exchange *);
/* Gives ex another request, whose stream was begun. slow: its client has to
 * read first. */
void exchange_attach(struct exchange *, struct httpd_req *, bool slow);

/* Begins the stream with a comment, for a client that named event streams: the
 * call was silent for quiet_ms. */
void exchange_quiet(struct exchange *);

/* Answers with a list: the text before its items, the items, the text after
 * them. Frees both buffers. */
void exchange_answer_parts(struct exchange *, struct buf *head,
    struct ipc_bytes items, struct buf *tail);
/* Returns the kind of object that the message being served calls; the form of
 * its result follows from it. */
enum call_method exchange_call_method(const struct exchange *);

/* legacy.c, modern.c: serve ex->m, which is of their era and without error. */
void legacy_serve(struct exchange *);
void legacy_delete(struct exchange *);
void modern_serve(struct exchange *);
/* Serves a method that both eras have. false: ex->m is none of these. */
bool legacy_serve_common(struct exchange *);

/* listing.c, resource.c, complete.c: the methods that read the catalogue */
void listing_serve(struct exchange *);
void resource_read(struct exchange *);
void resource_subscribe(struct exchange *); /* and unsubscribe */
void complete_serve(struct exchange *);

/* call.c */
void call_start(struct exchange *);
/* Takes a legacy client's response. true: a call had asked for it. */
bool call_ask_response(struct exchange *);
/* Takes DECIDED: a person decided. 0, or -1: malformed. */
int call_decided(struct gateway *, struct ipc_frame *);
void call_drop_all(struct gateway *);
/* Cancels a call, as a modern client does by closing the response. */
void call_cancel(struct call *);
/* Cancels the call with this JSON-RPC id of this session, for
 * notifications/cancelled. */
void call_cancel_by_id(
    struct gateway *, const struct session *, struct ipc_bytes id);

/* credential.c: takes CREDENTIAL_ENDED. 0, or -1: malformed. */
int credential_ended(struct gateway *, struct ipc_frame *);

/* identity.c: asks whose a credential is. cb gets the identity, or NULL and the
 * reason. It is called from the loop or at once. */
typedef void identity_cb(
    void *arg, const struct identity *, const struct refusal *);
struct identity_cache *identity_cache_new(void);
void identity_cache_free(struct identity_cache *);
void identity_cache_drop(struct identity_cache *);
void identity_ask(
    struct gateway *, const char *credential, identity_cb *, void *arg);

/* quirk.c: reads the settings, and logs a line when a quirk acts. */
unsigned quirk_settings(const struct conf *);
void quirk_note(
    struct gateway *, unsigned acted, const char *agent /* or NULL */);

/* refusal.c */
void refusal_set(struct refusal *, enum failure, uint64_t retry_after_ms,
    const char *message);
/* Says that admind or sandboxd is not connected: it is being upgraded, or it
 * restarts. */
void refusal_away(struct refusal *, const struct gateway *, bool sandboxd);
/* Fills a refusal from an answer: REFUSED, nonsense, or NULL and why the peer
 * is gone. */
void refusal_from(struct refusal *, struct ipc_frame *, enum failure gone,
    const char *process);

#endif
