#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "ids.h"
#include "objects.h"
#include "tables.h"

/* Modules: entries of the module store that tools may be granted. Only a digest
 * is recorded here. The files are put into the store separately, by
 * contrib/module-add or by the installer (decision 0052). */

/* Splits "name" or "name==version"; the version may be left out. 0 or -1. */
static int
split(const char *word, char name[256], struct ipc_module_set *m)
{
	const char *eq = strstr(word, "==");
	size_t n = eq != NULL ? (size_t)(eq - word) : strlen(word);

	if (n == 0 || n >= 256 || (eq != NULL && eq[2] == '\0'))
		return -1;
	memcpy(name, word, n);
	name[n] = '\0';
	m->name = ipc_str(name);
	m->version = ipc_str(eq != NULL ? eq + 2 : "");
	return 0;
}

static int
count(const char *s, uint64_t *out)
{
	char *end;

	*out = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && *end == '\0' ? 0 : -1;
}

/* Reads the words after the verb into the message. 0, or -1: usage. */
static int
take(const struct ctl *c, char name[256], struct ipc_module_set *m)
{
	const char *verb = c->words[1];
	char **w = c->words + 2;
	int n = c->nwords - 2;

	if (strcmp(verb, "add") == 0 && (n == 3 || n == 5)) {
		m->action = 1;
		m->name = ipc_str(w[0]);
		m->version = ipc_str(w[1]);
		if (strlen(w[2]) != HEX32_LEN ||
		    hex_decode(w[2], HEX32_LEN, m->digest.b) == -1)
			return -1;
		return n == 3 ||
			(count(w[3], &m->files) == 0 &&
			    count(w[4], &m->size) == 0)
		    ? 0
		    : -1;
	}
	if (strcmp(verb, "withdraw") == 0 && n == 2) {
		m->action = 2;
		m->name = ipc_str(w[0]);
		m->version = ipc_str(w[1]);
		return 0;
	}
	if ((strcmp(verb, "grant") == 0 || strcmp(verb, "revoke") == 0) &&
	    n == 2) {
		m->action = verb[0] == 'g' ? 3 : 4;
		m->tool = ipc_str(w[0]);
		return split(w[1], name, m);
	}
	return -1;
}

/* Lists modules that are being fetched, were fetched, or could not be. */
static enum ctl_status
installs_list(const struct ctl *c)
{
	enum ctl_status status;
	struct buf text;

	status = calls_query(c, "installs", NULL, &text);
	if (status == CTL_DONE)
		status = tables_show(c, "installs", &text);
	buf_free(&text);
	return status;
}

enum ctl_status
modules_command(const struct ctl *c)
{
	struct ipc_module_set m;
	enum ctl_status status;
	struct ipc_frame f;
	char name[256];

	if (c->nwords == 1)
		return tables_command(c);
	if (c->nwords == 2 && strcmp(c->words[1], "installs") == 0)
		return installs_list(c);
	memset(&m, 0, sizeof(m));
	if (take(c, name, &m) == -1)
		return CTL_USAGE;
	status = calls_ask(
	    c, "admind", IPC_ROLE_ADMIND, IPC_MODULE_SET, &m, IPC_OK, &f);
	if (status != CTL_DONE)
		return status;
	ipc_frame_free(&f);
	puts(c->json ? "{\"ok\":true}" : "done");
	return CTL_DONE;
}
