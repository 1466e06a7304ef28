/*
 * Writing answers: whole, chunked, server-sent events.
 *
 * Field values come from us or from validated text; httpd_header asserts that
 * none can split a response (CR, LF, NUL), so a bug ends the process instead
 * of becoming header injection.
 */
#include <sys/socket.h>
#include <sys/uio.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "httpd_internal.h"

/* Returns the present time as IMF-fixdate (RFC 9110 section 5.6.7), made once a
 * second. The C library's time zones are not used: they would open a file in a
 * confined process. */
static const char *
date_text(void)
{
	static const char wd[7][4] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue",
	    "Wed"}; /* 1970-01-01 was a Thursday */
	static const char mon[12][4] = {"Jan", "Feb", "Mar", "Apr", "May",
	    "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	static char text[64];
	static int64_t made = -1;
	struct timespec ts;
	int64_t days, secs, era, doe, yoe, doy, mp, y;
	int d, m;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (ts.tv_sec == made)
		return text;
	made = ts.tv_sec;
	days = ts.tv_sec / 86400;
	secs = ts.tv_sec % 86400;
	/* Turn days into a date of the proleptic Gregorian calendar, with years
	 * that begin in March. */
	era = (days + 719468) / 146097;
	doe = (days + 719468) % 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	d = (int)(doy - (153 * mp + 2) / 5 + 1);
	m = (int)(mp < 10 ? mp + 2 : mp - 10); /* 0 = January */
	y = yoe + era * 400 + (m <= 1 ? 1 : 0);
	snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT",
	    wd[days % 7], d, mon[m], (int)y, (int)(secs / 3600),
	    (int)(secs / 60 % 60), (int)(secs % 60));
	return text;
}

static bool
clean(const char *s)
{
	return s[strcspn(s, "\r\n")] == '\0';
}

void
httpd_header(struct httpd_req *r, const char *name, const char *value)
{
	assert(clean(name) && clean(value));
	buf_puts(&r->fields, name);
	buf_puts(&r->fields, ": ");
	buf_puts(&r->fields, value);
	buf_puts(&r->fields, "\r\n");
}

void
httpd_last(struct httpd_req *r)
{
	r->keep_alive = false;
}

/* Appends n in decimal. */
static void
put_number(struct buf *out, unsigned long long n)
{
	char text[24];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	buf_put(out, text + at, sizeof(text) - at);
}

/* Writes the status line and the fields into the server's buffer. length < 0:
 * the body is chunked. -1: there was no memory for the head, so the caller must
 * close the connection. */
static int
put_head(struct httpd_req *r, int status, const char *type, long long length)
{
	struct buf *out = &r->h->head;

	buf_clear(out);
	if (r->h->draining)
		r->keep_alive = false;
	if (r->h->handlers.answering != NULL)
		r->h->handlers.answering(r, r->h->arg);
	if (r->fields.failed)
		return -1;
	buf_puts(out, "HTTP/1.1 ");
	put_number(out, (unsigned long long)status);
	buf_putc(out, ' ');
	buf_puts(out, http1_reason(status));
	buf_puts(out, "\r\nDate: ");
	buf_puts(out, date_text());
	buf_puts(out, "\r\n");
	if (type != NULL && type[0] != '\0') {
		assert(clean(type));
		buf_puts(out, "Content-Type: ");
		buf_puts(out, type);
		buf_puts(out, "\r\n");
	}
	/* RFC 9110 section 8.6: no Content-Length with 204. With 304 it would
	 * have to be the length that the answer 200 has. */
	if (length >= 0 && status != 204 && status != 304) {
		buf_puts(out, "Content-Length: ");
		put_number(out, (unsigned long long)length);
		buf_puts(out, "\r\n");
	} else if (length < 0) {
		buf_puts(out, "Transfer-Encoding: chunked\r\n");
	}
	if (!r->keep_alive)
		buf_puts(out, "Connection: close\r\n");
	buf_put(out, r->fields.p, r->fields.len);
	buf_puts(out, "\r\n");
	buf_clear(&r->fields);
	return out->failed ? -1 : 0;
}

/*
 * Sends the pieces at once, as far as the socket takes them. Nearly always the
 * socket takes all, so the loop need not watch for room. Only the rest goes
 * through the bufferevent, which also finds out about a dead client. kept: the
 * pieces after the first stay as they are, so their rest is not copied. -1
 * without memory.
 */
