/* Other administrators, and the list of logins. The vault decides everything:
 * these functions only carry the request there, with the login's token. A
 * change of an administrator also carries the asker's own password. */
#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "json_grammar.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

static void
done(struct call *c, struct ipc_frame *f)
{
	(void)f;
	reply_empty(c, 204);
}

/* Sends a change. names: the members of the body that the message takes. */
static void
change(struct call *c, struct ipc_admin_change *msg, const char *const *names)
{
	struct json_object *o;
	struct err e;

	if (body_parse(c, names, &o) < 0)
		return;
	for (; *names != NULL; names++) {
		struct ipc_bytes *to = strcmp(*names, "username") == 0
		    ? &msg->username
		    : strcmp(*names, "role") == 0         ? &msg->role
		    : strcmp(*names, "new_password") == 0 ? &msg->new
							  : &msg->password;

		if (body_str(o, *names, to, &e) < 0) {
			problem_send(c, e.failure, e.text, NULL);
			json_object_put(o);
			return;
		}
	}
	msg->token = ipc_str(c->token);
	ask_vault(c, IPC_ADMIN_CHANGE, msg, done);
	json_object_put(o);
}

void
admin_post(struct call *c)
{
	static const char *const names[] = {
	    "username", "role", "new_password", "password", NULL};
	struct ipc_admin_change msg = {.change = ipc_str("create")};

	change(c, &msg, names);
}

void
admin_role_put(struct call *c)
{
	static const char *const names[] = {"role", "password", NULL};
	struct ipc_admin_change msg = {
	    .change = ipc_str("role"), .username = ipc_str(c->id)};

	change(c, &msg, names);
}

void
admin_password_post(struct call *c)
{
	static const char *const names[] = {"new_password", "password", NULL};
	struct ipc_admin_change msg = {
	    .change = ipc_str("password"), .username = ipc_str(c->id)};

	change(c, &msg, names);
}

/* Deletes an administrator. The asker's own password must be in the body. This
 * is a POST, because a DELETE's body has no defined meaning (RFC 9110 section
 * 9.3.5). */
void
admin_delete_post(struct call *c)
{
	static const char *const names[] = {"password", NULL};
	struct ipc_admin_change msg = {
	    .change = ipc_str("delete"), .username = ipc_str(c->id)};

	change(c, &msg, names);
}

static void
show_logins(struct call *c, struct ipc_frame *f)
{
	struct ipc_logins m;
	struct buf b;
	struct err e;

	if (f->type != IPC_LOGINS || ipc_decode(f, &m, &e) < 0 ||
	    !utf8_valid(m.json.p, m.json.n) ||
	    !json_grammar_valid(m.json.p, m.json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, m.json.p, m.json.n);
	reply_json(c, 200, &b);
	buf_free(&b);
}

void
logins_get(struct call *c)
{
	struct ipc_logins_get msg = {.token = ipc_str(c->token)};

	ask_vault(c, IPC_LOGINS_GET, &msg, show_logins);
}

void
login_delete(struct call *c)
{
	struct ipc_login_end msg = {.token = ipc_str(c->token)};

	if (uuid_parse(c->id, strlen(c->id), &msg.login) < 0) {
		problem_send(c, FAILURE_NOT_FOUND, "no such login", NULL);
		return;
	}
	ask_vault(c, IPC_LOGIN_END, &msg, done);
}

void
admin_logins_delete(struct call *c)
{
	struct ipc_login_end msg = {
	    .token = ipc_str(c->token), .username = ipc_str(c->id)};

	ask_vault(c, IPC_LOGIN_END, &msg, done);
}
