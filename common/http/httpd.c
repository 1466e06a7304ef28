/*
 * Connections of the HTTP server: accepting, limits, timeouts, reading. The
 * writing half is httpd_answer.c, the grammar http1.c.
 *
 * With one connection a hostile client can hold one descriptor, HTTPD_READ_MAX
 * unparsed bytes, one head and one body within their limits, for at most
 * header_ms + body_ms until its request is whole. All bodies together stay
 * within bodies_max, since a body is read before its sender is authenticated.
 * The timers run over the whole head and the whole body, not from byte to byte,
 * so sending slowly does not extend them.
 *
 * While an answer is made or written, input is read and kept, but not parsed,
 * up to HTTPD_READ_MAX. So a second request waits, and a client that sends more
 * than HTTPD_READ_MAX bytes before its answer loses the connection. Input is
 * read in that time because only reading shows that a client has left
 * (EV_CLOSED alone would miss a reset in libevent 2.1's epoll). A client that
 * only shuts its sending side counts as gone, unless its answer is already on
 * the way.
 */
#include <sys/socket.h>

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/listener.h>

#include "httpd_internal.h"
#include "proxyv2.h"

enum { SOURCES = 256 }; /* expected at a time, not the limit */

const struct http1_request *
httpd_request(const struct httpd_req *r)
{
	return http1_request(r->parser);
}

const char *
httpd_source(const struct httpd_req *r)
{
	return r->source;
}

void *
httpd_data(const struct httpd_req *r)
{
	return r->data;
}

void
httpd_set_data(struct httpd_req *r, void *data)
{
	r->data = data;
}

/* ---- one connection ---- */

uint64_t
httpd_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
arm(struct httpd_req *r, uint64_t ms)
{
	struct timeval tv;

	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (event_add(r->timer, &tv) == 0)
		r->timer_at = r->deadline;
}

/* Moves the timer only to an earlier time. For a later deadline timer_cb arms
 * the timer again. So a busy connection, whose deadline only grows, moves no
 * timer. */
void
httpd_set_timer(struct httpd_req *r, uint64_t ms)
{
	if (ms == 0) {
		r->deadline = 0;
		return;
	}
	r->deadline = httpd_now_ms() + ms;
	if (r->timer_at == 0 || r->timer_at > r->deadline)
		arm(r, ms);
}

bool
httpd_count_body(struct httpd_req *r)
{
	struct httpd *h = r->h;
	size_t now = r->parser != NULL ? http1_held(r->parser) : 0;

	h->held += now - r->held;
	r->held = now;
	if (now == 0 && r->large && r->state != HTTPD_BODY) {
		r->large = false;
		h->large--;
	}
	return now == 0 || h->limits.bodies_max == 0 ||
	    h->held <= h->limits.bodies_max;
}

void
httpd_forget_request(struct httpd_req *r)
{
	http1_free(r->parser);
	r->parser = NULL;
	httpd_count_body(r);
}

static void
conn_free(struct httpd_req *r)
{
	struct httpd *h = r->h;

	TAILQ_REMOVE(&h->all, r, all);
	httpd_admit_leave(r);
	if (r->lean)
		h->lean--;
	if (r->refused_extra)
		h->extra--;
	else
		h->count--;
	if (r->timer != NULL)
		event_free(r->timer);
	if (r->later != NULL)
		event_free(r->later);
	if (r->readable != NULL)
		event_free(r->readable);
	if (r->bev != NULL)
		bufferevent_free(r->bev); /* closes */
	if (r->in != NULL)
		evbuffer_free(r->in);
	http1_free(r->parser);
	r->parser = NULL;
	httpd_count_body(r);
	buf_free(&r->fields);
	free(r);
	httpd_drain_left(h);
}

/* Frees the connection. had: the owner still has the connection's request, so
 * the owner is told first. */
static void
conn_gone(struct httpd_req *r, bool had)
{
	if (had && r->gone != NULL)
		r->gone(r, r->h->arg);
	else if (had && r->h->handlers.gone != NULL)
		r->h->handlers.gone(r, r->h->arg);
	conn_free(r);
}

/* Ends the connection later, from the loop, so that a function that writes to
 * the connection never finds it freed. */
