/*
 * Signing in by an issuer (docs/decisions/0105):
 *
 *  begin     POST  the page gets an address and half a ticket, the browser the
 *                  other half as a cookie
 *  callback  GET   the browser comes back from the issuer
 *  finish    POST  the page brings the issuer's answer and both halves: a login
 *
 * Only the callback may be opened by another site's redirect. It changes
 * nothing and asks no process. It leads to `/` of the address, with the four
 * parameters of the answer in the fragment, which only a page of this very
 * origin can read.
 *
 * A cookie goes to every port of this host, and every port can plant one
 * (decision 0067). So the cookie is half a ticket alone. The other half is
 * the page's, in sessionStorage, and `state` belongs to both. So a page or a
 * neighbour that leads a browser here with a code of its own is refused, and
 * the code of a browser that was led to the issuer by a neighbour stays with
 * that browser.
 *
 * The whole ticket goes to the vault. admind has its hash alone, so it can
 * grant a login and not fetch it. Code, state and halves are logged nowhere.
 */
#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "body.h"
#include "buf.h"
#include "changes.h"
#include "crypto.h"
#include "guard.h"
#include "ids.h"
#include "jsonw.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

enum {
	COOKIE_S = 600,          /* as SIGNIN_TTL_MS of admind */
	ANSWER_MAX = 16 * 1024,  /* an address of 8 KiB, and half a ticket */
	LOCATION_MAX = 8 * 1024, /* the query, escaped: http1 reads 2 KiB */
	VALUE_MAX = 2048         /* of a parameter, likewise */
};

/* Sets the half in the cookie, or, with "", takes it away. */
static void
set_cookie(struct call *c, const char *half)
{
	reply_cookie(c, "mcpbox_signin", ipc_str(half), "/api/signin",
	    *half != '\0' ? COOKIE_S : 0);
}

/* Reads the half of the cookie into the first half of c->token. */
static bool
read_cookie(struct call *c)
{
	const char *cookie;
	unsigned count;

	cookie = http1_field(httpd_request(c->req), "cookie", &count);
	return cookie != NULL && count == 1 &&
	    guard_signin(cookie, c->https, c->token) == 1;
}

/* ---- the list ---- */

