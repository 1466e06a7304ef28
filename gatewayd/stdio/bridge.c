#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bridge.h"
#include "jsonw.h"

int64_t
bridge_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void
bridge_emit(struct bridge *b, const void *json, size_t n)
{
	size_t at = b->out.len;

	buf_put(&b->out, json, n);
	buf_putc(&b->out, '\n');
	if (!b->out.failed)
		line_flatten(b->out.p + at, n);
}

void
bridge_error(
    struct bridge *b, const struct line *l, enum failure f, const char *text)
{
	const struct failure_info *fi = failure_info(f);
	struct jsonw w;
	struct buf json;

	if (l->kind != LINE_REQUEST && l->id.n > 0)
		return;
	if (l->kind == LINE_NOTIFICATION || l->kind == LINE_RESPONSE) {
		fprintf(stderr, "mcpbox-stdio: %s\n", text);
		return;
	}
	buf_init(&json, BRIDGE_LINE_MAX);
	jsonw_open(&w, &json);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "jsonrpc", "2.0");
	if (l->id.n > 0)
		jsonw_kv_raw(&w, "id", l->id.p, l->id.n);
	else
		jsonw_kv_raw(&w, "id", "null", 4);
	jsonw_name(&w, "error");
	jsonw_obj(&w);
	jsonw_kv_int(&w, "code", fi->jsonrpc_code);
	jsonw_kv_str(&w, "message", text);
	jsonw_name(&w, "data");
	jsonw_obj(&w);
	jsonw_kv_str(&w, "failure_mode", fi->name);
	jsonw_kv_str(&w, "fix", failure_fix(f, text, strlen(text)));
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	if (!json.failed)
		bridge_emit(b, json.p, json.len);
	buf_free(&json);
}

/* ---- lines in ---- */

/* Handles a cancellation. Over HTTP a modern client cancels by closing the
 * response. Over standard input the host sends a notification, so the bridge
 * closes the response. true: the line cancelled an exchange. */
static bool
cancelled(struct bridge *b, const struct line *l)
{
	struct transfer *t;

	TAILQ_FOREACH(t, &b->transfers, all)
		if (t->line.modern && l->cancel_id.n > 0 &&
		    t->line.id.n == l->cancel_id.n &&
		    memcmp(t->line.id.p, l->cancel_id.p, t->line.id.n) == 0) {
			transfer_free(t);
			return true;
		}
	return false;
}

static void
take_line(struct bridge *b, const uint8_t *p, size_t n)
{
	struct line bad = {.kind = LINE_REQUEST};
	struct transfer *t;
	struct err err;
	uint8_t *body;

	if (n > 0 && p[n - 1] == '\r')
		n--;
	if (n == 0)
		return;
	body = malloc(n);
	if (body == NULL ||
	    (t = transfer_new(b, TRANSFER_POST, body, n)) == NULL) {
		bridge_error(b, &bad, FAILURE_BUSY, "Out of memory.");
		return;
	}
	memcpy(body, p, n);
	if (line_read(t->body, t->body_len, &t->line, &err) < 0) {
		if (t->line.id.n == 0)
			t->line.kind = LINE_REQUEST; /* answered with id null */
		bridge_error(b, &t->line, err.failure, err.text);
		transfer_free(t);
		return;
	}
	if (cancelled(b, &t->line)) {
		transfer_free(t);
		return;
	}
	if (b->n > BRIDGE_TRANSFERS_MAX) {
		bridge_error(b, &t->line, FAILURE_BUSY,
		    "256 requests are being served; wait for answers.");
		transfer_free(t);
		return;
	}
	b->holding = strcmp(t->line.method, "initialize") == 0;
	if (transfer_begin(t) < 0) {
		bridge_error(b, &t->line, FAILURE_BUSY, "Out of memory.");
		b->holding = false;
		transfer_free(t);
	}
}

/* Takes whole lines of the input, but no line while initialize is
 * unanswered. */
static void
take_lines(struct bridge *b)
{
	const uint8_t *end;
	size_t n, done = 0;

	while (!b->holding && done < b->in.len) {
		end = memchr(b->in.p + done, '\n', b->in.len - done);
		if (end == NULL && !b->eof)
			break;
		n = (end != NULL ? (size_t)(end - b->in.p) : b->in.len) - done;
		take_line(b, b->in.p + done, n);
		done += n + (end != NULL);
	}
	buf_drain(&b->in, done);
}

static int
read_input(struct bridge *b)
{
	ssize_t n;

	buf_reserve(&b->in, 64 * 1024);
	if (b->in.failed) {
		fprintf(stderr,
		    "mcpbox-stdio: a line is longer than %d bytes\n",
		    (int)BRIDGE_LINE_MAX);
		return -1;
	}
	n = read(STDIN_FILENO, b->in.p + b->in.len, 64 * 1024);
	if (n > 0)
		b->in.len += (size_t)n;
	else if (n == 0 || errno != EINTR)
		b->eof = true;
	return 0;
}

