/*
 * httpd.c behind a real loopback socket: a server whose paths do what their
 * names say. Included once by each test of it.
 */
#ifndef HTTPD_RIG_H
#define HTTPD_RIG_H

#include <sys/resource.h>

#include "httpd_stream.h"
#include "loop_client.h"
#include "unit.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static struct event_base *base;
static struct httpd *server;
static char address[64];
static struct httpd_req *waiting; /* the request of /wait */
static unsigned served, gone, drained;
static char last_body[64];
static char kept[3 * 1024 * 1024];               /* the body of /kept */
static uint64_t first_ms = 200, idle_ms = 250;   /* for start() */
static size_t body_max = 1024 * 1024, large_max; /* likewise */
/* Large bodies: the number of questions about them, and the answer. */
static unsigned asked;
static enum { LARGE_LATER, LARGE_TAKE, LARGE_REFUSE } large_how;

static void
on_request(struct httpd_req *r, void *arg)
{
	const struct http1_request *q = httpd_request(r);

	(void)arg;
	served++;
	snprintf(last_body, sizeof(last_body), "%.*s",
	    (int)(q->body_len < 60 ? q->body_len : 60), (const char *)q->body);
	if (strcmp(q->path, "/wait") == 0) {
		waiting = r;
		return;
	}
	if (strcmp(q->path, "/sse") == 0) {
		httpd_header(r, "X-A", "b");
		httpd_stream_begin(r, 200, "text/event-stream");
		httpd_sse_event(r, "7", "a\nb\r\nc\rd", 8);
		httpd_sse_comment(r);
		httpd_sse_event(r, NULL, "", 0);
		httpd_stream_end(r);
		return;
	}
	if (strcmp(q->path, "/kept") == 0) {
		httpd_reply_kept(r, 200, "text/plain", kept, sizeof(kept));
		return;
	}
	if (strcmp(q->path, "/known") == 0) {
		httpd_reply(r, 304, "", NULL, 0);
		return;
	}
	if (strcmp(q->path, "/big") == 0) {
		size_t n = 3 * 1024 * 1024;
		char *p = malloc(n);

		assert_non_null(p);
		/* What is sent at once and what is left must meet. */
		for (size_t i = 0; i < n; i++)
			p[i] = (char)('a' + i % 23);
		httpd_reply(r, 200, "text/plain", p, n);
		free(p);
		return;
	}
	httpd_reply(r, 200, "text/plain", q->path, strlen(q->path));
}

static void
on_gone(struct httpd_req *r, void *arg)
{
	(void)arg;
	gone++;
	if (r == waiting)
		waiting = NULL;
}

static void
on_large(struct httpd_req *r, void *arg)
{
	(void)arg;
	asked++;
	assert_int_equal(httpd_request(r)->body_len, 0);
	if (large_how == LARGE_TAKE)
		httpd_take_body(r);
	else if (large_how == LARGE_REFUSE)
		httpd_reply(r, 401, "text/plain", "who?", 4);
	else
		waiting = r;
}

static inline void
start(unsigned connections, unsigned per_source)
{
	static const struct httpd_handlers h = {
	    on_request, on_gone, NULL, NULL, on_large};
	struct httpd_limits l = {.connections = connections,
	    .connections_per_source = per_source,
	    .header_ms = first_ms,
	    .body_ms = 300,
	    .idle_ms = idle_ms,
	    .head_max = 8192,
	    .body_max = body_max,
	    .bodies_max = 2 * 1024 * 1024,
	    .quiet_ms = 60,
	    .large_max = large_max,
	    .large_at_once = 2};
	struct err err;

	served = gone = drained = asked = 0;
	waiting = NULL;
	base = event_base_new();
	assert_non_null(base);
	server = httpd_new(base, "127.0.0.1", 0, NULL, &l, &h, NULL, address,
	    sizeof(address), &err);
	if (server == NULL)
		fail_msg("%s", err.text);
}

static void
stop(void)
{
	httpd_free(server);
	event_base_free(base);
}

#endif
