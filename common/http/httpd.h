/*
 * HTTP/1.1 server connections on libevent core (bufferevents): the only file
 * that joins http1.c to sockets. Timeouts for head, body and idle; limits on
 * connections in all and per source; keep-alive; one request at a time per
 * connection (a second one waits unread); backpressure both ways; whole,
 * chunked and SSE answers.
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
	/* TCP balancers, which must begin each connection with a PROXY header
	 * of version 2; no one else is served then. NULL: there are none.
	 * Outlives the server. */
	const struct proxyv2_from *proxy_from;
};

struct httpd_handlers {
	/* A complete request. Must be answered, now or later, by exactly one
	 * httpd_reply, or httpd_stream_* up to httpd_stream_end. */
	void (*request)(struct httpd_req *, void *arg);
	/* The client closed before the answer was complete; req is freed after
	 * this returns and must be forgotten. May be NULL. */
	void (*gone)(struct httpd_req *, void *arg);
	/* Body for a request the parser refused; fills out. May be NULL: then
	 * text/plain. */
	void (*refused)(int status, const char *why, struct buf *out,
	    const char **content_type, void *arg);
	/* Every answer, refusals included, is about to be written: the place
	 * for httpd_header calls that all answers need. May be NULL. */
	void (*answering)(struct httpd_req *, void *arg);
};

/* Returns how many connections there can be, at most `connections`, if the
 * process needs the reserved descriptors too. Raises its soft limit of open
 * files for that as far as the hard one allows (getrlimit(2)). At least 1. */
unsigned httpd_files(unsigned connections, unsigned reserved);

/* Binds and listens on TCP host:port (port 0: any free) or a unix path.
 * address_out receives "127.0.0.1:8002". */
struct httpd *httpd_new(struct event_base *, const char *host, uint16_t port,
    const char *unix_path, const struct httpd_limits *,
    const struct httpd_handlers *, void *arg, char *address_out, size_t len,
    struct err *);
/* Serves on a listening socket of the service manager's, TCP or unix stream.
 * The server owns fd, also when NULL is returned. address_out receives the
 * address that fd is bound to: "127.0.0.1:8002", a path, "@" and an abstract
 * name. */
struct httpd *httpd_new_inherited(struct event_base *, int fd,
    const struct httpd_limits *, const struct httpd_handlers *, void *arg,
    char *address_out, size_t len, struct err *);
void httpd_free(struct httpd *);
/* Sets whether connections are accepted now; they are at first. Connections
 * that are not accepted wait in the kernel's queue. */
void httpd_accepting(struct httpd *, bool);

/*
 * Ends a server in order. No new connection is accepted; those that wait at an
 * inherited listener stay there for the next process. Every answer from now on
 * ends its connection, and connections that were kept alive may make one more
 * request.
 */
struct httpd_draining {
	uint64_t ms; /* for all of it */
	/* Only long streams (httpd_stream_lean) are left, or time is over: end
	 * them now. Called once, before late. May be NULL. */
	void (*streams)(void *arg);
	/* Time is over and requests are unanswered, or will be read in this
	 * moment: answer them now. A second later they are cut. May be NULL. */
	void (*late)(void *arg);
	/* Nothing is left, or that second is over, too. Called once, from the
	 * loop (without memory: at once). */
	void (*done)(void *arg);
	void *arg;
};
void httpd_drain(struct httpd *, const struct httpd_draining *);
/* Returns the number of open connections, without those that are only told
 * 503. */
unsigned httpd_connections(const struct httpd *);

const struct http1_request *httpd_request(const struct httpd_req *);
/* Returns the client's address as text. After a PROXY header the address is a
 * balancer's word: to count by and to tell, never to trust. */
const char *httpd_source(const struct httpd_req *);
void *httpd_data(const struct httpd_req *);
void httpd_set_data(struct httpd_req *, void *);

/* Adds a response field to the answer to come; copied. Value must be clean
 * (asserted: no CR, LF, NUL). */
void httpd_header(struct httpd_req *, const char *name, const char *value);
/* Ends the connection with the answer to come, and tells the client so. */
void httpd_last(struct httpd_req *);
/* Sends status, fields, Content-Length and body, and ends the request. An
 * empty content_type sends none. HEAD sends no body. */
void httpd_reply(struct httpd_req *, int status, const char *content_type,
    const void *body, size_t n);

/* The same for a body in up to HTTPD_PARTS_MAX pieces. */
struct httpd_part {
	const void *p;
	size_t n;
};
enum { HTTPD_PARTS_MAX = 3 };
void httpd_reply_parts(struct httpd_req *, int status, const char *content_type,
    const struct httpd_part *, size_t parts);

#endif
