/* Handles ended exchanges. One rule comes before all others: the bridge never
 * repeats a request that may have reached the server, since a tool may have
 * run. It only asks for the request's answer again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "json.h"
#include "mcp_era.h"

/* True if the message answers the request of t. */
static bool
is_answer(const struct transfer *t, struct ipc_bytes m)
{
	struct ipc_bytes v;

	return t->line.id.n > 0 && mcp_json_is_object(m) &&
	    !mcp_json_get(m, "method", &v) && mcp_json_get(m, "id", &v) &&
	    v.n == t->line.id.n && memcmp(v.p, t->line.id.p, v.n) == 0;
}

/* Notes the session's id and revision, which later requests need. */
static void
note_initialized(struct transfer *t, struct ipc_bytes m)
{
	struct bridge *b = t->b;
	struct ipc_bytes result, v;

	if (t->kind != TRANSFER_REVIVE &&
	    strcmp(t->line.method, "initialize") != 0)
		return;
	if (!mcp_json_get(m, "result", &result) ||
	    !mcp_json_is_object(result) ||
	    !mcp_json_get(result, "protocolVersion", &v) ||
	    mcp_json_text(v, b->version, sizeof(b->version)) < 0)
		return;
	memcpy(b->session, t->session, sizeof(b->session));
	if (t->kind == TRANSFER_REVIVE)
		return;
	free(b->initialize);
	b->initialize = malloc(t->body_len);
	if (b->initialize != NULL)
		memcpy(b->initialize, t->body, t->body_len);
	b->initialize_len = b->initialize != NULL ? t->body_len : 0;
}

void
ending_message(struct transfer *t, const void *p, size_t n)
{
	struct ipc_bytes m = ipc_bytes(p, n);

	if (json_scan(p, n, NULL) < 0)
		return; /* not JSON: no MCP server sends this */
	if (t->answered && is_answer(t, m))
		return; /* replayed */
	if (is_answer(t, m)) {
		t->answered = true;
		note_initialized(t, m);
		if (strcmp(t->line.method, "tools/list") == 0)
			marked_learn(&t->b->marked, m);
	}
	if (t->kind != TRANSFER_REVIVE)
		bridge_emit(t->b, p, n);
}

static void
fail(struct transfer *t, enum failure f, const char *text)
{
	if (!t->answered)
		bridge_error(t->b, &t->line, f, text);
	transfer_free(t);
}

/* Tells the host that its request failed. The text is the error message in the
 * server's body, or else names the HTTP status. */
static void
refused(struct transfer *t, long status)
{
	struct ipc_bytes body = ipc_bytes(t->answer.p, t->answer.len), error, v;
	char text[400] = "";

	if (body.n > 0 && json_scan(body.p, body.n, NULL) == 0 &&
	    mcp_json_is_object(body) && mcp_json_get(body, "error", &error) &&
	    mcp_json_is_object(error) && mcp_json_get(error, "message", &v))
		(void)mcp_json_text(v, text, sizeof(text));
	if (text[0] == '\0')
		(void)snprintf(text, sizeof(text),
		    "The server answered with HTTP status %ld.", status);
	fail(t,
	    status == 401       ? FAILURE_UNAUTHENTICATED
		: status == 403 ? FAILURE_FORBIDDEN
				: FAILURE_BUSY,
	    text);
}

/*
 * Renews a session that is over (it expired, or was deleted): MCP asks the
 * client to initialize again. The host can't know that the session is over, so
 * the bridge sends the host's initialize again. t's request, which was not
 * served, is sent after that.
 */
static bool
revive(struct transfer *t)
{
	struct bridge *b = t->b;
	struct transfer *again, *other;
	uint8_t *body;

	if (t->revived || b->initialize == NULL || b->session[0] == '\0')
		return false;
	TAILQ_FOREACH(other, &b->transfers, all)
		if (other->kind == TRANSFER_REVIVE)
			break;
	if (other == NULL) {
		body = malloc(b->initialize_len);
		if (body == NULL)
			return false;
		memcpy(body, b->initialize, b->initialize_len);
		again =
		    transfer_new(b, TRANSFER_REVIVE, body, b->initialize_len);
		if (again == NULL)
			return false;
		if (line_read(
			again->body, again->body_len, &again->line, NULL) < 0 ||
		    transfer_begin(again) < 0) {
			transfer_free(again);
			return false;
		}
	}
	t->revived = true;
	transfer_later(t, BRIDGE_BACKOFF_MAX_MS * 60);
	return true;
}

/* Ends the renewal of a session. The requests that wait for the renewal go on,
 * whether or not initialize was answered. */
