/* Takes from an HTTP request what is needed before its sender is known: a copy
 * of its body and of the few fields that matter, within the bounds on all
 * requests together. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "credential_read.h"
#include "crypto.h"
#include "exchange.h"
#include "quirk.h"

/* Fields that are kept, in the order of the enum below. */
static const char *const kept_names[] = {"mcp-protocol-version", "mcp-method",
    "mcp-name", "mcp-session-id", "user-agent", "last-event-id"};
enum { VERSION, METHOD, NAME, SESSION, AGENT, LAST_EVENT, KEPT };

enum { TARGET_MAX = 2048 }; /* bytes of a target, as http1.h has it */

static char *
put(char **at, const char *text, size_t n)
{
	char *to = *at;

	memcpy(to, text, n);
	*at += n;
	return to;
}

/* Copies the body, the credential and the fields into one piece of memory that
 * begins with the body. They are copied because the client may leave while a
 * legacy call goes on. 0, or -1: out of memory. */
static int
copy_request(struct exchange *ex, const struct http1_request *r,
    const char *credential, enum credential_via via)
{
	char **const to[KEPT] = {&ex->version, &ex->method, &ex->name,
	    &ex->session_text, &ex->agent, &ex->last_event};
	const char *v[KEPT], *name;
	size_t i, n[KEPT], cred = strlen(credential) + 1;
	size_t all = r->body_len + 1 + cred;
	char *at;

	for (i = 0; i < KEPT; i++) {
		v[i] = http1_field(r, kept_names[i], NULL);
		n[i] = v[i] == NULL ? 0 : strlen(v[i]) + 1;
		all += n[i];
	}
	at = malloc(all);
	if (at == NULL)
		return -1;
	ex->body = (uint8_t *)put(&at, (const char *)r->body, r->body_len);
	*at++ = '\0';
	ex->body_len = r->body_len;
	identity_credential(&ex->credential, put(&at, credential, cred), via);
	name = gw_endpoints_name(r->path);
	if (name != NULL) /* at most ENDPOINT_NAME_MAX bytes */
		memcpy(ex->credential.endpoint, name, strlen(name) + 1);
	for (i = 0; i < KEPT; i++)
		if (v[i] != NULL)
			*to[i] = put(&at, v[i], n[i]);
	return 0;
}

/* True if the client can take an event stream. Without an Accept field the
 * client counts as able, since all revisions oblige clients to take event
 * streams. *named: the field names event streams. */
static bool
takes_sse(const struct http1_request *r, bool *named)
{
	bool any = false, all = false;
	size_t i;

	for (i = 0; i < r->nfields; i++) {
		if (r->fields[i].name[0] != 'a' ||
		    strcmp(r->fields[i].name, "accept") != 0)
			continue;
		any = true;
		/* strcasestr() is slow, and strstr() suffices for nearly all
		 * clients. */
		if (strstr(r->fields[i].value, SSE_TYPE) != NULL ||
		    strcasestr(r->fields[i].value, SSE_TYPE) != NULL)
			*named = true;
		else if (strstr(r->fields[i].value, "*/*") != NULL)
			all = true;
	}
	return !any || all || *named;
}

/* Tells whether a credential may be bound to its request: it has the form of a
 * signed token, an issuer of this listener binds its tokens, and it is not
 * remembered, as bound ones never are. */
static bool
may_be_bound(const struct gateway *gw, const struct credential *c)
{
	unsigned dots = 0;

	if (!gw->access.bound || identity_remembered(gw, c))
		return false;
	for (const char *p = c->text; *p != '\0'; p++)
		dots += *p == '.';
	return dots == 2;
}

/* Asks admind for the sender. A token that may be bound to this request goes
 * with its method, its target and the digest of its body (decision 0098). The
 * digest is made for strangers, too: the whole body is here already, bounded,
 * and the scan that each body gets costs more. Other listeners pay nothing. */
static void
ask(struct exchange *ex, const struct http1_request *r)
{
	struct identity_request rq = {.method = http1_method_name(r->method)};
	struct buf target;

	if (!may_be_bound(ex->gw, &ex->credential)) {
		identity_ask(
		    ex->gw, &ex->credential, NULL, exchange_identified, ex);
		return;
	}
	buf_init(&target, TARGET_MAX);
	buf_puts(&target, r->path);
	if (r->query != NULL) {
		buf_putc(&target, '?');
		buf_puts(&target, r->query);
	}
	/* Without memory the target is not whole, and no token is for it. */
	if (!target.failed)
		rq.target = ipc_bytes(target.p, target.len);
	sha256(r->body, r->body_len, &rq.body);
	identity_ask(ex->gw, &ex->credential, &rq, exchange_identified, ex);
	buf_free(&target);
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

/* Answers 406. Like 401 and 403 it is about the connection. It may come before
 * the credential is checked, since it reveals nothing. */
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
	enum credential_via via = VIA_AUTHORIZATION;
	const char *credential = "";
	struct refusal no;
	struct exchange *ex;

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
	buf_init(&ex->mime, MCP_URI_MAX);
	TAILQ_INSERT_TAIL(&gw->exchanges, ex, all);
	gw->exchange_count++;
	ex->unread = credential_read(gw, r, &credential, &via, &no) < 0;
	if (copy_request(ex, r, credential, via) < 0) {
		ex->req = NULL;
		exchange_free(ex);
		refuse_busy(req);
		return;
	}
	gw->exchange_bytes += ex->body_len;
	ex->accepts_sse = takes_sse(r, &ex->names_sse);
	if (!ex->accepts_sse && r->method == HTTP1_POST) {
		if (!(gw->quirks & 1 << MCP_QUIRK_ACCEPT)) {
			refuse_accept(ex);
			return;
		}
		quirk_note(gw, 1 << MCP_QUIRK_ACCEPT, ex->agent);
	}
	httpd_set_data(req, ex);
	if (ex->unread)
		exchange_identified(ex, NULL, &no);
	else
		ask(ex, r);
}