static void
listed(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

void
signin_get(struct call *c)
{
	struct ipc_signin_list m = {0};

	ask_admind(c, IPC_SIGNIN_LIST, &m, listed);
}

/* ---- begin ---- */

static void
begun(struct call *c, struct ipc_frame *f)
{
	char half[LOGIN_HALF + 1];
	struct ipc_signin_url m;
	struct jsonw w;
	struct buf b;

	if (f->type != IPC_SIGNIN_URL || ipc_decode(f, &m, NULL) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	memcpy(half, c->token, LOGIN_HALF);
	half[LOGIN_HALF] = '\0';
	set_cookie(c, half);
	buf_init(&b, ANSWER_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_strn(&w, "url", m.url.p, m.url.n);
	jsonw_kv_str(&w, "csrf_token", c->token + LOGIN_HALF);
	jsonw_obj_end(&w);
	explicit_bzero(half, sizeof(half));
	reply_json(c, 200, &b);
	buf_free(&b);
}

/* POST /api/signin/begin {"issuer": NAME} */
void
signin_begin_post(struct call *c)
{
	static const char *const names[] = {"issuer", NULL};
	struct ipc_signin_begin m = {0};
	uint8_t raw[LOGIN_BYTES];
	struct json_object *o;
	struct err e;

	if (!login_at_the_address(c) || body_parse(c, names, &o) < 0)
		return;
	random_bytes(raw, sizeof(raw));
	b64url_encode(raw, sizeof(raw), c->token);
	explicit_bzero(raw, sizeof(raw));
	sha256(c->token, LOGIN_TEXT, &m.ticket);
	if (body_str(o, "issuer", &m.issuer, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_admind(c, IPC_SIGNIN_BEGIN, &m, begun);
	json_object_put(o);
}

/* ---- the way back ---- */

/* Appends a value with all but the unreserved characters of RFC 3986 escaped.
 */
static void
put_escaped(struct buf *b, const char *s)
{
	for (; *s != '\0'; s++)
		if ((*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z') ||
		    (*s >= '0' && *s <= '9') || strchr("-._~", *s) != NULL)
			buf_putc(b, *s);
		else
			buf_putf(b, "%%%02X", (unsigned char)*s);
}

/* Leads to `/` of this server's address; not of the name localhost, where
 * another program may answer (login_at_the_address). */
static void
put_address(struct call *c, struct buf *b)
{
	const char *host, *port = "";
	unsigned count;

	host = http1_field(httpd_request(c->req), "host", &count);
	if (host != NULL && guard_localhost(host, &port))
		buf_putf(b, "http://%s%s", c->web->ipv6 ? "[::1]" : "127.0.0.1",
		    port);
	buf_puts(b, "/#");
}

/* GET /api/signin/callback?code=...&state=...&iss=... The issuer may add other
 * parameters (RFC 6749 section 4.1.2); they are passed over. */
void
signin_callback_get(struct call *c)
{
	static const char *const names[] = {"state", "code", "iss", "error"};
	const char *query = httpd_request(c->req)->query;
	struct httpd_req *req = c->req;
	char value[VALUE_MAX + 1];
	struct buf b;
	int found = 0;

	buf_init(&b, LOCATION_MAX);
	put_address(c, &b);
	for (size_t i = 0; i < 4 && found >= 0; i++) {
		found =
		    guard_query_value(query, names[i], value, sizeof(value));
		if (found == 0 && i == 0)
			found = -1; /* no answer of an issuer */
		if (found == 1)
			buf_putf(&b, "%s%s=", i > 0 ? "&" : "", names[i]);
		if (found == 1)
			put_escaped(&b, value);
	}
	explicit_bzero(value, sizeof(value));
	buf_put_u8(&b, 0);
	if (found < 0 || b.failed) {
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "this address is for browsers that come back from an "
		    "issuer; a parameter is missing, malformed, or there twice",
		    NULL);
	} else {
		call_free(c);
		reply_headers(req);
		httpd_header(req, "Location", (const char *)b.p);
		httpd_reply(req, 303, "", NULL, 0);
	}
	buf_free(&b);
}

/* ---- finish ---- */

static void
finished(struct call *c, struct ipc_frame *f)
{
	set_cookie(c, "");
	login_done(c, f);
}

/* Shows the ticket, for which the vault has a grant now. */
static void
granted(struct call *c, struct ipc_frame *f)
{
	const struct http1_request *r = httpd_request(c->req);
	struct ipc_signin_redeem m = {0};
	char source[LOGIN_SOURCE_LEN];
	const char *agent;
	unsigned count;

	(void)f;
	login_source(c, source);
	m.ticket = ipc_bytes(c->token, LOGIN_TEXT);
	m.source = ipc_str(source);
	agent = http1_field(r, "user-agent", &count);
	if (agent != NULL && count == 1 &&
	    utf8_valid((const uint8_t *)agent, strlen(agent)))
		m.agent = ipc_str(agent);
	ask_vault(c, IPC_SIGNIN_REDEEM, &m, finished);
}

/* Reads an optional member. 0 or -1. */
static int
optional(struct json_object *o, const char *name, struct ipc_bytes *out,
    struct err *e)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, name, &v))
		return 0;
	return body_str(o, name, out, e);
}

/* POST /api/signin/finish {"state", "code", "iss", "error"}, with the page's
 * half as X-CSRF-Token. */
void
signin_finish_post(struct call *c)
{
	static const char *const names[] = {
	    "state", "code", "iss", "error", NULL};
	struct ipc_signin_back m = {0};
	char source[LOGIN_SOURCE_LEN];
	struct json_object *o;
	const char *half;
	unsigned count;
	struct err e;

	if (!login_at_the_address(c) || body_parse(c, names, &o) < 0)
		return;
	half = http1_field(httpd_request(c->req), "x-csrf-token", &count);
	if (half == NULL || count != 1 || !read_cookie(c) ||
	    !guard_half(half, c->token + LOGIN_HALF)) {
		json_object_put(o);
		problem_send(c, FAILURE_UNAUTHENTICATED,
		    "the cookie mcpbox_signin or X-CSRF-Token of the beginning "
		    "is missing or malformed",
		    NULL);
		return;
	}
	login_source(c, source);
	m.source = ipc_str(source);
	sha256(c->token, LOGIN_TEXT, &m.ticket);
	c->slow = true; /* another machine answers */
	if (body_str(o, "state", &m.state, &e) < 0 ||
	    optional(o, "code", &m.code, &e) < 0 ||
	    optional(o, "iss", &m.iss, &e) < 0 ||
	    optional(o, "error", &m.error, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_admind(c, IPC_SIGNIN_BACK, &m, granted);
	json_object_put(o);
}
