/*
 * Security argument.
 *
 * root runs mcpboxctl, and the other side of each request may be an attacker:
 * the owner of the name, of the proxy, of the issuer. So no byte of an answer
 * reaches root's process. A child makes the request. First it becomes an
 * unprivileged user: no group, no capability, no new privileges (no setuid
 * program raises it again), a session without terminal (no TIOCSTI), /dev/null
 * at 0, 1 and 2, no descriptor but the pipe and the socket that it is given, no
 * file that it could write (RLIMIT_FSIZE 0), bounded time. TLS, HTTP and JSON
 * are parsed there (libcurl, remote_read.c), without redirects and with http
 * and https alone.
 *
 * A child that was taken over can open connections as any user can, and lie: it
 * hands back one struct of fixed size. The parent reads exactly that, ends each
 * text and each count (tidy), and prints texts escaped. A lie makes `check` say
 * something wrong, and changes nothing: `check` sets nothing.
 *
 * The child was forked, not executed, so it has a copy of this process'
 * memory. `remote check` reads no key and no password; --token is the child's
 * to send.
 *
 * No seccomp filter: the resolver's modules (nsswitch) and the TLS library of a
 * distribution may make any call that an ordinary program makes.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "remote_fetch.h"

enum {
	CPU_S = 20, /* a hostile answer must not keep the child busy */
	FILES_MAX = 64,
	FIELDS_MAX = 64 * 1024, /* bytes of all header fields together */
	/* one field of ours: the longest credential has 8 KiB */
	FIELD_MAX = 12 * 1024,
	FAILED = 1
};

struct child {
	const struct remote_ask *ask;
	struct remote_answer *a;
	struct buf body;
	size_t fields;
	char type[REMOTE_WORD_MAX + 1];
};

/* ---- in the child ---- */

static bool
drop(uid_t uid, gid_t gid)
{
	const struct {
		int what;
		rlim_t limit;
	} limits[] = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 0}, {RLIMIT_CPU, CPU_S},
	    {RLIMIT_NOFILE, FILES_MAX}};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (setrlimit(limits[i].what,
			&(struct rlimit){limits[i].limit, limits[i].limit}) ==
		    -1)
			return false;
	/* The order matters: each step needs rights that a later one gives up.
	 */
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) == -1 || setresgid(gid, gid, gid) == -1 ||
		setresuid(uid, uid, uid) == -1 || setresuid(0, 0, 0) == 0))
		return false;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_DUMPABLE, 0) == 0;
}

/* Leaves the descriptors 0 to 2 at /dev/null, 3 (the pipe) and 4 (the socket,
 * if there is one). 0 or -1. */
static int
only(int out, int sock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Above all targets first, so that no dup2 closes another's source. */
	if (null == -1 || (out = fcntl(out, F_DUPFD_CLOEXEC, 16)) == -1 ||
	    (sock != -1 && (sock = fcntl(sock, F_DUPFD_CLOEXEC, 16)) == -1))
		return -1;
	for (int fd = 0; fd <= 2; fd++)
		if (null != fd && dup2(null, fd) == -1)
			return -1;
	if (dup2(out, 3) == -1 || (sock != -1 && dup2(sock, 4) == -1))
		return -1;
	return (int)syscall(SYS_close_range, sock != -1 ? 5U : 4U, ~0U, 0U);
}

static size_t
on_body(char *p, size_t one, size_t n, void *arg)
{
	struct child *c = arg;

	(void)one;
	/* More is not read: the beginning tells a page from JSON. */
	if (c->body.len + n > REMOTE_BODY_MAX)
		return 0;
	buf_put(&c->body, p, n);
	return c->body.failed ? 0 : n;
}

/* Copies the value of a field to text, if it has printable ASCII alone. */
static void
field(const char *p, size_t n, char *out, size_t max)
{
	if (n > max)
		return;
	for (size_t i = 0; i < n; i++)
		if (p[i] < ' ' || p[i] > '~')
			return;
	memcpy(out, p, n);
	out[n] = '\0';
}