static void
end_revive(struct transfer *t)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":"
				   "\"notifications/initialized\"}";
	struct bridge *b = t->b;
	struct transfer *other, *note;
	uint8_t *body = malloc(sizeof(text) - 1);

	transfer_free(t);
	if (body != NULL) {
		memcpy(body, text, sizeof(text) - 1);
		note = transfer_new(b, TRANSFER_POST, body, sizeof(text) - 1);
		if (note != NULL &&
		    (line_read(note->body, note->body_len, &note->line, NULL) <
			    0 ||
			transfer_begin(note) < 0))
			transfer_free(note);
	}
	TAILQ_FOREACH(other, &b->transfers, all)
		if (other->revived && other->easy == NULL)
			other->due_ms = bridge_now_ms();
}

/* Resumes a stream that broke before the answer. The rest of the stream can
 * be asked for if the request is legacy and the events have ids (MCP
 * 2025-11-25, resumability). false: the rest can't be asked for. */
static bool
resume(struct transfer *t)
{
	if (t->line.modern || t->answered || t->sse.id[0] == '\0' ||
	    t->line.id.n == 0 ||
	    bridge_now_ms() - t->first_ms > BRIDGE_RESUME_MS)
		return false;
	t->kind = TRANSFER_RESUME;
	transfer_later(t,
	    t->sse.retry_ms > 0 ? (int64_t)t->sse.retry_ms : BRIDGE_RETRY_MS);
	return true;
}

static void
end_stream(struct transfer *t, long status)
{
	/* After 4xx, such as 405 (the server has no such stream) or 404 (no
	 * such session), the stream is not asked for again. */
	if (t->b->eof || (status >= 400 && status < 500)) {
		transfer_free(t);
		return;
	}
	transfer_later(t,
	    t->sse.retry_ms > 0 ? (int64_t)t->sse.retry_ms : BRIDGE_RETRY_MS);
}

static void
open_stream(struct bridge *b)
{
	struct transfer *t;

	TAILQ_FOREACH(t, &b->transfers, all)
		if (t->kind == TRANSFER_STREAM)
			return;
	t = transfer_new(b, TRANSFER_STREAM, NULL, 0);
	if (t != NULL && transfer_begin(t) < 0)
		transfer_free(t);
}

/* Ends an exchange of the host's whose HTTP response was complete. */
static void
end_post(struct transfer *t, long status)
{
	struct bridge *b = t->b;
	bool initialized =
	    strcmp(t->line.method, "notifications/initialized") == 0;

	if (status == 404 && !t->line.modern && revive(t))
		return;
	if (!t->is_sse && t->answer.len > 0)
		ending_message(t, t->answer.p, t->answer.len);
	if (t->line.kind == LINE_REQUEST && !t->answered) {
		if (t->is_sse && resume(t))
			return;
		if (t->is_sse)
			fail(t, FAILURE_LOST,
			    "The server ended the stream without an answer; "
			    "the call may have run.");
		else
			refused(t, status);
		return;
	}
	transfer_free(t);
	if (initialized && status / 100 == 2 && !b->eof)
		open_stream(b);
}

void
ending(struct transfer *t, CURLcode code)
{
	struct bridge *b = t->b;
	char text[CURL_ERROR_SIZE + 160];
	long status = 0, sent = 0;

	if (t->easy != NULL) {
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
		curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
	}
	if (strcmp(t->line.method, "initialize") == 0)
		b->holding = false;
	if (t->kind == TRANSFER_DELETE) {
		transfer_free(t);
	} else if (t->kind == TRANSFER_STREAM) {
		end_stream(t, status);
	} else if (t->kind == TRANSFER_REVIVE) {
		if (code == CURLE_OK && !t->is_sse && t->answer.len > 0)
			ending_message(t, t->answer.p, t->answer.len);
		end_revive(t);
	} else if (t->overflow) {
		fail(t, FAILURE_TOO_LARGE,
		    "The answer is larger than the bridge can hold.");
	} else if (code == CURLE_OK) {
		end_post(t, status);
	} else if (sent == 0 && t->kind == TRANSFER_POST &&
	    bridge_now_ms() - t->first_ms < BRIDGE_CONNECT_MS) {
		/* The request was never sent: the server is being upgraded, or
		 * is not started yet. */
		if (strcmp(t->line.method, "initialize") == 0)
			b->holding = true;
		transfer_back_off(t);
	} else if (t->answered || !resume(t)) {
		(void)snprintf(text, sizeof(text), "%s (%s)",
		    sent == 0
			? "The server can't be reached; is mcpbox running?"
			: "The connection broke during the call; it may have "
			  "run.",
		    curl_easy_strerror(code));
		fail(t, sent == 0 ? FAILURE_BUSY : FAILURE_LOST, text);
	}
}
