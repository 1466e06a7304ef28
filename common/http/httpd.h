/*
 * HTTP/1.1 server connections on libevent core (bufferevents). Only the files
 * httpd*.c join http1.c to sockets. The server has timeouts for head, body and
 * idle connections, limits on connections in all and per source, keep-alive,
 * backpressure both ways, and whole, chunked and SSE answers. A connection has
 * one request at a time (a second one waits unparsed).
 */
#ifndef HTTPD_H
#define HTTPD_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "http1.h"

struct event_base;
struct httpd;
struct proxyv2_from;
struct httpd_req; /* one request being answered */

struct httpd_limits {
	unsigned connections, connections_per_source;
	uint64_t header_ms, body_ms, idle_ms;
	size_t head_max, body_max;
	/* Bytes of all bodies held at once; 0: no limit. */
	size_t bodies_max;
	/* Time after which a silent event stream gets a comment; 0: never. */
	uint64_t quiet_ms;
	/* The TCP balancers that may connect. They must begin each connection
	 * with a PROXY header of version 2, and no other client is served.
	 * NULL: clients connect directly. Outlives the server. */
	const struct proxyv2_from *proxy_from;
	/* Longest body that handlers.large, which must not be NULL then, may
	 * let in; 0: body_max. The number of such bodies held at once. */
	size_t large_max;
	unsigned large_at_once;
};

struct httpd_handlers {
	/* Called for each complete request, which must be answered, now or
	 * later, by exactly one httpd_reply, or by httpd_stream_* up to
	 * httpd_stream_end. */
	void (*request)(struct httpd_req *, void *arg);
	/* The client closed before the answer was complete; req is freed after
	 * this returns and must be forgotten. May be NULL. */
	void (*gone)(struct httpd_req *, void *arg);
	/* Writes into out the body of a refusal, the answer to a request that
	 * the owner never sees, and sets *content_type. May be NULL: the body
	 * is then `why`, as text/plain. */
	void (*refused)(int status, const char *why, struct buf *out,
	    const char **content_type, void *arg);
	/* Called before each answer is written, refusals included, to make the
	 * httpd_header calls that all answers need. May be NULL. */
	void (*answering)(struct httpd_req *, void *arg);
	/* Called before a body over body_max is read. The owner must call
	 * httpd_take_body or (it ends the connection) httpd_reply. */
	void (*large)(struct httpd_req *, void *arg);
};

/* Returns how many connections the process can have, at least 1 and at most
 * `connections`, if it needs `reserved` other descriptors. Raises the soft
 * limit of open files for them, as far as the hard limit allows
 * (getrlimit(2)). */
unsigned httpd_files(unsigned connections, unsigned reserved);

/* Binds and listens on unix_path if it is not NULL, else on TCP host:port (port
 * 0: any free port). address_out receives the path or, for example,
 * "127.0.0.1:8002". NULL with err. */
struct httpd *httpd_new(struct event_base *, const char *host, uint16_t port,
    const char *unix_path, const struct httpd_limits *,
    const struct httpd_handlers *, void *arg, char *address_out, size_t len,
    struct err *);
/* Serves on a listening socket that the service manager made, TCP or unix
 * stream. The server owns fd, also when NULL is returned. address_out receives
 * the address that fd is bound to: "127.0.0.1:8002", a path, or "@" and an
 * abstract name. */
struct httpd *httpd_new_inherited(struct event_base *, int fd,
    const struct httpd_limits *, const struct httpd_handlers *, void *arg,
    char *address_out, size_t len, struct err *);
void httpd_free(struct httpd *);
/* Sets whether connections are accepted from now on. A new server accepts them.
 * Connections that are not accepted wait in the kernel's queue. */
void httpd_accepting(struct httpd *, bool);

/*
 * httpd_drain ends a server in order. No new connection is accepted.
 * Connections that wait at an inherited listener stay there for the next
 * process. From now on every answer ends its connection, and a connection that
 * was kept alive may make one more request.
 */
struct httpd_draining {
	uint64_t ms; /* time for the whole drain */
	/* Ends the long streams (httpd_stream_lean) now, because nothing else
	 * is left or the time is over. Called once, before late. May be
	 * NULL. */
	void (*streams)(void *arg);
	/* Answers all open requests now, because the time is over. Requests
	 * that come after this call must be answered at once, too. A second
	 * later all connections are cut. May be NULL. */
	void (*late)(void *arg);
	/* Called once, when no connection is left or all were cut. The loop
	 * calls done. Only if memory for a timer runs out, httpd_drain itself
	 * calls done. */
	void (*done)(void *arg);
	void *arg;
};
void httpd_drain(struct httpd *, const struct httpd_draining *);
/* Returns the number of open connections, without those that are kept only to
 * be refused. */
unsigned httpd_connections(const struct httpd *);

const struct http1_request *httpd_request(const struct httpd_req *);
/* Returns the client's address as text. After a PROXY header the address is
 * only a balancer's claim: use it to count and to log, never for rights. */
const char *httpd_source(const struct httpd_req *);
void *httpd_data(const struct httpd_req *);
void httpd_set_data(struct httpd_req *, void *);

/* Lets in the body of a request that handlers.large has, and forgets its data.
 * Answers 503 if large_at_once are held. May free the request. */
void httpd_take_body(struct httpd_req *);

/* Adds a field to the answer to come; copies name and value. Neither may have
 * CR, LF or NUL (asserted). */
void httpd_header(struct httpd_req *, const char *name, const char *value);
/* Closes the connection after the coming answer (Connection: close). */
void httpd_last(struct httpd_req *);
/* Sends status, fields, Content-Length and body, and ends the request. If
 * content_type is NULL or empty, no Content-Type is sent. For HEAD no body is
 * sent. */
void httpd_reply(struct httpd_req *, int status, const char *content_type,
    const void *body, size_t n);

/* httpd_reply for a body that stays as it is until the server is freed: the
 * rest that a client does not take at once is not copied for each connection.
 */
void httpd_reply_kept(struct httpd_req *, int status, const char *content_type,
    const void *body, size_t n);

/* httpd_reply for a body in up to HTTPD_PARTS_MAX pieces. */
struct httpd_part {
	const void *p;
	size_t n;
};
enum { HTTPD_PARTS_MAX = 3 };
void httpd_reply_parts(struct httpd_req *, int status, const char *content_type,
    const struct httpd_part *, size_t parts);

#endif
