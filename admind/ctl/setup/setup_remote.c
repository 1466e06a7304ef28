#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "database.h"
#include "setup.h"
#include "setup_conf.h"

/*
 * Configuration for a database elsewhere (decision 0059).
 *
 * The order of writing lets a second run finish the work of a killed run. If
 * the first run is killed, the former setup still works. (If a later run is
 * killed, the former setup fails, since the roles have new passwords by then.)
 * First come the passwords and the certificate, which no process reads yet.
 * Then come the addresses to which egress never connects, and then the drop-ins
 * that let units reach the server. The lines that make admind use the server
 * come last. Undoing goes the other way.
 *
 * Tools must never reach the suite's own database, whatever an administrator
 * grants. So its addresses are in egress's list before admind uses them.
 *
 * Only the .local files get lines (decision 0062): the package's files are read
 * and never written.
 */

struct file {
	const char *process, *package, *local;
};

static const struct file admind = {
    "admind", "/etc/mcpbox/admind.conf", "/etc/mcpbox/admind.conf.local"};
static const struct file ctl = {"mcpboxctl", "/etc/mcpbox/mcpboxctl.conf",
    "/etc/mcpbox/mcpboxctl.conf.local"};
static const struct file egress = {
    "egress", "/etc/mcpbox/egress.conf", "/etc/mcpbox/egress.conf.local"};

/* The package's postrm recognises setup's files by this first line. */
static const char header[] =
    "# Written by `mcpboxctl setup --database`; lines of your own may stand "
    "here too.\n"
    "# Read after the file of this name without .local, which is the "
    "package's.\n";

static const char certificate[] = "/etc/mcpbox/database-ca.pem";
static const char app_file[] = "/etc/mcpbox/database.password";
static const char owner_file[] = "/etc/mcpbox/owner_database.password";
static const char admind_dropin[] =
    "/etc/systemd/system/mcpbox-admind.service.d/database.conf";
static const char migrate_dropin[] =
    "/etc/systemd/system/mcpbox-migrate.service.d/database.conf";

enum {
	FILE_MAX = 256 * 1024,
	LINE_MAX_CONF = 4096, /* longest line of conf.c */
	ADDRESS_MAX = 64      /* [IPv6]:port */
};

/* ---- texts ---- */

/* Writes the connection string of a configuration line. All addresses have the
 * same host name and port. */
static int
conninfo(const struct setup_url *u, const char *user, char *out, size_t len,
    struct err *err)
{
	struct buf b;
	int rc = -1;

	buf_init(&b, len - 1);
	for (int i = 0; i < u->naddresses; i++)
		buf_putf(&b, "%s%s", i == 0 ? "host=" : ",", u->host);
	for (int i = 0; i < u->naddresses; i++)
		buf_putf(
		    &b, "%s%s", i == 0 ? " hostaddr=" : ",", u->addresses[i]);
	buf_putf(&b,
	    " port=%u dbname=mcpbox user=%s sslmode=verify-full sslrootcert=%s",
	    u->port, user, certificate);
	if (b.failed || u->naddresses == 0)
		err_set(err, FAILURE_INVALID_PARAMS,
		    "%s: no address, or too many for one line", u->host);
	else {
		memcpy(out, b.p, b.len);
		out[b.len] = '\0';
		rc = 0;
	}
	buf_free(&b);
	return rc;
}

