#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "dbconn.h"
#include "keyfile.h"
#include "restore.h"
#include "setup.h"

/*
 * restore FILE (docs/decisions/0034) fills a new database and checks the data
 * in it. Then the new database gets the name of the present one, which keeps
 * its data under another name. Both names change in one transaction. Until then
 * the present database stays as it is. If a run is killed, the next run removes
 * the unfinished database.
 */

enum {
	NAME_MAX_PG = 63,
	/* In each try PostgreSQL waits 5 s for other sessions to end. */
	SWAP_TRIES = 6
};

struct restore {
	const struct ctl *c;
	PGconn *super;  /* connected to another database: makes and renames */
	char name[64];  /* name of the present database */
	char fresh[64]; /* name of the new database before the swap */
	char kept[64];  /* name of the present database after the swap */
	bool present;
	bool rotates; /* two keys exist, so a rotation is to be ended */
};

static int
complain(const char *what, const char *why)
{
	struct buf b;

	buf_init(&b, 64 * 1024);
	show_text(&b, why, strcspn(why, "\n"), SHOW_LINE);
	fprintf(stderr, "mcpboxctl: %s: %.*s\n", what, (int)b.len,
	    b.p != NULL ? (const char *)b.p : "");
	buf_free(&b);
	return -1;
}

/* Connects to dbname, or to the database of conninfo if dbname is NULL, as the
 * system user that peer authentication wants. NULL: stderr says why. */
static PGconn *
open_db(const char *conninfo, const char *dbname)
{
	char user[64];
	struct err err;
	PGconn *db;

	dbconn_peer(conninfo, user, sizeof(user));
	if ((db = dbconn_open(conninfo, dbname, user, &err)) == NULL)
		(void)complain("PostgreSQL", err.text);
	return db;
}

/* Runs one statement; the first value of its result goes into out (may be
 * NULL). 0 or -1. */
static int
run(PGconn *db, const char *sql, char *out, size_t len)
{
	PGresult *r = PQexec(db, sql);
	ExecStatusType s = PQresultStatus(r);
	int rc = 0;

	if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
		rc = complain("PostgreSQL", PQerrorMessage(db));
	else if (out != NULL)
		snprintf(out, len, "%s",
		    PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
	PQclear(r);
	return rc;
}

/* Runs one statement: `before`, the quoted name and `behind`. 0 or -1. */
static int
run_named(PGconn *db, const char *before, const char *name, const char *behind)
{
	char *quoted = PQescapeIdentifier(db, name, strlen(name));
	struct buf sql;
	int rc = -1;

	buf_init(&sql, 4096);
	if (quoted != NULL) {
		buf_puts(&sql, before);
		buf_puts(&sql, quoted);
		buf_puts(&sql, behind);
		buf_putc(&sql, '\0');
		if (!sql.failed)
			rc = run(db, (const char *)sql.p, NULL, 0);
	}
	PQfreemem(quoted);
	buf_free(&sql);
	return rc;
}

static int
count(PGconn *db, const char *sql, const char *name, long *out)
{
	const char *const values[] = {name};
	PGresult *r = PQexecParams(db, sql, 1, NULL, values, NULL, NULL, 0);
	int rc = -1;

	if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1) {
		*out = strtol(PQgetvalue(r, 0, 0), NULL, 10);
		rc = 0;
	} else {
		(void)complain("PostgreSQL", PQerrorMessage(db));
	}
	PQclear(r);
	return rc;
}

/* Fills name, fresh and kept, and finds whether the present database, which the
 * configuration names, exists. */
static int
names(struct restore *r)
{
	static const char there[] =
	    "SELECT count(*) FROM pg_database WHERE datname = $1";
	PQconninfoOption *o = PQconninfoParse(r->c->owner_database, NULL);
	const char *name = "";
	struct tm tm;
	time_t now = time(NULL);
	char when[17];
	long n = 0;
	int rc = -1;

	for (PQconninfoOption *i = o; i != NULL && i->keyword != NULL; i++)
		if (strcmp(i->keyword, "dbname") == 0 && i->val != NULL)
			name = i->val;
	/* the name must leave room for the endings */
	if (*name == '\0' ||
	    strlen(name) + sizeof("_20260102_030405") > NAME_MAX_PG ||
	    gmtime_r(&now, &tm) == NULL) {
		(void)complain("owner_database", "it names no database");
		goto out;
	}
	snprintf(r->name, sizeof(r->name), "%s", name);
	snprintf(r->fresh, sizeof(r->fresh), "%.50s_restoring", name);
	/* kept ends in a time. Take the first second from now on whose name no
	 * earlier restore has taken. */
	do {
		strftime(when, sizeof(when), "_%Y%m%d_%H%M%S", &tm);
		snprintf(r->kept, sizeof(r->kept), "%.46s%s", name, when);
		now++;
		rc = count(r->super, there, r->kept, &n);
	} while (rc == 0 && n > 0 && gmtime_r(&now, &tm) != NULL);
	if (rc == 0)
		rc = count(r->super, there, r->name, &n);
	r->present = n > 0;
out:
	PQconninfoFree(o);
	return rc;
}

