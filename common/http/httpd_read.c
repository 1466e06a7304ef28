/*
 * The reading half of a connection: bytes from the socket to the parser, one
 * request at a time to the owner.
 *
 * One recv(2) reads into a buffer that all connections of the server share, and
 * from there the parser is fed. Nearly always the buffer holds one whole
 * request, so that no byte has to be kept for the connection. Input that comes
 * while a request is being answered stays with the connection, up to
 * HTTPD_READ_MAX and one such buffer.
 */
#include <errno.h>

#include "httpd_internal.h"

static size_t
waiting(const struct httpd_req *r)
{
	return r->in == NULL ? 0 : evbuffer_get_length(r->in);
}

/*
 * Throws away input that comes after the last answer. Closing with bytes unread
 * would make the kernel send a reset, and the client would lose the answer that
 * tells what was wrong (RFC 9112 section 9.6). true: more than HTTPD_LINGER_MAX
 * bytes were thrown away.
 */
bool
httpd_read_discard(struct httpd_req *r)
{
	r->lingered += waiting(r);
	if (r->in != NULL)
		evbuffer_drain(r->in, waiting(r));
	return r->lingered > HTTPD_LINGER_MAX;
}

/* Hands a whole request to the owner. more: input waits after the request. */
static void
dispatch(struct httpd_req *r, bool more)
{
	const struct http1_request *q = http1_request(r->parser);

	r->first = false;
	r->keep_alive = q->keep_alive;
	r->head_only = q->method == HTTP1_HEAD;
	httpd_set_state(r, HTTPD_ANSWER);
	r->in_callback = r->in_dispatch = true;
	r->h->handlers.request(r, r->h->arg);
	r->in_callback = r->in_dispatch = false;
	if (r->state != HTTPD_FLUSH)
		return;
	/* In the usual case the request was answered at once and no input
	 * waits, so the connection is ready for the next request. All else is
	 * left to the loop. */
	if (r->keep_alive && !more &&
	    evbuffer_get_length(bufferevent_get_output(r->bev)) == 0)
		httpd_set_state(r, HTTPD_IDLE);
	else
		event_active(r->later, EV_TIMEOUT, 1);
}

/* Tells the client that its body may come. 100 (Continue) is sent once, and
 * only if the client waits for it (RFC 9110 section 10.1.1). more: input is
 * here. */