void
httpd_kill_later(struct httpd_req *r)
{
	bool had = r->state == HTTPD_ANSWER || r->state == HTTPD_STREAM;

	if (r->state == HTTPD_DEAD)
		return;
	r->state = HTTPD_DEAD;
	httpd_admit_idle(r, false);
	r->first = had; /* in state DEAD: the owner has the request */
	event_del(r->readable);
	bufferevent_disable(r->bev, EV_WRITE);
	event_active(r->later, EV_TIMEOUT, 1);
}

void
httpd_kill_now(struct httpd_req *r)
{
	bool had = r->state == HTTPD_ANSWER || r->state == HTTPD_STREAM;

	if (r->in_callback || r->state == HTTPD_DEAD) {
		httpd_kill_later(r);
		return;
	}
	r->state = HTTPD_DEAD;
	conn_gone(r, had);
}

/* Changes a connection's state. Only DEAD is also set elsewhere: when a
 * connection ends. */
void
httpd_set_state(struct httpd_req *r, enum httpd_state s)
{
	const struct httpd_limits *l = &r->h->limits;

	r->state = s;
	httpd_admit_idle(r, s == HTTPD_IDLE);
	if (r->judged && s != HTTPD_ANSWER) {
		r->judged = false;
		if (event_add(r->readable, NULL) < 0)
			httpd_kill_later(r);
	}
	switch (s) {
	case HTTPD_IDLE:
		r->data = NULL;
		r->drained = NULL;
		r->slow = false;
		http1_reset(r->parser);
		httpd_count_body(r);
		/* A new connection must begin its request within header_ms. */
		httpd_set_timer(r,
		    httpd_drain_idle_ms(
			r->h, r->first ? l->header_ms : l->idle_ms));
		break;
	case HTTPD_HEAD:
	case HTTPD_BODY: /* feed() sets the timer if bytes are missing */
		break;
	case HTTPD_ANSWER:
		httpd_set_timer(r, 0);
		break;
	case HTTPD_STREAM:
		if (r->sse)
			httpd_set_timer(r, l->quiet_ms);
		break;
	case HTTPD_FLUSH:
		httpd_set_timer(r, 0);
		if (!r->keep_alive)
			httpd_read_discard(r);
		/* later_cb or write_cb goes on once the answer has left.
		 * dispatch() checks by itself whether the answer has left. */
		if (!r->in_dispatch)
			event_active(r->later, EV_TIMEOUT, 1);
		break;
	case HTTPD_LINGER:
		shutdown(bufferevent_getfd(r->bev), SHUT_WR);
		httpd_read_discard(r);
		httpd_set_timer(r, HTTPD_LINGER_MS);
		break;
	case HTTPD_DEAD:
		break;
	}
}

/* Goes on once the whole answer has been sent: takes the next request or ends
 * the connection. */
static void
flushed(struct httpd_req *r)
{
	if (evbuffer_get_length(bufferevent_get_output(r->bev)) > 0)
		return; /* write_cb calls this function again */
	if (!r->keep_alive) {
		httpd_set_state(r, HTTPD_LINGER);
		return;
	}
	httpd_set_state(r, HTTPD_IDLE);
	httpd_read_waiting(r); /* a pipelined request may have waited */
}

/* Goes on after a queued answer, or lets the writer of a slow stream go on.
 * Called when the output has fallen to the low-water mark. */
static void
write_cb(struct bufferevent *bev, void *arg)
{
	struct httpd_req *r = arg;

	if (r->state == HTTPD_FLUSH) {
		flushed(r);
	} else if (r->state == HTTPD_STREAM && r->slow &&
	    evbuffer_get_length(bufferevent_get_output(bev)) <= HTTPD_OUT_LOW) {
		r->slow = false;
		if (r->drained != NULL) {
			r->in_callback = true;
			r->drained(r, r->drained_arg);
			r->in_callback = false;
		}
	}
}

/* Ends a connection after an error, or if its client reads nothing for too
 * long. */
static void
event_cb(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	httpd_kill_now(arg);
}

static void
later_cb(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_req *r = arg;

	(void)fd;
	(void)what;
	if (r->state == HTTPD_DEAD)
		conn_gone(r, r->first);
	else if (r->state == HTTPD_FLUSH)
		flushed(r);
}

