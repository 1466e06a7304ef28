/*
 * Applies migrations. The service manager runs this before admind starts, as a
 * Unix user of its own. The owner role can drop every trigger and rewrite the
 * audit log. So admind, which handles messages from the network, must never be
 * able to take that role.
 *
 * Several nodes may start at once: an advisory lock lets one of them work while
 * the others wait and then find nothing to do. Each migration and its row in
 * schema_migrations are one transaction.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

#include "ids.h"
#include "log.h"
#include "migrate_backup.h"

/* The key of the advisory lock: a constant that no other program uses in this
 * database. */
#define LOCK_KEY "7809349842744"

/* Runs one command or many. If one fails, err gets the server's message. */
static int
run(PGconn *pg, const char *sql, struct err *err)
{
	PGresult *r = PQexec(pg, sql);
	ExecStatusType st = PQresultStatus(r);
	int rv = 0;

	if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
		rv = err_set(err, FAILURE_STORAGE_UNAVAILABLE, "%s",
		    PQresultErrorMessage(r));
	PQclear(r);
	return rv;
}

static PGresult *
query(PGconn *pg, const char *sql, struct err *err)
{
	PGresult *r = PQexec(pg, sql);

	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		return r;
	err_set(
	    err, FAILURE_STORAGE_UNAVAILABLE, "%s", PQresultErrorMessage(r));
	PQclear(r);
	return NULL;
}

static int
check_encoding(PGconn *pg, struct err *err)
{
	const char *e = PQparameterStatus(pg, "server_encoding");

	if (e == NULL || strcmp(e, "UTF8") != 0)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "the database's encoding is %s; make it with ENCODING "
		    "'UTF8'",
		    e != NULL ? e : "unknown");
	return 0;
}

/*
 * Time to wait for the PostgreSQL server, which takes some seconds on a machine
 * that is just starting. If it is absent after this time, the service manager
 * tries again. Without a backup directory we do not wait, because a person at a
 * terminal would rather see the error at once.
 */
enum { WAIT_SECONDS = 30 };

bool
migrate_away(const struct migrate *m)
{
	PGPing p = PQping(m->conninfo);

	return p == PQPING_REJECT || p == PQPING_NO_RESPONSE;
}