static size_t
on_field(char *p, size_t one, size_t n, void *arg)
{
	struct child *c = arg;
	const char *value = memchr(p, ':', n);
	size_t name, len;
	char date[REMOTE_WORD_MAX + 1] = "";

	(void)one;
	if ((c->fields += n) > FIELDS_MAX)
		return 0;
	if (value == NULL)
		return n;
	name = (size_t)(value - p);
	value++;
	len = n - name - 1;
	while (len > 0 && isspace((unsigned char)*value)) {
		value++;
		len--;
	}
	while (len > 0 && isspace((unsigned char)value[len - 1]))
		len--;
#define IS(s) (name == strlen(s) && strncasecmp(p, s, name) == 0)
	if (IS("content-type")) {
		field(value, len, c->type, REMOTE_WORD_MAX);
	} else if (IS("location")) {
		field(value, len, c->a->location, REMOTE_URL_MAX);
	} else if (IS("mcp-session-id")) {
		field(value, len, c->a->session, REMOTE_WORD_MAX);
	} else if (IS("www-authenticate")) {
		remote_read_challenge(value, len, &c->a->said);
	} else if (IS("date")) {
		field(value, len, date, REMOTE_WORD_MAX);
		c->a->date = curl_getdate(date, NULL);
		if (c->a->date < 0)
			c->a->date = 0;
	}
#undef IS
	return n;
}

static void
certificate_end(CURL *h, struct remote_answer *a)
{
	static const char mark[] = "Expire date:";
	struct curl_certinfo *info = NULL;

	if (curl_easy_getinfo(h, CURLINFO_CERTINFO, &info) != CURLE_OK ||
	    info == NULL || info->num_of_certs < 1)
		return;
	for (struct curl_slist *l = info->certinfo[0]; l != NULL; l = l->next)
		if (strncmp(l->data, mark, sizeof(mark) - 1) == 0)
			a->ends =
			    curl_getdate(l->data + sizeof(mark) - 1, NULL);
	if (a->ends < 0)
		a->ends = 0;
}

/* Connects once more without judging the certificate, only to read when it
 * ends. Nothing is sent. */
static void
bad_certificate(CURL *h, struct remote_answer *a)
{
	curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(h, CURLOPT_CONNECT_ONLY, 1L);
	if (curl_easy_perform(h) == CURLE_OK)
		certificate_end(h, a);
}

static enum remote_reached
reached(CURLcode code, bool tls_done)
{
	switch (code) {
	case CURLE_OK:
		return REMOTE_ANSWERED;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_URL_MALFORMAT:
		return REMOTE_NO_NAME;
	case CURLE_COULDNT_CONNECT:
		return REMOTE_NO_ROUTE;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return REMOTE_NO_TLS;
	default:
		return tls_done ? REMOTE_NO_ANSWER : REMOTE_NO_ROUTE;
	}
}

static bool
set_up(CURL *h, struct child *c, struct curl_slist **fields,
    struct curl_slist **to, char why[CURL_ERROR_SIZE])
{
	const struct remote_ask *ask = c->ask;
	char line[FIELD_MAX];
	const struct {
		const char *name, *value;
	} more[] = {{"Authorization: Bearer ", ask->bearer},
	    {"Mcp-Session-Id: ", ask->session},
	    {"MCP-Protocol-Version: ", ask->version},
	    {"Accept: ",
		ask->post != NULL ? "application/json, text/event-stream"
				  : "application/json"},
	    {"Content-Type: ", ask->post != NULL ? "application/json" : NULL},
	    {"Expect:", ""}};

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		struct curl_slist *l;

		if (more[i].value == NULL)
			continue;
		if (snprintf(line, sizeof(line), "%s%s", more[i].name,
			more[i].value) >= (int)sizeof(line) ||
		    (l = curl_slist_append(*fields, line)) == NULL)
			return false;
		*fields = l;
	}
	if (ask->to != NULL) {
		snprintf(line, sizeof(line), "::%s", ask->to);
		if ((*to = curl_slist_append(NULL, line)) == NULL)
			return false;
		curl_easy_setopt(h, CURLOPT_CONNECT_TO, *to);
	}
	if (ask->ca != NULL) {
		struct curl_blob blob = {
		    ask->ca->p, ask->ca->len, CURL_BLOB_NOCOPY};

		if (curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &blob) != CURLE_OK)
			return false;
	}
	if (ask->post != NULL)
		curl_easy_setopt(h, CURLOPT_POSTFIELDS, ask->post);
	if (ask->end)
		curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, "DELETE");
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, *fields);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_field);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(h, CURLOPT_CERTINFO, 1L);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	/* Asks the address itself: clients do not use a proxy of root's
	 * environment. */
	curl_easy_setopt(h, CURLOPT_PROXY, "");
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_TIMEOUT, (long)REMOTE_FETCH_S);
	curl_easy_setopt(
	    h, CURLOPT_CONNECTTIMEOUT, (long)REMOTE_FETCH_CONNECT_S);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "mcpboxctl");
	return curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https") ==
	    CURLE_OK &&
	    curl_easy_setopt(h, CURLOPT_URL, ask->url) == CURLE_OK;
}