/* Writes at most PIPE_BUF bytes after a POLLOUT: such a write does not
 * block. */
static void
write_output(struct bridge *b)
{
	size_t n = b->out.len < PIPE_BUF ? b->out.len : PIPE_BUF;
	ssize_t done = write(STDOUT_FILENO, b->out.p, n);
	struct transfer *t;

	if (done < 0 && errno != EINTR && errno != EAGAIN)
		b->gone = true;
	if (done > 0)
		buf_drain(&b->out, (size_t)done);
	if (b->out.len > BRIDGE_OUT_HIGH)
		return;
	TAILQ_FOREACH(t, &b->transfers, all)
		transfer_unpause(t);
}

/* ---- the loop ---- */

static void
finished(struct bridge *b)
{
	struct transfer *t;
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(b->multi, &left)) != NULL) {
		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
		ending(t, m->data.result);
	}
}

/* Begins the exchanges that are due. Returns the ms until the next is due, at
 * most a minute. */
static int
due(struct bridge *b)
{
	struct transfer *t, *next;
	int64_t now = bridge_now_ms(), soonest = 60 * 1000;

	for (t = TAILQ_FIRST(&b->transfers); t != NULL; t = next) {
		next = TAILQ_NEXT(t, all);
		if (t->easy != NULL)
			continue;
		if (t->due_ms > now)
			soonest = t->due_ms - now < soonest ? t->due_ms - now
							    : soonest;
		else if (transfer_begin(t) < 0)
			ending(t, CURLE_OUT_OF_MEMORY);
	}
	return (int)soonest;
}

/* True if the host still waits for an answer, or output is not written. */
static bool
owing(const struct bridge *b)
{
	const struct transfer *t;

	TAILQ_FOREACH(t, &b->transfers, all)
		if (t->kind != TRANSFER_STREAM &&
		    strcmp(t->line.method, "subscriptions/listen") != 0)
			return true;
	return b->out.len > 0;
}

/* Ends all exchanges and the session, because the host is gone. MCP asks
 * clients to end their session. */
static void
goodbye(struct bridge *b)
{
	struct transfer *t, *next;

	for (t = TAILQ_FIRST(&b->transfers); t != NULL; t = next) {
		next = TAILQ_NEXT(t, all);
		transfer_free(t);
	}
	if (b->session[0] == '\0' ||
	    (t = transfer_new(b, TRANSFER_DELETE, NULL, 0)) == NULL)
		return;
	if (transfer_begin(t) < 0)
		transfer_free(t);
}

/* Does all that needs no waiting: takes lines, begins and ends exchanges.
 * Returns the ms until there is more to do, or -1: the bridge can't go on. */
static int
step(struct bridge *b)
{
	int running, ms;

	if (!b->gone)
		take_lines(b);
	(void)due(b);
	if (curl_multi_perform(b->multi, &running) != CURLM_OK)
		return -1;
	finished(b);
	ms = due(b);
	if (!b->out.failed)
		return ms;
	fputs("mcpbox-stdio: the host does not read\n", stderr);
	return -1;
}

int
bridge_run(struct bridge *b)
{
	bool leaving = false;
	int ms;

	for (;;) {
		struct curl_waitfd fds[2];
		unsigned n = 0;
		int in = -1, out = -1;

		if ((ms = step(b)) < 0)
			return -1;
		if (!leaving && (b->gone || (b->eof && !owing(b)))) {
			leaving = true;
			goodbye(b);
			continue;
		}
		if (leaving && TAILQ_EMPTY(&b->transfers))
			return 0;
		if (!b->eof && !b->holding && b->out.len <= BRIDGE_OUT_HIGH) {
			in = (int)n;
			fds[n++] = (struct curl_waitfd){
			    STDIN_FILENO, CURL_WAIT_POLLIN, 0};
		}
		if (b->out.len > 0 && !b->gone) {
			out = (int)n;
			fds[n++] = (struct curl_waitfd){
			    STDOUT_FILENO, CURL_WAIT_POLLOUT, 0};
		}
		/* If initialize was just answered, lines after it may be in
		 * b->in already, so don't wait for input. */
		if (!b->holding && b->in.len > 0 &&
		    memchr(b->in.p, '\n', b->in.len) != NULL)
			ms = 0;
		if (curl_multi_poll(b->multi, fds, n, ms, NULL) != CURLM_OK)
			return -1;
		if (in >= 0 && fds[in].revents != 0 && read_input(b) < 0)
			return -1;
		if (out >= 0 && fds[out].revents != 0)
			write_output(b);
	}
}
