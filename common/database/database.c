#include <sys/stat.h>

#include <arpa/inet.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "buf.h"
#include "database.h"

enum {
	CONNINFO_MAX = 16 * 1024, /* bytes; a configuration line has at most
				   * 4096 */
	PORT = 5432,
	/* Bytes of the certificates of a few authorities. */
	CERTIFICATE_MAX = 256 * 1024
};

/*
 * Keywords that the string of a remote server may have. All others are refused
 * by name, since they could make libpq open files that confinement forbids
 * (passfile, service, sslkey, sslcrl, krb5), or accept a server that did not
 * prove its name.
 */
static const char *const allowed[] = {"host", "hostaddr", "port", "dbname",
    "user", "sslmode", "sslrootcert", "target_session_attrs",
    "application_name", "connect_timeout", "keepalives", "keepalives_idle",
    "keepalives_interval", "keepalives_count", "tcp_user_timeout",
    "channel_binding", "require_auth", "ssl_min_protocol_version",
    "ssl_max_protocol_version", "sslsni", "options"};

/*
 * Our settings, unless the string says otherwise. They find a server that
 * vanished while we only listen to it (LISTEN). They also give up a server that
 * does not answer, so that the next host is tried.
 */
static const char defaults[] =
    "connect_timeout=10 keepalives_idle=10 keepalives_interval=5 "
    "keepalives_count=3 tcp_user_timeout=15000 ";
/* Always added, because Kerberos would make libpq read further files, Kerberos'
 * configuration and tickets. */
static const char always[] = "gssencmode=disable ";

static const char *
value(const PQconninfoOption *all, const char *keyword)
{
	for (const PQconninfoOption *o = all; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			return o->val != NULL ? o->val : "";
	return "";
}

/* Copies the i-th element of a comma-separated list into out; false past its
 * end. An empty list has one empty element, as in libpq. */
static bool
element(const char *list, size_t i, char *out, size_t len)
{
	size_t n;

	for (; i > 0; i--) {
		if ((list = strchr(list, ',')) == NULL)
			return false;
		list++;
	}
	n = strcspn(list, ",");
	if (n >= len)
		n = len - 1;
	memcpy(out, list, n);
	out[n] = '\0';
	return true;
}

static size_t
count(const char *list)
{
	size_t n = 1;

	for (; *list != '\0'; list++)
		n += *list == ',';
	return n;
}

/* Applies libpq's rule for a socket: there is no address, and the host is empty
 * or begins with / or @. */
static bool
is_socket(const PQconninfoOption *all, size_t i)
{
	char host[256], address[64];

	if (!element(value(all, "hostaddr"), i, address, sizeof(address)))
		address[0] = '\0';
	if (!element(value(all, "host"), i, host, sizeof(host)))
		host[0] = '\0';
	return address[0] == '\0' &&
	    (host[0] == '\0' || host[0] == '/' || host[0] == '@');
}

/* ---- requirements of a remote string ---- */

static int
refuse(struct err *e, const char *keyword, const char *why)
{
	return err_set(e, FAILURE_INVALID_PARAMS,
	    "%s: %s (mcpboxctl setup --database writes it)", keyword, why);
}

static int
check_keywords(const PQconninfoOption *all, const char *keyword, struct err *e)
{
	size_t i, n = sizeof(allowed) / sizeof(allowed[0]);

	for (const PQconninfoOption *o = all; o->keyword != NULL; o++) {
		if (o->val == NULL)
			continue;
		if (strcmp(o->keyword, "password") == 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "%s: a password does not belong here, where others "
			    "may read it: write it into a file of its own and "
			    "name that by %s_password_file",
			    keyword, keyword);
		for (i = 0; i < n && strcmp(allowed[i], o->keyword) != 0; i++)
			continue;
		if (i == n)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "%s: %s is not supported for a server elsewhere: "
			    "leave it out",
			    keyword, o->keyword);
	}
	return 0;
}

