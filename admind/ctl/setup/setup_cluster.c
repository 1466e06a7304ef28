#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "database.h"
#include "dbconn.h"
#include "setup.h"
#include "setup_lines.h"

/*
 * Steps for the distribution's cluster (decision 0057). Everything is done as
 * the cluster's own user, `postgres`, for two reasons. Peer authentication
 * makes that user the server's superuser. And that user may replace the
 * server's files by others, so root must not follow their names. A hostile
 * `postgres` gains nothing by wrong answers here, since the database is its own
 * anyway.
 */

enum {
	PG_OLDEST = 150000, /* for SQL bodies of functions and
			     * security_invoker */
	FILE_BYTES_MAX = 1024 * 1024,
	/* one per 100 ms: the server takes a while to read changed files again,
	 * but has long read files that did not change */
	LOGIN_TRIES = 50,
	LOGIN_TRIES_UNCHANGED = 10
};

/* The lines admit only our roles, and only to our database and to the new one
 * of a restore. */
static const char hba_lines[] =
    "local mcpbox,mcpbox_restoring mcpbox_owner peer map=mcpbox\n"
    "local mcpbox mcpbox_app peer map=mcpbox\n";
/* root may log in as mcpbox_owner, so that `mcpboxctl backup` needs no second
 * identity. root can become that user anyway. */
static const char ident_lines[] = "mcpbox mcpbox-owner mcpbox_owner\n"
				  "mcpbox mcpbox-admin mcpbox_app\n"
				  "mcpbox root mcpbox_owner\n";

static PGconn *
superuser(const struct ctl *c, struct err *err)
{
	char user[64];

	dbconn_peer(c->superuser_database, user, sizeof(user));
	return dbconn_open(c->superuser_database, NULL, user, err);
}

/* Lists the ports of the servers whose sockets are in dir, as "5432, 5433"; ""
 * if there is none. */
static void
other_ports(const char *dir, char *out, size_t len)
{
	static const char prefix[] = ".s.PGSQL.";
	DIR *d = opendir(dir);
	struct dirent *e;

	*out = '\0';
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		const char *port = e->d_name + sizeof(prefix) - 1;

		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) == 0 &&
		    strspn(port, "0123456789") == strlen(port))
			snprintf(out + strlen(out), len - strlen(out), "%s%s",
			    *out != '\0' ? ", " : "", port);
	}
	closedir(d);
}

enum setup_outcome
setup_cluster_server(struct setup *s, struct err *err)
{
	char dir[256], ports[128], version[32], text[64];
	enum setup_outcome outcome = SETUP_FAILED;
	PGconn *db = superuser(s->c, err);
	struct err again;

	dbconn_word(s->c->superuser_database, "host", dir, sizeof(dir));
	if (db == NULL) {
		other_ports(dir, ports, sizeof(ports));
		again = *err;
		if (ports[0] == '\0')
			err_set(err, FAILURE_STORAGE_UNAVAILABLE,
			    "no PostgreSQL server listens in %s. Install it "
			    "(apt install postgresql) or start it (systemctl "
			    "start postgresql; pg_lsclusters shows it), or "
			    "give --database URL for one elsewhere",
			    dir);
		else
			err_set(err, FAILURE_STORAGE_UNAVAILABLE,
			    "%.300s. Servers listen in %s on port %s: if that "
			    "is another port than ours, add port=N to "
			    "`superuser_database` and `owner_database` in "
			    "mcpboxctl.conf.local and to `database` and "
			    "`owner_database` in admind.conf.local",
			    again.text, dir, ports);
		return SETUP_FAILED;
	}
	if (dbconn_get(
		db, "SHOW server_version_num", text, sizeof(text), err) != 1 ||
	    dbconn_get(
		db, "SHOW server_version", version, sizeof(version), err) != 1)
		goto out;
	if (strtol(text, NULL, 10) < PG_OLDEST) {
		err_set(err, FAILURE_INVALID_PARAMS,
		    "PostgreSQL %s is too old: 15 or newer is needed", version);
		goto out;
	}
	snprintf(
	    s->detail, sizeof(s->detail), "PostgreSQL %s in %s", version, dir);
	outcome = SETUP_ALREADY;
out:
	PQfinish(db);
	return outcome;
}

