/* Shared by the files of `mcpboxctl setup` and doctor's look at an installation
 * (decision 0057). Functions that fail say why in a struct err; only
 * setup_system.c prints. */
#ifndef SETUP_H
#define SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto.h"
#include "ctl.h"
#include "err.h"

struct pg_conn; /* libpq's PGconn */

enum {
	/* 32 random bytes in base64url, and NUL */
	SETUP_PASSWORD_MAX = 44,
	SETUP_ADDRESSES_MAX = 8,
	/* a name of RFC 1035 and NUL; a path */
	SETUP_HOST_MAX = 256,
	SETUP_PATH_MAX = 1024
};

/* The outcome of a step. SETUP_FAILED: the err says why, and what to do. */
enum setup_outcome { SETUP_DONE, SETUP_ALREADY, SETUP_FAILED };

/* ---- keyfile.c: the master key's files ---- */

/* Reads the id of the master key stored at key_file in any of its forms (plain,
 * or encrypted beside it), and the form's path in *where (for people). Returns
 * 1 and fills both; 0 if there is no key; -1 with err. */
int keyfile_id(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);
/*
 * Makes a key of 32 random bytes if keyfile_id finds none: in the best form
 * that this machine has (systemd-creds with a host key or a TPM, else a plain
 * file of root's, 0400), so that mcpbox-admind-vault.service can be given it.
 * Never overwrites. SETUP_DONE or SETUP_ALREADY fill id and where.
 */
enum setup_outcome keyfile_make(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);

/* ---- setup_url.c: --database URL ---- */

struct setup_url {
	char user[64];             /* it makes the roles; not admind's */
	char host[SETUP_HOST_MAX]; /* the certificate must name it */
	uint16_t port;
	char dbname[64]; /* connected to in order to make ours */
	/* PEM of the authority: an absolute path */
	char sslrootcert[SETUP_PATH_MAX];
	/* host's addresses, numeric, in the resolver's order */
	char addresses[SETUP_ADDRESSES_MAX][46];
	int naddresses;
};

/* Parses postgresql://USER@HOST[:PORT]/DB?sslmode=verify-full&sslrootcert=PATH.
 * Refuses less than verify-full, a password (every user can read arguments),
 * and unknown parameters. Does not resolve. 0, or -1 with err. */
int setup_url_parse(const char *url, struct setup_url *, struct err *);
/* Fills the addresses. 0 or -1 with err. */
int setup_url_resolve(struct setup_url *, struct err *);

/* ---- setup_remote.c: configuration for a database elsewhere ---- */

/* Checks whether the installation is configured for exactly this server (host,
 * port, addresses, authority), with both roles' passwords in place. 1 yes, 0
 * no, -1 with err. */
int setup_remote_configured(const struct setup_url *, struct err *);
/*
 * Writes all that makes admind, mcpbox-migrate and mcpboxctl use the database
 * `mcpbox` there, as mcpbox_app and mcpbox_owner with these passwords:
 * credentials (root's, 0400), a copy of the authority's certificate, drop-ins
 * of units with IPAddressAllow= of the addresses. Each file is written whole or
 * not at all. Call it after the roles have these passwords; the caller then
 * runs `systemctl daemon-reload`. 0, or -1 with err.
 */
int setup_database_remote(const struct setup_url *, const char *app_password,
    const char *owner_password, struct err *);
/*
 * Returns a libpq connection string of the owner role as the installation is
 * configured, for doctor and setup. A remote one has the password: it is
 * secret, free it. NULL and err->failure FAILURE_NOT_FOUND: the database is not
 * remote.
 */
char *setup_remote_owner(struct err *);
char *setup_remote_app(struct err *); /* for admind's role */

/* ---- the steps (setup_cluster.c, setup_elsewhere.c, setup_machine.c) ---- */

struct setup {
	const struct ctl *c;
	struct ctl again; /* c, after setup changed its configuration */
	bool remote;      /* --database */
	struct setup_url url;
	bool admitted; /* PostgreSQL's files were changed just now */
	/* After a step that went well: the present state. */
	char detail[SETUP_PATH_MAX * 2];
	/* The first administrator's password, if it was made here and may be in
	 * force: shown once, however the step ended. */
	char password[SETUP_PASSWORD_MAX];
};

/* Runs a step. SETUP_FAILED with err, else detail is filled. */
typedef enum setup_outcome setup_step(struct setup *, struct err *);

/* setup_cluster.c: the distribution's PostgreSQL, by its socket. */
setup_step setup_cluster_server, setup_cluster_roles, setup_cluster_access,
    setup_cluster_login;
/* Checks the roles and the database there. 0: nothing is missing. 1: something
 * that roles.sql makes. -1 with err: a person must settle it. */
int setup_cluster_state(struct pg_conn *, struct err *);
/* Runs roles.sql by psql, as this system user ("": as we are). 0, or -1 with
 * err. */
int setup_cluster_sql(const struct ctl *, const char *conninfo,
    const char *password, const char *user, struct err *);

/* setup_elsewhere.c: a PostgreSQL at --database. */
setup_step setup_elsewhere_server, setup_elsewhere_roles;

/*
 * setup_remote.c: `--database local` removes the lines and files that
 * setup_database_remote wrote, and brings the earlier lines back. The other
 * server's data stay there, and its addresses in egress's list. Without that
 * option an installation whose database is elsewhere is left alone, and this
 * fails.
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
/* Connects as the owner of the database, wherever it is. NULL with err. */
struct pg_conn *setup_machine_owner(const struct ctl *, struct err *);
/* True if systemd is the service manager here. */
bool setup_machine_systemd(void);
/* Asks whether admind answers. 0, or -1 with err. */
int setup_machine_answers(const struct ctl *, struct err *);
/* Notes a change, before the first write of something that running processes
 * have read: however this run ends, the step "start" of this one or the next
 * restarts them. 0, or -1 with err. */
int setup_machine_changes(const struct ctl *, struct err *);
/* Checks whether the key and the data fit. 1: they do, or nothing is sealed
 * yet. -1 with err: another key sealed the data. id NULL: there is no key. */
int setup_machine_fits(
    const struct ctl *, const uint8_t id[KEY_ID_LEN], struct err *);

/* setup_admin.c */
setup_step setup_admin_first;

/* setup_system.c: `mcpboxctl setup` of an installed system. */
enum ctl_status setup_system_run(const struct ctl *);

#endif
