/*
 * Shows and changes the access document (decision 0090). admind shows it. The
 * vault is asked to change it, with the login, because admind may not. The body
 * is the document itself, and its bytes are passed on unchanged: their SHA-256
 * is the document's name, and the ETag. A body here has 32 KiB at most;
 * mcpboxctl takes larger documents.
 */
#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "guard.h"
#include "json.h"
#include "json_scan.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

enum { ISSUER_NAME_MAX = 32 }; /* docs/ACCESS.md, "The document" */

/* This is the ETag before the first document. The first change names it, or
 * sends no If-Match. */
static const char none[HEX32_LEN + 3] =
    "\"0000000000000000000000000000000000000000000000000000000000000000\"";

/* The ETag is not the answer's SHA-256: in_force changes although the document
 * stays. */
static void
show(struct call *c, struct ipc_frame *f)
{
	static const char *const path[] = {"sha256", NULL};
	char tag[HEX32_LEN + 3];
	struct ipc_admin_json m;
	struct ipc_hash hash;
	const uint8_t *p;
	size_t n;

	memcpy(tag, none, sizeof(tag));
	if (f->type == IPC_ADMIN_JSON && ipc_decode(f, &m, NULL) == 0 &&
	    json_scan(m.json.p, m.json.n, NULL) == 0 &&
	    json_slice(m.json.p, m.json.n, path, &p, &n) == 1 &&
	    n == HEX32_LEN + 2) {
		memcpy(tag, p, n);
		if (guard_etag(tag, &hash) < 0)
			memcpy(tag, none, sizeof(tag));
	}
	httpd_header(c->req, "ETag", tag);
	reply_admind(c, f, false);
}

void
access_get(struct call *c)
{
	struct ipc_admin_query q = {.token = ipc_str(c->token_hash),
	    .what = ipc_str("access"),
	    .limit = 1};

	ask_admind(c, IPC_ADMIN_QUERY, &q, show);
}

static void
set(struct call *c, struct ipc_frame *f)
{
	if (f->type == IPC_ACCESS_STATE)
		access_get(c);
	else
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
}

/* PUT /api/access. Without If-Match, `seen` is zero, and the vault refuses if
 * there is a document. */
void
access_put(struct call *c)
{
	const struct http1_request *r = httpd_request(c->req);
	struct ipc_access_set m = {.token = ipc_str(c->token)};
	struct json_object *o;
	const char *match;
	unsigned count;

	match = http1_field(r, "if-match", &count);
	if (match != NULL && strcmp(match, "*") != 0 &&
	    (count != 1 || guard_etag(match, &m.seen) < 0)) {
		problem_send(c, FAILURE_HASH_MISMATCH,
		    "If-Match is not one hash in quotes", NULL);
		return;
	}
	if (body_object(c, &o) < 0)
		return;
	json_object_put(o);
	m.document = ipc_bytes(r->body, r->body_len);
	ask_vault(c, IPC_ACCESS_SET, &m, set);
}

static void
refreshed(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

/* POST /api/access/refresh {"issuer": NAME}. Without issuer: each one. */
void
access_refresh_post(struct call *c)
{
	static const char *const members[] = {"issuer", NULL};
	struct ipc_access_refresh m = {.token = ipc_str(c->token_hash)};
	const char *name = NULL;
	struct json_object *o;
	struct err e;
	size_t n = 0;
	int rc;

	if (body_parse(c, members, &o) < 0)
		return;
	rc = json_get_str(o, "issuer", &name, &n, &e);
	if (rc == 1)
		m.issuer = ipc_bytes(name, n);
	if (rc < 0 || (rc == 1 && (n == 0 || n > ISSUER_NAME_MAX)))
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member issuer must be an issuer's name in the access "
		    "document",
		    NULL);
	else
		ask_admind(c, IPC_ACCESS_REFRESH, &m, refreshed);
	json_object_put(o);
}

/* POST /api/notifications/test {"target": NAME} */
void
notify_test_post(struct call *c)
{
	static const char *const members[] = {"target", NULL};
	struct ipc_notify_test m = {.token = ipc_str(c->token_hash)};
	const char *name = NULL;
	struct json_object *o;
	struct err e;
	size_t n = 0;

	if (body_parse(c, members, &o) < 0)
		return;
	if (json_get_str(o, "target", &name, &n, &e) != 1 || n == 0 ||
	    n > ISSUER_NAME_MAX)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member target must be a target's name in the access "
		    "document",
		    NULL);
	else {
		m.target = ipc_bytes(name, n);
		c->slow = true;
		ask_admind(c, IPC_NOTIFY_TEST, &m, refreshed);
	}
	json_object_put(o);
}
