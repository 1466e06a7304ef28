/*
 * Connections to PostgreSQL, and acting as another user meanwhile. What the
 * server says is shown through show.c by who prints it.
 */
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

/*
 * The effective user and group become those of `name`, with no other groups;
 * dbconn_back undoes it. NULL or "": nothing changes. 0, or -1 with err if
 * there is no such user.
 */
int dbconn_become(const char *name, struct dbconn_user *, struct err *);
void dbconn_back(const struct dbconn_user *);

/* ---- connections ---- */

/*
 * Connects as system user `user` (NULL: as we are), whom peer authentication
 * sees. `dbname` takes the place of the string's database unless NULL. Names
 * without a schema are pg_catalog's. NULL with err; PQfinish it.
 */
PGconn *dbconn_open(
    const char *conninfo, const char *dbname, const char *user, struct err *);
/*
 * The system user whom peer authentication wants for this string, if we are
 * root and its host is a socket: the one named as its role, where there is
 * one (postgres). Else "".
 */
void dbconn_peer(const char *conninfo, char *user, size_t len);
/* One statement without parameters; its first value into out (may be NULL).
 * 1 with a row, 0 without; -1 with err. */
int dbconn_get(PGconn *, const char *sql, char *out, size_t len, struct err *);
/* The value of a keyword in a connection string; "" if it has none. */
void dbconn_word(
    const char *conninfo, const char *keyword, char *out, size_t len);

#endif
