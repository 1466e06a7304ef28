#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "guard.h"
#include "json.h"
#include "jsonw.h"
#include "problem.h"
#include "reply.h"
#include "review.h"
#include "reviews.h"
#include "web.h"

/* The policies of review. The vault is asked to read and to change them, so the
 * policies that are shown are those that the vault applies. admind only stores
 * a change. */

static void
put_time(struct jsonw *w, const char *name, uint64_t us)
{
	char text[TIME_TEXT_LEN + 1];

	jsonw_name(w, name);
	if (us == 0) {
		jsonw_null(w);
		return;
	}
	time_text(us, text);
	jsonw_str(w, text);
}

static void
show(struct call *c, struct ipc_frame *f)
{
	char tag[HEX32_LEN + 3];
	struct ipc_policy_state s;
	const char *profile;
	struct jsonw w;
	struct buf b;
	struct err e;

	if (f->type != IPC_POLICY_STATE || ipc_decode(f, &s, &e) < 0 ||
	    review_mode_name(s.tool) == NULL ||
	    review_mode_name(s.module) == NULL ||
	    review_mode_name(s.network) == NULL) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	profile = review_profile_name(
	    (const uint8_t[REVIEW_QUEUES]){s.tool, s.module, s.network});
	buf_init(&b, 4096);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "tool", review_mode_name(s.tool));
	jsonw_kv_str(&w, "module", review_mode_name(s.module));
	jsonw_kv_str(&w, "network", review_mode_name(s.network));
	jsonw_name(&w, "profile");
	if (profile != NULL)
		jsonw_str(&w, profile);
	else
		jsonw_null(&w);
	put_time(&w, "set_at", s.since_us);
	jsonw_kv_strn(&w, "set_by", s.actor.p, s.actor.n);
	put_time(&w, "automatic_until", s.until_us);
	jsonw_name(&w, "automatic_now");
	jsonw_bool(&w, s.until_us > now_us());
	jsonw_obj_end(&w);
	tag[0] = '"';
	hex_encode(s.seal.b, sizeof(s.seal.b), tag + 1);
	tag[HEX32_LEN + 1] = '"';
	tag[HEX32_LEN + 2] = '\0';
	httpd_header(c->req, "ETag", tag);
	reply_json(c, 200, &b);
	buf_free(&b);
}

void
policies_get(struct call *c)
{
	struct ipc_policy_get m = {.token = ipc_str(c->token)};

	ask_vault(c, IPC_POLICY_GET, &m, show);
}

/* Takes three modes, or a profile that names them. */
static int
take(struct json_object *o, struct ipc_policy_set *m, struct err *e)
{
	uint8_t mode[REVIEW_QUEUES];
	struct ipc_bytes word;
	struct json_object *v;
	int64_t days = REVIEW_DAYS_DEFAULT;

	if (json_get_int(o, "days", 1, REVIEW_DAYS_MAX, &days, e) < 0)
		return -1;
	m->days = (uint32_t)days;
	if (json_object_object_get_ex(o, "profile", &v)) {
		if (body_str(o, "profile", &word, e) < 0)
			return -1;
		for (unsigned q = 0; q < REVIEW_QUEUES; q++)
			if (json_object_object_get_ex(
				o, review_queue_name(q), &v))
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "give a profile or three modes, not both");
		if (review_profile(word, mode) == -1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "profile is strict, balanced or permissive");
	} else {
		for (unsigned q = 0; q < REVIEW_QUEUES; q++) {
			if (body_str(o, review_queue_name(q), &word, e) < 0)
				return -1;
			if (review_mode_find(word, &mode[q]) == -1)
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "%s is require, second or automatic",
				    review_queue_name(q));
		}
	}
	m->tool = mode[REVIEW_TOOL];
	m->module = mode[REVIEW_MODULE];
	m->network = mode[REVIEW_NETWORK];
	return 0;
}

void
policies_put(struct call *c)
{
	static const char *const names[] = {
	    "tool", "module", "network", "profile", "days", NULL};
	struct ipc_policy_set m = {.token = ipc_str(c->token)};
	struct json_object *o;
	const char *match;
	unsigned count;
	struct err e;

	match = http1_field(httpd_request(c->req), "if-match", &count);
	if (match == NULL || strcmp(match, "*") == 0) {
		problem_send(c, FAILURE_HASH_REQUIRED,
		    "a change needs the hash of what was read",
		    "Read the policies, then send their ETag as If-Match.");
		return;
	}
	if (count != 1 || guard_etag(match, &m.seen) < 0) {
		problem_send(c, FAILURE_HASH_MISMATCH,
		    "If-Match is not one hash in quotes", NULL);
		return;
	}
	if (body_parse(c, names, &o) < 0)
		return;
	if (take(o, &m, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_vault(c, IPC_POLICY_SET, &m, show);
	json_object_put(o);
}