/* Reads the i-th host: name, address, port. */
static int
take_host(struct database *d, const PQconninfoOption *all, size_t i,
    const char *keyword, struct err *e)
{
	const char *ports = value(all, "port");
	char host[256], address[64], port[16];
	unsigned char raw[16];
	char *end = port;
	unsigned long n;

	if (!element(value(all, "host"), i, host, sizeof(host)) ||
	    host[0] == '\0' || host[0] == '/' || host[0] == '@')
		return refuse(e, keyword,
		    "each hostaddr needs a host: the name in the server's "
		    "certificate");
	if (!element(value(all, "hostaddr"), i, address, sizeof(address)) ||
	    address[0] == '\0')
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s: host %s needs hostaddr, its numeric address: no name "
		    "is looked up here (mcpboxctl setup --database writes it)",
		    keyword, host);
	if (inet_pton(AF_INET, address, raw) != 1 &&
	    inet_pton(AF_INET6, address, raw) != 1)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s: hostaddr %s is no numeric address", keyword, address);
	if (!element(ports, count(ports) == 1 ? 0 : i, port, sizeof(port)))
		port[0] = '\0';
	n = port[0] != '\0' ? strtoul(port, &end, 10) : PORT;
	if (n < 1 || n > UINT16_MAX || (port[0] != '\0' && *end != '\0'))
		return refuse(e, keyword, "port is a number up to 65535");
	d->ports[i] = (uint16_t)n;
	d->addresses[i] = strdup(address);
	return d->addresses[i] != NULL
	    ? 0
	    : err_set(e, FAILURE_INTERNAL, "out of memory");
}

/* Checks the file that libpq opens for every connection, so that a bad file is
 * found now. */
static int
check_certificate(const char *keyword, const char *path, struct err *e)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	struct stat st;
	char *text = NULL;
	ssize_t n = -1;
	int fd, rc = -1;

	if (path[0] != '/')
		return refuse(e, keyword,
		    "sslrootcert=/PATH is missing: the certificate of the "
		    "authority that signed the server's");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1 || fstat(fd, &st) == -1) {
		err_sys(e, FAILURE_INVALID_PARAMS, "%s: sslrootcert %s",
		    keyword, path);
		goto out;
	}
	if (S_ISREG(st.st_mode) && st.st_size > 0 &&
	    st.st_size < CERTIFICATE_MAX &&
	    (text = malloc((size_t)st.st_size)) != NULL)
		n = read(fd, text, (size_t)st.st_size);
	if (n <= 0 || memmem(text, (size_t)n, begin, strlen(begin)) == NULL) {
		err_set(e, FAILURE_INVALID_PARAMS,
		    "%s: sslrootcert %s: no certificate in PEM", keyword, path);
		goto out;
	}
	rc = 0;
out:
	free(text);
	if (fd != -1)
		close(fd);
	return rc;
}

/* ---- the password ---- */

/*
 * Reads the secret, which is the first line. Refuses a file that others may
 * read. A credential may have the group's read bit: for a file with an ACL this
 * bit shows the ACL's mask.
 */
static int
read_secret(
    int fd, const char *path, bool credential, char **out, struct err *e)
{
	char text[DATABASE_PASSWORD_MAX + 2];
	struct stat st;
	ssize_t n;
	size_t len;
	int rc = -1;

	if (fstat(fd, &st) == -1)
		return err_sys(e, FAILURE_INVALID_PARAMS, "%s", path);
	if (!S_ISREG(st.st_mode) ||
	    (st.st_mode & (credential ? 0037 : 0077)) != 0 ||
	    (st.st_uid != 0 && st.st_uid != geteuid()))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s: must be a file that its owner alone may read, root or "
		    "this user",
		    path);
	n = read(fd, text, sizeof(text));
	if (n < 0) {
		err_sys(e, FAILURE_INVALID_PARAMS, "%s", path);
		goto out;
	}
	len = 0;
	while (len < (size_t)n && text[len] != '\n' && text[len] != '\0')
		len++;
	if (len == 0 || len > DATABASE_PASSWORD_MAX) {
		err_set(e, FAILURE_INVALID_PARAMS,
		    "%s: a password has 1 to %d characters, in one line", path,
		    DATABASE_PASSWORD_MAX);
		goto out;
	}
	if ((*out = strndup(text, len)) == NULL)
		err_set(e, FAILURE_INTERNAL, "out of memory");
	else
		rc = 0;