/* Makes the new database, as sql/roles.sql makes one. admind's role may enter
 * only when the new database is complete (finish()). */
static int
make(struct restore *r)
{
	return run_named(r->super, "DROP DATABASE IF EXISTS ", r->fresh,
		   " WITH (FORCE)") == -1 ||
		run_named(r->super, "CREATE DATABASE ", r->fresh,
		    " OWNER mcpbox_owner ENCODING 'UTF8' LOCALE 'C.UTF-8'"
		    " TEMPLATE template0") == -1 ||
		run_named(r->super, "REVOKE ALL ON DATABASE ", r->fresh,
		    " FROM PUBLIC") == -1
	    ? -1
	    : 0;
}

static int
fill(struct restore *r)
{
	char conninfo[4096];
	const char *const args[] = {"--exit-on-error", "--single-transaction",
	    "--no-owner", "--no-password", "--dbname", conninfo, NULL};
	int fd, n, rc;

	n = snprintf(conninfo, sizeof(conninfo), "%s dbname=%s",
	    r->c->owner_open, r->fresh);
	if (n < 0 || (size_t)n >= sizeof(conninfo))
		return complain("owner_database", "too long");
	fd = open(r->c->words[1], O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return complain(r->c->words[1], strerror(errno));
	rc = backup_run(r->c, "pg_restore", args, fd, -1);
	close(fd);
	if (rc == -1)
		return complain(r->c->words[1], "pg_restore did not take it");
	return 0;
}

/* Reads a number from the present database, as its owner. *out is 0 if there is
 * no present database. */
static int
present(struct restore *r, const char *sql, long *out)
{
	PGconn *db;
	int rc;

	*out = 0;
	if (!r->present)
		return 0;
	if ((db = open_db(r->c->owner_database, NULL)) == NULL)
		return -1;
	rc = count(db, sql, "", out);
	PQfinish(db);
	return rc;
}

static const char schema_of[] =
    "SELECT CASE WHEN to_regclass('mcpbox.schema_migrations') IS NULL THEN 0"
    " ELSE (SELECT coalesce(max(version), 0) FROM mcpbox.schema_migrations)"
    " END WHERE $1 = ''";
/* Yields 1 if a database is from before sql/schema (decision 0088), else 0. The
 * name of migration 1 shows this, as in admind/schema/migrate.c. */
static const char old_form[] =
    "SELECT count(*) FROM mcpbox.schema_migrations"
    " WHERE version = 1 AND name = 'initial' AND $1 = ''";
static const char revision_of[] =
    "SELECT coalesce(max(revision), 0) FROM mcpbox.catalogue WHERE $1 = ''";

/*
 * Checks that the restored data are a backup of mcpbox, and complete.
 * PostgreSQL checked every constraint while it filled in the data. The audit
 * log's hashes are computed again, so that an altered file is noticed. `audit
 * verify` says whether the chain is the one that the vault signed.
 */
static int
judge(struct restore *r, PGconn *db)
{
	long schema, theirs, old, broken;

	if (present(r, schema_of, &schema) == -1 ||
	    count(db, schema_of, "", &theirs) == -1)
		return -1;
	if (theirs == 0)
		return complain(r->c->words[1], "not a backup of mcpbox");
	/* The schema versions of a database from before sql/schema count other
	 * migrations, so they can't be compared with ours. */
	if (count(db, old_form, "", &old) == -1)
		return -1;
	if (old != 0)
		return complain(r->c->words[1],
		    "it is of a build from before the one schema: restore it "
		    "with that build, `mcpboxctl export` there, and "
		    "`mcpboxctl import` into a database of this one "
		    "(docs/OPERATIONS.md, Upgrade)");
	if (schema != 0 && theirs > schema)
		return complain(r->c->words[1],
		    "it is of a newer version of mcpbox: upgrade first");
	if (count(db,
		"SELECT count(*) FROM (SELECT l.*, lag(l.hash) OVER (ORDER BY"
		" l.seq) AS before, lag(l.seq) OVER (ORDER BY l.seq) AS last"
		" FROM mcpbox.audit_log l) l WHERE $1 <> '' OR l.hash <>"
		" sha256(l.prev || mcpbox.audit_row(l.seq, l.at, l.actor,"
		" l.action, l.subject, l.detail)) OR l.prev IS DISTINCT FROM"
		" coalesce(l.before, l.prev) OR l.seq <> coalesce(l.last + 1,"
		" l.seq)",
		"", &broken) == -1)
		return -1;
	if (broken == 0 &&
	    count(db,
		"SELECT count(*) FROM mcpbox.audit_head h WHERE $1 <> '' OR"
		" (h.seq > 0 AND NOT EXISTS (SELECT 1 FROM mcpbox.audit_log l"
		" WHERE l.seq = h.seq AND l.hash = h.hash))",
		"", &broken) == -1)
		return -1;
	if (broken != 0)
		return complain(r->c->words[1], "its audit log was changed");
	return 0;
}

/* Says which key is missing, and which command mends this. If a rotation kept
 * the missing key in a file beside key_file, the command names that file. */
static int
complain_key(struct restore *r, const char *id, long n)
{
	static const char *const forms[] = {"", ".cred"};
	char file[4096], why[8192];

	for (size_t i = 0; i < 2; i++) {
		int len = snprintf(file, sizeof(file), "%s.%s%s",
		    r->c->key_file, id, forms[i]);

		if (len > 0 && (size_t)len < sizeof(file) &&
		    access(file, F_OK) == 0)
			break;
		snprintf(file, sizeof(file), "FILE");
	}
	snprintf(why, sizeof(why),
	    "%ld of its values are under the master key %s, which is not here: "
	    "first `mcpboxctl key import %s`%s, then restart admind-vault and "
	    "restore again (--leave-unreadable restores without them)",
	    n, id, file,
	    strcmp(file, "FILE") == 0 ? " with a copy of that key" : "");
	return complain(r->c->words[1], why);
}

/*
 * Judges whether a vault that starts now will open the restored values. Such a
 * vault reads the key and, during a rotation, the next key. The files decide,
 * not the running vault, which may know a key that is in no file any more.
 * Values from before key rotation existed name no key.
 */
static int
judge_keys(struct restore *r, PGconn *db)
{
	static const char under[] =
	    "SELECT encode(key_id, 'hex'), count(*) FROM mcpbox.resting WHERE"
	    " key_id <> '\\x0000000000000000' GROUP BY 1 ORDER BY 2 DESC";
	char key[2 * KEY_ID_LEN + 1] = "", next[2 * KEY_ID_LEN + 1] = "";
	char there[8];
	struct err err;
	PGresult *rows;
	int rc = -1;

	if (r->c->leave_unreadable)
		return 0;
	if (run(db, "SELECT to_regclass('mcpbox.resting') IS NOT NULL", there,
		sizeof(there)) == -1)
		return -1;
	if (strcmp(there, "t") != 0)
		return 0;
	rows = PQexec(db, under);
	if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
		(void)complain("PostgreSQL", PQerrorMessage(db));
		goto out;
	}
	/* If no value names a key, no key is needed, and there may be none
	 * yet. */
	if (PQntuples(rows) != 0 &&
	    keys_on_disk(r->c->key_file, key, next, &err) == -1) {
		char why[ERR_TEXT_MAX + 64];

		snprintf(why, sizeof(why),
		    "%s (--key-file names its file where that is elsewhere)",
		    err.text);
		(void)complain("the master key", why);
		goto out;
	}
	for (int i = 0; i < PQntuples(rows); i++)
		if (strcmp(PQgetvalue(rows, i, 0), key) != 0 &&
		    strcmp(PQgetvalue(rows, i, 0), next) != 0) {
			(void)complain_key(r, PQgetvalue(rows, i, 0),
			    strtol(PQgetvalue(rows, i, 1), NULL, 10));
			goto out;
		}
	r->rotates = next[0] != '\0';
	rc = 0;
out:
	PQclear(rows);
	return rc;
}

