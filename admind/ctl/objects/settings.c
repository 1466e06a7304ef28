#include <stdio.h>
#include <string.h>

#include "call.h"
#include "objects.h"
#include "tables.h"

/* Runs settings [KEY | set KEY VALUE | reset KEY], for settings that an
 * administrator changes while the daemons run. They are kept in the database
 * and audited. */
enum ctl_status
settings_command(const struct ctl *c)
{
	enum ctl_status status;
	struct buf value, answer;
	char *word;

	if (c->nwords <= 2)
		return tables_command(c);
	if (c->nwords == 3 && strcmp(c->words[1], "reset") == 0) {
		status = call_words(
		    c, "settings_reset", c->words[2], NULL, NULL, 0, &answer);
	} else if (c->nwords == 4 && strcmp(c->words[1], "set") == 0) {
		buf_init(&value, IPC_FRAME_MAX);
		buf_puts(&value, "value=");
		buf_puts(&value, c->words[3]);
		buf_putc(&value, '\0');
		if (value.failed) {
			fputs("mcpboxctl: the value is too long\n", stderr);
			buf_free(&value);
			return CTL_USAGE;
		}
		word = (char *)value.p;
		status = call_words(
		    c, "settings_set", c->words[2], NULL, &word, 1, &answer);
		buf_free(&value);
	} else {
		return CTL_USAGE;
	}
	if (status == CTL_DONE)
		status = tables_show(c, "setting", &answer);
	buf_free(&answer);
	return status;
}