static void
invite(struct httpd_req *r, bool more)
{
	if (http1_request(r->parser)->expect_continue && !more)
		bufferevent_write(r->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

/*
 * Asks the owner whether a large body may come. Until the owner has decided,
 * nothing is read from the socket, so the body waits in the kernel, which stops
 * the sender. The process holds a head and the bytes of one recv(2), as for any
 * other request.
 */
static void
judge(struct httpd_req *r)
{
	r->keep_alive = false; /* an answer now leaves the body unread */
	r->head_only = http1_request(r->parser)->method == HTTP1_HEAD;
	httpd_set_state(r, HTTPD_ANSWER);
	r->judged = true;
	event_del(r->readable);
	r->in_callback = true;
	r->h->handlers.large(r, r->h->arg);
	r->in_callback = false;
}

void
httpd_take_body(struct httpd_req *r)
{
	struct httpd *h = r->h;
	bool inside = r->in_callback;

	r->data = NULL;
	if (r->state == HTTPD_DEAD)
		return;
	httpd_set_state(r, HTTPD_BODY);
	if (r->state == HTTPD_DEAD)
		return;
	if (h->large >= h->limits.large_at_once) {
		httpd_answer_refusal(
		    r, 503, "too many large bodies are arriving at once");
		return;
	}
	h->large++;
	r->large = true;
	http1_take_large(r->parser);
	httpd_set_timer(r, h->limits.body_ms);
	invite(r, waiting(r) > 0);
	if (!inside) /* else feed()'s caller reads on */
		httpd_read_waiting(r);
}

/* Feeds the parser n bytes, up to the end of one request. behind: number of
 * bytes that wait after these n. Returns how many bytes the parser took. */
static size_t
feed(struct httpd_req *r, const uint8_t *p, size_t n, size_t behind)
{
	const enum httpd_state before = r->state;
	const char *why;
	size_t at = 0, used;
	int status;

	while (r->state == HTTPD_IDLE || r->state == HTTPD_HEAD ||
	    r->state == HTTPD_BODY) {
		if (r->state == HTTPD_IDLE)
			httpd_set_state(r, HTTPD_HEAD);
		switch (http1_feed(r->parser, p + at, n - at, &used)) {
		case HTTP1_MORE:
			at += used;
			if (!httpd_count_body(r)) {
				httpd_answer_refusal(
				    r, 503, "too much is arriving at once");
				return at;
			}
			/* The timers run over the whole head and the whole
			 * body, from the beginning of each. */
			if (r->state != before)
				httpd_set_timer(r,
				    r->state == HTTPD_HEAD
					? r->h->limits.header_ms
					: r->h->limits.body_ms);
			return at;
		case HTTP1_HEAD_DONE:
			at += used;
			if (http1_is_large(r->parser)) {
				judge(r);
				return at;
			}
			httpd_set_state(r, HTTPD_BODY);
			invite(r, n - at + behind > 0);
			break;
		case HTTP1_DONE:
			at += used;
			if (!httpd_count_body(r))
				httpd_answer_refusal(
				    r, 503, "too much is arriving at once");
			else
				dispatch(r, n - at + behind > 0);
			return at;
		case HTTP1_ERROR:
			at += used;
			status = http1_error(r->parser, &why);
			httpd_answer_refusal(r, status, why);
			return at;
		}
	}
	return at;
}

void
httpd_read_waiting(struct httpd_req *r)
{
	struct evbuffer_iovec v;
	size_t n;

	while ((r->state == HTTPD_IDLE || r->state == HTTPD_HEAD ||
		   r->state == HTTPD_BODY) &&
	    (n = waiting(r)) > 0 && evbuffer_peek(r->in, -1, NULL, &v, 1) > 0)
		evbuffer_drain(
		    r->in, feed(r, v.iov_base, v.iov_len, n - v.iov_len));
}

/* Keeps bytes that cannot be taken now. -1: out of memory. */
static int
keep(struct httpd_req *r, const uint8_t *p, size_t n)
{
	if (n == 0)
		return 0;
	if (r->in == NULL && (r->in = evbuffer_new()) == NULL)
		return -1;
	return evbuffer_add(r->in, p, n);
}

/* Handles the end of input: a client that shuts its sending side counts as
 * gone, unless its answer is already on the way. */
static void
ended(struct httpd_req *r)
{
	event_del(r->readable);
	if (r->state == HTTPD_FLUSH)
		r->keep_alive = false; /* the client may still read it */
	else
		httpd_kill_now(r);
}

void
httpd_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_req *r = arg;
	uint8_t *p = r->h->in;
	size_t used = 0;
	ssize_t n;

	(void)what;
	n = recv(fd, p, sizeof(r->h->in), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		httpd_kill_now(r);
		return;
	}
	if (n == 0) {
		ended(r);
		return;
	}
	if (waiting(r) == 0 && !r->proxied)
		used = feed(r, p, (size_t)n, 0);
	if (keep(r, p + used, (size_t)n - used) < 0) {
		httpd_kill_now(r);
		return;
	}
	if (r->proxied) {
		httpd_proxy_take(r);
		if (r->proxied || r->state == HTTPD_DEAD)
			return;
	}
	httpd_read_waiting(r);
	if (r->state == HTTPD_LINGER || r->lean ||
	    (r->state == HTTPD_FLUSH && !r->keep_alive)) {
		if (httpd_read_discard(r))
			httpd_kill_now(r);
		return;
	}
	/* The client has sent too much ahead of its answer. */
	if (r->state >= HTTPD_ANSWER && r->state <= HTTPD_FLUSH &&
	    waiting(r) >= HTTPD_READ_MAX)
		httpd_kill_now(r);
}