/* Raises the catalogue's revision, which must only grow, because gateways
 * distinguish lists by it. Notes the restore in the audit log. Runs ANALYZE,
 * since the planner knows nothing of a new database. Lets admind's role in. */
static int
finish(struct restore *r, PGconn *db)
{
	char sql[512];
	long schema = 0, revision = 0;

	if (r->present &&
	    (present(r, schema_of, &schema) == -1 ||
		(schema > 0 && present(r, revision_of, &revision) == -1)))
		return -1;
	snprintf(sql, sizeof(sql),
	    "UPDATE mcpbox.catalogue SET revision = greatest(revision, %ld) + "
	    "1",
	    revision);
	if (run(db, sql, NULL, 0) == -1)
		return -1;
	if (run(db,
		"SELECT mcpbox.audit_append('root', 'restored', 'database',"
		" json_build_object('rows', (SELECT seq FROM "
		"mcpbox.audit_head),"
		" 'schema', (SELECT max(version) FROM"
		" mcpbox.schema_migrations))::text)",
		NULL, 0) == -1 ||
	    run(db, "ANALYZE", NULL, 0) == -1)
		return -1;
	return run_named(
	    r->super, "GRANT CONNECT ON DATABASE ", r->fresh, " TO mcpbox_app");
}

/*
 * Renames both databases. RENAME locks the database against new connections and
 * waits for the old ones to end. `other`, our second connection, ends them
 * during that wait. Either both names change or neither does, because both
 * change in one transaction, which the server rolls back if this process dies.
 */
