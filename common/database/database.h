/*
 * Which PostgreSQL a configuration means, and what a process needs to reach it
 * (decision 0059): behind a unix socket, where the operating system says who we
 * are, or elsewhere, over TLS with a server that proves its name, at addresses
 * that the configuration has. Nothing here resolves a name.
 */
#ifndef DATABASE_H
#define DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum {
	DATABASE_HOSTS_MAX = 8, /* a primary and its standbys */
	DATABASE_PASSWORD_MAX =
	    1024 /* characters; PostgreSQL takes that many */
};

struct database {
	bool remote;
	/* Complete strings for libpq, secret where remote: one a host, each
	 * with another of them first, in the order of the configuration. One
	 * for a unix socket, which is the configuration's own text. */
	char *conninfo[DATABASE_HOSTS_MAX];
	size_t n;
	/* conninfo[0] without the password, for arguments of other programs;
	 * the password, for their environment, or NULL. */
	char *open;
	char *password;
	/* Where remote: what confinement must leave possible. */
	char *sslrootcert;
	char *addresses[DATABASE_HOSTS_MAX]; /* numeric, one a host */
	uint16_t ports[DATABASE_HOSTS_MAX];  /* the same */
};

/*
 * text: a libpq connection string, of the setting `keyword`. A remote one must
 * have host, hostaddr, sslmode=verify-full and sslrootcert=FILE, no password
 * and nothing that makes libpq read further files; else FAILURE_INVALID_PARAMS
 * with what to write. The password is the first line of the credential
 * `keyword`_password (systemd.exec(5)), else of password_file, unless that is
 * "". A unix socket is taken as it is. password_file NULL: the text is judged
 * alone, no password looked for. 0, or -1 with err; free in both cases.
 */
int database_read(struct database *, const char *keyword, const char *text,
    const char *password_file, struct err *);
/*
 * A connection string without its password, which would be an argument for all
 * to read (proc(5)), and the password (NULL: none), for the environment, which
 * only our own user and root can read. Both are the caller's to free. 0 or -1;
 * free both then too.
 */
int database_split(const char *text, char **open, char **password);
/* Wipes what is secret; safe on a zeroed object. */
void database_free(struct database *);

#endif
