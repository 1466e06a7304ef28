/*
 * POST /api/keys {"name", "scopes": [names], "expires_in_days"}: makes a key
 * for a script. Keys are listed as any other object, and ended by an action.
 *
 * The key itself is sent once, in this answer, which has `no-store`; no log has
 * bodies.
 */
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

/* Writes the scopes, one a line. The maker of a key has to say its use, so
 * there are no default scopes. 0 or -1. */
static int
read_scopes(struct json_object *o, struct buf *out, struct err *e)
{
	enum script_scope scope;
	struct json_object *list, *v;
	const char *name;
	int rc = json_get_arr(o, "scopes", &list, e);

	if (rc < 0)
		return -1;
	for (size_t i = 0; rc == 1 && i < json_object_array_length(list); i++) {
		v = json_object_array_get_idx(list, i);
		name = json_object_is_type(v, json_type_string)
		    ? json_object_get_string(v)
		    : "";
		if (script_scope_find(ipc_str(name), &scope) == -1)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "scopes of a key are read, metrics, operate and "
			    "export");
		buf_puts(out, script_scope_name(scope));
		buf_putc(out, '\n');
	}
	if (out->len == 0 || out->failed)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "member scopes must be an array of read, metrics, operate "
		    "or export");
	return 0;
}

/* Answers {"key": ..., then the members of the key as it is shown}. */
static void
made(struct call *c, struct ipc_frame *f)
{
	struct ipc_script_key_created m;
	struct jsonw w;
	struct buf b;
	struct err e;

	if (f->type != IPC_SCRIPT_KEY_CREATED || ipc_decode(f, &m, &e) < 0 ||
	    m.json.n < 3 || m.json.p[0] != '{' ||
	    !utf8_valid(m.json.p, m.json.n) ||
	    !json_grammar_valid(m.json.p, m.json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_puts(&b, "{\"key\":");
	jsonw_open(&w, &b);
	jsonw_strn(&w, m.secret.p, m.secret.n);
	buf_putc(&b, ',');
	buf_put(&b, m.json.p + 1, m.json.n - 1);
	reply_json(c, 201, &b);
	buf_free(&b);
}

void
keys_post(struct call *c)
{
	static const char *const names[] = {
	    "name", "scopes", "expires_in_days", NULL};
	struct ipc_script_key_create m = {.token = ipc_str(c->token_hash)};
	int64_t days = SCRIPT_KEY_DAYS;
	struct json_object *o;
	struct buf scopes;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	buf_init(&scopes, WEB_BODY_MAX);
	if (body_str(o, "name", &m.name, &e) < 0 ||
	    read_scopes(o, &scopes, &e) < 0 ||
	    json_get_int(
		o, "expires_in_days", 1, SCRIPT_KEY_DAYS_MAX, &days, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else {
		buf_putc(&scopes, '\0');
		m.scopes = ipc_str((const char *)scopes.p);
		m.days = (uint32_t)days;
		ask_admind(c, IPC_SCRIPT_KEY_CREATE, &m, made);
	}
	buf_free(&scopes);
	json_object_put(o);
}
