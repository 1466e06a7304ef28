/*
 * What the files of gatewayd share: the process and one HTTP request.
 *
 *	front.c     HTTP request -> exchange (Host, Origin, path, method)
 *	exchange.c  exchange: who is it, its session, its messages in turn
 *	legacy.c, modern.c   one message -> answer
 *	call.c      one tools/call
 *	listing.c, resource.c, complete.c   methods that read the catalogue
 *	identity.c, catalogue.c   what admind said, cached
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
	/* Time for admind to answer what it can answer at once. */
	ADMIND_ASK_MS = 10 * 1000,
	/* Time to authorise: management tools inspect code in a runner first,
	 * which may wait for a slot and take its own limit of 30 s. */
	AUTHORISE_MS = 90 * 1000,
	/* Added to a call's own limit before a missing answer counts as lost:
	 * killing, reaping and recording take part of it. */
	RUN_MARGIN_MS = 15 * 1000,
	/* For the links of a process that was just started, while its clients
	 * wait at the service manager's socket: they take some ms when all else
	 * runs. Later a typed answer serves them better. */
	PATIENCE_MS = 2000,
	RETRY_MS = 500, /* hint while something restarts */
	/* A call that was silent for so long gets an event stream and a comment
	 * on it: nginx gives up after 60 s without a byte, Node's fetch after
	 * 300 s without a head. */
	QUIET_MS = 15 * 1000,
	/* Descriptors beside those of clients: listener, log, links, blobs on
	 * their way, refused connections that are still being told so. */
	FILES_RESERVED = 192,
	/* Bodies held by requests being served, all together. */
	EXCHANGE_BYTES_MAX = 256 * 1024 * 1024,
	/* Results kept for clients that were asked and are not back yet; more
	 * are told that theirs was lost. */
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
	unsigned quirks;  /* let pass: mask of 1 << enum mcp_quirk */
	struct {
		uint64_t logged; /* boot ms, 0: never */
		unsigned more;   /* since then */
	} quirk[MCP_QUIRKS];

	bool draining; /* the process ends (drain.c) */
	/* Inherited listener: clients wait there until both links are up, or
	 * this fires. */
	struct event *patience;
	bool attached; /* GW_CONFIG came on this connection */
	bool has_key;  /* kept while admind is away */
	uint8_t session_key[KEY_LEN];
	struct event *attach_retry;
	struct session_ended *ended;
	struct session_states *states;
	struct streams *streams;
	bool seen;         /* admind told a revision ... */
	uint64_t revision; /* ... of the catalogue: this one */
	struct identity_cache *identities;
	struct shares *shares;
	unsigned requests_max; /* served at once: as many as connections */
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

/* One HTTP request to /mcp. Lives until answered, or, when a legacy client
 * left, until what it started has ended (leaving is not cancelling there). */
struct exchange {
	TAILQ_ENTRY(exchange) all;
	struct gateway *gw;
	struct httpd_req *req; /* NULL: the client is gone */
	uint8_t *body;         /* owned; messages point into it */
	size_t body_len;
	/* These stand behind the body in the same memory. */
	char *credential; /* bearer token, "" if none */
	char *version, *method, *name, *session_text, *agent,
	    *last_event;             /* or NULL */
	bool is_delete;              /* DELETE of a session, not a message */
	bool is_get;                 /* GET of an event stream, likewise */
	bool accepts_sse, names_sse; /* by Accept; it stands there by name */
	struct identity who;
	struct share *share; /* of who, once it counts there */
	bool ended;          /* its credential is good no more */
	bool has_session;
	struct session session;

	struct mcp_body members;
	size_t at;            /* the member being served */
	struct mcp_message m; /* it, classified */
	struct buf answers;   /* of an array, so far */
	struct buf made;      /* arguments made of a URI's variables */
	uint64_t ttl_ms;      /* resources/read: caching hint */
	struct buf mime;      /* and declared type, a JSON string */

	bool streaming, slow;     /* SSE was begun; its client reads slowly */
	struct stream_post *post; /* its events can be had again, or NULL */
	struct call *call;        /* the running one, or NULL */
};

/* gateway.c: gw->proc is filled in before. 0 or -1. */
int gateway_init(struct gateway *);
int gateway_connect(struct gateway *, struct err *);
/* Before that: accepts nobody until there is somebody to ask, for a while. */
void gateway_wait_for_links(struct gateway *);
void gateway_free(struct gateway *);

/* drain.c: ends what can be ended, answers the rest, leaves the loop.
 * proc_on_stop's. */
void gateway_drain(void *gateway);