void
httpd_stream_timer(struct httpd_req *r)
{
	if (r->sse)
		httpd_set_timer(r, r->h->limits.quiet_ms);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_req *r = arg;

	uint64_t now = httpd_now_ms();

	(void)fd;
	(void)what;
	r->timer_at = 0;
	if (r->deadline > now)
		arm(r, r->deadline - now);
	if (r->deadline == 0 || r->deadline > now)
		return;
	r->deadline = 0;
	if (r->state == HTTPD_HEAD)
		httpd_answer_refusal(r, 408, "the head took too long");
	else if (r->state == HTTPD_BODY)
		httpd_answer_refusal(r, 408, "the body took too long");
	else if (r->state == HTTPD_STREAM)
		httpd_stream_quiet(r);
	else if (r->state == HTTPD_IDLE && httpd_drain_has_input(r))
		httpd_set_timer(r, r->h->limits.header_ms); /* read next */
	else
		httpd_kill_now(r); /* idle or lingering */
}

/* ---- accepting ---- */

void
httpd_accept(struct httpd *h, int fd, const struct sockaddr *sa)
{
	struct httpd_req *r;
	struct timeval stall;
	const struct proxyv2_from *from = h->limits.proxy_from;
	uint8_t key[16];
	char why[128];
	int one = 1, refusal = 503;
	bool ok;

	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		close(fd);
		return;
	}
	httpd_listen_source(sa, r->source, key);
	r->h = h;
	if (from != NULL && !proxyv2_from_has(from, sa)) {
		snprintf(why, sizeof(why),
		    "connections are taken from the balancers that "
		    "proxy_protocol_from lists");
		refusal = 403;
		ok = false;
	} else {
		r->proxied = from != NULL;
		ok =
		    httpd_admit(h, r, h->unix_socket || r->proxied ? NULL : key,
			why, sizeof(why));
	}
	if (!ok && h->extra >= HTTPD_REFUSED_EXTRA) {
		free(r);
		close(fd);
		return;
	}
	r->first = true;
	r->refused_extra = !ok;
	buf_init(&r->fields, HTTPD_FIELDS_MAX);
	TAILQ_INSERT_TAIL(&h->all, r, all);
	if (ok)
		h->count++;
	else
		h->extra++;

	/* Answers are written whole, so Nagle's algorithm would only delay
	 * them. */
	if (!h->unix_socket)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	r->bev = bufferevent_socket_new(h->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (r->bev == NULL)
		close(fd);
	r->timer = evtimer_new(h->base, timer_cb, r);
	r->later = event_new(h->base, -1, 0, later_cb, r);
	r->readable =
	    event_new(h->base, fd, EV_READ | EV_PERSIST, httpd_read_cb, r);
	r->parser = http1_new(h->limits.head_max, h->limits.body_max);
	if (r->parser != NULL && h->limits.large_max > 0)
		http1_set_large(r->parser, h->limits.large_max);
	if (r->bev == NULL || r->timer == NULL || r->later == NULL ||
	    r->parser == NULL || r->readable == NULL ||
	    event_add(r->readable, NULL) < 0) {
		conn_free(r);
		return;
	}
	bufferevent_setcb(r->bev, NULL, write_cb, event_cb, r);
	bufferevent_setwatermark(r->bev, EV_WRITE, HTTPD_OUT_LOW, 0);
	/* A client that takes no byte of an answer for this long counts as
	 * gone. */
	stall.tv_sec = (time_t)(h->limits.body_ms / 1000);
	stall.tv_usec = (suseconds_t)(h->limits.body_ms % 1000 * 1000);
	bufferevent_set_timeouts(r->bev, NULL, &stall);
	bufferevent_enable(r->bev, EV_WRITE);
	if (ok)
		httpd_set_state(r, HTTPD_IDLE);
	else
		httpd_answer_refusal(r, refusal, why);
}

static void
accept_cb(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa,
    int salen, void *arg)
{
	(void)l;
	(void)salen;
	httpd_accept(arg, fd, sa);
}

void
httpd_accepting(struct httpd *h, bool yes)
{
	h->paused = !yes;
	if (h->listener == NULL)
		return; /* the server drains */
	if (yes)
		evconnlistener_enable(h->listener);
	else
		evconnlistener_disable(h->listener);
}

