#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "child.h"
#include "conf.h"
#include "dbconn.h"
#include "ids.h"
#include "ipc_io.h"
#include "keyfile.h"
#include "setup.h"

enum {
	/* Time for admind to answer. A first start migrates, reads the module
	 * store, and makes a pool. */
	ANSWER_SECONDS = 90,
	LINE_MAX_BYTES = 4096
};

#define MARK_SETUP   "setup"         /* units in contrib/systemd wait for it */
#define MARK_RESTART "setup.restart" /* setup_machine_changes */

/* ---- users, directories ---- */

enum setup_outcome
setup_machine_users(struct setup *s, struct err *err)
{
	static const char *const users[] = {"mcpbox-gw-local",
	    "mcpbox-gw-tunnel", "mcpbox-admin", "mcpbox-adminweb",
	    "mcpbox-check", "mcpbox-vault", "mcpbox-sandbox", "mcpbox-pool",
	    "mcpbox-egress", "mcpbox-store", "mcpbox-owner"};
	enum { N = sizeof(users) / sizeof(users[0]) };

	for (size_t i = 0; i < N; i++)
		if (getpwnam(users[i]) == NULL || getgrnam(users[i]) == NULL) {
			err_set(err, FAILURE_NOT_FOUND,
			    "there is no user or group %s. Make them: "
			    "systemd-sysusers",
			    users[i]);
			return SETUP_FAILED;
		}
	snprintf(s->detail, sizeof(s->detail), "%d users with their groups", N);
	return SETUP_ALREADY;
}

enum setup_outcome
setup_machine_directories(struct setup *s, struct err *err)
{
	char backups[SETUP_PATH_MAX], modules[SETUP_PATH_MAX];
	const struct {
		const char *path, *user;
	} wanted[] = {{s->c->run_dir, "root"}, {s->c->conf_dir, "root"},
	    {s->c->state_dir, "root"}, {modules, "root"},
	    {backups, "mcpbox-owner"}};
	struct passwd *pw;
	struct stat st;

	snprintf(modules, sizeof(modules), "%s/modules", s->c->state_dir);
	snprintf(backups, sizeof(backups), "%s/backups", s->c->state_dir);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		pw = getpwnam(wanted[i].user);
		if (pw == NULL || lstat(wanted[i].path, &st) == -1 ||
		    !S_ISDIR(st.st_mode) || st.st_uid != pw->pw_uid) {
			err_set(err, FAILURE_NOT_FOUND,
			    "%s is no directory of %s. Make it: "
			    "systemd-tmpfiles --create",
			    wanted[i].path, wanted[i].user);
			return SETUP_FAILED;
		}
	}
	snprintf(s->detail, sizeof(s->detail), "%s, %s", s->c->run_dir,
	    s->c->state_dir);
	return SETUP_ALREADY;
}

/* ---- uids of runners ---- */

/* Finds the first range NAME:FIRST:COUNT of a file that overlaps the ids from
 * low to high. `line` gets the range's line, or "" if there is none. */
static void
overlap(const char *path, uint64_t low, uint64_t high, char *line, size_t len)
{
	char text[LINE_MAX_BYTES], *first, *count;
	uint64_t a, n;
	FILE *f = fopen(path, "re");

	*line = '\0';
	while (f != NULL && *line == '\0' &&
	    fgets(text, sizeof(text), f) != NULL) {
		text[strcspn(text, "\n")] = '\0';
		if ((first = strchr(text, ':')) == NULL ||
		    (count = strchr(first + 1, ':')) == NULL)
			continue;
		a = strtoull(first + 1, NULL, 10);
		n = strtoull(count + 1, NULL, 10);
		if (n > 0 && a <= high && a + n - 1 >= low)
			snprintf(line, len, "%s has %.200s", path, text);
	}
	if (f != NULL)
		fclose(f);
}

/* Finds a user or group whose id is in the range, and says in `line` which, or
 * "" if there is none. */
static void
account(uint64_t low, uint64_t high, char *line, size_t len)
{
	struct passwd *pw;
	struct group *gr;

	*line = '\0';
	setpwent();
	while (*line == '\0' && (pw = getpwent()) != NULL)
		if (pw->pw_uid >= low && pw->pw_uid <= high)
			snprintf(line, len, "user %s has uid %u", pw->pw_name,
			    pw->pw_uid);
	endpwent();
	setgrent();
	while (*line == '\0' && (gr = getgrent()) != NULL)
		if (gr->gr_gid >= low && gr->gr_gid <= high)
			snprintf(line, len, "group %s has gid %u", gr->gr_name,
			    gr->gr_gid);
	endgrent();
}

