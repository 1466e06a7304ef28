/*
 * What is taken of an HTTP request before anybody knows who sent it: a copy of
 * its body and of the few fields that matter, within the bounds of all requests
 * together.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway.h"

#define JSON_TYPE "application/json"
#define SSE_TYPE  "text/event-stream"

static char *
copy_field(const struct http1_request *r, const char *name, bool *failed)
{
	const char *v = http1_field(r, name, NULL);
	char *s;

	if (v == NULL)
		return NULL;
	s = strdup(v);
	if (s == NULL)
		*failed = true;
	return s;
}

/* RFC 6750 section 2.1; "" when there is none, and for another scheme, which
 * is as good as none. NULL without memory. */
static char *
bearer(const struct http1_request *r)
{
	const char *v = http1_field(r, "authorization", NULL);

	if (v == NULL || strncasecmp(v, "Bearer ", 7) != 0)
		return strdup("");
	v += 7;
	v += strspn(v, " ");
	return strlen(v) > CREDENTIAL_MAX ? strdup("?") : strdup(v);
}

/* Can the client take an event stream? Without an Accept field: yes, the
 * revisions oblige it to. *named: it says so itself. */
static bool
takes_sse(const struct http1_request *r, bool *named)
{
	bool any = false, all = false;
	size_t i;

	for (i = 0; i < r->nfields; i++) {
		if (strcmp(r->fields[i].name, "accept") != 0)
			continue;
		any = true;
		if (strcasestr(r->fields[i].value, SSE_TYPE) != NULL)
			*named = true;
		if (strstr(r->fields[i].value, "*/*") != NULL)
			all = true;
	}
	return !any || all || *named;
}

static void
refuse_busy(struct httpd_req *req)
{
	static const char text[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,"
	    "\"message\":\"Too much is being served at once.\",\"data\":{"
	    "\"failure_mode\":\"busy\",\"fix\":\"Call again after "
	    "retry_after_ms.\",\"retry_after_ms\":500}}}";

	httpd_header(req, "Retry-After", "1");
	httpd_reply(req, 503, JSON_TYPE, text, sizeof(text) - 1);
}

/* 406 speaks of the connection, as 401 and 403 do; it comes before them since
 * it tells nothing. */
static void
refuse_accept(struct exchange *ex)
{
	struct buf b;
	struct answer_to to = {{NULL, 0}, false};

	buf_init(&b, ANSWER_MAX);
	answer_error(&b, &to, FAILURE_INVALID_REQUEST,
	    "Accept must list application/json and text/event-stream.", 0,
	    NULL);
	exchange_answer(ex, 406, &b);
}

void
exchange_begin(struct gateway *gw, struct httpd_req *req, bool is_delete)
{
	const struct http1_request *r = httpd_request(req);
	struct exchange *ex;
	bool failed = false;

	if (gw->exchange_count >= EXCHANGES_MAX ||
	    gw->exchange_bytes + r->body_len > EXCHANGE_BYTES_MAX ||
	    (ex = calloc(1, sizeof(*ex))) == NULL) {
		refuse_busy(req);
		return;
	}
	ex->gw = gw;
	ex->req = req;
	ex->is_delete = is_delete;
	ex->is_get = r->method == HTTP1_GET;
	buf_init(&ex->answers, ANSWER_MAX);
	buf_init(&ex->made, ARGUMENTS_MAX);
	TAILQ_INSERT_TAIL(&gw->exchanges, ex, all);
	gw->exchange_count++;
	/* A copy: the client may leave while a legacy call goes on. */
	ex->body = malloc(r->body_len + 1);
	if (ex->body != NULL) {
		memcpy(ex->body, r->body, r->body_len);
		ex->body_len = r->body_len;
		gw->exchange_bytes += ex->body_len;
	}
	ex->credential = bearer(r);
	ex->version = copy_field(r, "mcp-protocol-version", &failed);
	ex->method = copy_field(r, "mcp-method", &failed);
	ex->name = copy_field(r, "mcp-name", &failed);
	ex->session_text = copy_field(r, "mcp-session-id", &failed);
	ex->agent = copy_field(r, "user-agent", &failed);
	if (ex->is_get)
		ex->last_event = copy_field(r, "last-event-id", &failed);
	ex->accepts_sse = takes_sse(r, &ex->names_sse);
	if (failed || ex->body == NULL || ex->credential == NULL) {
		ex->req = NULL;
		exchange_free(ex);
		refuse_busy(req);
		return;
	}
	if (!ex->accepts_sse && r->method == HTTP1_POST) {
		if (!(gw->quirks & 1 << MCP_QUIRK_ACCEPT)) {
			refuse_accept(ex);
			return;
		}
		quirk_note(gw, 1 << MCP_QUIRK_ACCEPT, ex->agent);
	}
	httpd_set_data(req, ex);
	identity_ask(gw, ex->credential, exchange_identified, ex);
}
