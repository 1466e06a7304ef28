#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dbconn.h"
#include "doctor.h"
#include "ids.h"
#include "keyfile.h"
#include "setup.h"

enum { BACKUP_OLD_DAYS = 7, DAY_S = 86400, CLOCK_SLACK_S = 60 };

/* Returns the time that a query yields, in seconds since 1970; 0: none. */
static long long
seconds(PGconn *db, const char *sql)
{
	char text[32] = "";

	return dbconn_get(db, sql, text, sizeof(text), NULL) == 1
	    ? strtoll(text, NULL, 10)
	    : 0;
}

static void
schema(struct doctor *d, PGconn *db)
{
	char text[32] = "0";

	(void)dbconn_get(db,
	    "SELECT coalesce(max(version), 0) FROM mcpbox.schema_migrations",
	    text, sizeof(text), NULL);
	if (strtol(text, NULL, 10) == MIGRATIONS_COUNT)
		doctor_row(d, "schema", DOCTOR_HOLDS, "", "version %s", text);
	else
		doctor_row(d, "schema", DOCTOR_MISSING,
		    "systemctl reset-failed mcpbox-migrate; systemctl "
		    "restart mcpbox-migrate mcpbox-admind; "
		    "journalctl -u mcpbox-migrate says why it did not.",
		    "version %s, %d is needed", text, MIGRATIONS_COUNT);
}

/* Returns the time of the newest backup in the directory of backups that are
 * made before upgrades; 0: the directory has none. */
static long long
newest_file(const struct ctl *c)
{
	char path[SETUP_PATH_MAX];
	long long newest = 0;
	struct dirent *e;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/backups", c->state_dir);
	if ((dir = opendir(path)) == NULL)
		return 0;
	while ((e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.' &&
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ==
			0 &&
		    S_ISREG(st.st_mode) && st.st_mtime > newest)
			newest = st.st_mtime;
	closedir(dir);
	return newest;
}

static void
backups(struct doctor *d, PGconn *db)
{
	static const char fix[] = "mcpboxctl backup FILE, regularly (a timer), "
				  "to where the master key is not.";
	long long now = time(NULL), newest = newest_file(d->c), made;

	made = seconds(db,
	    "SELECT extract(epoch FROM at)::bigint FROM mcpbox.audit_log WHERE"
	    " action = 'backed_up' ORDER BY seq DESC LIMIT 1");
	if (made > newest)
		newest = made;
	if (newest == 0)
		doctor_row(d, "backup", DOCTOR_DEGRADED, fix, "there is none");
	else if (now - newest > BACKUP_OLD_DAYS * DAY_S)
		doctor_row(d, "backup", DOCTOR_DEGRADED, fix,
		    "the newest is %lld days old", (now - newest) / DAY_S);
	else
		doctor_row(d, "backup", DOCTOR_HOLDS, "",
		    "the newest is %lld hours old",
		    now > newest ? (now - newest) / 3600 : 0);
}

static void
clock_of(struct doctor *d, PGconn *db)
{
	long long last = seconds(db,
	    "SELECT extract(epoch FROM at)::bigint FROM mcpbox.audit_log"
	    " ORDER BY seq DESC LIMIT 1");

	if (last > time(NULL) + CLOCK_SLACK_S)
		doctor_row(d, "clock", DOCTOR_MISSING,
		    "Set the clock; timedatectl set-ntp true.",
		    "the clock is %lld s behind the newest audit row: logins, "
		    "tokens and approvals last longer than they should",
		    last - time(NULL));
	else
		doctor_row(d, "clock", DOCTOR_HOLDS, "",
		    "not behind what was written");
}

static void
key(struct doctor *d)
{
	char where[SETUP_PATH_MAX], hex[2 * KEY_ID_LEN + 1];
	uint8_t id[KEY_ID_LEN];
	struct err err = {0};
	int have = keyfile_id(d->c->key_file, id, where, &err);

	if (have == 0)
		doctor_row(d, "master_key", DOCTOR_MISSING,
		    "mcpboxctl key import FILE, from its copy; on a new "
		    "installation mcpboxctl setup.",
		    "there is none at %s", d->c->key_file);
	else if (have == -1 || setup_machine_fits(d->c, id, &err) == -1)
		doctor_row(d, "master_key", DOCTOR_MISSING,
		    "mcpboxctl key import FILE, from the key's copy.", "%s",
		    err.text);
	else {
		hex_encode(id, sizeof(id), hex);
		doctor_row(
		    d, "master_key", DOCTOR_HOLDS, "", "%s in %s", hex, where);
		doctor_row(d, "key_copy", DOCTOR_HOLDS, "",
		    "only you know whether there is a copy of key %s elsewhere "
		    "(mcpboxctl key export); without it a lost disk is the "
		    "loss of all secrets",
		    hex);
	}
}

/* Tries root's login at the database, which `backup` and `restore` use. */
static void
way_in(struct doctor *d)
{
	struct err err;
	PGconn *db = dbconn_open(d->c->owner_database, NULL, NULL, &err);

	if (db == NULL)
		doctor_row(d, "backup_login", DOCTOR_DEGRADED,
		    "pg_ident.conf needs a line `mcpbox root mcpbox_owner` "
		    "(mcpboxctl setup writes it).",
		    "mcpboxctl backup does not get in: %s", err.text);
	PQfinish(db);
}

void
doctor_data(struct doctor *d)
{
	char version[64] = "";
	struct err err = {0};
	PGconn *db = setup_machine_owner(d->c, &err);

	if (db == NULL) {
		doctor_row(d, "database", DOCTOR_MISSING,
		    "systemctl status postgresql; mcpboxctl setup says what "
		    "it lacks.",
		    "%s", err.text);
		return;
	}
	(void)dbconn_get(
	    db, "SHOW server_version", version, sizeof(version), NULL);
	doctor_row(d, "database", DOCTOR_HOLDS, "", "PostgreSQL %s at %s%s",
	    version, PQhost(db), PQsslInUse(db) ? ", TLS" : "");
	schema(d, db);
	key(d);
	backups(d, db);
	clock_of(d, db);
	way_in(d);
	PQfinish(db);
}