int
setup_cluster_state(PGconn *db, struct err *err)
{
	char text[64];

	if (dbconn_get(db,
		"SELECT string_agg(rolname, ', ') FROM pg_roles WHERE rolname"
		" IN ('mcpbox_owner', 'mcpbox_app') AND (rolsuper OR"
		" rolcreaterole OR rolbypassrls)",
		text, sizeof(text), err) == -1)
		return -1;
	if (text[0] != '\0')
		return err_set(err, FAILURE_CONFLICT,
		    "the role %s may do more than it should. ALTER ROLE ... "
		    "NOSUPERUSER NOCREATEROLE NOBYPASSRLS, if it is ours",
		    text);
	if (dbconn_get(db,
		"SELECT r.rolname || ', encoding ' ||"
		" pg_encoding_to_char(d.encoding) FROM pg_database d JOIN"
		" pg_roles r ON r.oid = d.datdba WHERE datname = 'mcpbox'",
		text, sizeof(text), err) == -1)
		return -1;
	if (text[0] != '\0' && strcmp(text, "mcpbox_owner, encoding UTF8") != 0)
		return err_set(err, FAILURE_CONFLICT,
		    "there is a database mcpbox already, owner %s. Ours is of "
		    "mcpbox_owner and UTF8: rename that one (ALTER DATABASE "
		    "mcpbox RENAME TO ...)",
		    text);
	if (dbconn_get(db,
		"SELECT (SELECT count(*) FROM pg_roles WHERE rolname IN"
		" ('mcpbox_owner', 'mcpbox_app')) = 2 AND EXISTS (SELECT 1"
		" FROM pg_database WHERE datname = 'mcpbox')",
		text, sizeof(text), err) != 1)
		return -1;
	if (text[0] != 't')
		return 1;
	/* This comes last, since has_database_privilege() fails for a role that
	 * does not exist. */
	if (dbconn_get(db,
		"SELECT has_database_privilege('mcpbox_app', 'mcpbox',"
		" 'CONNECT') AND NOT EXISTS (SELECT 1 FROM pg_database d,"
		" aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a"
		" WHERE d.datname = 'mcpbox' AND a.grantee = 0)",
		text, sizeof(text), err) != 1)
		return -1;
	return text[0] == 't' ? 0 : 1;
}

/* Options for psql: no notices, and names without a schema are PostgreSQL's own
 * (dbconn.c). */
static const char quiet_and_ours[] =
    "PGOPTIONS=-c client_min_messages=warning -c search_path=pg_catalog";

int
setup_cluster_sql(const struct ctl *c, const char *conninfo,
    const char *password, const char *user, struct err *err)
{
	char program[SETUP_PATH_MAX], secret[512];
	const char *const args[] = {"-X", "-q", "-v", "ON_ERROR_STOP=1",
	    "--no-password", "-d", conninfo, "-f", "-", NULL};
	const char *env[] = {"PGAPPNAME=mcpboxctl", "PGCONNECT_TIMEOUT=10",
	    quiet_and_ours, NULL, NULL};
	struct child child = {
	    .program = program, .args = args, .env = env, .in = -1, .out = -1};
	struct passwd *pw;
	struct buf said;
	int status = -1;

	buf_init(&said, CHILD_SAID_MAX);
	snprintf(program, sizeof(program), "%s/psql", c->postgres_bin);
	if (password != NULL && *password != '\0') {
		snprintf(secret, sizeof(secret), "PGPASSWORD=%s", password);
		env[3] = secret;
	}
	if (*user != '\0') {
		if ((pw = getpwnam(user)) == NULL) {
			err_set(err, FAILURE_NOT_FOUND, "there is no user %s",
			    user);
			goto out;
		}
		child.uid = pw->pw_uid;
		child.gid = pw->pw_gid;
	}
	child.in = open(c->roles_file, O_RDONLY | O_CLOEXEC);
	if (child.in == -1) {
		err_sys(err, FAILURE_INTERNAL, "%s", c->roles_file);
		goto out;
	}
	status = child_run(&child, &said, err);
	if (status > 0)
		err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "%s did not take %s: %.*s", program, c->roles_file,
		    (int)(said.len < 512 ? said.len : 512),
		    said.p != NULL ? (const char *)said.p : "");
out:
	if (child.in != -1)
		close(child.in);
	explicit_bzero(secret, sizeof(secret));
	buf_free(&said);
	return status == 0 ? 0 : -1;
}

enum setup_outcome
setup_cluster_roles(struct setup *s, struct err *err)
{
	enum setup_outcome outcome = SETUP_FAILED;
	PGconn *db = superuser(s->c, err);
	char user[64], *conninfo = NULL, *password = NULL;
	int state;

	if (db == NULL)
		return SETUP_FAILED;
	dbconn_peer(s->c->superuser_database, user, sizeof(user));
	if (database_split(s->c->superuser_database, &conninfo, &password) ==
	    -1) {
		err_set(err, FAILURE_INVALID_PARAMS,
		    "superuser_database is no connection string");
		goto out;
	}
	if ((state = setup_cluster_state(db, err)) == -1)
		goto out;
	if (state == 1 &&
	    (setup_cluster_sql(s->c, conninfo, password, user, err) == -1 ||
		setup_cluster_state(db, err) == -1))
		goto out;
	snprintf(s->detail, sizeof(s->detail),
	    "roles mcpbox_owner and mcpbox_app, database mcpbox");
	outcome = state == 1 ? SETUP_DONE : SETUP_ALREADY;
out:
	free(conninfo);
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	free(password);
	PQfinish(db);
	return outcome;
}

