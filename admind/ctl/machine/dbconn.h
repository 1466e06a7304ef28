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
 * groups; dbconn_back undoes it. Nothing changes if name is NULL or "", or if
 * we are not root. 0, or -1 with err. */
int dbconn_become(const char *name, struct dbconn_user *, struct err *);
void dbconn_back(const struct dbconn_user *);

/* ---- connections ---- */

/* Connects as system user `user` (NULL: our own), whom peer authentication
 * sees. dbname, unless NULL, replaces the database of conninfo. Names without a
 * schema are pg_catalog's. The caller calls PQfinish. NULL with err. */
PGconn *dbconn_open(
    const char *conninfo, const char *dbname, const char *user, struct err *);
/* Writes the system user that peer authentication wants for conninfo: the user
 * with the name of the string's role, such as postgres. "" if we are not root,
 * if the host is no socket, or if there is no such user. */
void dbconn_peer(const char *conninfo, char *user, size_t len);
/* Runs one statement without parameters; its first value goes into out (may be
 * NULL). 1 with a row, 0 without; -1 with err. */
int dbconn_get(PGconn *, const char *sql, char *out, size_t len, struct err *);
/* Copies a keyword's value from a connection string; "" if it is not set. */
void dbconn_word(
    const char *conninfo, const char *keyword, char *out, size_t len);

#endif
