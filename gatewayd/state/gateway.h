/*
 * The process, as every folder of gatewayd sees it.
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include <sys/queue.h>

#include "crypto.h"
#include "gw_access.h"
#include "gw_endpoints.h"
#include "ipc_peer.h"
#include "mcp_request.h"
#include "proc.h"

enum {
	/* Time for an answer that admind can give at once. */
	ADMIND_ASK_MS = 10 * 1000,
	/* Time for AUTHORISE. A management tool may first have code inspected
	 * in a runner, which may wait for a free place and then take up to 30
	 * s. */
	AUTHORISE_MS = 90 * 1000,
	/* Added to a call's own limit before a missing answer counts as lost:
	 * killing, reaping and recording take some of this time. */
	RUN_MARGIN_MS = 15 * 1000,
	/*
	 * Time that a new process has to connect to admind and sandboxd, while
	 * its clients wait at the service manager's socket. Connecting takes
	 * some ms if both run. After this time it is better to tell clients the
	 * failure.
	 */
	PATIENCE_MS = 2000,
	RETRY_MS = 500, /* hint to clients while a process restarts */
	/* A call that is silent for this long gets an event stream and a
	 * comment on it: nginx gives up after 60 s without a byte, Node's fetch
	 * after 300 s without a head. */
	QUIET_MS = 15 * 1000,
	/* File descriptors in addition to those of clients: listener, log,
	 * links, blobs in messages, and connections that are just being
	 * refused. */
	FILES_RESERVED = 192,
	/* Bytes of all bodies of requests being served, together. */
	EXCHANGE_BYTES_MAX = 256 * 1024 * 1024,
	/* Bytes of results kept for clients that were asked a question and have
	 * not come back yet. When the bytes are used up, a client is told that
	 * its result was lost. */
	KEPT_BYTES_MAX = 16 * 1024 * 1024,
	EXCHANGES_MAX = 4096 /* = IPC_WAITERS_MAX */
};

struct call;
struct catalogue;
struct exchange;
struct exchange_ops;
struct httpd;
struct identity_cache;
struct parked_set;
struct session_ended;
struct session_states;
struct shares;
struct streams;

TAILQ_HEAD(call_list, call);
TAILQ_HEAD(exchange_list, exchange);
TAILQ_HEAD(catalogue_list, catalogue);

struct gateway {
	struct proc proc;
	struct httpd *httpd;
	struct ipc_client *admind, *sandboxd;
	enum listener listener;
	const char *allowed_origins; /* comma-separated */
	/* The panel's origin; NULL for none, and on the tunnel's listener. */
	const char *panel_origin;
	uint64_t session_ttl_ms, quiet_ms;
	size_t page_size; /* items of a list in one answer */
	unsigned quirks;  /* allowed: mask of 1 << enum mcp_quirk */
	struct {
		uint64_t logged; /* boot ms, 0: never */
		unsigned more;   /* not logged since then */
	} quirk[MCP_QUIRKS];

	bool draining; /* the process ends (drain.c) */
	/* Clients wait in the queue of an inherited listener until admind and
	 * sandboxd are connected or this timer fires. */
	struct event *patience;
	bool attached; /* GW_CONFIG came on this connection */
	bool has_key;  /* kept while admind is away */
	uint8_t session_key[KEY_LEN];
	struct gw_access access; /* of signed tokens */
	struct gw_endpoints endpoints;
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
	const struct exchange_ops *ops; /* functions that serve exchanges */
	struct exchange_list exchanges;
	size_t exchange_bytes;
	unsigned exchange_count;
};

#endif