/* ---- pg_hba.conf, pg_ident.conf; as their owner ---- */

/* Reads the file's bytes and mode. 0, or -1 with err. */
static int
read_file(const char *path, struct buf *text, mode_t *mode, struct err *err)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	uint8_t chunk[4096];
	struct stat st;
	ssize_t n = -1;

	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", path);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		while ((n = read(fd, chunk, sizeof(chunk))) > 0)
			buf_put(text, chunk, (size_t)n);
		*mode = st.st_mode & 0777;
	}
	if (n == -1 || text->failed)
		err_sys(err, FAILURE_INTERNAL, "%s can't be read", path);
	else if (st.st_uid != geteuid())
		n = err_set(err, FAILURE_CONFLICT,
		    "%s does not belong to the server's user: somebody else "
		    "writes it. Put these lines at its top, then run this "
		    "again",
		    path);
	close(fd);
	return n == -1 || text->failed ? -1 : 0;
}

/* Writes a file whole or not at all. The first time, the former file stays
 * beside it as *.before-mcpbox. */
static int
write_file(
    const char *path, const struct buf *text, mode_t mode, struct err *err)
{
	char fresh[PATH_MAX], kept[PATH_MAX];
	int fd, rv = -1;

	if (snprintf(fresh, sizeof(fresh), "%s.mcpbox-new", path) >=
		(int)sizeof(fresh) ||
	    snprintf(kept, sizeof(kept), "%s.before-mcpbox", path) >=
		(int)sizeof(kept))
		return err_set(err, FAILURE_TOO_LARGE, "%.200s...", path);
	(void)unlink(fresh); /* left by a killed run */
	fd = open(
	    fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", fresh);
	if (write(fd, text->p, text->len) == (ssize_t)text->len &&
	    fchmod(fd, mode) == 0 && fsync(fd) == 0 &&
	    (link(path, kept) == 0 || errno == EEXIST) &&
	    rename(fresh, path) == 0)
		rv = 0;
	else
		(void)err_sys(err, FAILURE_INTERNAL, "%s", fresh);
	close(fd);
	return rv;
}

/* Asks the server to check one of its files as it is on the disk. out gets the
 * first error with its line, or "". 0, or -1 with err. */
static int
judged(PGconn *db, const char *view, char *out, size_t len, struct err *err)
{
	char sql[256];

	*out = '\0';
	snprintf(sql, sizeof(sql),
	    "SELECT 'line ' || line_number || ': ' || error FROM %s WHERE"
	    " error IS NOT NULL ORDER BY line_number LIMIT 1",
	    view);
	return dbconn_get(db, sql, out, len, err) == -1 ? -1 : 0;
}

/* Puts our block of lines into one of the two files. *edited: a person has
 * changed the block, so the block stays. */
static enum setup_outcome
block(PGconn *db, const char *setting, const char *view, const char *lines,
    char path[PATH_MAX], bool *edited, struct err *err)
{
	enum setup_outcome outcome = SETUP_FAILED;
	char sql[64], named[PATH_MAX], wrong[512];
	struct buf before, after;
	struct err ignored;
	mode_t mode = 0;

	buf_init(&before, FILE_BYTES_MAX);
	buf_init(&after, FILE_BYTES_MAX + 4096);
	snprintf(sql, sizeof(sql), "SHOW %s", setting);
	if (dbconn_get(db, sql, named, sizeof(named), err) != 1)
		goto out;
	if (realpath(named, path) == NULL) {
		err_sys(err, FAILURE_INTERNAL, "%s", named);
		goto out;
	}
	if (read_file(path, &before, &mode, err) == -1) {
		if (err->failure == FAILURE_CONFLICT)
			err_set(err, FAILURE_CONFLICT,
			    "%.300s does not belong to the server's user: "
			    "somebody else writes it. Put these lines at its "
			    "top between `# BEGIN mcpbox` and `# END mcpbox`, "
			    "then run this again: %s",
			    path, lines);
		goto out;
	}
	switch (setup_lines_find(before.p, before.len, lines)) {
	case SETUP_BLOCK_BROKEN:
		err_set(err, FAILURE_CONFLICT,
		    "%.300s has a marker of ours without its other half, or "
		    "twice. Remove those lines (`# BEGIN mcpbox`, `# END "
		    "mcpbox`) and what is between them",
		    path);
		goto out;
	case SETUP_BLOCK_EDITED:
		*edited = true;
		outcome = SETUP_ALREADY;
		goto out;
	case SETUP_BLOCK_OURS:
		outcome = SETUP_ALREADY;
		goto out;
	case SETUP_BLOCK_NONE:
		break;
	}
	if (judged(db, view, wrong, sizeof(wrong), err) == -1)
		goto out;
	if (wrong[0] != '\0') {
		err_set(err, FAILURE_CONFLICT,
		    "%.300s is not right as it is: %.300s. Mend it first", path,
		    wrong);
		goto out;
	}
	setup_lines_put(before.p, before.len, lines, &after);
	if (after.failed) {
		err_set(err, FAILURE_TOO_LARGE, "%.300s is too long", path);
		goto out;
	}
	if (write_file(path, &after, mode, err) == -1)
		goto out;
	if (judged(db, view, wrong, sizeof(wrong), err) == -1 ||
	    wrong[0] != '\0') {
		(void)write_file(path, &before, mode, &ignored);
		err_set(err, FAILURE_CONFLICT,
		    "PostgreSQL does not take our lines in %.300s: %.300s. The "
		    "file is as it was",
		    path, wrong);
		goto out;
	}
	outcome = SETUP_DONE;
out:
	buf_free(&before);
	buf_free(&after);
	return outcome;
}

enum setup_outcome
setup_cluster_access(struct setup *s, struct err *err)
{
	enum setup_outcome ident = SETUP_FAILED, hba = SETUP_FAILED;
	char user[64], where[2][PATH_MAX];
	struct dbconn_user as = {0};
	bool edited = false;
	PGconn *db;

	if ((db = superuser(s->c, err)) == NULL)
		return SETUP_FAILED;
	dbconn_peer(s->c->superuser_database, user, sizeof(user));
	if (dbconn_become(user, &as, err) == -1)
		goto out;
	/* The map comes first. Without the map the lines of pg_hba.conf admit
	 * no user. */
	ident = block(db, "ident_file", "pg_ident_file_mappings", ident_lines,
	    where[0], &edited, err);
	if (ident == SETUP_FAILED)
		goto out;
	hba = block(db, "hba_file", "pg_hba_file_rules", hba_lines, where[1],
	    &edited, err);
	if (hba == SETUP_FAILED ||
	    dbconn_get(db, "SELECT pg_reload_conf()", NULL, 0, err) == -1) {
		hba = SETUP_FAILED;
		goto out;
	}
	snprintf(s->detail, sizeof(s->detail), "%.900s, %.900s%s", where[1],
	    where[0],
	    edited ? " (edited by hand: left as they are)"
		   : " (before: *.before-mcpbox)");
	if (ident == SETUP_DONE)
		hba = SETUP_DONE;
	s->admitted = hba == SETUP_DONE;
out:
	dbconn_back(&as);
	PQfinish(db);
	return hba;
}

/* Logs in. Tries again, because the server may not have read its changed files
 * yet. */
static int
login(const char *conninfo, const char *user, int tries, struct err *err)
{
	PGconn *db = NULL;

	for (int i = 0; i < tries && db == NULL; i++) {
		if (i > 0)
			(void)nanosleep(
			    &(struct timespec){.tv_nsec = 100 * 1000 * 1000},
			    NULL);
		db = dbconn_open(conninfo, NULL, user, err);
	}
	PQfinish(db);
	return db != NULL ? 0 : -1;
}

enum setup_outcome
setup_cluster_login(struct setup *s, struct err *err)
{
	static const struct {
		const char *user, *keyword;
	} who[] = {
	    {"mcpbox-owner", "owner_database"}, {"mcpbox-admin", "database"}};
	struct err why;
	char *conninfo;
	int rc;

	for (size_t i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		conninfo = setup_machine_conninfo(s->c, who[i].keyword, err);
		if (conninfo == NULL)
			return SETUP_FAILED;
		rc = login(conninfo, who[i].user,
		    s->admitted ? LOGIN_TRIES : LOGIN_TRIES_UNCHANGED, &why);
		free(conninfo);
		if (rc == -1) {
			err_set(err, FAILURE_FORBIDDEN,
			    "user %s does not get in: %.600s. The lines of "
			    "pg_hba.conf between `# BEGIN mcpbox` and `# END "
			    "mcpbox` must come first and name the map of "
			    "pg_ident.conf",
			    who[i].user, why.text);
			return SETUP_FAILED;
		}
	}
	snprintf(s->detail, sizeof(s->detail),
	    "mcpbox-owner and mcpbox-admin get in by peer authentication");
	return SETUP_ALREADY;
}