enum setup_outcome
setup_machine_runners(struct setup *s, struct err *err)
{
	static const char *const files[] = {"/etc/subuid", "/etc/subgid"};
	struct conf *conf = conf_new("sandboxd-spawn");
	char path[SETUP_PATH_MAX], why[512] = "";
	enum setup_outcome outcome = SETUP_FAILED;
	uint64_t low, high;

	snprintf(path, sizeof(path), "%s/sandboxd-spawn.conf", s->c->conf_dir);
	if (conf == NULL) {
		err_set(err, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	if (conf_load(conf, path, err) == -1)
		goto out;
	low = (uint64_t)conf_int(conf, "runner_uid_base");
	high = low + (uint64_t)conf_int(conf, "runner_uid_count") - 1;
	account(low, high, why, sizeof(why));
	for (size_t i = 0; i < 2 && why[0] == '\0'; i++)
		overlap(files[i], low, high, why, sizeof(why));
	if (why[0] != '\0') {
		err_set(err, FAILURE_CONFLICT,
		    "%s, which is among the ids of running tools (%llu to "
		    "%llu): both could signal each other and read each "
		    "other's files. Set another runner_uid_base in %s.local",
		    why, (unsigned long long)low, (unsigned long long)high,
		    path);
		goto out;
	}
	snprintf(s->detail, sizeof(s->detail),
	    "uids and gids %llu to %llu are nobody else's",
	    (unsigned long long)low, (unsigned long long)high);
	outcome = SETUP_ALREADY;
out:
	conf_free(conf);
	return outcome;
}

/* ---- database ---- */

char *
setup_machine_conninfo(
    const struct ctl *c, const char *keyword, struct err *err)
{
	struct conf *conf = conf_new("admind");
	char path[SETUP_PATH_MAX], *s = NULL;

	snprintf(path, sizeof(path), "%s/admind.conf", c->conf_dir);
	if (conf == NULL)
		(void)err_set(err, FAILURE_INTERNAL, "out of memory");
	else if (conf_load(conf, path, err) == 0 &&
	    (s = strdup(conf_str(conf, keyword))) == NULL)
		(void)err_set(err, FAILURE_INTERNAL, "out of memory");
	conf_free(conf);
	return s;
}

PGconn *
setup_machine_owner(const struct ctl *c, struct err *err)
{
	struct err remote = {0};
	char *conninfo = setup_remote_owner(&remote);
	const char *user = NULL;
	PGconn *db = NULL;

	if (conninfo == NULL && remote.failure != FAILURE_NOT_FOUND) {
		if (err != NULL)
			*err = remote;
		return NULL;
	}
	if (conninfo == NULL) {
		conninfo = setup_machine_conninfo(c, "owner_database", err);
		user = "mcpbox-owner";
	}
	if (conninfo != NULL) {
		db = dbconn_open(conninfo, NULL, user, err);
		explicit_bzero(conninfo, strlen(conninfo));
	}
	free(conninfo);
	return db;
}

/* ---- master key ---- */

/* setup calls this before it makes a key, because data that another key sealed
 * do not open with a new key, and people take any key that exists for the right
 * one. */
int
setup_machine_fits(
    const struct ctl *c, const uint8_t id[KEY_ID_LEN], struct err *err)
{
	char hex[2 * KEY_ID_LEN + 1] = "", other[64] = "", sql[512], there[8];
	PGconn *db = setup_machine_owner(c, err);
	int rv = -1;

	if (db == NULL)
		return -1;
	if (id != NULL)
		hex_encode(id, KEY_ID_LEN, hex);
	if (dbconn_get(db, "SELECT to_regclass('mcpbox.resting') IS NOT NULL",
		there, sizeof(there), err) == -1)
		goto out;
	if (there[0] != 't') {
		rv = 1;
		goto out;
	}
	/* hex holds only hex digits that we made, or nothing */
	snprintf(sql, sizeof(sql),
	    "SELECT encode(key_id, 'hex') FROM mcpbox.resting WHERE key_id <>"
	    " '\\x0000000000000000' ORDER BY key_id <> '\\x%s' LIMIT 1",
	    hex);
	if (dbconn_get(db, sql, other, sizeof(other), err) == -1)
		goto out;
	if (other[0] == '\0' || strcmp(other, hex) == 0)
		rv = 1;
	else
		err_set(err, FAILURE_CONFLICT,
		    "the database has data sealed by the master key %s, %s%s. "
		    "Put that key back (mcpboxctl key import FILE, from the "
		    "copy that was made of it), or see \"Lost\" in "
		    "OPERATIONS.md if there is none",
		    other,
		    id != NULL ? "but the key here is "
			       : "which is not "
				 "here",
		    hex);
out:
	PQfinish(db);
	return rv;
}

enum setup_outcome
setup_machine_key(struct setup *s, struct err *err)
{
	char where[SETUP_PATH_MAX], hex[2 * KEY_ID_LEN + 1];
	enum setup_outcome outcome;
	uint8_t id[KEY_ID_LEN];
	int have;

	if ((have = keyfile_id(s->c->key_file, id, where, err)) == -1 ||
	    setup_machine_fits(s->c, have == 1 ? id : NULL, err) == -1)
		return SETUP_FAILED;
	outcome = keyfile_make(s->c->key_file, id, where, err);
	if (outcome == SETUP_FAILED)
		return SETUP_FAILED;
	hex_encode(id, sizeof(id), hex);
	snprintf(
	    s->detail, sizeof(s->detail), "master key %s in %s", hex, where);
	return outcome;
}

/* ---- migrations ---- */

/* Returns the schema's version; 0: none yet. -1 with err. */
static long
schema(const struct ctl *c, struct err *err)
{
	PGconn *db = setup_machine_owner(c, err);
	char text[32];
	long n = -1;

	if (db == NULL)
		return -1;
	if (dbconn_get(db,
		"SELECT to_regclass('mcpbox.schema_migrations') IS NOT NULL",
		text, sizeof(text), err) != 1)
		goto out;
	n = 0;
	if (text[0] == 't')
		n = dbconn_get(db,
			"SELECT coalesce(max(version), 0) FROM"
			" mcpbox.schema_migrations",
			text, sizeof(text), err) == 1
		    ? strtol(text, NULL, 10)
		    : -1;
out:
	PQfinish(db);
	return n;
}

bool
setup_machine_systemd(void)
{
	return access("/run/systemd/system", F_OK) == 0; /* sd_booted(3) */
}

/* Runs systemctl with these words. 0, or -1 with err. */
static int
systemctl(const char *a, const char *b, struct err *err)
{
	const char *const args[] = {"--no-ask-password", a, b, NULL};
	struct child child = {
	    .program = "/usr/bin/systemctl", .args = args, .in = -1, .out = -1};
	struct buf said;
	int status;

	buf_init(&said, CHILD_SAID_MAX);
	status = child_run(&child, &said, err);
	if (status > 0)
		err_set(err, FAILURE_INTERNAL, "systemctl %s %s: %.*s", a,
		    b != NULL ? b : "", (int)(said.len < 512 ? said.len : 512),
		    said.p != NULL ? (const char *)said.p : "");
	buf_free(&said);
	return status == 0 ? 0 : -1;
}

/* Migrates as mcpbox-migrate.service does. */
static int
migrate_here(const struct ctl *c, struct err *err)
{
	char program[SETUP_PATH_MAX], conf[SETUP_PATH_MAX],
	    backups[SETUP_PATH_MAX];
	const char *const args[] = {"-m", "-b", backups, "-f", conf, NULL};
	struct passwd *pw = getpwnam("mcpbox-owner");
	struct child child = {
	    .program = program, .args = args, .in = -1, .out = -1};
	const char *last;
	struct buf said;
	int status;

	if (pw == NULL)
		return err_set(
		    err, FAILURE_NOT_FOUND, "there is no user mcpbox-owner");
	snprintf(program, sizeof(program), "%s/mcpbox-admind", c->libexec_dir);
	snprintf(conf, sizeof(conf), "%s/admind.conf", c->conf_dir);
	snprintf(backups, sizeof(backups), "%s/backups", c->state_dir);
	child.uid = pw->pw_uid;
	child.gid = pw->pw_gid;
	buf_init(&said, CHILD_SAID_MAX);
	status = child_run(&child, &said, err);
	if (status > 0) {
		/* the last line of its output says why */
		while (said.len > 0 && said.p[said.len - 1] == '\n')
			said.len--;
		buf_putc(&said, '\0');
		last =
		    strrchr(said.p != NULL ? (const char *)said.p : "", '\n');
		last = last != NULL  ? last + 1
		    : said.p != NULL ? (const char *)said.p
				     : "";
		err_set(err, FAILURE_STORAGE_UNAVAILABLE, "%s: %.700s", program,
		    last);
	}
	buf_free(&said);
	return status == 0 ? 0 : -1;
}

/* Writes a mark, a file of root's in the state directory. MARK_SETUP: units
 * wait for it, since an installation that was never set up must not look like
 * one that fails. MARK_RESTART: see setup_machine_changes. */
static int
write_mark(const struct ctl *c, const char *name, struct err *err)
{
	char path[SETUP_PATH_MAX], fresh[SETUP_PATH_MAX + 8],
	    now[TIME_TEXT_LEN + 1];
	int fd, rv = -1;

	snprintf(path, sizeof(path), "%s/%s", c->state_dir, name);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	if (access(path, F_OK) == 0)
		return 0;
	(void)unlink(fresh);
	fd = open(
	    fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", fresh);
	time_text(now_us(), now);
	if (fchmod(fd, 0644) == 0 &&
	    dprintf(fd, "%s by mcpboxctl setup, %s\n", now, MCPBOX_VERSION) >
		0 &&
	    fsync(fd) == 0 && rename(fresh, path) == 0)
		rv = 0;
	else
		(void)err_sys(err, FAILURE_INTERNAL, "%s", path);
	close(fd);
	return rv;
}

int
setup_machine_changes(const struct ctl *c, struct err *err)
{
	return write_mark(c, MARK_RESTART, err);
}

/* True if a change was made that the running processes have not read. done:
 * forgets this change. */
static bool
restart_due(const struct ctl *c, bool done)
{
	char path[SETUP_PATH_MAX];

	snprintf(path, sizeof(path), "%s/" MARK_RESTART, c->state_dir);
	return done ? unlink(path) == 0 : access(path, F_OK) == 0;
}

enum setup_outcome
setup_machine_schema(struct setup *s, struct err *err)
{
	long before, after;
	int rc;

	if ((before = schema(s->c, err)) == -1)
		return SETUP_FAILED;
	/* mcpbox-migrate gets the owner's password as a credential. The unit
	 * stays active after it has run, so `start` would not run it again. */
	if (s->remote)
		rc = !setup_machine_systemd()
		    ? err_set(err, FAILURE_INTERNAL,
			  "systemd does not run here, and it alone gives the "
			  "owner's password to mcpbox-migrate.service")
		    : write_mark(s->c, MARK_SETUP, err) == -1 ||
			systemctl("daemon-reload", NULL, err) == -1 ||
			systemctl("restart", "mcpbox-migrate.service", err) ==
			    -1
		    ? -1
		    : 0;
	else
		rc = migrate_here(s->c, err);
	if (rc == -1 || (after = schema(s->c, err)) == -1)
		return SETUP_FAILED;
	snprintf(s->detail, sizeof(s->detail), "schema at version %ld", after);
	return after == before ? SETUP_ALREADY : SETUP_DONE;
}

/* ---- start ---- */

/* Asks whether admind answers. 0, or -1 with err. */
static int
answers(const struct ctl *c, struct err *err)
{
	struct ipc_admin_query q;
	char path[SETUP_PATH_MAX];
	struct ipc_frame f;
	int fd, rv = -1;

	snprintf(path, sizeof(path), "%s/admind/ctl.sock", c->run_dir);
	fd = ipc_client_open(
	    path, IPC_ROLE_CTL, IPC_ROLE_ADMIND, "mcpboxctl", err);
	if (fd == -1)
		return -1;
	memset(&q, 0, sizeof(q));
	/* This question needs the database, which admind may not have reached
	 * yet. */
	q.what = ipc_str("administrators");
	q.id = ipc_str("");
	q.limit = 1;
	if (ipc_client_call(fd, IPC_ADMIN_QUERY, &q, CTL_TIMEOUT_MS, &f, err) ==
	    0) {
		rv = f.type == IPC_ADMIN_JSON
		    ? 0
		    : err_set(err, FAILURE_BUSY, "admind can't answer yet");
		ipc_frame_free(&f);
	}
	close(fd);
	return rv;
}

enum setup_outcome
setup_machine_start(struct setup *s, struct err *err)
{
	bool again = restart_due(s->c, false);
	struct err why = {0};
	int rc;

	snprintf(s->detail, sizeof(s->detail), "admind answers");
	if (write_mark(s->c, MARK_SETUP, err) == -1)
		return SETUP_FAILED;
	rc = answers(s->c, &why);
	if (rc == 0 && !again)
		return SETUP_ALREADY;
	if (!setup_machine_systemd()) {
		(void)restart_due(s->c, true);
		err_set(err, FAILURE_INTERNAL,
		    "systemd does not run here. Start the processes (those "
		    "that run: anew) as the units in /usr/lib/systemd/system "
		    "say, then run this again for the first administrator "
		    "(admind: %.300s)",
		    rc == 0 ? "answers with the settings of before" : why.text);
		return SETUP_FAILED;
	}
	if (systemctl("daemon-reload", NULL, err) == -1 ||
	    systemctl(again ? "restart" : "start", "mcpbox.target", err) == -1)
		return SETUP_FAILED;
	(void)restart_due(s->c, true);
	for (int i = 0; i < ANSWER_SECONDS * 10; i++) {
		if (answers(s->c, &why) == 0)
			return SETUP_DONE;
		(void)nanosleep(
		    &(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
	}
	err_set(err, FAILURE_INTERNAL,
	    "mcpbox.target was started, but admind gives no answer: %.300s. "
	    "See `systemctl --failed` and `journalctl -b -u 'mcpbox-*'`",
	    why.text);
	return SETUP_FAILED;
}
