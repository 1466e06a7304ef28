/*
 * The PostgreSQL server that a configuration names, and the things that a
 * process needs to reach it (decision 0059). Either the server is behind a unix
 * socket, where the operating system tells the server our user. Or the server
 * is on another machine. Then it is reached over TLS, at addresses that the
 * configuration has, and proves its name. Nothing here resolves a name.
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
	/* Complete strings for libpq. For a remote server they are secret, and
	 * there is one for each host of the configuration, in its order. Each
	 * string has its host first and the other hosts after it. For a unix
	 * socket there is one string, the configuration's own text. */
	char *conninfo[DATABASE_HOSTS_MAX];
	size_t n;
	/* open is conninfo[0] without the password, for arguments of other
	 * programs. password, or NULL, is for their environment. */
	char *open;
	char *password;
	/* For a remote server: the file and addresses that confinement must
	 * leave reachable. */
	char *sslrootcert;
	char *addresses[DATABASE_HOSTS_MAX]; /* numeric, one for each host */
	uint16_t ports[DATABASE_HOSTS_MAX];  /* one for each host */
};

/*
 * Reads text, a libpq connection string of the setting `keyword`. A string for
 * a remote server must have host, hostaddr, sslmode=verify-full and
 * sslrootcert=FILE, no password and nothing that makes libpq read further
 * files; else FAILURE_INVALID_PARAMS says what to write. The password is the
 * first line of the credential `keyword`_password (systemd.exec(5)), else of
 * password_file, unless that is "". The string of a unix socket is taken as it
 * is. If password_file is NULL, only the text is checked, and no password is
 * looked for. 0, or -1 with err. Call database_free in both cases.
 */
int database_read(struct database *, const char *keyword, const char *text,
    const char *password_file, struct err *);
/*
 * Splits a connection string into *open, the string without its password, and
 * *password (NULL: none). It is for running other programs: their arguments are
 * readable by all (proc(5)), their environment only by our own user and root.
 * The caller frees both results, also on failure. 0 or -1.
 */
int database_split(const char *text, char **open, char **password);
/* Frees the strings and wipes the secrets; safe on a zeroed object. */
void database_free(struct database *);

#endif
