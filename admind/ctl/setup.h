/*
 * What the files of `mcpboxctl setup` and doctor's look at an installation
 * share (decision 0057). Functions that fail say why in a struct err; only
 * setup_system.c prints.
 */
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

/* What a step came to. SETUP_FAILED: the err says why, and what to do. */
enum setup_outcome { SETUP_DONE, SETUP_ALREADY, SETUP_FAILED };

/* ---- keyfile.c: how the master key rests ---- */

/*
 * The id of the master key that rests at key_file in any of its forms (plain,
 * or encrypted beside it), and which one in *where (a path, for people).
 * Returns 1 and fills both; 0 if there is no key; -1 with err.
 */
int keyfile_id(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);
/*
 * Makes a key of 32 random bytes if keyfile_id finds none: in the best form
 * that this machine has (systemd-creds with a host key or a TPM, else a plain
 * file of root's, 0400), and whatever mcpbox-admind-vault.service needs to be
 * given it. Never overwrites. SETUP_DONE or SETUP_ALREADY fill id and where.
 */
enum setup_outcome keyfile_make(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);

/* ---- setup_url.c: --database URL ---- */

struct setup_url {
	char user[64];             /* who makes the roles; not admind's */
	char host[SETUP_HOST_MAX]; /* what the certificate must name */
	uint16_t port;
	char dbname[64]; /* where to connect to make ours */
	/* PEM of the authority: an absolute path */
	char sslrootcert[SETUP_PATH_MAX];
	/* host's addresses, numeric, in the resolver's order */
	char addresses[SETUP_ADDRESSES_MAX][46];
	int naddresses;
};

/* Parses postgresql://USER@HOST[:PORT]/DB?sslmode=verify-full&sslrootcert=PATH;
 * refuses less than verify-full, a password (arguments are for all to read),
 * and what it does not know. Does not resolve. 0 or -1 with err. */
int setup_url_parse(const char *url, struct setup_url *, struct err *);
/* Fills the addresses. 0 or -1 with err. */
int setup_url_resolve(struct setup_url *, struct err *);

/* ---- setup_remote.c: configuration for a database elsewhere ---- */

/*
 * Is the installation configured for exactly this server (host, port,
 * addresses, authority), with both roles' passwords in place? 1 yes, 0 no, -1
 * with err.
 */
int setup_remote_configured(const struct setup_url *, struct err *);
/*
 * Writes all that makes admind, mcpbox-migrate and mcpboxctl use the database
 * `mcpbox` there, as mcpbox_app and mcpbox_owner with these passwords:
 * credentials (root's, 0400), a copy of the authority's certificate, drop-ins
 * of units with IPAddressAllow= of the addresses. Whole or not at all for each
 * file. Called after the roles have these passwords; followed by
 * `systemctl daemon-reload` by the caller. 0 or -1 with err.
 */
int setup_database_remote(const struct setup_url *, const char *app_password,
    const char *owner_password, struct err *);
/*
 * A libpq connection string of the owner role as the installation is
 * configured (remote: with password; free it, it is secret), for doctor and
 * setup. NULL and err->failure FAILURE_NOT_FOUND: the database is not remote.
 */
char *setup_remote_owner(struct err *);
char *setup_remote_app(struct err *); /* of the role that admind has */

/* ---- the steps (setup_cluster.c, setup_elsewhere.c, setup_machine.c) ---- */

struct setup {
	const struct ctl *c;
	struct ctl again; /* c, once setup changed what it was read from */
	bool remote;      /* --database */
	struct setup_url url;
	bool admitted; /* PostgreSQL's files were changed just now */
	/* Of a step that went well: what there is now. */
	char detail[SETUP_PATH_MAX * 2];
	/* The first administrator's, if it was made here and may be in force:
	 * shown once, however the step ended. */
	char password[SETUP_PASSWORD_MAX];
};

/* Each: SETUP_FAILED with err, else detail is filled. */
typedef enum setup_outcome setup_step(struct setup *, struct err *);

/* setup_cluster.c: the distribution's PostgreSQL, by its socket. */
setup_step setup_cluster_server, setup_cluster_roles, setup_cluster_access,
    setup_cluster_login;
/* Which roles and which database are missing or wrong there: 0 nothing, 1
 * something that roles.sql makes, -1 with err what a person must settle. */
int setup_cluster_state(struct pg_conn *, struct err *);
/* roles.sql by psql, as this system user ("": as we are). 0 or -1 with err. */
int setup_cluster_sql(const struct ctl *, const char *conninfo,
    const char *password, const char *user, struct err *);

/* setup_elsewhere.c: one at --database. */
setup_step setup_elsewhere_server, setup_elsewhere_roles;

/* setup_remote.c: `--database local` takes away what setup_database_remote
 * wrote, and brings the lines of before back; the other server's data stay
 * there, and its addresses in egress's list. Without it an installation whose
 * database is elsewhere is left alone, and this fails. */
setup_step setup_remote_back;

/* setup_machine.c */
setup_step setup_machine_users, setup_machine_directories,
    setup_machine_runners, setup_machine_key, setup_machine_schema,
    setup_machine_start;
/* The connection string that admind has for this keyword; free it. NULL
 * with err. */
char *setup_machine_conninfo(
    const struct ctl *, const char *keyword, struct err *);
/* A connection as the owner of the database, wherever it is. NULL with err. */
struct pg_conn *setup_machine_owner(const struct ctl *, struct err *);
/* Is systemd the service manager here? */
bool setup_machine_systemd(void);
/* Does admind answer? 0 or -1 with err. */
int setup_machine_answers(const struct ctl *, struct err *);
/*
 * Before the first write of something that running processes have read: however
 * this run ends, the step "start" of this one or the next restarts them. 0 or
 * -1 with err.
 */
int setup_machine_changes(const struct ctl *, struct err *);
/* How the key and the data fit: 1 yes, or nothing is sealed yet; -1 with err:
 * the data are sealed by another. id NULL: there is no key. */
int setup_machine_fits(
    const struct ctl *, const uint8_t id[KEY_ID_LEN], struct err *);

/* setup_admin.c */
setup_step setup_admin_first;

/* setup_system.c: `mcpboxctl setup` of an installed system. */
enum ctl_status setup_system_run(const struct ctl *);

#endif
