#include <stdio.h>
#include <string.h>

#include "ctl.h"

/*
 * settings [set KEY VALUE]: what an administrator changes while all runs. Kept
 * in the database and audited; only this socket (uid 0) may write it.
 */
enum ctl_status
settings_command(const struct ctl *c)
{
	struct ipc_setting_set m;
	enum ctl_status status;
	struct ipc_frame f;

	if (c->nwords == 1)
		return tables_command(c);
	if (c->nwords != 4 || strcmp(c->words[1], "set") != 0)
		return CTL_USAGE;
	memset(&m, 0, sizeof(m));
	m.key = ipc_str(c->words[2]);
	m.value = ipc_str(c->words[3]);
	status = calls_ask(
	    c, "admind", IPC_ROLE_ADMIND, IPC_SETTING_SET, &m, IPC_OK, &f);
	if (status != CTL_DONE)
		return status;
	ipc_frame_free(&f);
	puts(c->json ? "{\"ok\":true}" : "done");
	return CTL_DONE;
}
