/* Connections to PostgreSQL, and acting as another user for a while. The caller
 * shows the server's messages through show.c. */
#ifndef DBCONN_H
#define DBCONN_H

#include <stdbool.h>
#include <sys/types.h>

#include <libpq-fe.h>

#include "err.h"

/* ---- another user, for a while (root only; not with threads) ---- */

struct dbconn_user {
	uid_t uid;
	gid_t gid;
	bool changed;
};

/* Changes the effective user and group to those of `name`, with no other
 * groups; dbconn_back undoes it. NULL or "": nothing changes. 0, or -1 with err
 * if there is no such user. */
int dbconn_become(const char *name, struct dbconn_user *, struct err *);
void dbconn_back(const struct dbconn_user *);

/* ---- connections ---- */

/* Connects as system user `user` (NULL: as we are), which peer authentication
 * sees. `dbname` replaces the string's database unless NULL. Names without a
 * schema are pg_catalog's. NULL with err; PQfinish it. */
PGconn *dbconn_open(
    const char *conninfo, const char *dbname, const char *user, struct err *);
/* Writes the system user that peer authentication wants for this string, if we
 * are root and its host is a socket: the one named like its role, if there is
 * one (postgres). Otherwise "". */
void dbconn_peer(const char *conninfo, char *user, size_t len);
/* Runs one statement without parameters; its first value goes into out (may be
 * NULL). 1 with a row, 0 without; -1 with err. */
int dbconn_get(PGconn *, const char *sql, char *out, size_t len, struct err *);
/* Copies the value of a keyword in a connection string; "" if it has none. */
void dbconn_word(
    const char *conninfo, const char *keyword, char *out, size_t len);

#endif
