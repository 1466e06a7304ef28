/*
 * One HTTP request from its bytes to its answer:
 *
 *	copy -> identity -> split and scan -> session -> each message
 *
 * The body is scanned even if the credential is refused, since every error
 * echoes the message's id. But the scan's result is told only after the
 * credential was found good: 401 and 403 come first, and never depend on the
 * body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "challenge.h"
#include "credential_read.h"
#include "exchange.h"
#include "httpd_stream.h"
#include "ids.h"
#include "log.h"
#include "quirk.h"
#include "session.h"
#include "stream.h"

static void next_member(struct exchange *);

void
exchange_free(struct exchange *ex)
{
	struct gateway *gw = ex->gw;

	if (ex->req != NULL)
		httpd_set_data(ex->req, NULL);
	stream_post_end(ex);
	if (ex->share != NULL)
		share_leave(ex->share, ex->body_len);
	share_put(ex->share);
	TAILQ_REMOVE(&gw->exchanges, ex, all);
	gw->exchange_bytes -= ex->body_len;
	gw->exchange_count--;
	if (ex->credential.text != NULL)
		explicit_bzero(
		    ex->credential.text, strlen(ex->credential.text));
	free(ex->body); /* and all that follows it */
	buf_free(&ex->answers);
	buf_free(&ex->made);
	buf_free(&ex->mime);
	free(ex);
}

/* Ends the HTTP request, with status and body, or with the stream's last
 * event. */
static void
finish(struct exchange *ex, int status, const void *p, size_t n)
{
	if (ex->post != NULL || (ex->req != NULL && ex->streaming)) {
		stream_post_event(ex, p, n, true);
		if (ex->req != NULL)
			httpd_stream_end(ex->req);
	} else if (ex->req != NULL) {
		httpd_header(ex->req, "Cache-Control", "no-store");
		httpd_reply(ex->req, status, n > 0 ? JSON_TYPE : "", p, n);
	}
	exchange_free(ex);
}

struct answer_to
exchange_to(const struct exchange *ex)
{
	enum mcp_rev rev = ex->m.rev_named ? ex->m.rev
	    : ex->has_session              ? ex->session.rev
					   : MCP_REV_2025_11_25;

	return (struct answer_to){ex->m.id, ex->m.modern,
	    !ex->m.modern && (ex->members.array || rev < MCP_REV_2025_11_25)};
}

/* Returns which challenge goes with a refusal of this status, 401 or 403. */
static enum challenge
challenge_for(const struct exchange *ex, const struct refusal *r, int status)
{
	if (status == 401)
		return ex->unread || ex->credential.text[0] != '\0'
		    ? CHALLENGE_INVALID
		    : CHALLENGE_NONE;
	if (r->scope[0] != '\0')
		return CHALLENGE_MORE;
	return credential_is_api_token(ex->credential.text) ? CHALLENGE_SCOPE
							    : CHALLENGE_NEVER;
}

/* Answers with a constant: memory ran out while an answer was built. */
static void
finish_poor(struct exchange *ex)
{
	static const char text[] =
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,"
	    "\"message\":\"Out of memory.\",\"data\":{\"failure_mode\":"
	    "\"busy\",\"retry_after_ms\":500}}}";

	finish(ex, 503, text, sizeof(text) - 1);
}

void
exchange_answer(struct exchange *ex, int status, struct buf *b)
{
	/* Only requests (JSON-RPC 2.0 section 4.1) and faulty messages are
	 * answered. */
	bool silent = ex->m.kind != MCP_REQUEST &&
	    ex->m.error.failure == FAILURE_NONE && status < 400;

	ex->call = NULL;
	if (b->failed) {
		buf_free(b);
		finish_poor(ex);
		return;
	}
	if (!ex->members.array || status == 401 || status == 403) {
		finish(ex, silent ? 202 : status, b->p, silent ? 0 : b->len);
		buf_free(b);
		return;
	}
	if (!silent && b->len > 0) {
		buf_putc(&ex->answers, ex->answers.len == 0 ? '[' : ',');
		buf_put(&ex->answers, b->p, b->len);
	}
	buf_free(b);
	ex->at++;
	next_member(ex);
}

void
exchange_answer_parts(struct exchange *ex, struct buf *head,
    struct ipc_bytes items, struct buf *tail)
{
	struct httpd_part part[3];

	if (ex->members.array || ex->req == NULL || ex->streaming ||
	    ex->m.kind != MCP_REQUEST || head->failed || tail->failed) {
		buf_put(head, items.p, items.n);
		buf_put(head, tail->p, tail->len);
		head->failed |= tail->failed;
		buf_free(tail);
		exchange_answer(ex, 200, head);
		return;
	}
	part[0].p = head->p;
	part[0].n = head->len;
	part[1].p = items.p;
	part[1].n = items.n;
	part[2].p = tail->p;
	part[2].n = tail->len;
	httpd_header(ex->req, "Cache-Control", "no-store");
	httpd_reply_parts(ex->req, 200, JSON_TYPE, part, 3);
	buf_free(head);
	buf_free(tail);
	exchange_free(ex);
}

