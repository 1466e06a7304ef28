#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "crypto.h"
#include "database.h"
#include "dbconn.h"
#include "ids.h"
#include "restore.h"
#include "terminal.h"

/*
 * backup FILE writes the database as it was at one moment. pg_dump runs as the
 * database's owner, and FILE has pg_dump's custom format (docs/decisions/0034).
 * restore FILE is in restore.c.
 *
 * FILE appears whole or not at all. It is written under another name, synced to
 * the disk and read back by pg_restore. Only then is it named FILE.
 */

enum {
	PATH_BYTES_MAX = 4096,
	PASSWORD_ENV_MAX = 16 + DATABASE_PASSWORD_MAX,
	LOCK_TRIES = 10
};

int
backup_run(const struct ctl *c, const char *program, const char *const *args,
    int in, int out)
{
	char path[PATH_BYTES_MAX], password[PASSWORD_ENV_MAX];
	const char *const env[] = {"PGCONNECT_TIMEOUT=10",
	    "PGAPPNAME=mcpboxctl", c->owner_password != NULL ? password : NULL,
	    NULL};
	struct child child = {
	    .program = path, .args = args, .env = env, .in = in, .out = out};
	struct buf said, shown;
	struct err err;
	int n, status;

	n = snprintf(path, sizeof(path), "%s/%s", c->postgres_bin, program);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -1;
	/* The password goes into the environment, because every local user can
	 * read arguments. */
	n = c->owner_password == NULL ? 0
				      : snprintf(password, sizeof(password),
					    "PGPASSWORD=%s", c->owner_password);
	if (n < 0 || (size_t)n >= sizeof(password)) {
		fputs("mcpboxctl: the owner's password is too long\n", stderr);
		return -1;
	}
	buf_init(&said, CHILD_SAID_MAX);
	if ((status = child_run(&child, &said, &err)) == -1)
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
	/* The child's output may hold text of the server, so it is escaped. */
	buf_init(&shown, 16 * CHILD_SAID_MAX);
	show_block(&shown, said.p, said.len, terminal_width());
	fwrite(shown.p, 1, shown.len, stderr);
	buf_free(&shown);
	buf_free(&said);
	explicit_bzero(password, sizeof(password));
	return status == 0 ? 0 : -1;
}

/* Checks that pg_restore can read the dump's table of contents. Only a restore
 * reads the rest. */
static int
readable(const struct ctl *c, int fd)
{
	const char *const args[] = {"--list", NULL};
	int null, rc;

	if ((null = open("/dev/null", O_WRONLY | O_CLOEXEC)) == -1 ||
	    lseek(fd, 0, SEEK_SET) == -1)
		return -1;
	rc = backup_run(c, "pg_restore", args, fd, null);
	close(null);
	return rc;
}

/* Syncs the directory of path, so that the new name is on the disk, too. */
static int
sync_directory(const char *path)
{
	char dir[PATH_BYTES_MAX];
	char *slash;
	int fd, rc;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash == dir)
		slash[1] = '\0';
	else if (slash != NULL)
		*slash = '\0';
	else
		snprintf(dir, sizeof(dir), ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	rc = fsync(fd);
	close(fd);
	return rc;
}

/* Takes the lock, and waits for it for up to a second: the pg_dump of a killed
 * run may hold the lock a moment longer. */
static bool
lock(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		(void)nanosleep(
		    &(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
	}
	return false;
}

/*
 * Makes FILE.part, and locks it while this process lives. The FILE.part of a
 * killed run is removed first; a FILE.part that another backup is writing
 * stays. A file that another user put there is never written to: that user
 * could read the backup, and change it before a restore. Returns the
 * descriptor, or -1 with errno.
 */
static int
open_part(const char *part)
{
	int fd = open(part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd != -1 && lock(fd)) {
		(void)unlink(part);
		close(fd);
		fd = -1;
	}
	if (fd == -1) {
		fd = open(part,
		    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd == -1 || lock(fd))
			return fd;
	}
	close(fd);
	errno = EWOULDBLOCK;
	return -1;
}

static enum ctl_status
report(const struct ctl *c, const char *path, int fd)
{
	struct stat st;
	struct buf b;

	if (fstat(fd, &st) == -1)
		return CTL_REFUSED;
	if (!c->json) {
		printf("%s: %lld bytes\n", path, (long long)st.st_size);
		printf("The master key is not in it: keep a copy of it "
		       "elsewhere (mcpboxctl key status names it).\n");
		return CTL_DONE;
	}
	buf_init(&b, 2 * PATH_BYTES_MAX * 6);
	buf_puts(&b, "{\"file\":\"");
	show_text(&b, path, strlen(path), SHOW_LINE);
	buf_putf(&b, "\",\"bytes\":%lld}\n", (long long)st.st_size);
	terminal_out(&b);
	buf_free(&b);
	return CTL_DONE;
}

/* Notes the backup in the audit log, where `doctor` looks up the last backup.
 * The backup was made before this row, and stays even if the note fails. */
static void
note(const struct ctl *c)
{
	struct err err;
	struct buf why;
	PGconn *db = dbconn_open(c->owner_database, NULL, NULL, &err);

	if (db == NULL ||
	    dbconn_get(db,
		"SELECT mcpbox.audit_append('root', 'backed_up', 'database',"
		" '{}')",
		NULL, 0, &err) == -1) {
		buf_init(&why, 16 * sizeof(err.text));
		show_text(&why, err.text, strlen(err.text), SHOW_LINE);
		fprintf(stderr,
		    "mcpboxctl: the audit log does not say that a backup was "
		    "made: %.*s\n",
		    (int)why.len, why.p != NULL ? (const char *)why.p : "");
		buf_free(&why);
	}
	PQfinish(db);
}

enum ctl_status
backup_command(const struct ctl *c)
{
	const char *const args[] = {"--format=custom", "--schema=mcpbox",
	    "--no-password", "--dbname", c->owner_open, NULL};
	const char *path = c->words[1];
	char part[PATH_BYTES_MAX];
	enum ctl_status status = CTL_REFUSED;
	int n, fd;

	n = snprintf(part, sizeof(part), "%s.part", path);
	if (n < 0 || (size_t)n >= sizeof(part) || strchr(path, '"') != NULL ||
	    strchr(path, '\\') != NULL)
		return CTL_USAGE;
	if ((fd = open_part(part)) == -1) {
		fprintf(stderr, "mcpboxctl: %s: %s\n", part,
		    errno == EWOULDBLOCK ? "another backup is writing it"
					 : strerror(errno));
		return CTL_REFUSED;
	}
	if (backup_run(c, "pg_dump", args, -1, fd) == -1) {
		fputs(
		    "mcpboxctl: pg_dump failed; nothing was written\n", stderr);
	} else if (fsync(fd) == -1 || readable(c, fd) == -1) {
		fputs("mcpboxctl: the backup is unreadable; nothing was "
		      "written\n",
		    stderr);
	} else if (renameat2(AT_FDCWD, part, AT_FDCWD, path,
		       RENAME_NOREPLACE) == -1 ||
	    sync_directory(path) == -1) {
		fprintf(stderr, "mcpboxctl: %s: %s\n", path, strerror(errno));
	} else {
		status = report(c, path, fd);
		note(c);
	}
	if (status != CTL_DONE)
		(void)unlink(part);
	close(fd);
	return status;
}
