#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "calls.h"
#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "objects.h"
#include "prefix.h"
#include "tables.h"
#include "terminal.h"

/*
 * tokens [create NAME [--set SET] WORD=VALUE ... | list | show TOKEN | revoke
 * TOKEN [REASON]]: API tokens.
 *
 * The new token goes to standard output, alone on its line, and nowhere else:
 * it is never an argument, so it is in no process list and no shell history.
 */

enum { DAYS_DEFAULT = 90, DAYS_MAX = 3650 };

struct words {
	char *scopes, *listeners, *allow, *deny; /* one per line */
	uint64_t expires_ms;
};

/* Returns a copy of list with newlines instead of commas; NULL without
 * memory. */
static char *
lines(const char *list)
{
	char *copy = strdup(list);

	for (char *p = copy; p != NULL && *p != '\0'; p++)
		if (*p == ',')
			*p = '\n';
	return copy;
}

/* Reads "never", or a number of days such as "90d". 0 or -1. */
static int
expiry(const char *value, uint64_t *ms)
{
	unsigned long days;
	char *end;

	if (strcmp(value, "never") == 0) {
		*ms = 0;
		return 0;
	}
	days = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || strcmp(end, "d") != 0 || days < 1 ||
	    days > DAYS_MAX)
		return -1;
	*ms = now_us() / 1000 + (uint64_t)days * 24 * 3600 * 1000;
	return 0;
}

static int
take(const char *word, struct words *w)
{
	const struct {
		const char *name;
		char **to;
	} all[] = {{"scopes=", &w->scopes}, {"listeners=", &w->listeners},
	    {"allow=", &w->allow}, {"deny=", &w->deny}};

	if (strncmp(word, "expires=", 8) == 0)
		return expiry(word + 8, &w->expires_ms);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t n = strlen(all[i].name);

		if (strncmp(word, all[i].name, n) != 0)
			continue;
		free(*all[i].to);
		*all[i].to = lines(word + n);
		return *all[i].to != NULL ? 0 : -1;
	}
	return -1;
}

static enum ctl_status
created(const struct ctl *c, const struct ipc_token_created *m)
{
	enum ctl_status status = CTL_DONE;
	struct jsonw w;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	if (c->json && m->json.n > 2) {
		buf_puts(&b, "{\"token\":");
		jsonw_open(&w, &b);
		jsonw_strn(&w, m->secret.p, m->secret.n);
		buf_putc(&b, ',');
		buf_put(&b, m->json.p + 1, m->json.n - 1);
		status = tables_json(b.p, b.len);
	} else {
		fputs("mcpboxctl: this token is shown once; whoever has it "
		      "may do what its scopes allow\n",
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
	struct words w = {.expires_ms = now_us() / 1000 +
		(uint64_t)DAYS_DEFAULT * 24 * 3600 * 1000};
	enum ctl_status status = CTL_USAGE;
	struct ipc_token_created made;
	struct ipc_token_create m;
	struct ipc_frame f;

	if (c->set != NULL && c->set[0] == '\0')
		goto out;
	for (int i = 3; i < c->nwords; i++)
		if (take(c->words[i], &w) == -1)
			goto out;
	memset(&m, 0, sizeof(m));
	m.name = ipc_str(c->words[2]);
	m.set = ipc_str(c->set);
	m.scopes = ipc_str(w.scopes != NULL ? w.scopes
		: c->set != NULL            ? ""
					    : "tools:read\ntools:call");
	m.listeners = ipc_str(w.listeners != NULL ? w.listeners : "tunnel");
	m.allow = ipc_str(w.allow != NULL ? w.allow
		: c->set != NULL          ? ""
					  : "*");
	m.deny = ipc_str(w.deny);
	m.expires_ms = w.expires_ms;
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_TOKEN_CREATE, &m,
	    IPC_TOKEN_CREATED, &f);
	if (status != CTL_DONE)
		goto out;
	if (ipc_decode(&f, &made, NULL) == 0)
		status = created(c, &made);
	else
		status = CTL_REFUSED;
	ipc_frame_free(&f);
out:
	free(w.scopes);
	free(w.listeners);
	free(w.allow);
	free(w.deny);
	return status;
}

static enum ctl_status
revoke_token(const struct ctl *c)
{
	enum ctl_status status;
	char which[PREFIX_PATH_MAX];
	struct ipc_admin_json a;
	struct ipc_token_revoke m;
	struct ipc_frame f;
	struct buf text;

	status = prefix_named(c, "token", c->words[2], which, sizeof(which));
	if (status != CTL_DONE)
		return status;
	memset(&m, 0, sizeof(m));
	m.which = ipc_str(which);
	m.reason = ipc_str(c->nwords > 3 ? c->words[3] : c->reason);
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_TOKEN_REVOKE, &m,
	    IPC_ADMIN_JSON, &f);
	if (status != CTL_DONE)
		return status;
	status = CTL_REFUSED;
	buf_init(&text, IPC_BLOB_MAX);
	if (ipc_decode(&f, &a, NULL) == 0) {
		buf_put(&text, a.json.p, a.json.n);
		status = tables_show(c, "token", &text);
	}
	buf_free(&text);
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
tokens_command(const struct ctl *c)
{
	const char *verb = c->nwords > 1 ? c->words[1] : "list";
	char which[PREFIX_PATH_MAX];
	enum ctl_status status;
	struct buf text;

	if (strcmp(verb, "create") == 0 && c->nwords > 2)
		return create(c);
	if (c->set != NULL)
		return CTL_USAGE;
	if (strcmp(verb, "revoke") == 0 && (c->nwords == 3 || c->nwords == 4))
		return revoke_token(c);
	if (strcmp(verb, "list") == 0 && c->nwords <= 2)
		return tables_command(c);
	if (strcmp(verb, "show") != 0 || c->nwords != 3)
		return CTL_USAGE;
	status = prefix_named(c, "token", c->words[2], which, sizeof(which));
	if (status != CTL_DONE)
		return status;
	status = calls_query(c, "token_named", which, &text);
	if (status == CTL_DONE)
		status = tables_show(c, "token", &text);
	buf_free(&text);
	return status;
}