static void
dropin(const struct setup_url *u, bool migrate, struct buf *b)
{
	buf_puts(b,
	    "# Written by `mcpboxctl setup --database`, removed by `mcpboxctl "
	    "setup\n# --database local`. The database is on another machine: "
	    "its addresses, and\n# nothing else, open up.\n");
	if (migrate)
		buf_puts(b,
		    "[Unit]\nWants=network-online.target\n"
		    "After=network-online.target\n\n");
	buf_puts(b,
	    "[Service]\nPrivateNetwork=no\n"
	    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n");
	for (int i = 0; i < u->naddresses; i++)
		buf_putf(b, "IPAddressAllow=%s\n", u->addresses[i]);
	buf_putf(b, "LoadCredential=%s:%s\n",
	    migrate ? "owner_database_password" : "database_password",
	    migrate ? owner_file : app_file);
}

static void
endpoint(const struct setup_url *u, int i, char out[ADDRESS_MAX])
{
	bool six = strchr(u->addresses[i], ':') != NULL;

	snprintf(out, ADDRESS_MAX, "%s%s%s:%u", six ? "[" : "", u->addresses[i],
	    six ? "]" : "", u->port);
}

/* Tells whether the entry `one` is in the comma-separated list. */
static bool
listed(const char *list, const char *one)
{
	size_t n = strlen(one), m;

	for (const char *p = list; *p != '\0'; p += m + (p[m] == ',')) {
		while (*p == ' ')
			p++;
		m = strcspn(p, ",");
		if (m == n && memcmp(p, one, n) == 0)
			return true;
	}
	return false;
}

/* ---- lines ---- */

/* True if setup wrote this value. */
static bool
is_ours(const char *value)
{
	return strstr(value, certificate) != NULL ||
	    strcmp(value, owner_file) == 0;
}

/* Sets one keyword in the .local file. If value is NULL, the line that the
 * administrator had there before us is restored, and a file with nothing but
 * the header left is removed. 1 if the file changed, else 0; -1 with err. */
static int
set_line(const struct file *f, const char *keyword, const char *value,
    bool keep, struct err *err)
{
	const char *path = f->local;
	struct buf text, out;
	char now[LINE_MAX_CONF];
	int rc;

	buf_init(&text, FILE_MAX);
	buf_init(&out, FILE_MAX);
	rc = setup_conf_read(path, &text, err);
	if (rc == -1)
		goto out;
	if (rc == 0)
		buf_puts(&text, header);
	rc = 0;
	if (setup_conf_get(&text, keyword, now, sizeof(now)) == 0 &&
	    strcmp(now, value != NULL ? value : "") == 0)
		goto out;
	setup_conf_set(&text, keyword, value, keep && !is_ours(now), &out);
	if (text.failed || out.failed)
		rc = err_set(err, FAILURE_TOO_LARGE, "%s: too long", path);
	else if (value == NULL && out.len == strlen(header) &&
	    memcmp(out.p, header, out.len) == 0)
		rc = setup_conf_remove(path, err);
	else
		rc = setup_conf_write(path, out.p, out.len, 0644, err);
out:
	buf_free(&text);
	buf_free(&out);
	return rc;
}

/* Reads a keyword from one file alone. */
static int
get_line(const char *path, const char *keyword, char *out, size_t len,
    struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, FILE_MAX);
	rc = setup_conf_read(path, &text, err);
	out[0] = '\0';
	if (rc != -1 && setup_conf_get(&text, keyword, out, len) == -1)
		rc = err_set(err, FAILURE_TOO_LARGE, "%s: %s is too long", path,
		    keyword);
	buf_free(&text);
	return rc == -1 ? -1 : 0;
}

/* Reads a keyword as the process reads it: from the package's file and the
 * .local file. */
static int
get_setting(const struct file *f, const char *keyword, char *out, size_t len,
    struct err *err)
{
	struct conf *conf = conf_new(f->process);
	const char *value;
	int rc = -1;

	out[0] = '\0';
	if (conf == NULL)
		err_set(err, FAILURE_INTERNAL, "out of memory");
	else if (conf_load(conf, f->package, err) == 0) {
		value = conf_str(conf, keyword);
		if (strlen(value) >= len)
			err_set(err, FAILURE_TOO_LARGE, "%s: %s is too long",
			    f->local, keyword);
		else {
			memcpy(out, value, strlen(value) + 1);
			rc = 0;
		}
	}
	conf_free(conf);
	return rc;
}