static void
resume_cb(evutil_socket_t fd, short what, void *arg)
{
	struct httpd *h = arg;

	(void)fd;
	(void)what;
	if (!h->paused)
		evconnlistener_enable(h->listener);
}

/* Handles a lack of descriptors or memory: lets the kernel's queue wait a
 * moment instead of spinning on a readable listener. */
static void
accept_error_cb(struct evconnlistener *l, void *arg)
{
	static const struct timeval tv = {0, 100 * 1000};
	struct httpd *h = arg;

	evconnlistener_disable(l);
	event_add(h->resume, &tv);
}

/* ---- the listener ---- */

/* Makes a server that takes over fd, a bound socket. listening: the socket
 * listens already. NULL with err; fd is then closed. */
static struct httpd *
serve(struct event_base *base, int fd, bool listening, bool unix_socket,
    const struct httpd_limits *limits, const struct httpd_handlers *handlers,
    void *arg, struct err *err)
{
	struct httpd *h;

	assert(handlers->request != NULL);
	assert(limits->large_max == 0 || handlers->large != NULL);
	if (unix_socket && limits->proxy_from != NULL) {
		close(fd);
		err_set(err, FAILURE_INVALID_PARAMS,
		    "proxy_protocol_from is for a TCP listener: who connects "
		    "to a unix socket has no address");
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (h == NULL || table_init(&h->sources, SOURCES) == -1) {
		free(h);
		err_set(err, FAILURE_BUSY, "out of memory");
		close(fd);
		return NULL;
	}
	h->base = base;
	h->limits = *limits;
	h->handlers = *handlers;
	h->arg = arg;
	h->unix_socket = unix_socket;
	h->inherited = listening;
	TAILQ_INIT(&h->all);
	TAILQ_INIT(&h->idle);
	buf_init(&h->head, HTTPD_FIELDS_MAX + 1024 + HTTPD_JOIN_MAX);
	h->resume = evtimer_new(base, resume_cb, h);
	/* With a backlog of 0 libevent does not call listen(2), which would
	 * replace the backlog that the service manager chose. */
	h->listener = evconnlistener_new(base, accept_cb, h,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
	    listening ? 0 : SOMAXCONN, fd);
	if (h->listener == NULL || h->resume == NULL) {
		err_sys(err, FAILURE_INTERNAL, "listen");
		if (h->listener == NULL)
			close(fd);
		httpd_free(h);
		return NULL;
	}
	evconnlistener_set_error_cb(h->listener, accept_error_cb);
	return h;
}

struct httpd *
httpd_new(struct event_base *base, const char *host, uint16_t port,
    const char *unix_path, const struct httpd_limits *limits,
    const struct httpd_handlers *handlers, void *arg, char *address_out,
    size_t len, struct err *err)
{
	int fd;

	if (unix_path != NULL) {
		fd = httpd_listen_unix(unix_path, err);
		snprintf(address_out, len, "%s", unix_path);
	} else {
		fd = httpd_listen_tcp(host, port, address_out, len, err);
	}
	if (fd < 0)
		return NULL;
	return serve(
	    base, fd, false, unix_path != NULL, limits, handlers, arg, err);
}

struct httpd *
httpd_new_inherited(struct event_base *base, int fd,
    const struct httpd_limits *limits, const struct httpd_handlers *handlers,
    void *arg, char *address_out, size_t len, struct err *err)
{
	bool unix_socket;

	if (httpd_listen_inherited(fd, &unix_socket, address_out, len, err) <
	    0) {
		close(fd);
		return NULL;
	}
	return serve(base, fd, true, unix_socket, limits, handlers, arg, err);
}

unsigned
httpd_connections(const struct httpd *h)
{
	return h->count;
}

void
httpd_free(struct httpd *h)
{
	struct httpd_req *r;

	if (h == NULL)
		return;
	if (h->listener != NULL)
		evconnlistener_free(h->listener);
	if (h->resume != NULL)
		event_free(h->resume);
	while ((r = TAILQ_FIRST(&h->all)) != NULL)
		conn_gone(r,
		    r->state == HTTPD_ANSWER || r->state == HTTPD_STREAM ||
			(r->state == HTTPD_DEAD && r->first));
	if (h->drain_timer != NULL)
		event_free(h->drain_timer);
	buf_free(&h->head);
	table_free(&h->sources);
	free(h);
}