const char *
exchange_instructions(const struct exchange *ex)
{
	const struct gw_endpoint *e =
	    gw_endpoints_find(ex->gw, ex->credential.endpoint);

	return e != NULL ? e->instructions : NULL;
}

enum call_method
exchange_call_method(const struct exchange *ex)
{
	return ex->m.method == MCP_PROMPTS_GET   ? CALL_PROMPT
	    : ex->m.method == MCP_RESOURCES_READ ? CALL_RESOURCE
						 : CALL_TOOL;
}

void
exchange_refuse(struct exchange *ex, const struct refusal *r)
{
	const struct failure_info *fi = failure_info(r->failure);
	struct answer_to to = exchange_to(ex);
	char seconds[24];
	struct buf b;
	int status = 200;

	/*
	 * 401 and 403 are about the connection, so they are HTTP statuses. So
	 * is the 503 for a credential that can't be judged now. A
	 * missing capability is 400 where the specification says so. All other
	 * failures are told in the JSON-RPC answer with status 200, since
	 * clients take other statuses for a broken transport. A message without
	 * an id has no JSON-RPC answer, so the HTTP status tells the failure.
	 */
	if (fi->http_status == 401 || fi->http_status == 403 ||
	    r->failure == FAILURE_ISSUER_UNAVAILABLE ||
	    (ex->unread && fi->http_status == 400) ||
	    (r->failure == FAILURE_CAPABILITY_REQUIRED && ex->m.modern) ||
	    to.id.n == 0)
		status = fi->http_status;
	if (status == 200 && to.id.n == 0)
		status = 503;
	/* Retry-After has whole seconds, rounded up (RFC 9110 section
	 * 10.2.3). */
	if (status == 503 && r->retry_after_ms > 0 && ex->req != NULL &&
	    !ex->streaming && !ex->members.array) {
		(void)snprintf(seconds, sizeof(seconds), "%llu",
		    (unsigned long long)(r->retry_after_ms + 999) / 1000);
		httpd_header(ex->req, "Retry-After", seconds);
	}
	/* A stream that was begun has no more header fields. */
	if ((status == 401 || status == 403) && ex->req != NULL &&
	    !ex->streaming)
		challenge_add(ex->gw, ex->req, challenge_for(ex, r, status),
		    r->message, r->scope);
	buf_init(&b, ANSWER_MAX);
	/* Only tools/call has isError results. */
	if (fi->side == FAILURE_TOOL && to.id.n > 0 &&
	    ex->m.method == MCP_TOOLS_CALL)
		answer_tool_failure(&b, &to, r->failure, r->message);
	else
		answer_error(&b, &to, r->failure, r->message, r->retry_after_ms,
		    r->data);
	exchange_answer(ex, status, &b);
}

bool
exchange_may_read(struct exchange *ex, unsigned lists)
{
	struct refusal no;

	if ((ex->who.unread & lists) == 0)
		return true;
	refusal_scope(&no, ex->who.read_scope);
	exchange_refuse(ex, &no);
	return false;
}

void
exchange_error(struct exchange *ex, int status, enum failure f,
    const char *message, const char *data)
{
	struct answer_to to = exchange_to(ex);
	struct buf b;

	buf_init(&b, ANSWER_MAX);
	answer_error(&b, &to, f, message, 0, data);
	exchange_answer(ex, status, &b);
}

/* Answers a method that nothing here serves. A legacy client reads 404 as
 * "session ended" (MCP 2025-11-25, sessions), so it gets 200. */
void
exchange_no_method(struct exchange *ex)
{
	exchange_error(ex, ex->m.modern ? 404 : 200, FAILURE_METHOD_NOT_FOUND,
	    "This method does not exist here.", NULL);
}

static void
on_drained(struct httpd_req *req, void *arg)
{
	struct exchange *ex = httpd_data(req);

	(void)arg;
	if (ex != NULL)
		ex->slow = false;
}

void
exchange_stream_head(struct httpd_req *req)
{
	httpd_header(req, "Cache-Control", "no-store");
	httpd_header(req, "X-Accel-Buffering", "no");
	httpd_stream_begin(req, 200, SSE_TYPE);
}

void
exchange_stream(struct exchange *ex)
{
	httpd_on_drained(ex->req, on_drained, NULL);
	ex->streaming = true;
	exchange_stream_head(ex->req);
	stream_post_begin(ex);
}

