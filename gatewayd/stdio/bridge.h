/*
 * mcpbox-stdio: an MCP host's standard input and output on one side, /mcp over
 * HTTP on the other.
 *
 *	bridge.c    the loop; lines in, lines out; lines to exchanges
 *	transfer.c  one HTTP exchange on libcurl
 *	ending.c    ended exchanges: an answer, an error, another try
 *	line.c, sse.c, marked.c  bytes to messages and fields; no I/O
 */
#ifndef BRIDGE_H
#define BRIDGE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "bounds.h"
#include "line.h"
#include "marked.h"
#include "sse.h"

enum {
	/* The limit of a request body: a longer line could not be sent on. */
	BRIDGE_LINE_MAX = HTTP_BODY_MAX,
	/* Room for a result of RESULT_MAX, which escaping makes at most six
	 * times as long, and for a list. */
	BRIDGE_ANSWER_MAX = 16 * 1024 * 1024,
	/* While more bytes than this wait for the host, nothing more is
	 * read. */
	BRIDGE_OUT_HIGH = 1024 * 1024,
	/* Exchanges at once: gatewayd's default limit for the connections of
	 * one address (max_connections_per_source). */
	BRIDGE_TRANSFERS_MAX = 256,
	/* While the suite restarts, a request waits this long for the suite. */
	BRIDGE_CONNECT_MS = 10 * 1000,
	BRIDGE_BACKOFF_MIN_MS = 10,
	BRIDGE_BACKOFF_MAX_MS = 1000,
	/* A broken stream is asked for again for this long. The server keeps
	 * the stream's events for longer (STREAM_STORE_KEEP_MS). */
	BRIDGE_RESUME_MS = 120 * 1000,
	BRIDGE_RETRY_MS = 1000,   /* pause before a stream is asked for again,
				   * unless the server names one (WHATWG HTML,
				   * 9.2.3: "retry") */
	BRIDGE_SESSION_MAX = 512, /* bytes of a session id (INTERFACES) */
	BRIDGE_GOODBYE_MS = 2000  /* for DELETE of the session at the end */
};

enum transfer_kind {
	TRANSFER_POST,   /* a line of the host's */
	TRANSFER_RESUME, /* the rest of a POST's stream, by GET */
	TRANSFER_STREAM, /* the session's own stream, by GET */
	TRANSFER_REVIVE, /* initialize, sent again by us */
	TRANSFER_DELETE  /* the end of the session */
};

struct bridge;

struct transfer {
	TAILQ_ENTRY(transfer) all;
	struct bridge *b;
	enum transfer_kind kind;
	CURL *easy; /* NULL: not running */
	struct curl_slist *headers;
	uint8_t *body; /* owned */
	size_t body_len;
	struct line line; /* slices into body */

	bool is_sse, answered, paused, revived, overflow;
	bool began;                           /* bytes of an answer came */
	char session[BRIDGE_SESSION_MAX + 1]; /* id in the answer */
	struct sse sse;
	struct buf answer;
	int64_t first_ms, due_ms, backoff_ms; /* retrying: CLOCK_MONOTONIC */
};

TAILQ_HEAD(transfer_list, transfer);

struct bridge {
	CURLM *multi;
	const char *url, *socket; /* socket: a unix socket's path or NULL */
	const char *token;        /* bearer token or NULL */
	struct buf in, out;
	bool eof;     /* the host closed our input */
	bool gone;    /* the host closed our output */
	bool holding; /* initialize is unanswered, so lines wait */
	struct transfer_list transfers;
	unsigned n;

	/* The legacy session, if there is one. */
	char session[BRIDGE_SESSION_MAX + 1];
	char version[32];    /* negotiated; "" before */
	uint8_t *initialize; /* the host's line, kept to be sent again; owned */
	size_t initialize_len;

	struct marked marked;
};

/* bridge.c. Runs until the host ends. 0, or -1: the bridge can't go on; stderr
 * says why. */
int bridge_run(struct bridge *);
/* Queues one message as a line for the host. */
void bridge_emit(struct bridge *, const void *json, size_t n);
/* Answers a request of the host's with an error. */
void bridge_error(
    struct bridge *, const struct line *, enum failure, const char *text);
int64_t bridge_now_ms(void);

/* transfer.c. Takes body over and frees it in any case. NULL: out of memory. */
struct transfer *transfer_new(
    struct bridge *, enum transfer_kind, uint8_t *body, size_t n);
void transfer_free(struct transfer *);
/* Begins the exchange now. 0 or -1. */
int transfer_begin(struct transfer *);
/* Stops the exchange and begins it again after that many ms. */
void transfer_later(struct transfer *, int64_t ms);
/* Does the same, after a pause that grows each time. */
void transfer_back_off(struct transfer *);
void transfer_unpause(struct transfer *);

/* ending.c: handles an exchange that ended with this code. May free the
 * exchange. */
void ending(struct transfer *, CURLcode);
/* Handles a message that the server sent within an exchange. */
void ending_message(struct transfer *, const void *, size_t);

#endif
