/*
 * Declarations that mcpboxctl's files share. Each run does one command: it
 * connects, asks, prints and exits.
 *
 * The daemons' answers are printed to an administrator's terminal. Much of
 * their text was written by strangers (LLM clients) or could come from a
 * taken-over admind, so all of it goes through common/text/show.h.
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

/* The paths of an installed package. setup and doctor look at the machine
 * itself only if the run directory is CTL_RUN_DIR. */
#define CTL_RUN_DIR   "/run/mcpbox"
#define CTL_CONF_FILE "/etc/mcpbox/mcpboxctl.conf"

enum ctl_status { /* exit status */
	CTL_DONE = 0,
	CTL_REFUSED = 1,
	CTL_USAGE = 2,
	CTL_UNREACHABLE = 3
};

enum {
	/*
	 * Limit for an answer. The daemon may itself wait for other daemons,
	 * for up to 15 s, on a slow machine longer (wait_factor). A long limit
	 * does no harm, because the person at the terminal can end the command.
	 */
	CTL_TIMEOUT_MS = 60000,
	/* for SOURCE_RUN, whose run in the sandbox talks to another machine */
	CTL_SLOW_MS = 100000,
	CTL_LIMIT_MAX = 200
};

struct ctl {
	const char *run_dir;
	bool json;
	bool all; /* approvals list: also decided ones; passkeys remove */
	/* Options of single commands; NULL or 0 if not given. */
	const char *hash, *reason, *username, *password_file, *state, *kind,
	    *cursor, *role, *journal, *key, *set;
	const char *key_file; /* the master key's file */
	bool leave_unreadable;
	bool yes;       /* access set: no question */
	uint32_t days;  /* keys create: 0 if not given */
	uint32_t batch; /* key rotate and verify: values per step; 0: as many as
			 * are allowed */
	const char *transfer_key; /* export, import: the key's file */
	/* backup, restore: as configured (conf_keys.def) */
	const char *owner_database, *superuser_database, *postgres_bin;
	const char *owner_password_file, *superuser_password_file;
	/* Set by databases_read(): the owner's connection string without the
	 * password, for the arguments of other programs, and the password for
	 * their environment, or NULL. */
	const char *owner_open, *owner_password;
	/* setup, doctor: paths of the installation, as configured */
	const char *roles_file, *libexec_dir, *conf_dir, *state_dir;
	const char *database; /* setup: URL of a server elsewhere, or "local" */
	struct {              /* remote; NULL if not given */
		const char *resource, *email, *sub, *scopes, *allow, *jwks,
		    *key_hosts, *team, *aud, *out, *proxy; /* of add */
		bool discovery;
		const char *from, *token, *ca; /* of check */
	} remote;
	/* options --NAME of admin_filter.def, without state and kind */
	const char *filter[ADMIN_FILTER_COUNT];
	uint32_t limit;
	char **words; /* command and its arguments */
	int nwords;
};

/* databases.c: adds password and hosts to owner_database and superuser_database
 * if the server is elsewhere (database.h). Commands that connect call this
 * once. The new strings live as long as the process. 0, or -1 with err. */
int databases_read(struct ctl *, struct err *);

#endif