static bool
request(struct child *c)
{
	struct curl_slist *fields = NULL, *to = NULL;
	char why[CURL_ERROR_SIZE] = "";
	struct remote_answer *a = c->a;
	const char *address = NULL;
	double connected = 0;
	long status = 0;
	CURLcode code;
	CURL *h;

	if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK ||
	    (h = curl_easy_init()) == NULL || !set_up(h, c, &fields, &to, why))
		return false;
	code = curl_easy_perform(h);
	(void)curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(h, CURLINFO_APPCONNECT_TIME, &connected);
	if (connected <= 0 && strncmp(c->ask->url, "http:", 5) == 0)
		(void)curl_easy_getinfo(h, CURLINFO_CONNECT_TIME, &connected);
	if (curl_easy_getinfo(h, CURLINFO_PRIMARY_IP, &address) == CURLE_OK &&
	    address != NULL)
		field(address, strlen(address), a->address, REMOTE_ADDRESS_MAX);
	/* A body that is cut off after its first bytes is an answer, too. */
	a->reached =
	    reached(code == CURLE_WRITE_ERROR && status != 0 ? CURLE_OK : code,
		connected > 0);
	a->status = status >= 100 && status <= 999 ? (uint32_t)status : 0;
	if (code != CURLE_OK && why[0] == '\0')
		snprintf(why, sizeof(why), "%s", curl_easy_strerror(code));
	why[REMOTE_TEXT_MAX < sizeof(why) ? REMOTE_TEXT_MAX : sizeof(why) - 1] =
	    '\0';
	field(why, strlen(why), a->why, REMOTE_TEXT_MAX);
	certificate_end(h, a);
	remote_read_body(c->body.p, c->body.len, c->type, &a->said);
	if (a->reached == REMOTE_NO_TLS)
		bad_certificate(h, a);
	curl_easy_cleanup(h);
	curl_slist_free_all(fields);
	curl_slist_free_all(to);
	return true;
}

/*
 * Asks over the socket that the parent connected: a GET, read to its end. Not
 * by libcurl, whose 7.88 connects a socket that is connected already.
 */
static bool
request_here(struct child *c)
{
	const char *host = strstr(c->ask->url, "://"), *path, *p, *end;
	char text[FIELD_MAX];
	struct buf all;
	unsigned status;
	ssize_t n;

	host = host != NULL ? host + 3 : "";
	path = host + strcspn(host, "/");
	n = snprintf(text, sizeof(text),
	    "GET %s HTTP/1.1\r\nHost: %.*s\r\nConnection: close\r\n\r\n", path,
	    (int)(path - host), host);
	c->a->reached = REMOTE_NO_ANSWER;
	if (n <= 0 || (size_t)n >= sizeof(text) ||
	    write(4, text, (size_t)n) != n)
		return true;
	buf_init(&all, REMOTE_BODY_MAX);
	while ((n = read(4, text, sizeof(text))) > 0 && !all.failed)
		buf_put(&all, text, (size_t)n);
	buf_putc(&all, '\0');
	p = (const char *)all.p;
	if (all.failed || sscanf(p, "HTTP/1.1 %3u ", &status) != 1 ||
	    (end = strstr(p, "\r\n\r\n")) == NULL) {
		snprintf(c->a->why, sizeof(c->a->why), "no HTTP answer");
		return true;
	}
	c->a->reached = REMOTE_ANSWERED;
	c->a->status = status;
	for (size_t len; p < end; p += len + 2) {
		len = strcspn(p, "\r");
		if (p[len + 1] != '\n')
			break;
		(void)on_field((char *)(uintptr_t)p, 1, len, c);
	}
	end += 4;
	remote_read_body(end, (size_t)((const char *)all.p + all.len - 1 - end),
	    c->type, &c->a->said);
	return true;
}

