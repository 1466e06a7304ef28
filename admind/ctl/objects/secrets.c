/*
 * mcpboxctl secret list | show | create | describe | set | delete.
 *
 * A value comes from standard input or a prompt, never by argument: every local
 * user can read a command line (proc(5)). No command shows a value.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "calls.h"
#include "json.h"
#include "jsonw.h"
#include "objects.h"
#include "prompt.h"
#include "tables.h"

static enum ctl_status
set(const struct ctl *c)
{
	enum ctl_status status;
	struct ipc_secret_set m;
	struct ipc_frame f;
	struct buf value;

	buf_init(&value, SECRET_VALUE_MAX + 1);
	if (prompt_secret("Value", &value) == -1) {
		buf_free(&value);
		return CTL_USAGE;
	}
	memset(&m, 0, sizeof(m));
	m.server = ipc_str(c->words[2]);
	m.key = ipc_str(c->words[3]);
	m.value = ipc_bytes(value.p, value.len);
	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, IPC_SECRET_SET, &m, IPC_OK, &f);
	buf_free(&value);
	if (status != CTL_DONE)
		return status;
	ipc_frame_free(&f);
	if (c->json)
		puts("{\"ok\":true}");
	else
		printf("secret %s of server %s was set\n", c->words[3],
		    c->words[2]);
	return CTL_DONE;
}

/* Writes "server" or "server/KEY". 0 or -1. */
static int
path(const struct ctl *c, bool both, char *out, size_t n)
{
	int len = both ? snprintf(out, n, "%s/%s", c->words[2], c->words[3])
		       : snprintf(out, n, "%s", c->words[2]);

	if (len > 0 && (size_t)len < n)
		return 0;
	fputs("mcpboxctl: that name is too long\n", stderr);
	return -1;
}

static enum ctl_status
question(const struct ctl *c, const char *what)
{
	enum ctl_status status;
	struct buf text;
	char id[600];

	if (path(c, strcmp(what, "secret") == 0, id, sizeof(id)) == -1)
		return CTL_USAGE;
	status = calls_query(c, what, id, &text);
	if (status == CTL_DONE)
		status = tables_show(c, what, &text);
	buf_free(&text);
	return status;
}

/* Does an action of admin_action.def with this body. `done` says in words what
 * was done, for the printed line. */
static enum ctl_status
act(const struct ctl *c, const char *action, bool both, struct buf *body,
    const char *done)
{
	struct ipc_admin_action m;
	enum ctl_status status;
	struct buf text;
	char id[600];

	if (body->failed || path(c, both, id, sizeof(id)) == -1)
		return CTL_USAGE;
	memset(&m, 0, sizeof(m));
	m.action = ipc_str(action);
	m.id = ipc_str(id);
	m.body = ipc_bytes(body->p, body->len);
	status = calls_json(c, IPC_ADMIN_ACTION, &m, &text);
	if (status == CTL_DONE && c->json)
		status = tables_json(text.p, text.len);
	else if (status == CTL_DONE)
		printf("secret %s of server %s %s\n", c->words[3], c->words[2],
		    done);
	buf_free(&text);
	return status;
}

enum ctl_status
secret_command(const struct ctl *c)
{
	const char *verb = c->words[1];
	enum ctl_status status = CTL_USAGE;
	struct jsonw w;
	struct buf body;

	if (strcmp(verb, "list") == 0 && c->nwords == 3)
		return question(c, "secrets");
	if (strcmp(verb, "show") == 0 && c->nwords == 4)
		return question(c, "secret");
	if (strcmp(verb, "set") == 0 && c->nwords == 4)
		return set(c);
	buf_init(&body, IPC_BLOB_MAX);
	jsonw_open(&w, &body);
	jsonw_obj(&w);
	if (strcmp(verb, "create") == 0 && c->nwords >= 4) {
		jsonw_kv_str(&w, "key", c->words[3]);
		jsonw_kv_str(
		    &w, "description", c->nwords == 5 ? c->words[4] : "");
		jsonw_obj_end(&w);
		status = act(c, "secret_create", false, &body, "was made");
	} else if (strcmp(verb, "describe") == 0 && c->nwords == 5) {
		jsonw_kv_str(&w, "description", c->words[4]);
		jsonw_obj_end(&w);
		status =
		    act(c, "secret_describe", true, &body, "was described");
	} else if (strcmp(verb, "delete") == 0 && c->nwords == 4) {
		jsonw_obj_end(&w);
		status = act(c, "secret_delete", true, &body, "is gone");
	}
	buf_free(&body);
	return status;
}
