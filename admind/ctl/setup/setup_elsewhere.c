#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "dbconn.h"
#include "ids.h"
#include "prompt.h"
#include "setup.h"

/*
 * Steps for a server at --database URL. Everything goes over verify-full TLS,
 * with the rights of the URL's role. We neither keep that role's password nor
 * pass it as an argument. The passwords of our two roles are made here and sent
 * as SCRAM verifiers, so neither the server nor its log ever sees the
 * passwords.
 */

enum { CONNINFO_MAX = 4096, SECRET_MAX = 256 };

/* Reads the password of the URL's role from the environment, or asks for it. */
static int
role_password(const struct setup *s, struct buf *out, struct err *err)
{
	const char *given = getenv("PGPASSWORD");
	char what[512];

	if (given != NULL) {
		buf_puts(out, given);
	} else if (isatty(STDIN_FILENO)) {
		snprintf(what, sizeof(what), "Password of %s at %s",
		    s->url.user, s->url.host);
		if (prompt_secret(what, out) == -1)
			return err_set(
			    err, FAILURE_INVALID_PARAMS, "no password");
	}
	buf_putc(out, '\0');
	return out->failed
	    ? err_set(err, FAILURE_TOO_LARGE, "the password is too long")
	    : 0;
}

/* Appends key='value', escaped for libpq. Other parts of the string need no
 * quotes, since they are numbers and our own words. */
static int
conninfo_put(struct buf *b, const char *key, const char *value)
{
	buf_putf(b, "%s='", key);
	for (const char *p = value; *p != '\0'; p++) {
		if (*p == '\'' || *p == '\\')
			buf_putc(b, '\\');
		buf_putc(b, *p);
	}
	buf_puts(b, "' ");
	return b->failed ? -1 : 0;
}

static int
conninfo_of(const struct setup_url *u, struct buf *b, struct err *err)
{
	/* With a ticket, Kerberos's encryption would replace TLS, and with it
	 * the check of the name in the certificate. */
	buf_putf(b, "port=%u sslmode=verify-full gssencmode=disable ", u->port);
	if (conninfo_put(b, "host", u->host) == -1 ||
	    conninfo_put(b, "user", u->user) == -1 ||
	    conninfo_put(b, "dbname", u->dbname) == -1 ||
	    conninfo_put(b, "sslrootcert", u->sslrootcert) == -1)
		return err_set(err, FAILURE_TOO_LARGE, "the URL is too long");
	buf_putc(b, '\0');
	return 0;
}

/* Connects as the URL's role. The password is added here only, so it is not in
 * conninfo, which psql gets as an argument. */
static PGconn *
connect_role(
    const struct buf *conninfo, const struct buf *password, struct err *err)
{
	struct buf all;
	PGconn *db;

	buf_init(&all, CONNINFO_MAX + 2 * SECRET_MAX);
	buf_put(&all, conninfo->p, conninfo->len - 1);
	if (password->len > 1)
		(void)conninfo_put(&all, "password", (const char *)password->p);
	buf_putc(&all, '\0');
	db = all.failed ? NULL
			: dbconn_open((const char *)all.p, NULL, NULL, err);
	if (all.failed)
		(void)err_set(err, FAILURE_TOO_LARGE, "the URL is too long");
	buf_free(&all);
	return db;
}

enum setup_outcome
setup_elsewhere_server(struct setup *s, struct err *err)
{
	if (setup_url_parse(s->c->database, &s->url, err) == -1 ||
	    setup_url_resolve(&s->url, err) == -1)
		return SETUP_FAILED;
	snprintf(s->detail, sizeof(s->detail), "%s (%s%s), port %u",
	    s->url.host, s->url.addresses[0],
	    s->url.naddresses > 1 ? ", ..." : "", s->url.port);
	return SETUP_ALREADY;
}

/* Sends ALTER ROLE with a verifier that is computed here. */
static int
give_password(
    PGconn *db, const char *role, const char *password, struct err *err)
{
	char *verifier =
	    PQencryptPasswordConn(db, password, role, "scram-sha-256");
	char *quoted = verifier != NULL
	    ? PQescapeLiteral(db, verifier, strlen(verifier))
	    : NULL;
	char sql[1024];
	int rv = -1;

	if (quoted == NULL)
		err_set(
		    err, FAILURE_STORAGE_UNAVAILABLE, "%s", PQerrorMessage(db));
	else if (snprintf(sql, sizeof(sql), "ALTER ROLE %s PASSWORD %s", role,
		     quoted) < (int)sizeof(sql))
		rv = dbconn_get(db, sql, NULL, 0, err) == -1 ? -1 : 0;
	else
		err_set(err, FAILURE_INTERNAL, "a verifier is too long");
	PQfreemem(quoted);
	PQfreemem(verifier);
	return rv;
}

static int
give_passwords(struct setup *s, PGconn *db, struct err *err)
{
	char app[SETUP_PASSWORD_MAX], owner[SETUP_PASSWORD_MAX];
	uint8_t random[32];
	int rv = -1;

	random_bytes(random, sizeof(random));
	(void)b64url_encode(random, sizeof(random), app);
	random_bytes(random, sizeof(random));
	(void)b64url_encode(random, sizeof(random), owner);
	if (give_password(db, "mcpbox_app", app, err) == 0 &&
	    give_password(db, "mcpbox_owner", owner, err) == 0)
		rv = setup_database_remote(&s->url, app, owner, err);
	explicit_bzero(random, sizeof(random));
	explicit_bzero(app, sizeof(app));
	explicit_bzero(owner, sizeof(owner));
	return rv;
}

/* Tells whether a role can log in with a connection string of the installation.
 * Wipes and frees the string. */
static bool
works(char *conninfo)
{
	PGconn *db = NULL;

	if (conninfo != NULL) {
		db = dbconn_open(conninfo, NULL, NULL, NULL);
		explicit_bzero(conninfo, strlen(conninfo));
	}
	free(conninfo);
	PQfinish(db);
	return db != NULL;
}

enum setup_outcome
setup_elsewhere_roles(struct setup *s, struct err *err)
{
	enum setup_outcome outcome = SETUP_FAILED;
	struct buf conninfo, password;
	PGconn *db = NULL;
	int state, configured;

	buf_init(&conninfo, CONNINFO_MAX);
	buf_init(&password, SECRET_MAX);
	snprintf(s->detail, sizeof(s->detail),
	    "roles, database and configuration for %s", s->url.host);
	if ((configured = setup_remote_configured(&s->url, err)) == -1)
		goto out;
	if (configured == 1 && works(setup_remote_owner(NULL)) &&
	    works(setup_remote_app(NULL))) {
		outcome = SETUP_ALREADY;
		goto out;
	}
	if (conninfo_of(&s->url, &conninfo, err) == -1 ||
	    role_password(s, &password, err) == -1)
		goto out;
	if ((db = connect_role(&conninfo, &password, err)) == NULL) {
		(void)err_wrap(err, "%s", s->url.host);
		goto out;
	}
	if ((state = setup_cluster_state(db, err)) == -1)
		goto out;
	if (state == 1 &&
	    (setup_cluster_sql(s->c, (const char *)conninfo.p,
		 (const char *)password.p, "", err) == -1 ||
		setup_cluster_state(db, err) == -1))
		goto out;
	if (setup_machine_changes(s->c, err) == -1 ||
	    give_passwords(s, db, err) == -1)
		goto out;
	outcome = SETUP_DONE;
out:
	PQfinish(db);
	buf_free(&conninfo);
	buf_free(&password);
	return outcome;
}
