/*
 * The PostgreSQL server that a configuration names, and the things that a
 * process needs to reach it (decision 0059). It is either behind a unix socket,
 * where the operating system says who we are. Or it is elsewhere: reached over
 * TLS, at addresses that the configuration has, and proving its name. Nothing
 * here resolves a name.
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
	/* Complete strings for libpq, secret where remote: one for each host of
	 * the configuration, in its order, with that host first and the others
	 * after it. One for a unix socket, which is the configuration's own
	 * text. */
	char *conninfo[DATABASE_HOSTS_MAX];
	size_t n;
	/* conninfo[0] without the password, for arguments of other programs;
	 * and the password, for their environment, or NULL. */
	char *open;
	char *password;
	/* Where remote: the file and addresses that confinement must leave
	 * reachable. */
	char *sslrootcert;
	char *addresses[DATABASE_HOSTS_MAX]; /* numeric, one a host */
	uint16_t ports[DATABASE_HOSTS_MAX];  /* the same */
};

/*
 * Reads text, a libpq connection string of the setting `keyword`. A remote one
 * must have host, hostaddr, sslmode=verify-full and sslrootcert=FILE, no
 * password and nothing that makes libpq read further files; else
 * FAILURE_INVALID_PARAMS says what to write. The password is the first line of
 * the credential `keyword`_password (systemd.exec(5)), else of password_file,
 * unless that is "". The string of a unix socket is taken as it is. With
 * password_file NULL the text alone is judged and no password looked for. 0, or
 * -1 with err; free in both cases.
 */
int database_read(struct database *, const char *keyword, const char *text,
    const char *password_file, struct err *);
/*
 * Splits a connection string into the string without its password and the
 * password (NULL: none). An argument is readable by all (proc(5)); the
 * environment only by our own user and root. Both results are the caller's to
 * free, also on failure. 0 or -1.
 */
int database_split(const char *text, char **open, char **password);
/* Frees it and wipes the secrets; safe on a zeroed object. */
void database_free(struct database *);

#endif
