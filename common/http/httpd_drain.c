/*
 * Ends a server in order: accepts no new client, and serves those that are
 * there.
 *
 * No request that was read stays without an answer, and every answer from here
 * on says "Connection: close". After that a client sends nothing more (RFC 9112
 * section 9.6), and sends its pipelined requests again elsewhere. The client of
 * a connection that is kept alive was told it could go on, and its next request
 * may be on its way. So a connection that was used a moment ago has a while for
 * that request. One that has been idle for longer is closed at once, as
 * idle_timeout does any day, and every client copes with that. Input that
 * arrived until that very moment counts: before an idle connection is closed
 * its socket is checked, so only a request that was sent while we closed can
 * meet a closed connection.
 *
 * Long streams end last. Their clients connect again within a moment, and some
 * packages give up after a few attempts. The next process should be near then,
 * not waiting for somebody's call to end here.
 *
 * A socket of the service manager's is left alone: connections that were not
 * accepted wait there for the next process. Our own has no next process, so the
 * connections that wait there are accepted first; the kernel refuses later
 * ones.
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

/* Is there input in its socket? Its request may be there already. */
bool
httpd_drain_has_input(const struct httpd_req *r)
{
	char c;

	return recv(bufferevent_getfd(r->bev), &c, 1, MSG_PEEK | MSG_DONTWAIT) >
	    0;
}

/* Accepts the connections that no process will accept after us. */
static void
accept_rest(struct httpd *h)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd, from = evconnlistener_get_fd(h->listener);

	/* At most a queue's worth: a client that connects again and again must
	 * not keep us. */
	for (int left = SOMAXCONN; left > 0 &&
	    (fd = accept4(from, (struct sockaddr *)&ss, &len,
		 SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
	    left--) {
		httpd_accept(h, fd, (struct sockaddr *)&ss);
		len = sizeof(ss);
	}
}

/* Shortens the wait of connections whose request is not there yet. */
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

/* Ends the rest when time is over: whoever has sent half a request is told to
 * send it elsewhere. */
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
		done(h); /* no memory: at once, as without a drain */
	else
		httpd_drain_left(h);
}
