/*
 * Other MCP servers as sources: listing, importing, authorising, and the way
 * back from an authorization server.
 *
 * Only the callback may be opened by another site's redirect. It needs no
 * login: a browser sends no SameSite=Strict cookie with such a redirect, and
 * Sec-Fetch-Site says cross-site. Its rights depend on `state` alone
 * (docs/decisions/0051): a page that knows no `state` of ours learns nothing
 * and changes nothing. The answer is one of two fixed texts, so nothing of the
 * query comes back.
 */
#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "guard.h"
#include "json.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

enum { NAMES_MAX = 200, VALUE_MAX = 8192, REDIRECT_MAX = 2048 };

static void
said(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

static void
run(struct call *c, enum source_op op, const struct buf *text)
{
	struct ipc_source_run m = {
	    .token = ipc_str(c->token_hash), .op = (uint8_t)op};

	if (uuid_parse(c->id, strlen(c->id), &m.source) < 0) {
		problem_send(c, FAILURE_NOT_FOUND, "no such source", NULL);
		return;
	}
	if (text != NULL)
		m.text = ipc_bytes(text->p, text->len);
	c->slow = true; /* another machine answers */
	ask_admind(c, IPC_SOURCE_RUN, &m, said);
}

/* POST /api/sources/{id}/discover */
void
source_discover_post(struct call *c)
{
	run(c, SOURCE_DISCOVER, NULL);
}

/* POST /api/sources/{id}/import {"names": [names]} */
void
source_import_post(struct call *c)
{
	static const char *const members[] = {"names", NULL};
	struct json_object *o, *list, *v;
	struct buf lines;
	struct err e;
	int rc;

	if (body_parse(c, members, &o) < 0)
		return;
	buf_init(&lines, IPC_BLOB_MAX);
	rc = json_get_arr(o, "names", &list, &e);
	for (size_t i = 0; rc == 1 && i < json_object_array_length(list); i++) {
		v = json_object_array_get_idx(list, i);
		if (i == NAMES_MAX ||
		    !json_object_is_type(v, json_type_string) ||
		    json_object_get_string_len(v) == 0 ||
		    strpbrk(json_object_get_string(v), "\n") != NULL ||
		    strlen(json_object_get_string(v)) !=
			(size_t)json_object_get_string_len(v))
			rc = -1;
		if (i > 0)
			buf_putc(&lines, '\n');
		if (rc == 1)
			buf_puts(&lines, json_object_get_string(v));
	}
	json_object_put(o);
	if (rc != 1 || lines.len == 0 || lines.failed)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member names must be an array of 1 to 200 names of tools",
		    NULL);
	else
		run(c, SOURCE_IMPORT, &lines);
	buf_free(&lines);
}

/* POST /api/sources/{id}/authorise {"redirect_uri": URL}. Without redirect_uri
 * the browser comes back to the host that this request names. That is a
 * loopback name or one that root wrote (guard_request), so no other machine
 * gets the answer. */
void
source_authorise_post(struct call *c)
{
	static const char *const members[] = {"redirect_uri", NULL};
	struct json_object *o;
	const char *given = NULL, *host;
	unsigned count;
	struct buf uri;
	struct err e;
	size_t n = 0;
	int rc;

	if (body_parse(c, members, &o) < 0)
		return;
	buf_init(&uri, REDIRECT_MAX);
	rc = json_get_str(o, "redirect_uri", &given, &n, &e);
	if (rc == 1) {
		buf_put(&uri, given, n);
		if ((strncmp(given, "https://", 8) != 0 &&
			strncmp(given, "http://", 7) != 0) ||
		    strlen(given) != n || strpbrk(given, " \t\r\n\"<>\\#"))
			rc = -1;
	} else if (rc == 0) {
		host = http1_field(httpd_request(c->req), "host", &count);
		buf_puts(&uri, c->https ? "https://" : "http://");
		buf_puts(&uri, host);
		buf_puts(&uri, "/api/oauth/callback");
	}
	json_object_put(o);
	if (rc < 0 || uri.failed)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member redirect_uri must be an http(s) URL without "
		    "fragment",
		    NULL);
	else
		run(c, SOURCE_AUTHORISE, &uri);
	buf_free(&uri);
}

/* ---- the way back ---- */

static void
page(struct call *c, int status, const char *text)
{
	struct httpd_req *req = c->req;

	call_free(c);
	reply_headers(req);
	httpd_reply(
	    req, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void
back(struct call *c, struct ipc_frame *f)
{
	if (f->type == IPC_ADMIN_JSON)
		page(c, 200,
		    "The source is authorised. This page can be closed.\n");
	else
		page(c, 400,
		    "The source was not authorised; it says why in the list of "
		    "sources. This page can be closed.\n");
}

/* GET /api/oauth/callback?code=...&state=...&iss=... The authorization server
 * may add other parameters: clients must ignore unknown ones (RFC 6749 section
 * 4.1.2). */
void
oauth_callback_get(struct call *c)
{
	static const char *const names[] = {"state", "code", "iss", "error"};
	char value[4][VALUE_MAX + 1] = {"", "", "", ""};
	struct ipc_oauth_callback m = {0};
	const char *query = httpd_request(c->req)->query;

	for (size_t i = 0; i < 4; i++)
		if (guard_query_value(
			query, names[i], value[i], sizeof(value[i])) == -1) {
			problem_send(c, FAILURE_INVALID_PARAMS,
			    "a parameter is malformed, or there twice", NULL);
			return;
		}
	if (value[0][0] == '\0') {
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "this address is for authorization servers", NULL);
		return;
	}
	m.state = ipc_str(value[0]);
	m.code = ipc_str(value[1]);
	m.iss = ipc_str(value[2]);
	m.error = ipc_str(value[3]);
	c->slow = true;
	c->takes_refusals = true;
	ask_admind(c, IPC_OAUTH_CALLBACK, &m, back);
}
