/*
 * A database elsewhere: --database URL, and the configuration for it.
 */
#ifndef SETUP_URL_H
#define SETUP_URL_H

#include "err.h"
#include "setup_outcome.h"

enum {
	SETUP_ADDRESSES_MAX = 8,
	/* a name of RFC 1035 and NUL */
	SETUP_HOST_MAX = 256
};

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

#endif