/* front.c */
extern const struct httpd_handlers front_handlers;

/* exchange.c, exchange_begin.c */
#define EXCHANGE_CHALLENGE "Bearer realm=\"mcpbox\"" /* of every 401 */
/* RFC 6750 section 3.1: the credential that came is no good; it is, but not for
 * this. */
#define EXCHANGE_INVALID EXCHANGE_CHALLENGE ", error=\"invalid_token\""
#define EXCHANGE_SCOPE   EXCHANGE_CHALLENGE ", error=\"insufficient_scope\""
void exchange_begin(struct gateway *, struct httpd_req *, bool is_delete);
void exchange_free(struct exchange *);
/* The answer to identity_ask: the exchange goes on, or is refused. */
void exchange_identified(
    void *exchange, const struct identity *, const struct refusal *);
void exchange_gone(struct exchange *);
/* The answer to the message being served: status and JSON; an empty buffer
 * means none (a notification). Takes what is in b and frees it. ex may be
 * freed by it. */
void exchange_answer(struct exchange *, int status, struct buf *b);
/* Shorter forms. */
void exchange_refuse(struct exchange *, const struct refusal *);
/* An error with the HTTP status given; data: further members of its data, as
 * JSON, or NULL. */
void exchange_error(struct exchange *, int status, enum failure,
    const char *message, const char *data);
/* A method of the table that nothing here serves. */
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
/* Head of an event stream, as every one here has it. */
void exchange_stream_head(struct httpd_req *);
/* Gives the request to another owner; ex is freed. */
struct httpd_req *exchange_release(struct exchange *);
/* Goes on on this request, whose stream was begun; slow: of a client that has
 * to read first. */
void exchange_attach(struct exchange *, struct httpd_req *, bool slow);

/* Nothing was heard of the call for quiet_ms: begins the stream with a comment,
 * for a client that named event streams. */
void exchange_quiet(struct exchange *);

/* The answer to a list: what stands before its items, they, what stands behind
 * them; frees both buffers. */
void exchange_answer_parts(struct exchange *, struct buf *head,
    struct ipc_bytes items, struct buf *tail);
/* What the message being served calls; also the form of its result. */
enum call_method exchange_call_method(const struct exchange *);

/* legacy.c, modern.c: serve ex->m, which is of their era and without error. */
void legacy_serve(struct exchange *);
void legacy_delete(struct exchange *);
void modern_serve(struct exchange *);
/* Methods that both eras have. false: ex->m is none of them. */
bool legacy_serve_common(struct exchange *);

/* listing.c, resource.c, complete.c: the methods that read the catalogue */
void listing_serve(struct exchange *);
void resource_read(struct exchange *);
void resource_subscribe(struct exchange *); /* and unsubscribe */
void complete_serve(struct exchange *);

/* call.c */
void call_start(struct exchange *);
/* A legacy client's response. true: a call had asked for it. */
bool call_ask_response(struct exchange *);
/* DECIDED: a person did. 0, or -1: malformed. */
int call_decided(struct gateway *, struct ipc_frame *);
void call_drop_all(struct gateway *);
/* Its client closed the response: CANCEL (modern). */
void call_cancel(struct call *);
/* notifications/cancelled of this session and JSON-RPC id. */
void call_cancel_by_id(
    struct gateway *, const struct session *, struct ipc_bytes id);

/* credential.c: CREDENTIAL_ENDED. 0, or -1: malformed. */
int credential_ended(struct gateway *, struct ipc_frame *);

/* identity.c: who a credential is. cb gets NULL and why, or the identity;
 * called from the loop or at once. */
typedef void identity_cb(
    void *arg, const struct identity *, const struct refusal *);
struct identity_cache *identity_cache_new(void);
void identity_cache_free(struct identity_cache *);
void identity_cache_drop(struct identity_cache *);
void identity_ask(
    struct gateway *, const char *credential, identity_cb *, void *arg);

/* quirk.c: settings, and a line in the log when one acts. */
unsigned quirk_settings(const struct conf *);
void quirk_note(
    struct gateway *, unsigned acted, const char *agent /* or NULL */);

/* refusal.c */
void refusal_set(struct refusal *, enum failure, uint64_t retry_after_ms,
    const char *message);
/* admind or sandboxd is not connected: being upgraded, or restarting. */
void refusal_away(struct refusal *, const struct gateway *, bool sandboxd);
/* From an answer: REFUSED, or NULL and why the peer is gone, or nonsense. */
void refusal_from(struct refusal *, struct ipc_frame *, enum failure gone,
    const char *process);

#endif