out:
	explicit_bzero(text, sizeof(text));
	return rc;
}

static int
take_password(
    struct database *d, const char *keyword, const char *file, struct err *e)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	char name[4096];
	bool credential = false;
	int fd = -1, n, rc;

	if (dir != NULL && dir[0] == '/') {
		n = snprintf(
		    name, sizeof(name), "%s/%s_password", dir, keyword);
		if (n > 0 && (size_t)n < sizeof(name))
			fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd == -1 && errno != ENOENT)
			return err_sys(e, FAILURE_INVALID_PARAMS, "%s", name);
		credential = fd != -1;
	}
	if (fd == -1) {
		if (file[0] == '\0')
			return 0;
		if ((fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) == -1)
			return err_sys(e, FAILURE_INVALID_PARAMS,
			    "%s_password_file %s", keyword, file);
	}
	rc = read_secret(
	    fd, credential ? name : file, credential, &d->password, e);
	close(fd);
	return rc;
}

/* ---- the strings ---- */

static void
put_pair(struct buf *b, const char *keyword, const char *v)
{
	buf_puts(b, keyword);
	buf_puts(b, "='");
	for (; *v != '\0'; v++) {
		if (*v == '\'' || *v == '\\')
			buf_putc(b, '\\');
		buf_putc(b, *v);
	}
	buf_puts(b, "' ");
}

/* Writes a list from its element number `first` on, then the elements before
 * `first`. A list with a single element applies to all hosts. */
static void
put_list(struct buf *b, const char *keyword, const char *list, size_t first)
{
	char all[4096], one[256];
	size_t n = count(list), len = 0;

	for (size_t i = 0; i < n; i++) {
		(void)element(list, (first + i) % n, one, sizeof(one));
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
		    i > 0 ? "," : "", one);
		if (len >= sizeof(all)) {
			b->failed = true;
			return;
		}
	}
	put_pair(b, keyword, all);
}

static char *
make(const PQconninfoOption *all, size_t first, size_t hosts,
    const char *password)
{
	char *text = NULL;
	struct buf b;

	buf_init(&b, CONNINFO_MAX);
	buf_puts(&b, defaults);
	/* With several hosts all but one are standbys, where nothing can be
	 * written. So only the primary is accepted. */
	if (hosts > 1)
		buf_puts(&b, "target_session_attrs=read-write ");
	for (const PQconninfoOption *o = all; o->keyword != NULL; o++) {
		if (o->val == NULL)
			continue;
		if (strcmp(o->keyword, "host") == 0 ||
		    strcmp(o->keyword, "hostaddr") == 0 ||
		    strcmp(o->keyword, "port") == 0)
			put_list(&b, o->keyword, o->val, first);
		else
			put_pair(&b, o->keyword, o->val);
	}
	buf_puts(&b, always);
	if (password != NULL)
		put_pair(&b, "password", password);
	buf_putc(&b, '\0');
	if (!b.failed)
		text = strdup((const char *)b.p);
	buf_free(&b);
	return text;
}

