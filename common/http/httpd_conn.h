/*
 * The state of a server and of one connection, with the bounds of both. The
 * files httpd*.c include this header by httpd_internal.h.
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
	HTTPD_READ_CHUNK = 32 * 1024, /* bytes of one recv(2) */
	/* A stream's writer is told to stop when more than HIGH bytes wait to
	 * be sent, and to go on when at most LOW wait. */
	HTTPD_OUT_HIGH = 256 * 1024,
	HTTPD_OUT_LOW = 64 * 1024,
	/* A writer that does not stop loses the connection when this many bytes
	 * wait, so memory is bounded. */
	HTTPD_OUT_MAX = 16 * 1024 * 1024,
	HTTPD_LINGER_MS = 1000, /* time to read the last answer */
	/* While the server drains: time after an answer in which the client may
	 * send its next request. A busy client sends sooner. Any other client
	 * sees that the connection was closed before it sends again. */
	HTTPD_DRAIN_IDLE_MS = 2000,
	/* Most bytes that are read and thrown away after the last answer: twice
	 * the largest body that we take. So a client whose body is only a
	 * little too large still reads why it was refused. */
	HTTPD_LINGER_MAX = 8 * 1024 * 1024,
	HTTPD_REFUSED_EXTRA = 64, /* connections kept only to be refused */
	HTTPD_FIELDS_MAX = 4096,  /* bytes of fields from httpd_header */
	HTTPD_JOIN_MAX = 4096 /* longest body sent in one piece with its head */
};

/* IDLE: no byte of a request came yet. HEAD, BODY: the head or the body is
 * arriving. ANSWER: the owner has the request. STREAM: the owner writes the
 * answer. FLUSH: the answer is queued; then the next request begins or the
 * connection ends. LINGER: our sending side is shut, and input is thrown away.
 * DEAD: later_cb will free the connection. */
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

/* A list of connections: all, or idle ones. */
TAILQ_HEAD(httpd_list, httpd_req);

struct httpd_source {
	struct table_node node; /* by key */
	uint8_t key[16];
	unsigned count;
	struct httpd_list idle; /* its idle connections, as in httpd.idle */
};

struct httpd_req { /* = one connection; it has one request at a time */
	TAILQ_ENTRY(httpd_req) all, idle_all, idle_here;
	struct httpd_source *counted; /* the source that counts it, or NULL */
	struct httpd *h;
	struct bufferevent *bev; /* writes answers; closes the socket */
	struct event *readable;
	struct evbuffer *in; /* input not yet parsed; NULL: never any */
	/* The time limit of the present state: head, body, idle, linger or
	 * quiet. It ends at `deadline`. The timer is moved only to an earlier
	 * time; a timer that comes too early is set again. So a busy connection
	 * moves no timers. */
	struct event *timer;
	uint64_t deadline, timer_at; /* ms of CLOCK_MONOTONIC; 0: none */
	struct event *later;         /* runs later_cb from the loop */
	struct http1 *parser;
	enum httpd_state state;
	char source[HTTPD_SOURCE_MAX];
	bool proxied;       /* its PROXY header is still to come */
	bool refused_extra; /* not served, only refused (503 or 403) */
	bool idle;          /* is in the lists of idle connections */
	bool keep_alive;    /* goes on after this answer */
	bool head_only;     /* method HEAD: the answer has no body */
	bool in_callback;   /* the owner's code is running */
	bool in_dispatch;   /* dispatch() is handing the request over */
	bool slow;          /* httpd_stream_write returned false */
	bool first;         /* no whole request came yet */
	bool sse;           /* the stream takes comments */
	bool judged;        /* its large body waits for the owner; unread */
	bool large;         /* is counted in httpd.large */
	bool lean;          /* a long stream: no parser, input is dropped */
	size_t lingered;
	size_t held;       /* the body's bytes, as counted in httpd.held */
	struct buf fields; /* fields of the answer to come */
	void *data;
	void (*drained)(struct httpd_req *, void *);
	void *drained_arg;
	/* Called instead of handlers.gone, unless NULL. */
	void (*gone)(struct httpd_req *, void *);
};

struct httpd {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *resume; /* accepts again after a lack of descriptors */
	struct httpd_limits limits;
	struct httpd_handlers handlers;
	void *arg;
	struct httpd_list all;
	struct httpd_list idle; /* in state IDLE, the oldest first */
	struct table sources;
	unsigned count, extra, lean;  /* extra: not in count; lean: in count */
	size_t held;                  /* bytes of bodies, all connections */
	unsigned large;               /* large bodies that were let in */
	struct buf head;              /* head of the answer being written */
	uint8_t in[HTTPD_READ_CHUNK]; /* the bytes just read */
	bool unix_socket, inherited;
	bool paused;         /* by httpd_accepting(false) */
	bool draining, late; /* draining: after httpd_drain; late: time over */
	struct httpd_draining drain;
	uint64_t drain_until; /* ms of CLOCK_MONOTONIC */
	struct event *drain_timer;
};

#endif
