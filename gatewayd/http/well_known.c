/*
 * admind makes the bytes, once for each change of the access document; here
 * they are only sent. Nothing of a request goes into them, above all not its
 * Host: a page that reaches this listener under a name of its own can't have
 * the metadata name its own issuer. No credential is read and no principal is
 * asked for, so the answer costs admind nothing.
 *
 * Every origin may read the bytes (Access-Control-Allow-Origin: *), since they
 * are the same for everybody and public by their purpose. But the listener's
 * own check of Host and Origin comes first (front.c): a page that may not speak
 * to this listener does not learn that it is there.
 */
#include <string.h>

#include "answer.h"
#include "exchange.h"
#include "well_known.h"

#define PATH "/.well-known/oauth-protected-resource"
/* Long enough to spare a proxy most requests, short enough that a new issuer is
 * known soon. */
#define FRESH "max-age=300"

bool
well_known_is(const struct gateway *gw, const char *path)
{
	const struct gw_endpoint *e;

	if (strncmp(path, PATH, strlen(PATH)) != 0)
		return false;
	path += strlen(PATH);
	if (path[0] == '\0' || strcmp(path, "/mcp") == 0)
		return !gw->access.told || gw->access.metadata_len > 0;
	if (gw_endpoints_name(path) == NULL)
		return false;
	e = gw_endpoints_find(gw, gw_endpoints_name(path));
	return !gw->access.told || (e != NULL && e->metadata != NULL);
}

/* Answers 503, because admind has not said yet whether there is metadata. A
 * client would take 404 for "no OAuth here", and remember it. */
static void
later(const struct gateway *gw, struct httpd_req *req)
{
	struct answer_to to = {{NULL, 0}, false};
	struct refusal no;
	struct buf b;

	refusal_away(&no, gw, false);
	buf_init(&b, ANSWER_MAX);
	answer_error(&b, &to, no.failure, no.message, no.retry_after_ms, NULL);
	httpd_header(req, "Retry-After", "1"); /* RETRY_MS, in whole seconds */
	httpd_header(req, "Cache-Control", "no-store");
	httpd_reply(req, 503, JSON_TYPE, b.p, b.failed ? 0 : b.len);
	buf_free(&b);
}

static void
refuse_method(struct httpd_req *req)
{
	struct answer_to to = {{NULL, 0}, false};
	struct buf b;

	buf_init(&b, ANSWER_MAX);
	answer_error(&b, &to, FAILURE_INVALID_REQUEST,
	    "The metadata of this resource is only read.", 0, NULL);
	httpd_header(req, "Allow", "GET, HEAD, OPTIONS");
	httpd_reply(req, 405, JSON_TYPE, b.p, b.failed ? 0 : b.len);
	buf_free(&b);
}

void
well_known_answer(const struct gateway *gw, struct httpd_req *req)
{
	const struct gw_access *a = &gw->access;
	const char *name =
	    gw_endpoints_name(httpd_request(req)->path + strlen(PATH));
	const struct gw_endpoint *e =
	    name != NULL ? gw_endpoints_find(gw, name) : NULL;

	httpd_header(req, "Access-Control-Allow-Origin", "*");
	if (!a->told) {
		later(gw, req);
		return;
	}
	switch (httpd_request(req)->method) {
	case HTTP1_GET:
	case HTTP1_HEAD:
		httpd_header(req, "Cache-Control", FRESH);
		httpd_reply(req, 200, JSON_TYPE,
		    e != NULL ? e->metadata : a->metadata,
		    e != NULL ? e->metadata_len : a->metadata_len);
		break;
	case HTTP1_OPTIONS:
		/* Clients in a browser send their MCP revision here, too. */
		httpd_header(
		    req, "Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
		httpd_header(req, "Access-Control-Allow-Headers",
		    "MCP-Protocol-Version");
		httpd_header(req, "Access-Control-Max-Age", "600");
		httpd_reply(req, 204, "", NULL, 0);
		break;
	default:
		refuse_method(req);
		break;
	}
}
