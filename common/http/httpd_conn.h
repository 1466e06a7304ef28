/*
 * A server's state and one connection's, with the bounds of both. The files
 * httpd*.c share it by httpd_internal.h.
 */
#ifndef HTTPD_CONN_H
#define HTTPD_CONN_H

#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/bufferevent.h>
#include <event2/buffer.h>
#include <event2/event.h>

#include "httpd.h"
#include "table.h"

enum {
	HTTPD_SOURCE_MAX = 64,        /* "[IPv6]:port" is at most 54 */
	HTTPD_READ_MAX = 64 * 1024,   /* unparsed bytes of one connection */
	HTTPD_READ_CHUNK = 32 * 1024, /* read at once */
	/* A stream writer is told to stop above HIGH and to go on below LOW. */
	HTTPD_OUT_HIGH = 256 * 1024,
	HTTPD_OUT_LOW = 64 * 1024,
	/* A writer that does not stop loses the connection, so memory is
	 * bounded. */
	HTTPD_OUT_MAX = 16 * 1024 * 1024,
	HTTPD_LINGER_MS = 1000, /* for a client to read a last answer */
	/* While the server drains: time since its last answer in which a client
	 * may go on with its connection. A client that talks all the time comes
	 * back sooner; any other reads the end before it sends again. */
	HTTPD_DRAIN_IDLE_MS = 2000,
	/* Bytes thrown away while lingering: twice the largest body we take, so
	 * that the sender of one just too large reads why. */
	HTTPD_LINGER_MAX = 8 * 1024 * 1024,
	HTTPD_REFUSED_EXTRA = 64, /* connections kept only to be told 503 */
	HTTPD_FIELDS_MAX = 4096,  /* bytes of response fields one answer adds */
	HTTPD_JOIN_MAX =
	    4096 /* bytes of a body sent in one piece with its head */
};

/* IDLE: no byte of a request yet. HEAD, BODY: it is arriving. ANSWER: the
 * owner has it. STREAM: its answer is being written. FLUSH: the answer is
 * queued, then the next request or the end. LINGER: our side is shut, the
 * rest is thrown away. DEAD: freed from the loop. */
enum httpd_state {
	HTTPD_IDLE,
	HTTPD_HEAD,
	HTTPD_BODY,
	HTTPD_ANSWER,
	HTTPD_STREAM,
	HTTPD_FLUSH,
	HTTPD_LINGER,
	HTTPD_DEAD
};

/* Connections of one source. */
TAILQ_HEAD(httpd_list, httpd_req);

struct httpd_source {
	struct table_node node; /* by key */
	uint8_t key[16];
	unsigned count;
	struct httpd_list idle; /* of its connections, as httpd.idle */
};

struct httpd_req { /* = one connection; it has one request at a time */
	TAILQ_ENTRY(httpd_req) all, idle_all, idle_here;
	struct httpd_source *counted; /* where; NULL: unix, or refused */
	struct httpd *h;
	struct bufferevent *bev; /* writes; closes the socket */
	struct event *readable;
	struct evbuffer *in; /* read and waiting; NULL: nothing ever was */
	/* Head, body, idle, linger, quiet: the one that ends at `deadline`. The
	 * timer is moved only to an earlier time; a timer that comes too early
	 * is set again. So a connection that is busy moves no timers. */
	struct event *timer;
	uint64_t deadline, timer_at; /* ms of CLOCK_MONOTONIC; 0: none */
	struct event *later;         /* continue from the loop */
	struct http1 *parser;
	enum httpd_state state;
	char source[HTTPD_SOURCE_MAX];
	bool proxied;       /* its PROXY header is still to come */
	bool refused_extra; /* over a limit: only told 503 */
	bool idle;          /* it is in the lists of idle ones */
	bool keep_alive;    /* after this answer */
	bool head_only;     /* HEAD: no body */
	bool in_callback;   /* the owner's code is running */
	bool in_dispatch;   /* it was just handed the request */
	bool slow;          /* write was told false */
	bool first;         /* no request was seen on it yet */
	bool sse;           /* the stream takes comments */
	bool lean;          /* a long stream: no parser, input is dropped */
	size_t lingered;
	size_t held;       /* bytes of its body counted in httpd.held */
	struct buf fields; /* response fields to come */
	void *data;
	void (*drained)(struct httpd_req *, void *);
	void *drained_arg;
	/* Called instead of the handlers' gone; NULL: theirs. */
	void (*gone)(struct httpd_req *, void *);
};

struct httpd {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *resume; /* after running out of descriptors */
	struct httpd_limits limits;
	struct httpd_handlers handlers;
	void *arg;
	struct httpd_list all;
	struct httpd_list idle; /* in state IDLE, the oldest first */
	struct table sources;
	unsigned count, extra, lean;  /* lean: of those counted */
	size_t held;                  /* bytes of bodies, all connections */
	struct buf head;              /* of the answer that is being written */
	uint8_t in[HTTPD_READ_CHUNK]; /* what was just read */
	bool unix_socket, inherited;
	bool paused;         /* httpd_accepting */
	bool draining, late; /* httpd_drain was called; its time is over */
	struct httpd_draining drain;
	uint64_t drain_until; /* ms of CLOCK_MONOTONIC */
	struct event *drain_timer;
};

#endif