/* Appends the server's addresses to egress's list `never` in the .local file;
 * other entries stay. The lists of both files together must fit into a line
 * (conf.c). */
static int
add_never(const struct setup_url *u, struct err *err)
{
	char never[LINE_MAX_CONF], all[LINE_MAX_CONF], one[ADDRESS_MAX];
	size_t total, len;
	bool more = false;

	if (get_setting(&egress, "never", all, sizeof(all), err) == -1 ||
	    get_line(egress.local, "never", never, sizeof(never), err) == -1)
		return -1;
	total = strlen(all);
	for (int i = 0; i < u->naddresses; i++) {
		endpoint(u, i, one);
		if (listed(all, one))
			continue;
		len = strlen(never);
		total += strlen(one) + 1;
		if (strlen("never ") + total > LINE_MAX_CONF ||
		    len + strlen(one) + 2 > sizeof(never))
			return err_set(err, FAILURE_TOO_LARGE,
			    "%s: never is too long", egress.local);
		snprintf(never + len, sizeof(never) - len, "%s%s",
		    len > 0 ? "," : "", one);
		more = true;
	}
	return more ? set_line(&egress, "never", never, false, err) : 0;
}

/* ---- checking ---- */

/* Tells whether a file has the content *want, or (NULL) exists. 1, 0, or -1
 * with err. */
static int
file_is(const char *path, const struct buf *want, struct err *err)
{
	struct buf have;
	int rc;

	buf_init(&have, FILE_MAX);
	rc = setup_conf_read(path, &have, err);
	if (rc == 1 && want != NULL)
		rc = have.len == want->len &&
		    (have.len == 0 || memcmp(have.p, want->p, have.len) == 0);
	buf_free(&have);
	return rc;
}

static int
lines_are(const struct setup_url *u, struct err *err)
{
	const struct {
		const struct file *file;
		const char *keyword, *user;
	} lines[] = {{&admind, "database", "mcpbox_app"},
	    {&admind, "owner_database", "mcpbox_owner"},
	    {&ctl, "owner_database", "mcpbox_owner"}};
	char want[LINE_MAX_CONF], have[LINE_MAX_CONF], one[ADDRESS_MAX];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (conninfo(u, lines[i].user, want, sizeof(want), err) == -1 ||
		    get_setting(lines[i].file, lines[i].keyword, have,
			sizeof(have), err) == -1)
			return -1;
		if (strcmp(want, have) != 0)
			return 0;
	}
	if (get_setting(&ctl, "owner_database_password_file", have,
		sizeof(have), err) == -1)
		return -1;
	if (strcmp(have, owner_file) != 0)
		return 0;
	if (get_setting(&egress, "never", have, sizeof(have), err) == -1)
		return -1;
	for (int i = 0; i < u->naddresses; i++) {
		endpoint(u, i, one);
		if (!listed(have, one))
			return 0;
	}
	return 1;
}

int
setup_remote_configured(const struct setup_url *u, struct err *err)
{
	struct buf want;
	int rc;

	if ((rc = lines_are(u, err)) != 1 ||
	    (rc = file_is(app_file, NULL, err)) != 1 ||
	    (rc = file_is(owner_file, NULL, err)) != 1)
		return rc;
	buf_init(&want, FILE_MAX);
	rc = setup_conf_read(u->sslrootcert, &want, err);
	if (rc == 1)
		rc = file_is(certificate, &want, err);
	for (int migrate = 0; rc == 1 && migrate < 2; migrate++) {
		buf_clear(&want);
		dropin(u, migrate, &want);
		rc = file_is(
		    migrate ? migrate_dropin : admind_dropin, &want, err);
	}
	buf_free(&want);
	return rc;
}

/* ---- writing ---- */

static int
write_secret(const char *path, const char *text, struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, DATABASE_PASSWORD_MAX + 1);
	buf_puts(&b, text);
	buf_putc(&b, '\n');
	rc = b.failed
	    ? err_set(err, FAILURE_TOO_LARGE, "the password is too long")
	    : setup_conf_write(path, b.p, b.len, 0400, err);
	buf_free(&b);
	return rc;
}