struct httpd_req *
exchange_release(struct exchange *ex)
{
	struct httpd_req *req = ex->req;

	httpd_set_data(req, NULL);
	ex->req = NULL;
	exchange_free(ex);
	return req;
}

void
exchange_attach(struct exchange *ex, struct httpd_req *req, bool slow)
{
	ex->req = req;
	ex->streaming = true;
	ex->slow = slow;
	httpd_set_data(req, ex);
	httpd_on_drained(req, on_drained, NULL);
}

bool
exchange_notify(
    struct exchange *ex, const char *method, struct ipc_bytes params)
{
	struct buf b;

	if (ex->members.array || !ex->accepts_sse)
		return false;
	/* Notifications may be lost, so none is sent to a slow client, or to a
	 * client that left and can't resume. */
	if (ex->slow || (ex->req == NULL && !stream_post_kept(ex)))
		return true;
	buf_init(&b, IPC_FRAME_MAX * 2);
	if (answer_notification(&b, method, params) == 0) {
		if (!ex->streaming)
			exchange_stream(ex);
		ex->slow = !stream_post_event(ex, b.p, b.len, false);
	}
	buf_free(&b);
	return true;
}

/* Sends the request even to a slow client. The client's queue stays short,
 * because a call asks one thing at a time. */
bool
exchange_request(struct exchange *ex, const struct buf *json)
{
	if (ex->members.array || !ex->accepts_sse || json->failed ||
	    (ex->req == NULL && !stream_post_kept(ex)))
		return false;
	if (!ex->streaming)
		exchange_stream(ex);
	ex->slow = !stream_post_event(ex, json->p, json->len, false);
	return true;
}

/* Begins the stream only after the call began to wait, because an answer that
 * comes before may need an HTTP status of its own. A client whose Accept did
 * not name event streams waits in silence. */
void
exchange_quiet(struct exchange *ex)
{
	if (ex->members.array || !ex->names_sse || ex->req == NULL ||
	    ex->streaming)
		return;
	exchange_stream(ex);
	ex->slow = !httpd_sse_comment(ex->req);
}

/* Notes that the client closed its connection. A modern client cancels in this
 * way. A legacy client may have lost the connection, so its call goes on. */
void
exchange_gone(struct exchange *ex)
{
	ex->req = NULL;
	ex->slow = false;
	if (ex->call != NULL && ex->m.modern)
		ex->gw->ops->cancel(ex->call);
}

static struct mcp_headers
headers(const struct exchange *ex)
{
	struct mcp_headers h = {ex->version, ex->method, ex->name,
	    ex->gw->quirks,
	    ex->has_session ? ex->session.rev : MCP_REV_2025_03_26};

	return h;
}

/* Classifies and serves the next message, or ends the exchange. */
static void
next_member(struct exchange *ex)
{
	struct mcp_headers h = headers(ex);
	struct answer_to to;
	struct buf b;
	int status;

	if (ex->at == ex->members.n) {
		if (ex->answers.len > 0)
			buf_putc(&ex->answers, ']');
		if (ex->answers.failed)
			finish_poor(ex);
		else
			finish(ex, ex->answers.len > 0 ? 200 : 202,
			    ex->answers.p, ex->answers.len);
		return;
	}
	mcp_request_read(
	    ex->members.member[ex->at], &h, ex->members.array, &ex->m);
	if (ex->m.quirks != 0)
		quirk_note(ex->gw, ex->m.quirks, ex->agent);
	if (ex->has_session && !ex->m.modern)
		ex->m.declared = ex->session.declared;
	buf_init(&b, ANSWER_MAX);
	if (ex->m.error.failure != FAILURE_NONE) {
		status = ex->m.error.status;
		if (ex->m.kind == MCP_NOTIFICATION &&
		    (status == 200 || ex->members.array)) {
			/* The error is not told, because a notification has no
			 * JSON-RPC answer, and an array has no HTTP status for
			 * each member. */
			ex->m.error.failure = FAILURE_NONE;
			exchange_answer(ex, 202, &b);
			return;
		}
		to = exchange_to(ex);
		answer_refusal(&b, &to, &ex->m.error);
		exchange_answer(ex, status, &b);
	} else if (ex->m.modern) {
		ex->gw->ops->serve_modern(ex);
	} else {
		ex->gw->ops->serve_legacy(ex);
	}
}

