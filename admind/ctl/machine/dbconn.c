#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dbconn.h"

/*
 * Changes effective ids only, so that dbconn_back() can take root back. Until
 * then, new files belong to the other user, and files are opened with that
 * user's rights. A server at the other end of a unix socket gets these ids from
 * the kernel (unix(7), SO_PEERCRED).
 */
int
dbconn_become(const char *name, struct dbconn_user *u, struct err *err)
{
	struct passwd *pw;

	u->changed = false;
	if (name == NULL || *name == '\0' || geteuid() != 0)
		return 0;
	if ((pw = getpwnam(name)) == NULL)
		return err_set(
		    err, FAILURE_NOT_FOUND, "there is no user %s", name);
	u->uid = geteuid();
	u->gid = getegid();
	if (setgroups(1, &pw->pw_gid) == -1 || setegid(pw->pw_gid) == -1 ||
	    seteuid(pw->pw_uid) == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "user %s", name);
		u->changed = true;
		dbconn_back(u);
		return -1;
	}
	u->changed = true;
	return 0;
}

/* Takes root back, or ends the process, because a process with only half of
 * another user's rights would be neither user. */
void
dbconn_back(const struct dbconn_user *u)
{
	if (!u->changed)
		return;
	if (seteuid(u->uid) == -1 || setegid(u->gid) == -1 ||
	    setgroups(1, &u->gid) == -1) {
		perror("mcpboxctl: taking back user 0");
		_exit(1);
	}
}

/* Ignores notices: a message that needs no action is of no use here. */
static void
unnoticed(void *arg, const char *message)
{
}

/*
 * Makes names without a schema mean PostgreSQL's own objects. In a database
 * that was made before PostgreSQL 15 any user may make functions and operators
 * in `public`. PostgreSQL calls such a function instead of a built-in one if it
 * fits the arguments better. Such a function would run with our rights, which
 * are the superuser's.
 */
static bool
own_names_only(PGconn *db)
{
	PGresult *r = PQexec(db,
	    "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)");
	bool ok = PQresultStatus(r) == PGRES_TUPLES_OK;

	PQclear(r);
	return ok;
}

PGconn *
dbconn_open(
    const char *conninfo, const char *dbname, const char *user, struct err *err)
{
	const char *const keys[] = {"dbname", "connect_timeout",
	    "application_name", dbname != NULL ? "dbname" : NULL, NULL};
	const char *const values[] = {
	    conninfo, "10", "mcpboxctl", dbname, NULL};
	struct dbconn_user as;
	const char *said;
	PGconn *db;

	if (dbconn_become(user, &as, err) == -1)
		return NULL;
	db = PQconnectdbParams(keys, values, 1);
	dbconn_back(&as);
	if (db != NULL && PQstatus(db) == CONNECTION_OK && own_names_only(db)) {
		(void)PQsetNoticeProcessor(db, unnoticed, NULL);
		return db;
	}
	said = db != NULL ? PQerrorMessage(db) : "out of memory";
	(void)err_set(err, FAILURE_STORAGE_UNAVAILABLE, "%.*s",
	    (int)strcspn(said, "\n"), said);
	PQfinish(db);
	return NULL;
}

void
dbconn_word(const char *conninfo, const char *keyword, char *out, size_t len)
{
	PQconninfoOption *all = PQconninfoParse(conninfo, NULL);

	*out = '\0';
	for (PQconninfoOption *o = all; o != NULL && o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0 && o->val != NULL)
			snprintf(out, len, "%s", o->val);
	PQconninfoFree(all);
}

void
dbconn_peer(const char *conninfo, char *user, size_t len)
{
	char host[256];

	*user = '\0';
	if (geteuid() != 0)
		return;
	dbconn_word(conninfo, "host", host, sizeof(host));
	if (host[0] != '/' && host[0] != '\0')
		return;
	dbconn_word(conninfo, "user", user, len);
	if (*user != '\0' && getpwnam(user) == NULL)
		*user = '\0';
}

int
dbconn_get(PGconn *db, const char *sql, char *out, size_t len, struct err *err)
{
	PGresult *r = PQexec(db, sql);
	ExecStatusType s = PQresultStatus(r);
	const char *said = PQerrorMessage(db);
	int rv = 0;

	if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK) {
		rv = err_set(err, FAILURE_STORAGE_UNAVAILABLE, "%.*s",
		    (int)strcspn(said, "\n"), said);
	} else if (PQntuples(r) > 0) {
		if (out != NULL)
			snprintf(out, len, "%s", PQgetvalue(r, 0, 0));
		rv = 1;
	}
	PQclear(r);
	return rv;
}
