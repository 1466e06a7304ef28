#include <json-c/json.h>

#include <string.h>

#include "admin_action.h"
#include "admin_body.h"
#include "ask.h"
#include "body.h"
#include "changes.h"
#include "guard.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

/* Handles every route of common/admin/admin_action.def. Only the form is
 * checked here: body members and types, If-Match, Idempotency-Key. admind and
 * the database decide the rights and the meaning. */

static void
shown(struct call *c, struct ipc_frame *f)
{
	struct ipc_admin_json m;

	/* m.json is the object after the change, as its GET shows it, or
	 * empty */
	if (f->type == IPC_ADMIN_JSON && ipc_decode(f, &m, NULL) == 0 &&
	    m.json.n == 0)
		reply_empty(c, 204);
	else
		reply_admind(c, f, true);
}

int
action_match(struct call *c, enum admin_seen rule, struct ipc_hash *seen)
{
	static const struct ipc_hash none; /* in the message: not given */
	const char *match;
	unsigned count;

	match = http1_field(httpd_request(c->req), "if-match", &count);
	if (match == NULL || strcmp(match, "*") == 0) {
		if (rule != ADMIN_SEEN_REQUIRED)
			return 0;
		problem_send(c, FAILURE_HASH_REQUIRED,
		    "a change needs the hash of what was read",
		    "Read the object, then send its ETag as If-Match.");
		return -1;
	}
	if (rule == ADMIN_SEEN_NONE) {
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "this address compares no ETag", "Send no If-Match.");
		return -1;
	}
	if (count != 1 || guard_etag(match, seen) < 0) {
		problem_send(c, FAILURE_HASH_MISMATCH,
		    "If-Match is not one hash in quotes", NULL);
		return -1;
	}
	/* In the message the all-zero hash means "not given". So an all-zero
	 * If-Match is replaced by another hash that no object has, and the
	 * answer is the same as for any wrong hash. */
	if (memcmp(seen, &none, sizeof(none)) == 0)
		memset(seen, 0xff, sizeof(*seen));
	return 0;
}

static int
take_key(struct call *c, struct ipc_bytes *key)
{
	const char *value;
	unsigned count;

	value = http1_field(httpd_request(c->req), "idempotency-key", &count);
	if (value == NULL)
		return 0;
	*key = ipc_str(value);
	if (count == 1 && admin_action_key(*key))
		return 0;
	problem_send(c, FAILURE_INVALID_PARAMS,
	    "Idempotency-Key is not 1 to 64 visible ASCII characters", NULL);
	return -1;
}

void
action_write(struct call *c)
{
	const struct admin_action *a =
	    admin_action_find(ipc_str(c->route->subject));
	const struct http1_request *r = httpd_request(c->req);
	struct ipc_admin_action m = {.token = ipc_str(c->token_hash),
	    .action = ipc_str(a->name),
	    .id = ipc_str(c->id),
	    .body = ipc_str("{}")};
	struct json_object *o;
	unsigned count;
	struct err e;

	if (action_match(c, a->seen, &m.seen) < 0 || take_key(c, &m.key) < 0)
		return;
	if (r->body_len == 0 && strstr(a->members, "!") == NULL &&
	    http1_field(r, "content-type", &count) == NULL) {
		ask_admind(c, IPC_ADMIN_ACTION, &m, shown);
		return;
	}
	if (body_object(c, &o) < 0)
		return;
	if (admin_body_check(a, o, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else {
		m.body = ipc_bytes(r->body, r->body_len);
		ask_admind(c, IPC_ADMIN_ACTION, &m, shown);
	}
	json_object_put(o);
}