/* Checks the session that a legacy request names. 0, or -1: ex was answered. */
static int
check_session(struct exchange *ex)
{
	struct gateway *gw = ex->gw;
	struct refusal no;
	struct buf b;
	struct answer_to to;

	if (ex->session_text == NULL)
		return 0;
	if (!gw->has_key) {
		refusal_set(&no, FAILURE_VAULT_UNAVAILABLE, RETRY_MS,
		    "Sessions can't be read until the vault is back.");
		exchange_refuse(ex, &no);
		return -1;
	}
	if (session_open(gw->session_key, ex->session_text, now_us() / 1000,
		(uint8_t)gw->listener, ex->who.principal,
		ex->credential.endpoint, &ex->session) == 0 &&
	    !session_ended_has(gw->ended, &ex->session.id)) {
		ex->has_session = true;
		return 0;
	}
	buf_init(&b, ANSWER_MAX);
	to = exchange_to(ex);
	answer_error(&b, &to, FAILURE_SESSION_UNKNOWN,
	    "There is no such session.", 0, NULL);
	ex->m.error.failure = FAILURE_SESSION_UNKNOWN;
	ex->members.array = false; /* one answer for all */
	exchange_answer(ex, 404, &b);
	return -1;
}

/* True if the session field is to be ignored, as MCP 2026-07-28 demands for a
 * modern message. initialize begins a new session, so the field is ignored
 * there, too. */
static bool
ignores_session(const struct exchange *ex)
{
	struct mcp_headers h = headers(ex);
	struct mcp_message m;

	if (ex->session_text == NULL)
		return true; /* no field: no need to read the message twice */
	if (ex->is_delete || ex->members.n != 1)
		return false;
	mcp_request_read(ex->members.member[0], &h, ex->members.array, &m);
	return m.modern || m.method == MCP_INITIALIZE;
}

/* Counts the request against its principal from here on. false: the principal
 * has too many requests, or there is no memory; *no says which. */
static bool
take_share(struct exchange *ex, struct refusal *no)
{
	struct gateway *gw = ex->gw;
	struct share *s = share_get(gw->shares, ex->who.principal);

	if (s != NULL &&
	    share_enter(
		s, ex->body_len, gw->requests_max, EXCHANGE_BYTES_MAX)) {
		ex->share = s;
		return true;
	}
	refusal_set(no, FAILURE_BUSY, RETRY_MS,
	    s != NULL ? "Too many requests of yours are being served at once."
		      : "Out of memory.");
	share_put(s);
	return false;
}

/* Goes on by the ticket, if the credential was good for one question. false: it
 * can't be one; *no says so. */
static bool
take_ticket(struct exchange *ex, struct refusal *no)
{
	int rc = ex->who.ticket[0] == '\0'
	    ? 0
	    : identity_ticket(&ex->credential, ex->who.ticket);

	explicit_bzero(ex->who.ticket, sizeof(ex->who.ticket));
	if (rc < 0)
		refusal_set(no, FAILURE_INTERNAL, 0,
		    "admind answered with a ticket that can't be one.");
	return rc == 0;
}

void
exchange_identified(
    void *arg, const struct identity *who, const struct refusal *no)
{
	struct exchange *ex = arg;
	struct refusal full = {0};
	struct mcp_headers h = headers(ex);
	struct answer_to to;
	struct mcp_error e = {.failure = FAILURE_NONE};
	struct buf b;
	bool denied;

	if (who != NULL) {
		ex->who = *who;
		if (!take_ticket(ex, &full) || !take_share(ex, &full))
			no = &full;
	}
	/* Read the id first, so that each error can echo it. */
	if (!ex->is_delete && !ex->is_get)
		mcp_request_split(ex->body, ex->body_len, &h, -1, &ex->members,
		    &ex->m.id, &e);
	denied = no != NULL &&
	    (ex->unread || no->failure == FAILURE_UNAUTHENTICATED ||
		no->failure == FAILURE_FORBIDDEN);
	if (no != NULL && (denied || e.failure == FAILURE_NONE)) {
		ex->members.array = false; /* one answer for all */
		ex->m.kind = ex->m.id.n > 0 ? MCP_REQUEST : MCP_NOTIFICATION;
		exchange_refuse(ex, no);
		return;
	}
	if (e.failure == FAILURE_NONE && !ignores_session(ex)) {
		if (check_session(ex) < 0)
			return;
		/* The session's revision may forbid the array. */
		if (ex->has_session && ex->members.array)
			mcp_request_split(ex->body, ex->body_len, &h,
			    (int)ex->session.rev, &ex->members, &ex->m.id, &e);
	}
	if (e.failure != FAILURE_NONE) {
		buf_init(&b, ANSWER_MAX);
		to = exchange_to(ex);
		answer_refusal(&b, &to, &e);
		ex->m.error = e;
		ex->members.array = false;
		exchange_answer(ex, e.status, &b);
	} else if (ex->is_delete) {
		ex->gw->ops->delete_session(ex);
	} else if (ex->is_get) {
		stream_get(ex);
	} else {
		next_member(ex);
	}
}