static int
send_pieces(struct httpd_req *r, const struct iovec *iov, size_t n, bool kept)
{
	struct evbuffer *out = bufferevent_get_output(r->bev);
	struct msghdr m = {
	    .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = n};
	const uint8_t *rest;
	ssize_t sent = 0;
	size_t i, done;

	if (evbuffer_get_length(out) == 0)
		sent = n == 1 ? send(bufferevent_getfd(r->bev), iov->iov_base,
				    iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
			      : sendmsg(bufferevent_getfd(r->bev), &m,
				    MSG_NOSIGNAL | MSG_DONTWAIT);
	done = sent > 0 ? (size_t)sent : 0;
	for (i = 0; i < n; i++) {
		if (done >= iov[i].iov_len) {
			done -= iov[i].iov_len;
			continue;
		}
		rest = (const uint8_t *)iov[i].iov_base + done;
		if ((kept && i > 0 ? evbuffer_add_reference(out, rest,
					 iov[i].iov_len - done, NULL, NULL)
				   : evbuffer_add(
					 out, rest, iov[i].iov_len - done)) < 0)
			return -1;
		done = 0;
	}
	return 0;
}

/* Sends the head that put_head made, and the body. A small body is copied after
 * the head, because the copy costs less than a second piece in the system
 * call. */
static int
send_answer(struct httpd_req *r, const struct httpd_part *part, size_t parts,
    size_t n, bool kept)
{
	struct buf *head = &r->h->head;
	struct iovec iov[1 + HTTPD_PARTS_MAX];
	size_t i;

	if (n <= HTTPD_JOIN_MAX) {
		for (i = 0; i < parts; i++)
			buf_put(head, part[i].p, part[i].n);
		if (head->failed)
			return -1;
		parts = 0;
	}
	iov[0].iov_base = head->p;
	iov[0].iov_len = head->len;
	for (i = 0; i < parts; i++) {
		iov[1 + i].iov_base = (void *)(uintptr_t)part[i].p;
		iov[1 + i].iov_len = part[i].n;
	}
	return send_pieces(r, iov, 1 + parts, kept);
}

static void
reply(struct httpd_req *r, int status, const char *type,
    const struct httpd_part *part, size_t parts, bool kept)
{
	size_t i, n = 0;

	if (r->state == HTTPD_DEAD)
		return;
	assert(r->state == HTTPD_ANSWER && parts <= HTTPD_PARTS_MAX);
	for (i = 0; i < parts; i++)
		n += part[i].n;
	if (r->head_only || status == 204)
		parts = 0;
	if (put_head(r, status, type, (long long)n) < 0 ||
	    send_answer(r, part, parts, n, kept) < 0)
		/* Nothing may follow half an answer. */
		httpd_kill_later(r);
	else
		httpd_set_state(r, HTTPD_FLUSH);
}

void
httpd_reply_parts(struct httpd_req *r, int status, const char *type,
    const struct httpd_part *part, size_t parts)
{
	reply(r, status, type, part, parts, false);
}

void
httpd_reply(struct httpd_req *r, int status, const char *type, const void *body,
    size_t n)
{
	struct httpd_part part = {body, n};

	reply(r, status, type, &part, n > 0 ? 1 : 0, false);
}

void
httpd_reply_kept(struct httpd_req *r, int status, const char *type,
    const void *body, size_t n)
{
	struct httpd_part part = {body, n};

	reply(r, status, type, &part, n > 0 ? 1 : 0, true);
}

void
httpd_stream_begin(struct httpd_req *r, int status, const char *type)
{
	bool bad;

	if (r->state == HTTPD_DEAD)
		return;
	assert(r->state == HTTPD_ANSWER);
	bad = put_head(r, status, type, -1) < 0 ||
	    evbuffer_add(bufferevent_get_output(r->bev), r->h->head.p,
		r->h->head.len) < 0;
	if (bad) {
		httpd_kill_later(r);
		return;
	}
	r->sse = type != NULL && !r->head_only &&
	    strcmp(type, "text/event-stream") == 0;
	httpd_set_state(r, HTTPD_STREAM);
}

bool
httpd_stream_write(struct httpd_req *r, const void *p, size_t n)
{
	struct evbuffer *out = bufferevent_get_output(r->bev);
	char size[24], end[] = "\r\n";
	struct iovec iov[3] = {{size, 0}, {(void *)(uintptr_t)p, n}, {end, 2}};

	if (r->state == HTTPD_DEAD)
		return false;
	assert(r->state == HTTPD_STREAM);
	if (n == 0 || r->head_only) /* a chunk of length 0 would be the end */
		return !r->slow;
	iov[0].iov_len = (size_t)snprintf(size, sizeof(size), "%zx\r\n", n);
	if (evbuffer_get_length(out) + n > HTTPD_OUT_MAX ||
	    send_pieces(r, iov, 3, false) < 0) {
		httpd_kill_later(r);
		return false;
	}
	httpd_stream_timer(r);
	if (evbuffer_get_length(out) > (r->lean ? 0 : HTTPD_OUT_HIGH))
		r->slow = true;
	return !r->slow;
}

void
httpd_stream_end(struct httpd_req *r)
{
	char end[] = "0\r\n\r\n";
	struct iovec iov = {end, 5};

	if (r->state == HTTPD_DEAD)
		return;
	assert(r->state == HTTPD_STREAM);
	if (!r->head_only && send_pieces(r, &iov, 1, false) < 0) {
		httpd_kill_later(r);
		return;
	}
	httpd_set_state(r, HTTPD_FLUSH);
}

void
httpd_stream_lean(struct httpd_req *r, void (*gone)(struct httpd_req *, void *))
{
	r->gone = gone;
	if (r->state == HTTPD_DEAD)
		return;
	assert(r->state == HTTPD_STREAM);
	r->lean = true;
	r->h->lean++;
	r->keep_alive = false;
	httpd_forget_request(r);
	buf_free(&r->fields);
	bufferevent_setwatermark(r->bev, EV_WRITE, 0, 0);
	if (evbuffer_get_length(bufferevent_get_output(r->bev)) > 0)
		r->slow = true;
	httpd_drain_left(r->h);
}

bool
httpd_stream_slow(const struct httpd_req *r)
{
	return r->slow;
}

/* Sends one event. Each of the three line ends of the event-stream grammar
 * begins a new data line, so no payload can forge a field or an event. */
bool
httpd_sse_event(struct httpd_req *r, const char *id, const void *data, size_t n)
{
	const char *p = data, *end = p + n, *e;
	struct buf b;
	bool ok;

	buf_init(&b, HTTPD_OUT_MAX);
	if (id != NULL) {
		assert(clean(id));
		buf_putf(&b, "id: %s\n", id);
	}
	do {
		for (e = p; e < end && *e != '\n' && *e != '\r'; e++)
			;
		buf_puts(&b, "data: ");
		buf_put(&b, p, (size_t)(e - p));
		buf_putc(&b, '\n');
		if (e + 1 < end && e[0] == '\r' && e[1] == '\n')
			e++;
		p = e + 1;
	} while (e < end);
	buf_putc(&b, '\n');
	if (b.failed) {
		httpd_kill_later(r);
		ok = false;
	} else {
		ok = httpd_stream_write(r, b.p, b.len);
	}
	buf_free(&b);
	return ok;
}

bool
httpd_sse_prime(struct httpd_req *r, const char *id, unsigned retry_ms)
{
	char text[128], retry[32] = "";
	int n;

	assert(clean(id) && strlen(id) < 64);
	if (retry_ms > 0)
		snprintf(retry, sizeof(retry), "retry: %u\n", retry_ms);
	n = snprintf(text, sizeof(text), "id: %s\n%sdata: \n\n", id, retry);
	return httpd_stream_write(r, text, (size_t)n);
}

bool
httpd_sse_retry(struct httpd_req *r, unsigned ms)
{
	char text[32];

	return httpd_stream_write(
	    r, text, (size_t)snprintf(text, sizeof(text), "retry: %u\n\n", ms));
}

bool
httpd_sse_comment(struct httpd_req *r)
{
	return httpd_stream_write(r, ": keep-alive\n\n", 14);
}

/* Sends a comment, since proxies and clients may take a silent connection for a
 * dead one. A client that does not read what was sent before gets no
 * comment. */
void
httpd_stream_quiet(struct httpd_req *r)
{
	if (r->slow)
		httpd_stream_timer(r);
	else
		httpd_sse_comment(r);
}

void
httpd_on_drained(
    struct httpd_req *r, void (*f)(struct httpd_req *, void *), void *arg)
{
	r->drained = f;
	r->drained_arg = arg;
}

/* Answers a request that the owner never saw, then ends the connection. */
void
httpd_answer_refusal(struct httpd_req *r, int status, const char *why)
{
	const char *type = "text/plain; charset=utf-8";
	struct httpd *h = r->h;
	struct buf body;

	buf_init(&body, 8 * 1024);
	r->keep_alive = false;
	r->head_only = false;
	r->proxied = false; /* ignores a PROXY header that is still to come */
	httpd_set_state(r, HTTPD_ANSWER);
	if (status == 503)
		httpd_header(r, "Retry-After", "1");
	if (h->handlers.refused != NULL)
		h->handlers.refused(status, why, &body, &type, h->arg);
	else
		buf_putf(&body, "%s\n", why);
	httpd_reply(r, status, type, body.p, body.failed ? 0 : body.len);
	buf_free(&body);
}
