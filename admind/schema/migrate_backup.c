#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "child.h"
#include "database.h"
#include "log.h"
#include "migrate_backup.h"

/*
 * The directory belongs to the user that runs this (mcpbox-owner, mode 0700). A
 * process that could put a link or another file there can change the database
 * anyway.
 */

enum {
	NUMBER_AT = sizeof("before-") - 1,
	DATE_AT = sizeof("before-0023-") - 1,
	FILES_MAX = 256, /* files to look at; there are six */
	PROGRAM_MAX = 1024,
	CONNINFO_MAX = 4096
};

static const char suffix[] = ".dump";

/* Returns whether the name has the form before-DDDD-DDDDDDDDTDDDDDDZ.dump. */
static bool
is_ours(const char *name)
{
	static const char form[] = "before-####-########T######Z.dump";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] == '#' ? name[i] < '0' || name[i] > '9'
				   : name[i] != form[i])
			return false;
	return true;
}

/* Compares two names for qsort, newest first. */
static int
by_date(const void *a, const void *b)
{
	return strcmp((const char *)b + DATE_AT, (const char *)a + DATE_AT);
}

/* Lists the backups, newest first, and removes the partial files that a killed
 * run left. Returns the number of backups. */
static int
list(const struct migrate *m, char names[FILES_MAX][MIGRATE_BACKUP_NAME])
{
	DIR *d = opendir(m->backup_dir);
	struct dirent *e;
	int n = 0;

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		size_t len = strlen(e->d_name);

		if (strncmp(e->d_name, "before-", NUMBER_AT) == 0 && len > 5 &&
		    strcmp(e->d_name + len - 5, ".part") == 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
		else if (n < FILES_MAX && is_ours(e->d_name))
			memcpy(names[n++], e->d_name, MIGRATE_BACKUP_NAME);
	}
	closedir(d);
	qsort(names, (size_t)n, sizeof(names[0]), by_date);
	return n;
}

static void
drop(const struct migrate *m, const char *name)
{
	int d = open(m->backup_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (d == -1)
		return;
	(void)unlinkat(d, name, 0);
	close(d);
}

void
migrate_backup_drop(const struct migrate *m, const char *name)
{
	drop(m, name);
}

void
migrate_backup_prune(const struct migrate *m, int keep)
{
	static char names[FILES_MAX][MIGRATE_BACKUP_NAME];
	int n = list(m, names);

	for (int i = keep; i < n; i++)
		drop(m, names[i]);
}

int
migrate_backup_find(
    const struct migrate *m, int count, char name[MIGRATE_BACKUP_NAME])
{
	static char names[FILES_MAX][MIGRATE_BACKUP_NAME];
	int n = m->backup_dir != NULL ? list(m, names) : 0;

	for (int i = 0; i < n; i++)
		if (strtol(names[i] + NUMBER_AT, NULL, 10) <= count + 1) {
			memcpy(name, names[i], MIGRATE_BACKUP_NAME);
			return 0;
		}
	return -1;
}

/*
 * Drops the backups before the same migration, except the newest one. So
 * restarts of the unit after a kill in the middle can't fill the disk.
 */
static void
prune_same(const struct migrate *m, const char *coming)
{
	static char names[FILES_MAX][MIGRATE_BACKUP_NAME];
	int n = list(m, names), same = 0;

	for (int i = 0; i < n; i++)
		if (strncmp(names[i], coming, DATE_AT) == 0 && same++ >= 1)
			drop(m, names[i]);
}

/* Writes pg_dump's output to fd, then lets pg_restore read it back. */
static int
dump(const struct migrate *m, int fd, struct err *err)
{
	char program[PROGRAM_MAX];
	char *conninfo = NULL, *password = NULL;
	struct buf secret, said;
	const char *env[3] = {"PGAPPNAME=mcpbox-migrate", NULL, NULL};
	const char *args[] = {"--format=custom", "--schema=mcpbox",
	    "--no-password", "--dbname", NULL, NULL};
	const char *const look[] = {"--list", NULL};
	struct child c = {
	    .program = program, .args = args, .env = env, .in = -1, .out = fd};
	int null = -1, rv = -1, status;

	buf_init(&secret, CONNINFO_MAX);
	buf_init(&said, CHILD_SAID_MAX);
	if (database_split(m->conninfo, &conninfo, &password) == -1) {
		err_set(err, FAILURE_INTERNAL, "owner_database is unreadable");
		goto out;
	}
	args[4] = conninfo;
	if (password != NULL) {
		buf_putf(&secret, "PGPASSWORD=%s", password);
		buf_putc(&secret, '\0');
		env[1] = (const char *)secret.p;
	}
	snprintf(program, sizeof(program), "%s/pg_dump", m->postgres_bin);
	status = child_run(&c, &said, err);
	if (status > 0)
		err_set(err, FAILURE_STORAGE_UNAVAILABLE, "%s failed: %.*s",
		    program, (int)(said.len < 512 ? said.len : 512),
		    said.p != NULL ? (const char *)said.p : "");
	if (status != 0)
		goto out;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null == -1 || fsync(fd) == -1 || lseek(fd, 0, SEEK_SET) == -1) {
		err_sys(err, FAILURE_INTERNAL, "backup");
		goto out;
	}
	snprintf(program, sizeof(program), "%s/pg_restore", m->postgres_bin);
	c.args = look;
	c.in = fd;
	c.out = null;
	status = child_run(&c, &said, err);
	if (status > 0)
		err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "the backup can't be read back: %s failed", program);
	rv = status == 0 ? 0 : -1;
