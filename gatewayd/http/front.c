/*
 * The HTTP side: checks Host, Origin, path and method of each request. These
 * are steps 1 and 3 of the ladder (mcp_request.h).
 *
 * Host and Origin protect a listener on 127.0.0.1 from web pages: a page can
 * make a browser connect here under a name that the page's owner controls (DNS
 * rebinding), but then Host carries that name, and Origin is the page's origin.
 * So on the local listener Host must be a loopback name, and an Origin must be
 * the very origin that Host names, the panel's, or one that the administrator
 * listed. On the tunnel's listener Host is the public name, which the proxy
 * checks. There an Origin must be in the list.
 *
 * The panel's page Playground is a client of the local listener (decision
 * 0116). Its origin belongs to the program that listens at its address, which
 * is admind-http. If another program has that port, its pages may call here
 * from a browser of this machine. That program may call here itself: it runs on
 * this machine, and a browser gives it no other right. No cookie is read here,
 * and the answer asks a browser for none. With local_token_file all of these
 * need a token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "challenge.h"
#include "credential_read.h"
#include "exchange.h"
#include "front.h"
#include "well_known.h"

/* tchar of RFC 9110 section 5.6.2 */
#define FIELD_NAME                                         \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV" \
	"WXYZ0123456789!#$%&'*+-.^_`|~"

/* True for "localhost", an address of 127/8, and "[::1]", with any port. */
static bool
host_is_loopback(const char *host)
{
	size_t n;

	if (host[0] == '[')
		return strncmp(host, "[::1]", 5) == 0 &&
		    (host[5] == '\0' || host[5] == ':');
	n = strcspn(host, ":");
	if (n == 9 && strncasecmp(host, "localhost", 9) == 0)
		return true;
	/* Digits and dots only, in four parts, the first of them 127. No
	 * resolver would look up such a name, so no page's owner controls
	 * it. */
	if (strncmp(host, "127.", 4) != 0 || n > 15 ||
	    strspn(host, "0123456789.") != n)
		return false;
	{
		unsigned dots = 0;
		size_t i;

		for (i = 0; i < n; i++)
			if (host[i] == '.') {
				dots++;
				if (i + 1 == n || host[i + 1] == '.')
					return false;
			}
		return dots == 3;
	}
}

static bool
in_list(const char *list, const char *word)
{
	size_t n, len = strlen(word);

	for (;;) {
		list += strspn(list, ", \t");
		if (*list == '\0')
			return false;
		n = strcspn(list, ", \t");
		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n;
	}
}

static bool
origin_allowed(const struct gateway *gw, const char *origin, const char *host)
{
	if (in_list(gw->allowed_origins, origin))
		return true;
	if (gw->panel_origin != NULL && strcmp(origin, gw->panel_origin) == 0)
		return true;
	return gw->listener == LISTENER_LOCAL &&
	    strncmp(origin, "http://", 7) == 0 &&
	    strcasecmp(origin + 7, host) == 0;
}

/* Answers a request whose message was not read: a JSON-RPC error without an
 * id. */
static void
refuse(struct httpd_req *req, int status, enum failure f, const char *message)
{
	struct answer_to to = {{NULL, 0}, false};
	struct buf b;

	buf_init(&b, ANSWER_MAX);
	answer_error(&b, &to, f, message, 0, NULL);
	httpd_reply(req, status, JSON_TYPE, b.p, b.failed ? 0 : b.len);
	buf_free(&b);
}

static void
health(struct gateway *gw, struct httpd_req *req)
{
	bool admind = ipc_client_peer(gw->admind) != NULL;
	bool sandboxd = ipc_client_peer(gw->sandboxd) != NULL;
	bool ok = admind && sandboxd && gw->attached;
	char text[128];

	snprintf(text, sizeof(text),
	    "{\"status\":\"%s\",\"admind\":%s,\"sandboxd\":%s}\n",
	    ok ? "ok" : "unavailable", admind ? "true" : "false",
	    sandboxd ? "true" : "false");
	httpd_header(req, "Cache-Control", "no-store");
	httpd_reply(req, ok ? 200 : 503, JSON_TYPE, text, strlen(text));
}