static int
rename_both(struct restore *r, PGconn *other)
{
	const char *const values[] = {r->name};
	char *from = PQescapeIdentifier(r->super, r->name, strlen(r->name));
	char *to = PQescapeIdentifier(r->super, r->kept, strlen(r->kept));
	char *fresh = PQescapeIdentifier(r->super, r->fresh, strlen(r->fresh));
	struct buf sql;
	PGresult *res;
	int rc = -1;

	buf_init(&sql, 4096);
	if (from == NULL || to == NULL || fresh == NULL)
		goto out;
	buf_puts(&sql, "BEGIN;");
	if (r->present)
		buf_putf(&sql, "ALTER DATABASE %s RENAME TO %s;", from, to);
	buf_putf(&sql, "ALTER DATABASE %s RENAME TO %s;COMMIT", fresh, from);
	buf_putc(&sql, '\0');
	if (sql.failed || PQsendQuery(r->super, (const char *)sql.p) == 0)
		goto out;
	while (PQconsumeInput(r->super) == 1 && PQisBusy(r->super)) {
		PQclear(PQexecParams(other,
		    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
		    " WHERE datname = $1 AND pid <> pg_backend_pid()",
		    1, NULL, values, NULL, NULL, 0));
		(void)nanosleep(
		    &(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
	}
	rc = 0;
	while ((res = PQgetResult(r->super)) != NULL) {
		if (PQresultStatus(res) != PGRES_COMMAND_OK)
			rc = complain("PostgreSQL", PQerrorMessage(r->super));
		PQclear(res);
	}
	if (rc == -1)
		PQclear(PQexec(r->super, "ROLLBACK"));
out:
	PQfreemem(from);
	PQfreemem(to);
	PQfreemem(fresh);
	buf_free(&sql);
	return rc;
}

static int
swap(struct restore *r)
{
	PGconn *other = open_db(r->c->superuser_database, NULL);
	int rc = -1;

	for (int i = 0; other != NULL && rc == -1 && i < SWAP_TRIES; i++)
		rc = rename_both(r, other);
	PQfinish(other);
	return rc;
}

static int
restore(struct restore *r)
{
	PGconn *db;
	int rc;

	if (make(r) == -1 || fill(r) == -1)
		return -1;
	if ((db = open_db(r->c->owner_database, r->fresh)) == NULL)
		return -1;
	rc = judge(r, db);
	if (rc == 0)
		rc = judge_keys(r, db);
	if (rc == 0)
		rc = finish(r, db);
	/* This connection would be in the way of the rename. */
	PQfinish(db);
	return rc == 0 ? swap(r) : -1;
}

enum ctl_status
restore_command(const struct ctl *c)
{
	struct restore r = {.c = c};
	enum ctl_status status = CTL_REFUSED;
	char got[8];

	if ((r.super = open_db(c->superuser_database, NULL)) == NULL)
		return CTL_UNREACHABLE;
	/* Only one restore at a time: two would fill the same new database. */
	if (run(r.super,
		"SELECT pg_try_advisory_lock(hashtext('mcpbox restore'))", got,
		sizeof(got)) == -1)
		goto out;
	if (strcmp(got, "t") != 0) {
		(void)complain("restore", "another one is under way");
		goto out;
	}
	if (names(&r) == -1)
		goto out;
	if (restore(&r) == -1) {
		(void)run_named(r.super, "DROP DATABASE IF EXISTS ", r.fresh,
		    " WITH (FORCE)");
		fputs("mcpboxctl: nothing was changed\n", stderr);
		goto out;
	}
	status = CTL_DONE;
	if (c->json) {
		printf("{\"database\":\"%s\",\"kept\":", r.name);
		printf(r.present ? "\"%s\"}\n" : "null}\n", r.kept);
		goto out;
	}
	printf("restored. ");
	if (r.present)
		printf("What there was before is the database %s: drop it when "
		       "it is of no use any more. ",
		    r.kept);
	/* Restart the target, not single units. mcpbox-migrate belongs to it
	 * and must run, since a backup may be of an older schema. An active
	 * oneshot does not run again by itself. */
	printf("Now %s, then run %s`mcpboxctl key verify` and `mcpboxctl audit "
	       "verify`.\n",
	    strcmp(c->run_dir, CTL_RUN_DIR) == 0 && setup_machine_systemd()
		? "run `systemctl restart mcpbox.target`"
		: "restart admind-vault and admind",
	    r.rotates ? "`mcpboxctl key rotate`, " : "");
out:
	PQfinish(r.super);
	return status;
}
