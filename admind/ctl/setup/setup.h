/* Declarations for the files of `mcpboxctl setup` and for doctor's checks of an
 * installation (decision 0057). Functions that fail say why in a struct err.
 * setup_system.c prints the outcomes of the steps. */
#ifndef SETUP_H
#define SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto.h"
#include "ctl.h"
#include "err.h"
#include "setup_outcome.h"
#include "setup_url.h"

struct pg_conn; /* libpq's PGconn */

enum {
	/* 32 random bytes in base64url, and NUL */
	SETUP_PASSWORD_MAX = 44
};

/* ---- the steps (setup_cluster.c, setup_elsewhere.c, setup_machine.c) ---- */

struct setup {
	const struct ctl *c;
	struct ctl again; /* *c after setup changed its configuration */
	bool remote;      /* --database URL was given */
	struct setup_url url;
	bool admitted; /* PostgreSQL's files were changed just now */
	/* The present state after a step that went well, for people. */
	char detail[SETUP_PATH_MAX * 2];
	/* The password that setup made for the first administrator, unless that
	 * account surely was not made. Shown once, even after a failure. */
	char password[SETUP_PASSWORD_MAX];
};

/* Runs a step. SETUP_FAILED with err, else detail is filled. */
typedef enum setup_outcome setup_step(struct setup *, struct err *);

/* setup_cluster.c: steps for the distribution's PostgreSQL, by its socket. */
setup_step setup_cluster_server, setup_cluster_roles, setup_cluster_access,
    setup_cluster_login;
/* Checks our roles and our database on a server. 0: nothing is missing. 1: a
 * part is missing that roles.sql makes. -1 with err: a person must settle
 * it. */
int setup_cluster_state(struct pg_conn *, struct err *);
/* Runs roles.sql by psql, as system user `user` ("": as we are). 0, or -1 with
 * err. */
int setup_cluster_sql(const struct ctl *, const char *conninfo,
    const char *password, const char *user, struct err *);

/* setup_elsewhere.c: steps for a PostgreSQL at --database URL. */
setup_step setup_elsewhere_server, setup_elsewhere_roles;

/*
 * setup_remote.c: the step to a local database. With `--database local` it
 * removes the lines and files that setup_database_remote wrote, and restores
 * the earlier lines. The other server keeps its data, and egress's list keeps
 * that server's addresses. Without that option nothing is changed, and the step
 * fails if the database is elsewhere.
 */
setup_step setup_remote_back;

/* setup_machine.c */
setup_step setup_machine_users, setup_machine_directories,
    setup_machine_runners, setup_machine_key, setup_machine_schema,
    setup_machine_start;
/* Returns the connection string that admind has for this keyword; free it. NULL
 * with err. */
char *setup_machine_conninfo(
    const struct ctl *, const char *keyword, struct err *);
/* Connects to the database, local or remote, as its owner. NULL with err. */
struct pg_conn *setup_machine_owner(const struct ctl *, struct err *);
/* True if systemd is the service manager here. */
bool setup_machine_systemd(void);
/* Notes a change of something that running processes have read. Call this
 * before the first write. However this run ends, the step "start" of this run
 * or of the next restarts those processes. 0, or -1 with err. */
int setup_machine_changes(const struct ctl *, struct err *);
/* Checks whether the key and the data fit. 1: they do, or nothing is sealed
 * yet. -1 with err: another key sealed the data. id NULL: there is no key. */
int setup_machine_fits(
    const struct ctl *, const uint8_t id[KEY_ID_LEN], struct err *);

/* setup_admin.c */
setup_step setup_admin_first;

/* setup_system.c: `mcpboxctl setup` of an installed system. */
enum ctl_status setup_system_run(const struct ctl *);
/* setup.c: mcpboxctl setup */
enum ctl_status setup_command(const struct ctl *);

#endif
