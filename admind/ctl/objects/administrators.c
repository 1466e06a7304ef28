#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "calls.h"
#include "ids.h"
#include "json.h"
#include "objects.h"
#include "prefix.h"
#include "prompt.h"
#include "tables.h"

/* Commands administrators and logins: the people who may log in, and their
 * logins. uid 0 needs no password for these commands. The audit log names root
 * for the changes. */

static enum ctl_status
told(const struct ctl *c, const char *before, const char *name,
    const char *behind)
{
	if (c->json)
		puts("{\"ok\":true}");
	else
		printf("%s%s%s\n", before, name, behind);
	return CTL_DONE;
}

/* Sends a change that the vault answers with OK. */
static enum ctl_status
vault(const struct ctl *c, enum ipc_type type, const void *msg)
{
	enum ctl_status status;
	struct ipc_frame f;

	status =
	    calls_ask(c, "admind-vault", IPC_ROLE_VAULT, type, msg, IPC_OK, &f);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

static enum ctl_status
change(const struct ctl *c)
{
	const char *what = c->words[1];
	struct ipc_admin_change m = {
	    .change = ipc_str(what), .username = ipc_str(c->words[2])};
	enum ctl_status status;
	struct buf password;

	if ((strcmp(what, "role") == 0) != (c->nwords == 4))
		return CTL_USAGE;
	m.role = ipc_str(c->nwords == 4 ? c->words[3] : c->role);
	if (strcmp(what, "create") == 0 && c->role == NULL)
		return CTL_USAGE;
	buf_init(&password, 4096);
	if ((what[0] == 'c' || what[0] == 'p') &&
	    prompt_password(c, &password) == -1) {
		buf_free(&password);
		return CTL_USAGE;
	}
	m.new = ipc_bytes(password.p, password.len);
	status = vault(c, IPC_ADMIN_CHANGE, &m);
	buf_free(&password);
	if (status != CTL_DONE)
		return status;
	if (what[0] == 'c')
		return told(c, "administrator ", c->words[2], " was made");
	if (what[0] == 'd')
		return told(c, "administrator ", c->words[2], " is gone");
	return told(c, "done; the logins of ", c->words[2], " have ended");
}

static enum ctl_status
device(const struct ctl *c)
{
	struct ipc_device_make m = {.username = ipc_str(c->words[2])};
	char when[TIME_TEXT_LEN + 1];
	struct ipc_device_code code;
	enum ctl_status status;
	struct ipc_frame f;
	struct err err;

	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_DEVICE_MAKE,
	    &m, IPC_DEVICE_CODE, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &code, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		status = CTL_REFUSED;
	} else {
		time_text(code.expires_ms * 1000, when);
		if (c->json)
			printf("{\"device\":\"%.*s\",\"expires_at\":\"%s\"}\n",
			    (int)code.device.n, (const char *)code.device.p,
			    when);
		else
			printf("%.*s\nvalid until %s, as \"device\" beside "
			       "user name and password\n",
			    (int)code.device.n, (const char *)code.device.p,
			    when);
	}
	ipc_frame_free(&f);
	return status;
}

static enum ctl_status
show(const struct ctl *c, const char *what, const char *id)
{
	enum ctl_status status;
	struct buf text;

	if ((status = calls_query(c, what, id, &text)) == CTL_DONE)
		status = tables_show(c, what, &text);
	buf_free(&text);
	return status;
}

/* Finds the login whose id begins with this word, among those that the vault
 * names. */
static enum ctl_status
login_of(const struct ctl *c, const char *word, struct ipc_id *id)
{
	struct ipc_logins_get get = {0};
	struct json_object *o = NULL, *items, *v;
	const char **ids = NULL;
	enum ctl_status status;
	struct ipc_logins m;
	struct ipc_frame f;
	size_t n;

	if (uuid_parse(word, strlen(word), id) == 0)
		return CTL_DONE;
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_LOGINS_GET,
	    &get, IPC_LOGINS, &f);
	if (status != CTL_DONE)
		return status;
	status = CTL_UNREACHABLE;
	if (ipc_decode(&f, &m, NULL) == -1 ||
	    json_parse(m.json.p, m.json.n, &o, NULL) == -1 ||
	    !json_object_object_get_ex(o, "items", &items) ||
	    !json_object_is_type(items, json_type_array) ||
	    (n = json_object_array_length(items),
		ids = calloc(n + 1, sizeof(*ids))) == NULL) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		goto out;
	}
	for (size_t i = 0; i < n; i++)
		ids[i] = json_object_object_get_ex(
			     json_object_array_get_idx(items, i), "id", &v)
		    ? json_object_get_string(v)
		    : "";
	status = prefix_among(word, ids, n, "login", "logins", id);
out:
	free(ids);
	json_object_put(o);
	ipc_frame_free(&f);
	return status;
}

static enum ctl_status
logins(const struct ctl *c)
{
	struct ipc_logins_get get = {.username = ipc_str(c->username)};
	struct ipc_login_end end = {.username = ipc_str(c->username)};
	enum ctl_status status;
	struct ipc_logins m;
	struct ipc_frame f;
	struct err err;
	struct buf b;

	if (c->nwords > 1) {
		if (strcmp(c->words[1], "end") != 0 ||
		    (c->nwords == 3) == (c->username != NULL))
			return CTL_USAGE;
		if (c->nwords == 3 &&
		    (status = login_of(c, c->words[2], &end.login)) != CTL_DONE)
			return status;
		status = vault(c, IPC_LOGIN_END, &end);
		return status == CTL_DONE ? told(c, "", "done", "") : status;
	}
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_LOGINS_GET,
	    &get, IPC_LOGINS, &f);
	if (status != CTL_DONE)
		return status;
	buf_init(&b, IPC_BLOB_MAX);
	if (ipc_decode(&f, &m, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		status = CTL_REFUSED;
	} else {
		buf_put(&b, m.json.p, m.json.n);
		status = tables_show(c, "logins", &b);
	}
	buf_free(&b);
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
administrators_command(const struct ctl *c)
{
	static const char *const changes[] = {
	    "create", "role", "password", "delete"};

	if (strcmp(c->words[0], "logins") == 0)
		return logins(c);
	if (c->nwords == 1)
		return show(c, "administrators", NULL);
	if (c->nwords == 2)
		return show(c, "administrator", c->words[1]);
	if (strcmp(c->words[1], "device") == 0 && c->nwords == 3)
		return device(c);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (strcmp(c->words[1], changes[i]) == 0)
			return change(c);
	return CTL_USAGE;
}