/* Sends the fields that a browser at an allowed origin needs to see (Fetch,
 * CORS protocol). */
static void
cors(struct httpd_req *req, const char *origin)
{
	httpd_header(req, "Access-Control-Allow-Origin", origin);
	httpd_header(req, "Vary", "Origin");
	httpd_header(req, "Access-Control-Expose-Headers",
	    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, "
	    "Retry-After");
}

/* Answers a preflight with the fields that a page may send. The Mcp-Param-*
 * fields depend on the tools, so all of them that the browser asks for are
 * allowed. The answer repeats only valid field names of the browser's text. */
static void
preflight(struct httpd_req *req)
{
	char allow[1024] =
	    "Content-Type, Authorization, Mcp-Session-Id, "
	    "MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID";
	const char *s = http1_field(
	    httpd_request(req), "access-control-request-headers", NULL);
	size_t n, len = strlen(allow);

	while (s != NULL && *s != '\0') {
		s += strspn(s, ", \t");
		n = strcspn(s, ", \t");
		if (n > 10 && strncasecmp(s, "mcp-param-", 10) == 0 &&
		    strspn(s, FIELD_NAME) >= n && len + n + 3 < sizeof(allow))
			len += (size_t)snprintf(allow + len,
			    sizeof(allow) - len, ", %.*s", (int)n, s);
		s += n;
	}
	httpd_header(
	    req, "Access-Control-Allow-Methods", "POST, GET, DELETE, OPTIONS");
	httpd_header(req, "Access-Control-Allow-Headers", allow);
	httpd_header(req, "Access-Control-Max-Age", "600");
	httpd_reply(req, 204, "", NULL, 0);
}

/* True for "application/json", with parameters or without. A missing type
 * passes: some clients send none, and Origin, not the type, keeps web pages
 * out. */
static bool
type_is_json(const char *type)
{
	size_t n;

	if (type == NULL)
		return true;
	n = strcspn(type, "; \t");
	return n == 16 && strncasecmp(type, JSON_TYPE, 16) == 0;
}

static void
mcp(struct gateway *gw, struct httpd_req *req)
{
	const struct http1_request *r = httpd_request(req);
	const char *version;
	bool get;
	int rev;

	/* The tunnel lets no request in without a credential, so the sender of
	 * such a request learns nothing and costs admind nothing. A preflight
	 * never has a credential (Fetch, CORS-preflight fetch). */
	if (gw->listener == LISTENER_TUNNEL && r->method != HTTP1_OPTIONS &&
	    credential_read_none(gw, r)) {
		challenge_add(gw, req, CHALLENGE_NONE, NULL, NULL);
		refuse(req, 401, FAILURE_UNAUTHENTICATED,
		    "A credential is required.");
		return;
	}
	switch (r->method) {
	case HTTP1_OPTIONS:
		preflight(req);
		return;
	case HTTP1_POST:
		if (!type_is_json(http1_field(r, "content-type", NULL)))
			refuse(req, 415, FAILURE_INVALID_REQUEST,
			    "Content-Type must be application/json.");
		else
			exchange_begin(gw, req, false);
		return;
	case HTTP1_DELETE:
		/* Revisions after 2025-11-25 have no sessions. */
		version = http1_field(r, "mcp-protocol-version", NULL);
		rev = version != NULL ? mcp_rev_of(version) : 0;
		if (rev <= MCP_REV_LEGACY_NEWEST) {
			exchange_begin(gw, req, true);
			return;
		}
		break;
	case HTTP1_GET:
		/* A GET opens a session's stream. A GET without a session gets
		 * 405, never 404, because 404 would hang clients that probe
		 * for a stream. */
		version = http1_field(r, "mcp-protocol-version", NULL);
		rev = version != NULL ? mcp_rev_of(version) : 0;
		if (rev <= MCP_REV_LEGACY_NEWEST &&
		    http1_field(r, "mcp-session-id", NULL) != NULL) {
			exchange_begin(gw, req, false);
			return;
		}
		break;
	default:
		break;
	}
	/* Leave out the method that was just refused, even if it is served in
	 * other requests (of a session, or of a legacy revision). */
	get = r->method == HTTP1_GET || r->method == HTTP1_HEAD;
	httpd_header(req, "Allow",
	    get                             ? "POST, DELETE, OPTIONS"
		: r->method == HTTP1_DELETE ? "POST, GET, OPTIONS"
					    : "POST, GET, DELETE, OPTIONS");
	refuse(req, 405, FAILURE_INVALID_REQUEST,
	    "This method is not served at /mcp.");
}

