/*
 * What mcpboxctl's files share. One command a run: connect, ask, print, exit.
 *
 * What the daemons answer is printed to an administrator's terminal, and much
 * of it was written by strangers (LLM clients) or could come from a taken-over
 * admind: all of it goes through common/text/show.h.
 */
#ifndef CTL_H
#define CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "admin_filter.h"
#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "show.h"

/* The paths of an installed package: setup and doctor look at the machine only
 * there. */
#define CTL_RUN_DIR   "/run/mcpbox"
#define CTL_CONF_FILE "/etc/mcpbox/mcpboxctl.conf"

enum ctl_status { /* exit status */
	CTL_DONE = 0,
	CTL_REFUSED = 1,
	CTL_USAGE = 2,
	CTL_UNREACHABLE = 3
};

enum {
	/* A daemon itself waits for others for up to 15 s, on a slow machine
	 * longer (wait_factor). The person at the terminal can end the
	 * command. */
	CTL_TIMEOUT_MS = 60000,
	/* a run in the sandbox that talks to another machine */
	CTL_SLOW_MS = 100000,
	CTL_LIMIT_MAX = 200
};

struct ctl {
	const char *run_dir;
	bool json;
	bool all; /* approvals list: also decided ones */
	/* Options of single commands; NULL or 0 if not given. */
	const char *hash, *reason, *username, *password_file, *state, *kind,
	    *cursor, *role, *journal, *key;
	const char *key_file; /* key: the master key's */
	bool leave_unreadable;
	uint32_t batch; /* key: values of one step, 0: the most allowed */
	const char *transfer_key; /* export, import: a file */
	/* backup, restore: as configured (conf_keys.def) */
	const char *owner_database, *superuser_database, *postgres_bin;
	const char *owner_password_file, *superuser_password_file;
	/* databases.c: the owner's connection for arguments of other programs,
	 * and its secret part for their environment, or NULL */
	const char *owner_open, *owner_password;
	/* setup, doctor: an installation's places, as configured */
	const char *roles_file, *libexec_dir, *conf_dir, *state_dir;
	const char *database; /* setup: a server elsewhere */
	/* --NAME of common/admin/admin_filter.def, but state and kind */
	const char *filter[ADMIN_FILTER_COUNT];
	uint32_t limit;
	char **words; /* command and its arguments */
	int nwords;
};

/* databases.c: makes owner_database and superuser_database complete, with the
 * settings that a server elsewhere needs (database.h). Called once, by commands
 * that connect. Its texts live as long as the process. 0, or -1 with err. */
int databases_read(struct ctl *, struct err *);

#endif
