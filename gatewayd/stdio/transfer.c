/* One HTTP exchange. libcurl does HTTP; this file makes the header fields of
 * MCP's Streamable HTTP and keeps the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bridge.h"

struct transfer *
transfer_new(struct bridge *b, enum transfer_kind kind, uint8_t *body, size_t n)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		free(body);
		return NULL;
	}
	t->b = b;
	t->kind = kind;
	t->body = body;
	t->body_len = n;
	t->first_ms = bridge_now_ms();
	sse_init(&t->sse, BRIDGE_ANSWER_MAX);
	buf_init(&t->answer, BRIDGE_ANSWER_MAX);
	TAILQ_INSERT_TAIL(&b->transfers, t, all);
	b->n++;
	return t;
}

static void
stop(struct transfer *t)
{
	if (t->easy != NULL) {
		curl_multi_remove_handle(t->b->multi, t->easy);
		curl_easy_cleanup(t->easy);
	}
	curl_slist_free_all(t->headers);
	t->easy = NULL;
	t->headers = NULL;
}

void
transfer_free(struct transfer *t)
{
	stop(t);
	TAILQ_REMOVE(&t->b->transfers, t, all);
	t->b->n--;
	sse_free(&t->sse);
	buf_free(&t->answer);
	free(t->body);
	free(t);
}

void
transfer_later(struct transfer *t, int64_t ms)
{
	stop(t);
	t->due_ms = bridge_now_ms() + ms;
}

void
transfer_back_off(struct transfer *t)
{
	t->backoff_ms =
	    t->backoff_ms == 0 ? BRIDGE_BACKOFF_MIN_MS : t->backoff_ms * 2;
	if (t->backoff_ms > BRIDGE_BACKOFF_MAX_MS)
		t->backoff_ms = BRIDGE_BACKOFF_MAX_MS;
	transfer_later(t, t->backoff_ms);
}

void
transfer_unpause(struct transfer *t)
{
	if (t->paused && t->easy != NULL) {
		t->paused = false;
		curl_easy_pause(t->easy, CURLPAUSE_CONT);
	}
}

/* ---- receiving ---- */

static size_t
on_header(char *p, size_t size, size_t n, void *arg)
{
	static const char name[] = "mcp-session-id:";
	struct transfer *t = arg;
	size_t len = size * n, skip = sizeof(name) - 1;

	if (len <= skip || strncasecmp(p, name, skip) != 0)
		return len;
	while (skip < len && (p[skip] == ' ' || p[skip] == '\t'))
		skip++;
	n = len - skip;
	while (n > 0 && (p[skip + n - 1] == '\r' || p[skip + n - 1] == '\n'))
		n--;
	if (n <= BRIDGE_SESSION_MAX) {
		memcpy(t->session, p + skip, n);
		t->session[n] = '\0';
	}
	return len;
}

static void
on_event(void *arg, const void *data, size_t n)
{
	ending_message(arg, data, n);
}

static size_t
on_body(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	char *type = NULL;

	/* The host is slow: let the server wait, and spare our memory. */
	if (t->b->out.len > BRIDGE_OUT_HIGH) {
		t->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (!t->began) {
		t->began = true;
		curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
		t->is_sse = type != NULL &&
		    strncasecmp(type, "text/event-stream", 17) == 0;
	}
	if (t->is_sse) {
		if (sse_feed(&t->sse, p, size * n, on_event, t) == 0)
			return size * n;
		t->overflow = true;
		return 0;
	}
	buf_put(&t->answer, p, size * n);
	t->overflow = t->answer.failed;
	return t->overflow ? 0 : size * n;
}

/* ---- sending ---- */

static void
field(struct transfer *t, bool *failed, const char *name, const char *value)
{
	char text[CURL_MAX_HTTP_HEADER > 8192 ? 8192 : CURL_MAX_HTTP_HEADER];
	struct curl_slist *more;

	if (value == NULL || *value == '\0')
		return;
	if ((size_t)snprintf(text, sizeof(text), "%s: %s", name, value) >=
	    sizeof(text)) {
		*failed = true;
		return;
	}
	more = curl_slist_append(t->headers, text);
	if (more == NULL)
		*failed = true;
	else
		t->headers = more;
}

static int
param(void *arg, const char *name, const char *value)
{
	char field_name[80], text[LINE_HEADER_MAX];
	struct transfer *t = arg;
	bool failed = false;

	if (line_header(value, text, sizeof(text)) < 0)
		return 0; /* the server will say that the field is missing */
	(void)snprintf(field_name, sizeof(field_name), "Mcp-Param-%s", name);
	field(t, &failed, field_name, text);
	return failed ? -1 : 0;
}

static bool
headers(struct transfer *t)
{
	const struct bridge *b = t->b;
	const struct line *l = &t->line;
	bool failed = false, first;
	char bearer[4200];

	field(t, &failed, "Content-Type",
	    t->body != NULL ? "application/json" : "");
	field(t, &failed, "Accept", "application/json, text/event-stream");
	/* Keep libcurl from sending "Expect: 100-continue", which costs a
	 * second of waiting. */
	field(t, &failed, "Expect", " ");
	if (b->token != NULL) {
		(void)snprintf(bearer, sizeof(bearer), "Bearer %s", b->token);
		field(t, &failed, "Authorization", bearer);
	}
	if (l->modern) {
		field(t, &failed, "MCP-Protocol-Version", l->version);
		field(t, &failed, "Mcp-Method", l->method);
		field(t, &failed, "Mcp-Name", l->name);
		if (strcmp(l->method, "tools/call") == 0 &&
		    marked_fields(&b->marked, l->params, param, t) != 0)
			failed = true;
		return !failed;
	}
	first =
	    t->kind == TRANSFER_REVIVE || strcmp(l->method, "initialize") == 0;
	if (!first) {
		field(t, &failed, "Mcp-Session-Id", b->session);
		field(t, &failed, "MCP-Protocol-Version", b->version);
	}
	if (t->kind == TRANSFER_RESUME || t->kind == TRANSFER_STREAM)
		field(t, &failed, "Last-Event-ID", t->sse.id);
	return !failed;
}

int
transfer_begin(struct transfer *t)
{
	struct bridge *b = t->b;
	bool get = t->kind == TRANSFER_RESUME || t->kind == TRANSFER_STREAM;
	CURL *e;

	stop(t);
	t->due_ms = 0;
	t->began = t->is_sse = t->paused = t->overflow = false;
	buf_clear(&t->answer);
	e = t->easy = curl_easy_init();
	if (e == NULL || !headers(t))
		return -1;
	curl_easy_setopt(e, CURLOPT_URL, b->url);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)BRIDGE_CONNECT_MS);
	if (b->socket != NULL)
		curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, b->socket);
	if (t->kind == TRANSFER_DELETE) {
		curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "DELETE");
		curl_easy_setopt(
		    e, CURLOPT_TIMEOUT_MS, (long)BRIDGE_GOODBYE_MS);
	} else if (!get) {
		curl_easy_setopt(e, CURLOPT_POST, 1L);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, (const char *)t->body);
		curl_easy_setopt(
		    e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_len);
	}
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	return curl_multi_add_handle(b->multi, e) == CURLM_OK ? 0 : -1;
}
