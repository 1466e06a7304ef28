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
	char user[64];             /* the role that makes our roles */
	char host[SETUP_HOST_MAX]; /* must be in the certificate */
	uint16_t port;
	char dbname[64]; /* connected to for making our database */
	/* absolute path of the authority's certificate (PEM) */
	char sslrootcert[SETUP_PATH_MAX];
	/* host's addresses, numeric, in the resolver's order */
	char addresses[SETUP_ADDRESSES_MAX][46];
	int naddresses;
};

/* Parses postgresql://USER@HOST[:PORT]/DB?sslmode=verify-full&sslrootcert=PATH.
 * Refuses less than verify-full, a password (every user can read arguments),
 * and unknown parameters. Does not resolve the host. 0, or -1 with err. */
int setup_url_parse(const char *url, struct setup_url *, struct err *);
/* Resolves the host and fills the addresses. 0, or -1 with err. */
int setup_url_resolve(struct setup_url *, struct err *);

/* ---- setup_remote.c: configuration for a database elsewhere ---- */

/* Checks whether the installation is configured for exactly this server (host,
 * port, addresses, authority), with both roles' passwords in place. 1 yes, 0
 * no, -1 with err. */
int setup_remote_configured(const struct setup_url *, struct err *);
/*
 * Configures admind, mcpbox-migrate and mcpboxctl to use the database `mcpbox`
 * on this server, as mcpbox_app and mcpbox_owner with these passwords. Writes
 * credentials (root's, 0400), a copy of the authority's certificate, drop-ins
 * of units with IPAddressAllow= for the addresses, and lines of configuration
 * files. Each file is written whole or not at all. Call this after the roles
 * have these passwords, and then run `systemctl daemon-reload`. 0, or -1 with
 * err.
 */
int setup_database_remote(const struct setup_url *, const char *app_password,
    const char *owner_password, struct err *);
/*
 * Returns the libpq connection string of the owner role as the installation is
 * configured, for doctor and setup. The string has the password, so the caller
 * wipes and frees it. NULL with err; FAILURE_NOT_FOUND: the database is not
 * remote.
 */
char *setup_remote_owner(struct err *);
char *setup_remote_app(struct err *); /* the same for admind's role */

#endif
