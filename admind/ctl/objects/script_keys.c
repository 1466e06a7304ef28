#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "call.h"
#include "calls.h"
#include "jsonw.h"
#include "objects.h"
#include "script_key.h"
#include "tables.h"
#include "terminal.h"

/*
 * keys [create NAME --scopes LIST [--days N] | list | revoke NAME [REASON]]:
 * keys of scripts for REST.
 *
 * The new key goes to standard output, alone on its line, and nowhere else: it
 * is never an argument, so it is in no process list and no shell history.
 */

static enum ctl_status
created(const struct ctl *c, const struct ipc_script_key_created *m)
{
	enum ctl_status status = CTL_DONE;
	struct jsonw w;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	if (c->json && m->json.n > 2) {
		buf_puts(&b, "{\"key\":");
		jsonw_open(&w, &b);
		jsonw_strn(&w, m->secret.p, m->secret.n);
		buf_putc(&b, ',');
		buf_put(&b, m->json.p + 1, m->json.n - 1);
		status = tables_json(b.p, b.len);
	} else {
		fputs(
		    "mcpboxctl: this key is shown once; whoever has it may do "
		    "what its scopes allow\n",
		    stderr);
		show_text(&b, m->secret.p, m->secret.n, SHOW_LINE);
		buf_putc(&b, '\n');
		terminal_out(&b);
	}
	buf_free(&b);
	return status;
}

static enum ctl_status
create(const struct ctl *c)
{
	struct ipc_script_key_create m = {.name = ipc_str(c->words[2]),
	    .days = c->days != 0 ? c->days : SCRIPT_KEY_DAYS};
	struct ipc_script_key_created made;
	enum ctl_status status;
	struct ipc_frame f;
	struct buf scopes;

	buf_init(&scopes, IPC_FRAME_MAX / 2);
	for (const char *s = c->remote.scopes; *s != '\0'; s++)
		buf_putc(&scopes, *s == ',' ? '\n' : *s);
	m.scopes = ipc_bytes(scopes.p, scopes.len);
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_SCRIPT_KEY_CREATE,
	    &m, IPC_SCRIPT_KEY_CREATED, &f);
	buf_free(&scopes);
	if (status != CTL_DONE)
		return status;
	status = CTL_REFUSED;
	if (ipc_decode(&f, &made, NULL) == 0)
		status = created(c, &made);
	ipc_frame_free(&f);
	return status;
}

static enum ctl_status
end_key(const struct ctl *c)
{
	const char *reason = c->nwords > 3 ? c->words[3] : c->reason;
	struct json_object *o = json_object_new_object();
	enum ctl_status status = CTL_REFUSED;
	struct buf answer;

	buf_init(&answer, 1);
	if (o == NULL ||
	    (reason != NULL &&
		json_object_object_add(
		    o, "reason", json_object_new_string(reason)) != 0)) {
		fputs("mcpboxctl: out of memory\n", stderr);
	} else {
		status = call_action(c, "key_revoke", c->words[2], NULL,
		    json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
		    &answer);
		if (status == CTL_DONE)
			status = tables_show(c, "key", &answer);
	}
	json_object_put(o);
	buf_free(&answer);
	return status;
}

enum ctl_status
script_keys_command(const struct ctl *c)
{
	const char *verb = c->nwords > 1 ? c->words[1] : "list";

	if (strcmp(verb, "create") == 0)
		return c->nwords == 3 && c->remote.scopes != NULL ? create(c)
								  : CTL_USAGE;
	if (c->remote.scopes != NULL || c->days != 0)
		return CTL_USAGE;
	if (strcmp(verb, "list") == 0 && c->nwords <= 2)
		return tables_command(c);
	if (strcmp(verb, "revoke") == 0 && (c->nwords == 3 || c->nwords == 4))
		return end_key(c);
	return CTL_USAGE;
}