static void
wait_for_server(const struct migrate *m)
{
	for (int i = 0; m->backup_dir != NULL && i < WAIT_SECONDS; i++) {
		if (!migrate_away(m))
			return;
		if (i == 0)
			log_event(LOG_LV_INFO, "waiting", "for PostgreSQL");
		(void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
}

/* Sets err to a text for a person who installed an older package over a newer
 * one. The text names the way back. Returns -1. */
static int
too_new(const struct migrate *m, int version, struct err *err)
{
	char name[MIGRATE_BACKUP_NAME];

	err_set(err, FAILURE_CONFLICT,
	    "the database has migration %d, this program knows %d: use the "
	    "newer program",
	    version, migrations_count);
	if (migrate_backup_find(m, migrations_count, name) == 0)
		err_set(err, FAILURE_CONFLICT,
		    "the database has migration %d, this program knows %d: use "
		    "the newer program, or go back to what there was before "
		    "with `mcpboxctl restore %s/%s` (the present data are kept "
		    "under another name)",
		    version, migrations_count, m->backup_dir, name);
	return -1;
}

/* The name that migration 1 has in databases that were made before sql/schema
 * existed. */
static const char old_form[] = "initial";

/* Checks the applied migrations: *have becomes the newest version. The rows
 * must have the numbers 1, 2, 3 ... in order, and each row the checksum of this
 * program's migration of that number. */
static int
check_applied(const struct migrate *m, PGconn *pg, int *have, struct err *err)
{
	PGresult *r;
	int rv = -1, n, version;

	*have = 0;
	r = query(
	    pg, "SELECT to_regclass('mcpbox.schema_migrations') IS NULL", err);
	if (r == NULL)
		return -1;
	if (strcmp(PQgetvalue(r, 0, 0), "t") == 0) {
		PQclear(r);
		return 0;
	}
	PQclear(r);
	r = query(pg,
	    "SELECT version, name, encode(sha256, 'hex')"
	    " FROM mcpbox.schema_migrations ORDER BY version",
	    err);
	if (r == NULL)
		return -1;
	n = PQntuples(r);
	if (n > 0 && strcmp(PQgetvalue(r, 0, 1), old_form) == 0) {
		err_set(err, FAILURE_CONFLICT,
		    "the database is of a build from before the one schema, "
		    "and is left as it is: `mcpboxctl export` with that build, "
		    "make a new database, and `mcpboxctl "
		    "import` there (docs/OPERATIONS.md, Upgrade)");
		goto out;
	}
	for (int i = 0; i < n; i++) {
		char hex[65];

		version = (int)strtol(PQgetvalue(r, i, 0), NULL, 10);
		if (version > migrations_count) {
			(void)too_new(m, version, err);
			goto out;
		}
		if (version != i + 1) {
			err_set(err, FAILURE_CONFLICT,
			    "migration %d is missing in the database", i + 1);
			goto out;
		}
		hex_encode(migrations[i].sha256.b, 32, hex);
		if (strcmp(hex, PQgetvalue(r, i, 2)) != 0) {
			err_set(err, FAILURE_CONFLICT,
			    "migration %04d_%s was applied with other content",
			    version, PQgetvalue(r, i, 1));
			goto out;
		}
	}
	*have = n;
	rv = 0;
out:
	PQclear(r);
	return rv;
}

static int
apply(PGconn *pg, const struct migration *m, struct err *err)
{
	char version[12];
	const char *values[3] = {version, m->name, (const char *)m->sha256.b};
	int lengths[3] = {0, 0, 32}, formats[3] = {0, 0, 1};
	PGresult *r;
	int rv = 0;

	if (run(pg, "BEGIN", err) == -1)
		return -1;
	if (run(pg, m->sql, err) == -1) {
		err_wrap(err, "migration %04d_%s", m->version, m->name);
		goto fail;
	}
	snprintf(version, sizeof(version), "%d", m->version);
	r = PQexecParams(pg,
	    "INSERT INTO mcpbox.schema_migrations (version, name, sha256)"
	    " VALUES ($1::int, $2::text, $3::bytea)",
	    3, NULL, values, lengths, formats, 0);
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		rv = err_set(err, FAILURE_STORAGE_UNAVAILABLE, "%s",
		    PQresultErrorMessage(r));
	PQclear(r);
	if (rv == -1 || run(pg, "COMMIT", err) == -1)
		goto fail;
	log_event(LOG_LV_INFO, "migrated", "%04d_%s", m->version, m->name);
	return 0;
fail:
	PQclear(PQexec(pg, "ROLLBACK"));
	return -1;
}

/* Applies the migrations from `have` on. If one fails, the migrations before it
 * remain applied, so the backup is kept. If none was applied, the database is
 * unchanged, so the backup is dropped. After a lost connection it is not known
 * whether the COMMIT was done, so the backup is kept. */
static int
apply_all(const struct migrate *m, PGconn *pg, int have, struct err *err)
{
	char name[MIGRATE_BACKUP_NAME] = "";
	int first = have;

	if (m->backup_dir != NULL && have > 0 && have < migrations_count &&
	    migrate_backup(m, have + 1, name, err) == -1)
		return err_wrap(err, "no migration without a backup");
	for (; have < migrations_count; have++)
		if (apply(pg, &migrations[have], err) == -1) {
			if (have == first && name[0] != '\0' &&
			    PQstatus(pg) == CONNECTION_OK)
				migrate_backup_drop(m, name);
			return -1;
		}
	if (name[0] != '\0')
		migrate_backup_prune(m, MIGRATE_BACKUPS);
	return 0;
}

int
migrate_run(const struct migrate *m, struct err *err)
{
	PGconn *pg;
	int have, rv = -1;

	wait_for_server(m);
	pg = PQconnectdb(m->conninfo);
	if (PQstatus(pg) != CONNECTION_OK) {
		err_set(
		    err, FAILURE_STORAGE_UNAVAILABLE, "%s", PQerrorMessage(pg));
		goto out;
	}
	if (check_encoding(pg, err) == -1 ||
	    run(pg,
		"SET synchronous_commit = on;"
		"SELECT pg_advisory_lock(" LOCK_KEY ")",
		err) == -1 ||
	    check_applied(m, pg, &have, err) == -1 ||
	    apply_all(m, pg, have, err) == -1)
		goto out;
	log_event(LOG_LV_INFO, "schema", "at version %d", migrations_count);
	rv = 0;
out:
	PQfinish(pg); /* ends the session, and with it the lock */
	return rv;
}