static int
write_certificate(const struct setup_url *u, struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, FILE_MAX);
	rc = setup_conf_read(u->sslrootcert, &b, err);
	if (rc == 0)
		rc = err_set(
		    err, FAILURE_NOT_FOUND, "%s: not there", u->sslrootcert);
	if (rc == 1)
		rc = setup_conf_write(certificate, b.p, b.len, 0644, err);
	buf_free(&b);
	return rc;
}

static int
write_dropins(const struct setup_url *u, struct err *err)
{
	struct buf b;
	int rc = 0;

	buf_init(&b, FILE_MAX);
	for (int migrate = 0; rc != -1 && migrate < 2; migrate++) {
		buf_clear(&b);
		dropin(u, migrate, &b);
		rc = setup_conf_write(migrate ? migrate_dropin : admind_dropin,
		    b.p, b.len, 0644, err);
	}
	buf_free(&b);
	return rc;
}

/* Sets superuser_database for `restore`, which makes databases. The line names
 * the URL's role. Its password comes from PGPASSWORD or
 * superuser_database_password_file each time. */
static int
superuser_line(const struct setup_url *u, struct err *err)
{
	char text[LINE_MAX_CONF], *at, *end;
	struct buf b;
	int rc = -1;

	if (conninfo(u, u->user, text, sizeof(text), err) == -1)
		return -1;
	buf_init(&b, sizeof(text));
	if ((at = strstr(text, "dbname=mcpbox")) != NULL) {
		end = at + strlen("dbname=mcpbox");
		buf_put(&b, text, (size_t)(at - text));
		buf_putf(&b, "dbname=%s%s", u->dbname, end);
		buf_putc(&b, '\0');
		rc = b.failed ? err_set(err, FAILURE_TOO_LARGE, "URL too long")
			      : set_line(&ctl, "superuser_database",
				    (const char *)b.p, true, err);
	}
	buf_free(&b);
	return rc;
}

int
setup_database_remote(const struct setup_url *u, const char *app,
    const char *owner, struct err *err)
{
	char as_app[LINE_MAX_CONF], as_owner[LINE_MAX_CONF];

	if (conninfo(u, "mcpbox_app", as_app, sizeof(as_app), err) == -1 ||
	    conninfo(u, "mcpbox_owner", as_owner, sizeof(as_owner), err) ==
		-1 ||
	    write_secret(app_file, app, err) == -1 ||
	    write_secret(owner_file, owner, err) == -1 ||
	    write_certificate(u, err) == -1 || add_never(u, err) == -1 ||
	    write_dropins(u, err) == -1 || superuser_line(u, err) == -1 ||
	    set_line(&ctl, "owner_database_password_file", owner_file, true,
		err) == -1 ||
	    set_line(&ctl, "owner_database", as_owner, true, err) == -1 ||
	    set_line(&admind, "owner_database", as_owner, true, err) == -1 ||
	    set_line(&admind, "database", as_app, true, err) == -1)
		return -1;
	return 0;
}

/* ---- the way back ---- */

static int
drop_line(
    const struct file *f, const char *keyword, bool *changed, struct err *err)
{
	char have[LINE_MAX_CONF];
	int rc;

	if (get_line(f->local, keyword, have, sizeof(have), err) == -1)
		return -1;
	if (!is_ours(have))
		return 0;
	rc = set_line(f, keyword, NULL, false, err);
	*changed = *changed || rc == 1;
	return rc;
}

static int
drop_file(const char *path, bool *changed, struct err *err)
{
	int rc = setup_conf_remove(path, err);

	*changed = *changed || rc == 1;
	return rc;
}

/*
 * Undoes the configuration. egress's list keeps the addresses, because the
 * server is still there, with the former data. The lines are removed before the
 * files that they name, so that no line names a missing file. Fails if an
 * administrator moved our lines into the package's files: the administrator has
 * to remove them. 1: something changed; 0: nothing did; -1 with err.
 */