static _Noreturn void
run(const struct remote_ask *ask, int out, uid_t uid, gid_t gid, pid_t parent)
{
	static struct remote_answer a;
	struct child c = {.ask = ask, .a = &a};
	const char *p = (const char *)&a;
	size_t left = sizeof(a);
	ssize_t n;

	if (setsid() == -1 || only(out, ask->fd) == -1 || !drop(uid, gid) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != parent)
		_exit(FAILED);
	(void)alarm(2 * REMOTE_FETCH_S);
	buf_init(&c.body, REMOTE_BODY_MAX);
	if (!(ask->fd != -1 ? request_here(&c) : request(&c)))
		_exit(FAILED);
	while (left > 0 && (n = write(3, p, left)) > 0) {
		p += n;
		left -= (size_t)n;
	}
	_exit(left == 0 ? 0 : FAILED);
}

/* ---- in the parent ---- */

static void
end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (size_t i = 0; text[i] != '\0'; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

static void
end_flag(bool *flag)
{
	uint8_t byte;

	/* A bool of another value than 0 and 1 must not be read as one. */
	memcpy(&byte, flag, sizeof(byte));
	*flag = byte != 0;
}
_Static_assert(sizeof(bool) == 1, "as end_flag copies");

/* Makes each field of an untrusted answer one that the header permits. */
static void
tidy(struct remote_answer *a)
{
	struct remote_said *s = &a->said;
	bool *flags[] = {
	    &s->html, &s->json, &s->s256, &s->has_keys, &s->result, &s->bearer};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		end_flag(flags[i]);
#define TEXT(x) end_text(x, sizeof(x))
	TEXT(a->why);
	TEXT(a->location);
	TEXT(a->session);
	TEXT(a->address);
	TEXT(s->resource);
	TEXT(s->issuer);
	TEXT(s->jwks_uri);
	TEXT(s->rpc_error);
	TEXT(s->realm);
	TEXT(s->metadata);
	TEXT(s->error);
	TEXT(s->description);
	for (size_t i = 0; i < REMOTE_SERVERS_MAX; i++)
		TEXT(s->servers[i]);
	for (size_t i = 0; i < REMOTE_KEYS_MAX; i++) {
		TEXT(s->keys[i].kid);
		TEXT(s->keys[i].thumb);
	}
#undef TEXT
	if (s->nservers > REMOTE_SERVERS_MAX)
		s->nservers = REMOTE_SERVERS_MAX;
	if (s->nkeys > REMOTE_KEYS_MAX)
		s->nkeys = REMOTE_KEYS_MAX;
	if (a->reached > REMOTE_ANSWERED)
		a->reached = REMOTE_NO_ANSWER;
	if (a->status > 999)
		a->status = 0;
	if (a->date < 0 || a->date > UINT32_MAX)
		a->date = 0;
	if (a->ends < 0 || a->ends > INT64_MAX / 2)
		a->ends = 0;
}

int
remote_fetch(
    const struct remote_ask *ask, struct remote_answer *answer, struct err *err)
{
	struct passwd *pw = getpwnam("nobody");
	int pipefd[2], status;
	pid_t pid, parent = getpid();
	struct remote_answer *a = calloc(1, sizeof(*a));
	size_t got = 0;
	ssize_t n = 0;

	if (a == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	if (geteuid() == 0 && (pw == NULL || pw->pw_uid == 0)) {
		free(a);
		return err_set(err, FAILURE_INTERNAL,
		    "there is no user `nobody`, who reads what outside "
		    "answers");
	}
	if (pipe2(pipefd, O_CLOEXEC) == -1) {
		free(a);
		return err_sys(err, FAILURE_INTERNAL, "pipe");
	}
	if ((pid = fork()) == 0)
		run(ask, pipefd[1], pw != NULL ? pw->pw_uid : 0,
		    pw != NULL ? pw->pw_gid : 0, parent);
	close(pipefd[1]);
	if (pid == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "fork");
		close(pipefd[0]);
		free(a);
		return -1;
	}
	while (got < sizeof(*a) &&
	    ((n = read(pipefd[0], (char *)a + got, sizeof(*a) - got)) > 0 ||
		(n == -1 && errno == EINTR)))
		got += n > 0 ? (size_t)n : 0;
	close(pipefd[0]);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (got == sizeof(*a)) {
		tidy(a);
		*answer = *a;
	}
	free(a);
	return got == sizeof(*answer)
	    ? 0
	    : err_set(err, FAILURE_INTERNAL,
		  "the process that asks %s ended without an answer", ask->url);
}
