/*
 * Ends a server in order: accepts no new client, and serves the connections
 * that are there.
 *
 * No request that was read stays without an answer, and every answer from here
 * on says "Connection: close". After that a client sends nothing more (RFC 9112
 * section 9.6), and sends its pipelined requests again on another connection. A
 * client whose connection is kept alive was told that it may go on, and its
 * next request may be on its way. So a connection that was used a moment ago
 * gets some time for that request. A connection that has been idle for longer
 * is closed at once. Every client copes with that, since idle_timeout closes
 * idle connections as well. Before an idle connection is closed, its socket is
 * checked for input. So only a request that is sent while we close can meet a
 * closed connection.
 *
 * Long streams end last. Their clients connect again within a moment, and some
 * client libraries give up after a few attempts. So the next process should
 * start soon after the streams end, and should not have to wait for calls that
 * end here.
 *
 * The service manager's listener is left alone: connections that were not
 * accepted wait there for the next process. No process takes over our own
 * listener, so the connections that wait there are accepted first. The kernel
 * refuses later connections.
 */
#include <sys/socket.h>

#include <unistd.h>

#include <event2/listener.h>

#include "httpd_internal.h"

/* Returns how long ago the connection became idle, in ms. */
static uint64_t
idle_for(const struct httpd_req *r, uint64_t now)
{
	const struct httpd_limits *l = &r->h->limits;
	uint64_t end = r->deadline;
	uint64_t since = r->first ? l->header_ms : l->idle_ms;

	return end > since && now > end - since ? now - (end - since) : 0;
}

uint64_t
httpd_drain_idle_ms(const struct httpd *h, uint64_t ms)
{
	uint64_t now = httpd_now_ms();

	if (!h->draining)
		return ms;
	if (ms > HTTPD_DRAIN_IDLE_MS)
		ms = HTTPD_DRAIN_IDLE_MS;
	if (h->drain_until < now + ms)
		ms = h->drain_until > now ? h->drain_until - now : 1;
	return ms;
}

/* Tells whether the connection's socket has input, which may be a request. */
bool
httpd_drain_has_input(const struct httpd_req *r)
{
	char c;

	return recv(bufferevent_getfd(r->bev), &c, 1, MSG_PEEK | MSG_DONTWAIT) >
	    0;
}

/* Accepts the queue's connections, which no process can accept after us. */
static void
accept_rest(struct httpd *h)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd, from = evconnlistener_get_fd(h->listener);

	/* Accepts at most as many as the queue holds, so that a client that
	 * connects again and again can't keep us here. */
	for (int left = SOMAXCONN; left > 0 &&
	    (fd = accept4(from, (struct sockaddr *)&ss, &len,
		 SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
	    left--) {
		httpd_accept(h, fd, (struct sockaddr *)&ss);
		len = sizeof(ss);
	}
}

/* Shortens the time of connections on which no request has begun. */
static void
hurry_idle(struct httpd *h)
{
	uint64_t now = httpd_now_ms(), left, was;
	struct httpd_req *r;

	TAILQ_FOREACH(r, &h->all, all) {
		if (r->state != HTTPD_IDLE)
			continue;
		was = idle_for(r, now);
		left = httpd_drain_idle_ms(h, HTTPD_DRAIN_IDLE_MS);
		httpd_set_timer(r, was < left ? left - was : 1);
	}
}

/* Ends the remaining connections when the time is over. A client that has sent
 * a part of a request gets 503. */
static void
refuse_rest(struct httpd *h)
{
	struct httpd_req *r, *next;

	for (r = TAILQ_FIRST(&h->all); r != NULL; r = next) {
		next = TAILQ_NEXT(r, all);
		if (r->state == HTTPD_HEAD || r->state == HTTPD_BODY)
			httpd_answer_refusal(r, 503, "the server is stopping");
		else if (r->state == HTTPD_IDLE && !httpd_drain_has_input(r))
			httpd_kill_now(r);
	}
}

static void
done(struct httpd *h)
{
	void (*f)(void *) = h->drain.done;

	h->drain.done = NULL;
	if (f != NULL)
		f(h->drain.arg);
}

static bool
only_streams(const struct httpd *h)
{
	return h->lean == h->count + h->extra;
}

static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval last = {.tv_sec = HTTPD_LINGER_MS / 1000};
	struct httpd *h = arg;
	bool quiet = only_streams(h);

	(void)fd;
	(void)what;
	if (TAILQ_EMPTY(&h->all) || h->late) {
		done(h);
		return;
	}
	h->late = true;
	(void)event_add(h->drain_timer, &last);
	if (h->drain.streams != NULL)
		h->drain.streams(h->drain.arg);
	if (quiet)
		return;
	refuse_rest(h);
	if (h->drain.late != NULL)
		h->drain.late(h->drain.arg);
}

void
httpd_drain_left(struct httpd *h)
{
	if (h->draining && h->drain_timer != NULL &&
	    (TAILQ_EMPTY(&h->all) || (only_streams(h) && !h->late)))
		event_active(h->drain_timer, EV_TIMEOUT, 1);
}

void
httpd_drain(struct httpd *h, const struct httpd_draining *d)
{
	struct timeval tv = {
	    (time_t)(d->ms / 1000), (suseconds_t)(d->ms % 1000 * 1000)};

	if (h->draining)
		return;
	h->draining = true;
	h->drain = *d;
	h->drain_until = httpd_now_ms() + d->ms;
	event_del(h->resume);
	if (!h->inherited)
		accept_rest(h);
	evconnlistener_free(h->listener); /* closes our descriptor */
	h->listener = NULL;
	hurry_idle(h);
	h->drain_timer = evtimer_new(h->base, on_drain, h);
	if (h->drain_timer == NULL || event_add(h->drain_timer, &tv) != 0)
		done(h); /* without memory: ends at once */
	else
		httpd_drain_left(h);
}
