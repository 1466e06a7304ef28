#include <stdio.h>
#include <string.h>

#include "call.h"
#include "calls.h"
#include "ids.h"
#include "objects.h"
#include "tables.h"

/* Modules: entries of the module store that tools may be granted. Only a digest
 * is recorded here. The files are put into the store separately, by
 * contrib/module-add or by the installer (decision 0052). */

enum { WORDS_MAX = 5, WORD_MAX = 1024 };

/* One action, and its words. */
struct change {
	const char *action;
	char id[WORD_MAX];
	char text[WORDS_MAX][WORD_MAX], *words[WORDS_MAX];
	int nwords;
	bool failed; /* a word is too long */
};

static void
put(struct change *m, const char *member, const char *value, size_t n)
{
	char *to = m->text[m->nwords];
	int len = snprintf(to, WORD_MAX, "%s=%.*s", member, (int)n, value);

	m->words[m->nwords++] = to;
	m->failed |= n >= WORD_MAX || len < 0 || len >= WORD_MAX;
}

/* Takes "name" or "name==version"; the version may be left out. 0 or -1. */
static int
split(struct change *m, const char *word)
{
	const char *eq = strstr(word, "==");
	size_t n = eq != NULL ? (size_t)(eq - word) : strlen(word);

	if (n == 0 || (eq != NULL && eq[2] == '\0'))
		return -1;
	put(m, "name", word, n);
	if (eq != NULL)
		put(m, "version", eq + 2, strlen(eq + 2));
	return 0;
}

/* Makes the id of a tool's grant, TOOL/NAME, from tool and word ("name" or
 * "name==version"). 0 or -1. */
static int
revoked(struct change *m, const char *tool, const char *word)
{
	const char *eq = strstr(word, "==");
	size_t n = eq != NULL ? (size_t)(eq - word) : strlen(word);
	int len;

	if (n == 0 || n >= WORD_MAX || (eq != NULL && eq[2] == '\0') ||
	    strchr(tool, '/') != NULL)
		return -1;
	len = snprintf(m->id, sizeof(m->id), "%s/%.*s", tool, (int)n, word);
	m->failed |= len < 0 || len >= (int)sizeof(m->id);
	if (eq != NULL)
		put(m, "version", eq + 2, strlen(eq + 2));
	return 0;
}

static bool
is_digest(const char *s)
{
	uint8_t digest[HEX32_LEN / 2];

	return strlen(s) == HEX32_LEN && hex_decode(s, HEX32_LEN, digest) == 0;
}

/* Reads the words after the verb. 0, or -1 if they are wrong. */
static int
take(const struct ctl *c, struct change *m)
{
	static const char *const members[] = {
	    "name", "version", "digest", "files", "bytes"};
	const char *verb = c->words[1];
	char **w = c->words + 2;
	int n = c->nwords - 2;
	bool add = strcmp(verb, "add") == 0;

	if ((add && (n == 3 || n == 5)) ||
	    (strcmp(verb, "withdraw") == 0 && n == 2)) {
		m->action = add ? "module_add" : "module_withdraw";
		for (int i = 0; i < n; i++)
			put(m, members[i], w[i], strlen(w[i]));
		return add && !is_digest(w[2]) ? -1 : 0;
	}
	if (strcmp(verb, "grant") == 0 && n == 2) {
		m->action = "module_grant";
		put(m, "tool", w[0], strlen(w[0]));
		return split(m, w[1]);
	}
	if (strcmp(verb, "revoke") == 0 && n == 2) {
		m->action = "module_revoke";
		return revoked(m, w[0], w[1]);
	}
	return -1;
}

/* Lists the fetches of modules: those under way, done and failed. */
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
	struct change m = {0};
	enum ctl_status status;
	struct buf answer;

	if (c->nwords == 1)
		return tables_command(c);
	if (c->nwords == 2 && strcmp(c->words[1], "installs") == 0)
		return installs_list(c);
	if (take(c, &m) == -1 || m.failed)
		return CTL_USAGE;
	status =
	    call_words(c, m.action, m.id, NULL, m.words, m.nwords, &answer);
	buf_free(&answer);
	if (status == CTL_DONE)
		puts(c->json ? "{\"ok\":true}" : "done");
	return status;
}
