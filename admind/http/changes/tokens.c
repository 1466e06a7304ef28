#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "json.h"
#include "json_grammar.h"
#include "jsonw.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

/*
 * Makes and ends API tokens. Lists and single tokens are read as any other
 * object.
 *
 * The token itself is sent once, in the answer to its creation. Every answer
 * here has `no-store`, and no log has bodies.
 */

enum {
	DAYS_DEFAULT = 90, /* a token should expire unless asked otherwise */
	DAYS_MAX = 3650
};

/* Writes a member, an array of strings, as lines. If there is no such member,
 * writes `absent`. 0 or -1. */
static int
lines(struct json_object *o, const char *name, const char *absent,
    struct buf *out, struct err *e)
{
	struct json_object *list, *v;
	const char *s;
	int rc = json_get_arr(o, name, &list, e);

	if (rc == 0)
		buf_puts(out, absent);
	for (size_t i = 0; rc == 1 && i < json_object_array_length(list); i++) {
		v = json_object_array_get_idx(list, i);
		s = json_object_is_type(v, json_type_string)
		    ? json_object_get_string(v)
		    : "";
		if (*s == '\0' || strchr(s, '\n') != NULL ||
		    strlen(s) != (size_t)json_object_get_string_len(v))
			rc = err_set(e, FAILURE_INVALID_PARAMS,
			    "member %s must be an array of words", name);
		if (i > 0)
			buf_putc(out, '\n');
		buf_puts(out, s);
	}
	buf_putc(out, '\0');
	if (rc >= 0 && out->failed)
		rc = err_set(
		    e, FAILURE_INVALID_PARAMS, "member %s is too long", name);
	return rc < 0 ? -1 : 0;
}

/* Reads the expiry; null: never. 0 or -1. */
static int
expiry(struct json_object *o, uint64_t *ms, struct err *e)
{
	struct json_object *v;
	int64_t days = DAYS_DEFAULT;

	if (json_object_object_get_ex(o, "expires_in_days", &v) && v == NULL) {
		*ms = 0;
		return 0;
	}
	if (json_get_int(o, "expires_in_days", 1, DAYS_MAX, &days, e) < 0)
		return -1;
	*ms = now_us() / 1000 + (uint64_t)days * 24 * 3600 * 1000;
	return 0;
}

/* Answers {"token": ..., then the members of the token as it is shown}. */
static void
made(struct call *c, struct ipc_frame *f)
{
	struct ipc_token_created m;
	struct jsonw w;
	struct buf b;
	struct err e;

	if (f->type != IPC_TOKEN_CREATED || ipc_decode(f, &m, &e) < 0 ||
	    m.json.n < 3 || m.json.p[0] != '{' ||
	    !utf8_valid(m.json.p, m.json.n) ||
	    !json_grammar_valid(m.json.p, m.json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_puts(&b, "{\"token\":");
	jsonw_open(&w, &b);
	jsonw_strn(&w, m.secret.p, m.secret.n);
	buf_putc(&b, ',');
	buf_put(&b, m.json.p + 1, m.json.n - 1);
	reply_json(c, 201, &b);
	buf_free(&b);
}

void
tokens_post(struct call *c)
{
	static const char *const names[] = {"name", "scopes", "listeners",
	    "allow", "deny", "expires_in_days", "set", NULL};
	struct ipc_token_create m = {.token = ipc_str(c->token_hash)};
	struct json_object *o, *set = NULL;
	const char *scopes = "tools:read\ntools:call", *allow = "*";
	struct buf list[4];
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	for (size_t i = 0; i < 4; i++)
		buf_init(&list[i], WEB_BODY_MAX);
	/* A set has all of these; lists beside it are refused by admind. */
	if (json_object_object_get_ex(o, "set", &set) && set != NULL)
		scopes = allow = "";
	if (body_str(o, "name", &m.name, &e) < 0 ||
	    (set != NULL && body_str(o, "set", &m.set, &e) < 0) ||
	    lines(o, "scopes", scopes, &list[0], &e) < 0 ||
	    lines(o, "listeners", "tunnel", &list[1], &e) < 0 ||
	    lines(o, "allow", allow, &list[2], &e) < 0 ||
	    lines(o, "deny", "", &list[3], &e) < 0 ||
	    expiry(o, &m.expires_ms, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else {
		m.scopes = ipc_str((const char *)list[0].p);
		m.listeners = ipc_str((const char *)list[1].p);
		m.allow = ipc_str((const char *)list[2].p);
		m.deny = ipc_str((const char *)list[3].p);
		ask_admind(c, IPC_TOKEN_CREATE, &m, made);
	}
	for (size_t i = 0; i < 4; i++)
		buf_free(&list[i]);
	json_object_put(o);
}

static void
revoked(struct call *c, struct ipc_frame *f)
{
	struct ipc_admin_json m;
	struct buf b;
	struct err e;

	if (f->type != IPC_ADMIN_JSON || ipc_decode(f, &m, &e) < 0 ||
	    !utf8_valid(m.json.p, m.json.n) ||
	    !json_grammar_valid(m.json.p, m.json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, m.json.p, m.json.n);
	reply_json(c, 200, &b);
	buf_free(&b);
}

void
token_revoke_post(struct call *c)
{
	static const char *const names[] = {"reason", NULL};
	struct ipc_token_revoke m = {
	    .token = ipc_str(c->token_hash), .which = ipc_str(c->id)};
	struct json_object *o, *v;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	if (json_object_object_get_ex(o, "reason", &v) &&
	    body_str(o, "reason", &m.reason, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else
		ask_admind(c, IPC_TOKEN_REVOKE, &m, revoked);
	json_object_put(o);
}
