#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "guard.h"
#include "json.h"
#include "limit.h"
#include "problem.h"
#include "reply.h"
#include "tlv.h"
#include "web.h"

/* Limits of a server. The ETag is the SHA-256 of the very object that is sent,
 * and a change names it: of two administrators at once the later one gets an
 * error and reads again. */
static void
show(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, true);
}

void
limits_get(struct call *c)
{
	struct ipc_admin_query q = {
	    .token = ipc_str(c->token_hash),
	    .what = ipc_str("limits"),
	    .id = ipc_str(c->id),
	    .limit = 1,
	};

	ask_admind(c, IPC_ADMIN_QUERY, &q, show);
}

/* Encodes the members of `limits` as LIMITS_SET carries them; null and absent
 * are not set. */
static int
take_limits(struct json_object *limits, struct buf *out, struct err *e)
{
	json_object_object_foreach(limits, name, value)
	{
		int l = limit_find(name, strlen(name));
		int64_t v;

		if (l == -1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "limits has an unknown member");
		if (value == NULL)
			continue;
		if (json_get_int(limits, name,
			(int64_t)limit_info((enum limit)l)->min,
			(int64_t)limit_info((enum limit)l)->max, &v, e) != 1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "%s must be null or an integer from %llu to %llu",
			    limit_info((enum limit)l)->name,
			    (unsigned long long)limit_info((enum limit)l)->min,
			    (unsigned long long)limit_info((enum limit)l)->max);
		tlv_put_u64(out, (uint8_t)(l + 1), (uint64_t)v);
	}
	return 0;
}

void
limits_put(struct call *c)
{
	static const char *const names[] = {"limits", NULL};
	struct ipc_limits_set msg = {.token = ipc_str(c->token_hash)};
	struct json_object *o, *limits;
	const char *match;
	unsigned count;
	struct buf list;
	struct err e;

	if (uuid_parse(c->id, strlen(c->id), &msg.server) < 0) {
		problem_send(c, FAILURE_NOT_FOUND, "no such server", NULL);
		return;
	}
	match = http1_field(httpd_request(c->req), "if-match", &count);
	if (match == NULL || strcmp(match, "*") == 0) {
		problem_send(c, FAILURE_HASH_REQUIRED,
		    "a change needs the hash of what was read",
		    "Read the limits, then send their ETag as If-Match.");
		return;
	}
	if (count != 1 || guard_etag(match, &msg.seen) < 0) {
		problem_send(c, FAILURE_HASH_MISMATCH,
		    "If-Match is not one hash in quotes", NULL);
		return;
	}
	if (body_parse(c, names, &o) < 0)
		return;
	buf_init(&list, 4096);
	if (json_get_obj(o, "limits", &limits, &e) != 1)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member limits must be an object", NULL);
	else if (take_limits(limits, &list, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else {
		msg.limits = ipc_bytes(list.p, list.len);
		ask_admind(c, IPC_LIMITS_SET, &msg, show);
	}
	buf_free(&list);
	json_object_put(o);
}

static void
exposed(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/* Sets how new versions on a server are named. It is idempotent, so without
 * If-Match. */
void
expose_put(struct call *c)
{
	static const char *const names[] = {"expose", NULL};
	struct ipc_expose_set msg = {
	    .token = ipc_str(c->token_hash), .server = ipc_str(c->id)};
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	if (body_str(o, "expose", &msg.expose, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_admind(c, IPC_EXPOSE_SET, &msg, exposed);
	json_object_put(o);
}
