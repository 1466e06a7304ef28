#include <arpa/inet.h>
#include <sys/socket.h>

#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "setup.h"
#include "setup_conf.h"

/* Parses --database URL. libpq does the parsing, so the URL means the same as
 * to psql. Parameters that are not in our list are refused, since they would
 * change the trust (sslcrl, gssencmode, service files) without a check. */

enum {
	PORT_DEFAULT = 5432,
	/* Largest file of CA certificates; setup writes no larger file
	 * (FILE_MAX). A bundle of certificates fits. */
	AUTHORITY_MAX = 256 * 1024
};

static int
refuse(struct err *err, const char *why)
{
	return err_set(err, FAILURE_INVALID_PARAMS, "--database: %s", why);
}

/* Takes one keyword of the URL. 0, or -1 with err. */
static int
take(struct setup_url *u, const char *key, const char *value, bool *verified,
    struct err *err)
{
	const struct {
		const char *key;
		char *out;
		size_t len;
	} texts[] = {{"user", u->user, sizeof(u->user)},
	    {"host", u->host, sizeof(u->host)},
	    {"dbname", u->dbname, sizeof(u->dbname)},
	    {"sslrootcert", u->sslrootcert, sizeof(u->sslrootcert)}};
	char *end;
	long port;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(key, texts[i].key) == 0) {
			if (strlen(value) >= texts[i].len)
				return err_set(err, FAILURE_TOO_LARGE,
				    "--database: %s is too long", key);
			memcpy(texts[i].out, value, strlen(value) + 1);
			return 0;
		}
	if (strcmp(key, "port") == 0) {
		if (strchr(value, ',') != NULL)
			return refuse(err, "it must name one host");
		port = strtol(value, &end, 10);
		if (*value < '0' || *value > '9' || *end != '\0' || port < 1 ||
		    port > 65535)
			return refuse(err, "the port is from 1 to 65535");
		u->port = (uint16_t)port;
		return 0;
	}
	if (strcmp(key, "sslmode") == 0) {
		*verified = strcmp(value, "verify-full") == 0;
		if (!*verified)
			return err_set(err, FAILURE_INVALID_PARAMS,
			    "--database: sslmode=%.20s lets somebody between "
			    "here and the server read and change everything; "
			    "give sslmode=verify-full",
			    value);
		return 0;
	}
	if (strcmp(key, "password") == 0)
		return refuse(err,
		    "a password in an argument is for every local user to "
		    "read; leave it out: it is asked for, or taken from the "
		    "environment's PGPASSWORD");
	return err_set(err, FAILURE_INVALID_PARAMS,
	    "--database: %.40s is not understood; leave it out", key);
}

/*
 * Checks the name of a role or a database, which becomes a word of a connection
 * string in a configuration line. A character that ends the word could begin
 * another parameter (sslmode). A character that ends the line could begin
 * another setting.
 */
static bool
name_ok(const char *name)
{
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\'' ||
		    *p == '\\' || *p == '#')
			return false;
	return *name != '\0';
}

/* True for a host name or an address. A directory and a list are refused, and
 * so is everything that could mean more in a configuration line or a unit
 * file. */
static bool
host_ok(const char *host)
{
	return host[0] != '\0' && host[0] != '-' &&
	    strspn(host,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789.-:") == strlen(host);
}

/*
 * Finds the file of the authority's certificate. A link is resolved, since the
 * file is copied. All users can read the copy, as is usual for certificates.
 * The file that root names may hold a private key, too, so such a file is
 * refused.
 */
static int
authority(struct setup_url *u, struct err *err)
{
	static const char key[] = "PRIVATE KEY-----";
	char path[PATH_MAX];
	struct buf b;
	int rc = -1;

	buf_init(&b, AUTHORITY_MAX);
	if (realpath(u->sslrootcert, path) == NULL || access(path, R_OK) == -1)
		(void)err_sys(err, FAILURE_INVALID_PARAMS, "--database: %s",
		    u->sslrootcert);
	else if (strlen(path) >= sizeof(u->sslrootcert))
		(void)refuse(err, "sslrootcert is too long");
	else if (setup_conf_read(path, &b, err) == -1)
		(void)err_wrap(err, "--database");
	else if (b.len > 0 && memmem(b.p, b.len, key, strlen(key)) != NULL)
		(void)refuse(err,
		    "sslrootcert has a private key: give a file of the "
		    "authority's certificate alone");
	else {
		memcpy(u->sslrootcert, path, strlen(path) + 1);
		rc = 0;
	}
	buf_free(&b);
	return rc;
}

int
setup_url_parse(const char *url, struct setup_url *u, struct err *err)
{
	PQconninfoOption *all = NULL;
	char *said = NULL;
	bool verified = false;
	int rv = -1;

	memset(u, 0, sizeof(*u));
	u->port = PORT_DEFAULT;
	if (strncmp(url, "postgresql://", 13) != 0 &&
	    strncmp(url, "postgres://", 11) != 0)
		return refuse(err,
		    "give postgresql://USER@HOST:PORT/DATABASE?sslmode="
		    "verify-full&sslrootcert=FILE");
	if ((all = PQconninfoParse(url, &said)) == NULL) {
		err_set(err, FAILURE_INVALID_PARAMS, "--database: %.*s",
		    said != NULL ? (int)strcspn(said, "\n") : 0,
		    said != NULL ? said : "");
		goto out;
	}
	for (PQconninfoOption *o = all; o->keyword != NULL; o++)
		if (o->val != NULL &&
		    take(u, o->keyword, o->val, &verified, err) == -1)
			goto out;
	if (!verified)
		(void)refuse(err,
		    "without sslmode=verify-full somebody between here and the "
		    "server reads and changes everything; give it");
	else if (u->user[0] == '\0' || u->dbname[0] == '\0')
		(void)refuse(err,
		    "it must name a role that may make roles and a database "
		    "to connect to, such as postgres");
	else if (!name_ok(u->user) || !name_ok(u->dbname))
		(void)refuse(err,
		    "the role's and the database's name may hold no blanks, "
		    "quotes, backslashes or #");
	else if (!host_ok(u->host))
		(void)refuse(err, "it must name one host");
	else if (u->sslrootcert[0] != '/')
		(void)refuse(err,
		    "sslrootcert= must be the absolute path of the authority's "
		    "certificate (PEM)");
	else
		rv = authority(u, err);
out:
	PQfreemem(said);
	PQconninfoFree(all);
	return rv;
}

int
setup_url_resolve(struct setup_url *u, struct err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
			    .ai_flags = AI_NUMERICSERV},
			*all = NULL;
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", u->port);
	u->naddresses = 0;
	if ((rc = getaddrinfo(u->host, port, &hints, &all)) != 0)
		return err_set(err, FAILURE_NOT_FOUND,
		    "the name %s can't be resolved: %s", u->host,
		    gai_strerror(rc));
	for (struct addrinfo *a = all; a != NULL; a = a->ai_next)
		if (u->naddresses < SETUP_ADDRESSES_MAX &&
		    getnameinfo(a->ai_addr, a->ai_addrlen,
			u->addresses[u->naddresses], sizeof(u->addresses[0]),
			NULL, 0, NI_NUMERICHOST) == 0)
			u->naddresses++;
	freeaddrinfo(all);
	if (u->naddresses == 0)
		return err_set(err, FAILURE_NOT_FOUND,
		    "the name %s has no address", u->host);
	return 0;
}