/* Answers a request to a path that may be an endpoint's: admind has not told
 * yet. */
static void
not_yet(struct gateway *gw, struct httpd_req *req)
{
	struct refusal no;

	refusal_away(&no, gw, false);
	httpd_header(req, "Retry-After", "1"); /* RETRY_MS, in whole seconds */
	refuse(req, 503, no.failure, no.message);
}

static void
on_request(struct httpd_req *req, void *arg)
{
	struct gateway *gw = arg;
	const struct http1_request *r = httpd_request(req);
	const char *host, *origin;
	bool metadata = well_known_is(gw, r->path), later;

	host = http1_field(r, "host", NULL); /* never NULL: http1 requires it */
	if (gw->listener == LISTENER_LOCAL && !host_is_loopback(host)) {
		refuse(req, 403, FAILURE_FORBIDDEN_ORIGIN,
		    "Host must be a loopback name.");
		return;
	}
	origin = http1_field(r, "origin", NULL);
	if (origin != NULL) {
		if (!origin_allowed(gw, origin, host)) {
			refuse(req, 403, FAILURE_FORBIDDEN_ORIGIN,
			    "This origin is not allowed.");
			return;
		}
		if (!metadata) /* it has a field of its own for CORS */
			cors(req, origin);
	}
	if (gw_endpoints_is(gw, r->path, &later)) {
		if (later)
			not_yet(gw, req);
		else
			mcp(gw, req);
	} else if (metadata) {
		well_known_answer(gw, req);
	} else if (strcmp(r->path, "/health") == 0 &&
	    gw->listener == LISTENER_LOCAL) { /* not for the tunnel */
		if (r->method == HTTP1_GET || r->method == HTTP1_HEAD) {
			health(gw, req);
			return;
		}
		httpd_header(req, "Allow", "GET, HEAD");
		refuse(
		    req, 405, FAILURE_INVALID_REQUEST, "/health is only read.");
	} else {
		/* Clients probe /.well-known/ for OAuth even where there is no
		 * OAuth. They expect plain JSON and a 404. */
		static const char text[] =
		    "{\"error\":\"not_found\","
		    "\"error_description\":\"Only /mcp and /health are "
		    "here.\"}\n";

		httpd_reply(req, 404, JSON_TYPE, text, sizeof(text) - 1);
	}
}

static void
on_gone(struct httpd_req *req, void *arg)
{
	struct exchange *ex = httpd_data(req);

	(void)arg;
	if (ex != NULL)
		exchange_gone(ex);
}

/* Writes a JSON-RPC error as the answer to bytes that http1 or a limit refused
 * before there was a request. Only bytes that http1 refused are malformed. 503
 * means that there is no room, and 408 that the request came too slowly. */
static void
on_refused(int status, const char *why, struct buf *out,
    const char **content_type, void *arg)
{
	struct answer_to to = {{NULL, 0}, false};
	char text[512];

	(void)arg;
	snprintf(text, sizeof(text), "%s: %s.",
	    status == 503       ? "Not served now"
		: status == 403 ? "Not served"
		: status == 408 ? "The HTTP request was too slow"
		: status == 413 ? "The HTTP request is too large"
				: "Malformed HTTP request",
	    why);
	answer_error(out, &to,
	    status == 413       ? FAILURE_TOO_LARGE
		: status == 503 ? FAILURE_BUSY
		: status == 403 ? FAILURE_FORBIDDEN
				: FAILURE_INVALID_REQUEST,
	    text, status == 503 ? RETRY_MS : 0, NULL);
	*content_type = JSON_TYPE;
}

const struct httpd_handlers front_handlers = {
    .request = on_request,
    .gone = on_gone,
    .refused = on_refused,
};