static int
take_remote(struct database *d, const PQconninfoOption *all,
    const char *keyword, const char *password_file, struct err *e)
{
	const char *hosts = value(all, "host"), *to = value(all, "hostaddr");
	size_t n = count(hosts) > count(to) ? count(hosts) : count(to);
	size_t ports = count(value(all, "port"));

	d->remote = true;
	if (check_keywords(all, keyword, e) == -1)
		return -1;
	if (n > DATABASE_HOSTS_MAX || (ports != 1 && ports != n))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "%s: at most %d hosts, with one port for all or one each",
		    keyword, DATABASE_HOSTS_MAX);
	for (size_t i = 0; i < n; i++)
		if (take_host(d, all, i, keyword, e) == -1)
			return -1;
	if (strcmp(value(all, "sslmode"), "verify-full") != 0)
		return refuse(e, keyword,
		    "sslmode=verify-full is missing: without it anybody on the "
		    "way is the database");
	if (check_certificate(keyword, value(all, "sslrootcert"), e) == -1 ||
	    (password_file != NULL &&
		take_password(d, keyword, password_file, e) == -1))
		return -1;
	d->sslrootcert = strdup(value(all, "sslrootcert"));
	d->open = make(all, 0, n, NULL);
	for (d->n = 0; d->n < n; d->n++)
		if ((d->conninfo[d->n] = make(all, d->n, n, d->password)) ==
		    NULL)
			break;
	return d->n == n && d->open != NULL && d->sslrootcert != NULL
	    ? 0
	    : err_set(e, FAILURE_INTERNAL, "%s: out of memory", keyword);
}

int
database_read(struct database *d, const char *keyword, const char *text,
    const char *password_file, struct err *e)
{
	PQconninfoOption *all;
	char *why = NULL;
	size_t n, sockets = 0;
	int rc = -1;

	memset(d, 0, sizeof(*d));
	if ((all = PQconninfoParse(text, &why)) == NULL) {
		err_set(e, FAILURE_INVALID_PARAMS, "%s: %.*s", keyword,
		    why != NULL ? (int)strcspn(why, "\n") : 0,
		    why != NULL ? why : "");
		PQfreemem(why);
		return -1;
	}
	n = count(value(all, "host"));
	if (count(value(all, "hostaddr")) > n)
		n = count(value(all, "hostaddr"));
	for (size_t i = 0; i < n; i++)
		sockets += is_socket(all, i);
	if (sockets == 0) {
		rc = take_remote(d, all, keyword, password_file, e);
	} else if (sockets != n) {
		refuse(e, keyword, "sockets and addresses do not mix");
	} else {
		d->conninfo[0] = strdup(text);
		d->n = 1;
		rc = d->conninfo[0] != NULL &&
			database_split(text, &d->open, &d->password) == 0
		    ? 0
		    : err_set(e, FAILURE_INTERNAL, "out of memory");
	}
	PQconninfoFree(all);
	return rc;
}

int
database_split(const char *text, char **open, char **password)
{
	PQconninfoOption *all = PQconninfoParse(text, NULL);
	struct buf b;

	*open = *password = NULL;
	if (all == NULL)
		return -1;
	buf_init(&b, 4 * strlen(text) + 256);
	for (PQconninfoOption *o = all; o->keyword != NULL; o++) {
		if (o->val == NULL)
			continue;
		if (strcmp(o->keyword, "password") != 0)
			put_pair(&b, o->keyword, o->val);
		else if ((*password = strdup(o->val)) == NULL)
			b.failed = true;
	}
	PQconninfoFree(all);
	buf_putc(&b, '\0');
	if (!b.failed)
		*open = strdup((const char *)b.p);
	buf_free(&b);
	return *open != NULL ? 0 : -1;
}

static void
wipe(char **s)
{
	if (*s != NULL)
		explicit_bzero(*s, strlen(*s));
	free(*s);
	*s = NULL;
}

void
database_free(struct database *d)
{
	for (size_t i = 0; i < DATABASE_HOSTS_MAX; i++) {
		wipe(&d->conninfo[i]);
		free(d->addresses[i]);
	}
	wipe(&d->open);
	wipe(&d->password);
	free(d->sslrootcert);
	memset(d, 0, sizeof(*d));
}