static int
undo(struct err *err)
{
	static const struct {
		const struct file *file;
		const char *keyword;
	} lines[] = {{&admind, "database"}, {&admind, "owner_database"},
	    {&ctl, "owner_database"}, {&ctl, "superuser_database"},
	    {&ctl, "owner_database_password_file"}};
	static const char *const files[] = {
	    admind_dropin, migrate_dropin, app_file, owner_file, certificate};
	enum { NLINES = sizeof(lines) / sizeof(lines[0]) };
	char have[LINE_MAX_CONF];
	bool changed = false;

	for (size_t i = 0; i < NLINES; i++) {
		if (get_line(lines[i].file->package, lines[i].keyword, have,
			sizeof(have), err) == -1)
			return -1;
		if (is_ours(have))
			return err_set(err, FAILURE_CONFLICT,
			    "%s names the database elsewhere, and setup writes "
			    "no file of the package's: take its line `%s` "
			    "away, then run this again",
			    lines[i].file->package, lines[i].keyword);
	}
	for (size_t i = 0; i < NLINES; i++)
		if (drop_line(lines[i].file, lines[i].keyword, &changed, err) ==
		    -1)
			return -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (drop_file(files[i], &changed, err) == -1)
			return -1;
	return changed ? 1 : 0;
}

/* Reads the configuration again, since the next steps connect to the server
 * that it names now. The settings live as long as the process. */
static int
read_again(struct setup *s, struct err *err)
{
	struct conf *conf = conf_new("mcpboxctl");

	if (conf == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	if (conf_load(conf, ctl.package, err) == -1) {
		conf_free(conf);
		return -1;
	}
	s->again = *s->c;
	s->again.owner_database = conf_str(conf, "owner_database");
	s->again.superuser_database = conf_str(conf, "superuser_database");
	s->c = &s->again;
	return 0;
}

enum setup_outcome
setup_remote_back(struct setup *s, struct err *err)
{
	char have[LINE_MAX_CONF];
	bool elsewhere;
	int rc;

	snprintf(s->detail, sizeof(s->detail), "on this machine");
	if (get_setting(&admind, "database", have, sizeof(have), err) == -1)
		return SETUP_FAILED;
	elsewhere = strstr(have, "hostaddr=") != NULL;
	if (s->c->database != NULL) {
		if ((elsewhere && setup_machine_changes(s->c, err) == -1) ||
		    (rc = undo(err)) == -1 ||
		    (rc == 1 && read_again(s, err) == -1))
			return SETUP_FAILED;
		return rc == 1 ? SETUP_DONE : SETUP_ALREADY;
	}
	if (!elsewhere)
		return SETUP_ALREADY;
	(void)err_set(err, FAILURE_CONFLICT,
	    "it is on another machine (%s or %s): give --database URL again, "
	    "or --database local to use the one here",
	    admind.local, admind.package);
	return SETUP_FAILED;
}

static char *
conninfo_of(const char *keyword, const char *password_file, struct err *err)
{
	char have[LINE_MAX_CONF], *text = NULL;
	struct database d;

	if (get_setting(&admind, keyword, have, sizeof(have), err) == -1)
		return NULL;
	if (strstr(have, "hostaddr=") == NULL) {
		(void)err_set(
		    err, FAILURE_NOT_FOUND, "the database is not elsewhere");
		return NULL;
	}
	if (database_read(&d, keyword, have, password_file, err) == 0 &&
	    (text = strdup(d.conninfo[0])) == NULL)
		(void)err_set(err, FAILURE_INTERNAL, "out of memory");
	database_free(&d);
	return text;
}

char *
setup_remote_owner(struct err *err)
{
	return conninfo_of("owner_database", owner_file, err);
}

char *
setup_remote_app(struct err *err)
{
	return conninfo_of("database", app_file, err);
}