out:
	if (null != -1)
		close(null);
	buf_free(&said);
	buf_free(&secret);
	free(conninfo);
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	free(password);
	return rv;
}

/*
 * Makes a name with the present time. If that name exists (a script restored
 * and migrated again), takes the name of a later second. If another process
 * takes the name between this check and the rename, the rename fails, so
 * nothing is overwritten.
 */
static int
new_name(int dir, int next, char name[MIGRATE_BACKUP_NAME])
{
	time_t now = time(NULL);
	char date[24];
	struct tm tm;

	if (next < 1 || next > 9999)
		return -1;
	for (int i = 0; i < FILES_MAX; i++, now++) {
		if (gmtime_r(&now, &tm) == NULL ||
		    strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm) != 16)
			return -1;
		snprintf(name, MIGRATE_BACKUP_NAME, "before-%04d-%.16s%s", next,
		    date, suffix);
		if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == -1)
			return 0;
	}
	return -1;
}

int
migrate_backup(const struct migrate *m, int next,
    char name[MIGRATE_BACKUP_NAME], struct err *err)
{
	char part[MIGRATE_BACKUP_NAME + 8], mine[MIGRATE_BACKUP_NAME];
	int dir = -1, fd = -1, rv = -1;

	dir = open(m->backup_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", m->backup_dir);
		goto out;
	}
	if (new_name(dir, next, mine) == -1) {
		err_set(err, FAILURE_INTERNAL, "no name for a backup");
		goto out;
	}
	snprintf(part, sizeof(part), "%s.part", mine);
	prune_same(m, mine);
	fd = openat(dir, part,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s/%s", m->backup_dir, part);
		goto out;
	}
	if (dump(m, fd, err) == -1)
		goto out;
	if (renameat2(dir, part, dir, mine, RENAME_NOREPLACE) == -1 ||
	    fsync(dir) == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s/%s", m->backup_dir, mine);
		goto out;
	}
	memcpy(name, mine, sizeof(mine));
	log_event(
	    LOG_LV_INFO, "backup", "%s/%s was written", m->backup_dir, mine);
	rv = 0;
out:
	if (rv == -1 && fd != -1)
		(void)unlinkat(dir, part, 0);
	if (fd != -1)
		close(fd);
	if (dir != -1)
		close(dir);
	return rv;
}
