/* PUT of a secret's value. The value goes to the vault, with the login, and
 * nowhere else; the vault judges both (vault/secrets.c). No route sends a value
 * back. */
#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "json.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

static void
set(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/*
 * Moves the secret from the body into *value, which the caller wipes, and
 * writes x over it in the body. The JSON parser's memory is never wiped, so the
 * parser must see no secret. false: the body has no such string, and the parser
 * will report the error in the body.
 */
static bool
take_value(const struct http1_request *r, struct buf *value)
{
	static const char *const path[] = {"value", NULL};
	const uint8_t *p;
	size_t n;

	if (json_scan(r->body, r->body_len, NULL) == -1 ||
	    json_slice(r->body, r->body_len, path, &p, &n) != 1 ||
	    json_unescape(p, n, value) == -1)
		return false;
	/* The body is in the connection's buffer and belongs to this request
	 * alone, so it may be changed. */
	memset((uint8_t *)(uintptr_t)p + 1, 'x', n - 2);
	return true;
}

void
secret_put(struct call *c)
{
	static const char *const names[] = {"value", NULL};
	struct ipc_secret_set m = {.token = ipc_str(c->token)};
	const char *slash = strchr(c->id, '/');
	struct json_object *o;
	struct buf value;
	bool there;

	if (slash == NULL) {
		problem_send(c, FAILURE_NOT_FOUND, "no such secret", NULL);
		return;
	}
	buf_init(&value, WEB_BODY_MAX);
	there = take_value(httpd_request(c->req), &value);
	if (body_parse(c, names, &o) < 0) {
		buf_free(&value);
		return;
	}
	m.server = ipc_bytes(c->id, (size_t)(slash - c->id));
	m.key = ipc_str(slash + 1);
	m.value = ipc_bytes(value.p, value.len);
	if (!there || value.len == 0 || value.len > SECRET_VALUE_MAX)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member value must be a string of 1 to 10000 bytes", NULL);
	else
		ask_vault(c, IPC_SECRET_SET, &m, set);
	json_object_put(o);
	buf_free(&value);
}
