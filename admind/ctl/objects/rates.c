#include <stdio.h>
#include <string.h>

#include "call.h"
#include "calls.h"
#include "objects.h"
#include "tables.h"

enum { WORDS_MAX = 4 };

/* Runs rates set and rates remove. Their words are the members of the body, in
 * the order of `names`. */
static enum ctl_status
change(const struct ctl *c, const char *action, char *const *words, int n)
{
	static const char *const names[WORDS_MAX] = {
	    "scope=", "subject=", "per_minute=", "burst="};
	enum ctl_status status = CTL_USAGE;
	struct buf member[WORDS_MAX], answer;
	char *text[WORDS_MAX];
	bool ok = true;

	for (int i = 0; i < n; i++) {
		buf_init(&member[i], IPC_FRAME_MAX);
		buf_puts(&member[i], names[i]);
		buf_puts(&member[i], words[i]);
		buf_putc(&member[i], '\0');
		ok = ok && !member[i].failed;
		text[i] = (char *)member[i].p;
	}
	if (ok) {
		status = call_words(c, action, "", NULL, text, n, &answer);
		if (status == CTL_DONE)
			status = tables_show(c, "rate_limit", &answer);
		buf_free(&answer);
	} else {
		fputs("mcpboxctl: a word is too long\n", stderr);
	}
	for (int i = 0; i < n; i++)
		buf_free(&member[i]);
	return status;
}

static enum ctl_status
show(const struct ctl *c, const char *what)
{
	enum ctl_status status;
	struct buf text;

	if ((status = calls_query(c, what, NULL, &text)) == CTL_DONE)
		status = tables_show(c, what, &text);
	buf_free(&text);
	return status;
}

/*
 * Runs rates [set SCOPE SUBJECT PER_MINUTE [BURST] | remove SCOPE SUBJECT], for
 * limits of one listener, principal or tool. Limits that hold for all are
 * settings (rate_*).
 */
enum ctl_status
rates_command(const struct ctl *c)
{
	if (c->nwords == 1)
		return show(c, "rate_limits");
	if (strcmp(c->words[1], "set") == 0 && c->nwords >= 5)
		return change(c, "rate_limit_set", &c->words[2], c->nwords - 2);
	if (strcmp(c->words[1], "remove") == 0 && c->nwords == 4)
		return change(c, "rate_limit_remove", &c->words[2], 2);
	return CTL_USAGE;
}

/* Runs breakers [reset]: shows the circuit breakers that are open, or closes
 * them all. */
enum ctl_status
breakers_command(const struct ctl *c)
{
	enum ctl_status status;
	struct buf answer;

	if (c->nwords == 1)
		return show(c, "breakers");
	if (strcmp(c->words[1], "reset") != 0)
		return CTL_USAGE;
	status = call_words(c, "breakers_reset", "", NULL, NULL, 0, &answer);
	buf_free(&answer);
	return status;
}
