/*
 * remote check NAME: walks the way in from outside, as a client does, then
 * looks at this side. It changes nothing: a session that --token begins is
 * ended again.
 *
 * Each request is made and read by remote_fetch(), in a process without rights.
 * Its answer chooses at most one further address, jwks_uri, and only https (or
 * http on loopback, if the issuer is there). remote_judge.c finds the faults
 * and their words.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "remote.h"

#include "calls.h"
#include "objects.h"
#include "remote_document.h"
#include "remote_fetch.h"
#include "remote_judge.h"
#include "remote_screen.h"
#include "remote_state.h"
#include "tables.h"

enum {
	ROWS_MAX = 16,
	CA_MAX = 1024 * 1024,
	TOKEN_MAX = 8 * 1024,
	PATH_MAX_ = 108 /* of sun_path, unix(7) */
};

#define WELL_KNOWN "/.well-known/oauth-protected-resource"
#define VERSION    "2025-06-18"

static const char list_tools[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}";
static const char initialize[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"" VERSION "\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"mcpboxctl\",\"version\":\"1\"}}}";
static const char initialized[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
/* Invented tokens, of the form that each verifier reads. */
static const char unsigned_jwt[] =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9.e30.AAAA";
static const char unknown_token[] =
    "mbt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

struct check {
	const struct ctl *c;
	const char *name;
	struct remote_way way;
	char host[REMOTE_HOST_MAX + 1], authority[REMOTE_HOST_MAX + 7];
	char socket[PATH_MAX_];
	struct buf ca, token;
	struct remote_row *rows;
	size_t n;
	int64_t date;
	bool wrong, failed;
};

static struct remote_row *
row(struct check *k, const char *step)
{
	struct remote_row *r = &k->rows[k->n < ROWS_MAX - 1 ? k->n++ : k->n];

	memset(r, 0, sizeof(*r));
	r->step = step;
	return r;
}

static void
done(struct check *k)
{
	k->wrong = k->wrong || k->rows[k->n - 1].verdict == REMOTE_WRONG;
}

/* Asks. Returns false if not even the child came up; then nothing is known. */
static bool
ask(struct check *k, struct remote_ask *q, struct remote_answer *a)
{
	struct err err = {0};

	if (k->ca.len > 0)
		q->ca = &k->ca;
	memset(a, 0, sizeof(*a));
	if (remote_fetch(q, a, &err) == 0)
		return true;
	fprintf(stderr, "mcpboxctl: %s\n", err.text);
	k->failed = true;
	return false;
}

/* Asks the public address, or the one of --from under the same name. */
static bool
ask_outside(struct check *k, const char *path, struct remote_ask *q,
    struct remote_answer *a)
{
	char url[REMOTE_URL_MAX + 64];
	bool known;

	snprintf(url, sizeof(url), "https://%s%s", k->authority, path);
	q->url = url;
	q->to = k->c->remote.from;
	q->fd = -1;
	known = ask(k, q, a);
	q->url = NULL;
	return known;
}

/* ---- from outside ---- */

static bool
metadata(struct check *k, const char *path, bool first)
{
	struct remote_answer *a = malloc(sizeof(*a));
	struct remote_ask q = {0};
	bool reached = false;

	if (a == NULL || !ask_outside(k, path, &q, a))
		goto out;
	if (first) {
		remote_judge_name(&k->way, a, row(k, "name"));
		done(k);
		if (a->reached > REMOTE_NO_ROUTE) {
			remote_judge_certificate(
			    &k->way, a, row(k, "certificate"));
			done(k);
		}
	}
	if (a->reached <= REMOTE_NO_TLS)
		goto out;
	reached = true;
	if (a->date != 0)
		k->date = a->date;
	/* Access answers for all of its application's paths by itself. */
	if (k->way.kind == REMOTE_ACCESS)
		goto out;
	remote_judge_metadata(&k->way, path, a, row(k, "metadata"));
	done(k);
out:
	free(a);
	return reached;
}

static void
post(struct check *k, const char *bearer)
{
	struct remote_answer *a = malloc(sizeof(*a));
	struct remote_ask q = {
	    .post = list_tools, .bearer = bearer, .version = VERSION};

	if (a != NULL && ask_outside(k, "/mcp", &q, a)) {
		if (bearer == NULL)
			remote_judge_challenge(&k->way, a, row(k, "challenge"));
		else
			remote_judge_authorization(
			    &k->way, a, row(k, "authorization"));
		done(k);
	}
	free(a);
}

static void
outside(struct check *k)
{
	bool own_tokens = k->way.issuer[0] == '\0';

	if (!metadata(k, WELL_KNOWN "/mcp", true)) {
		remote_judge_row(row(k, "metadata"), REMOTE_UNSEEN, "",
		    "not asked: nothing answers yet");
		return;
	}
	(void)metadata(k, WELL_KNOWN, false);
	post(k, NULL);
	if (k->way.kind == REMOTE_ACCESS)
		remote_judge_row(row(k, "authorization"), REMOTE_UNSEEN, "",
		    "Access reads Authorization itself, and sends its own "
		    "field");
	else
		post(k, own_tokens ? unknown_token : unsigned_jwt);
}

/* ---- the issuer ---- */

static bool
is_loopback(const char *url)
{
	static const char *const hosts[] = {
	    "http://127.0.0.1", "http://localhost", "http://[::1]"};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t n = strlen(hosts[i]);

		/* The host must end there: 127.0.0.1.example.org is another. */
		if (strncmp(url, hosts[i], n) == 0 &&
		    (url[n] == '\0' || url[n] == ':' || url[n] == '/'))
			return true;
	}
	return false;
}

static bool
may_ask(const struct check *k, const char *url)
{
	return strncmp(url, "https://", 8) == 0 ||
	    (is_loopback(url) && is_loopback(k->way.issuer));
}

/* Writes the URL of an issuer's metadata: OpenID's place, then the two of RFC
 * 8414 for an issuer with a path. */
static void
metadata_url(const char *issuer, int place, char *out, size_t n)
{
	static const char *const words[] = {
	    "openid-configuration", "oauth-authorization-server"};
	const char *host = strstr(issuer, "://");
	size_t len = strlen(issuer), origin;

	while (len > 0 && issuer[len - 1] == '/')
		len--;
	host = host != NULL ? host + 3 : issuer;
	origin = (size_t)(host - issuer) + strcspn(host, "/");
	if (place == 0)
		snprintf(
		    out, n, "%.*s/.well-known/%s", (int)len, issuer, words[0]);
	else
		snprintf(out, n, "%.*s/.well-known/%s%.*s", (int)origin, issuer,
		    words[2 - place], (int)(len > origin ? len - origin : 0),
		    issuer + origin);
}

static void
keys(struct check *k, const char *url)
{
	struct remote_answer *a = malloc(sizeof(*a));
	struct remote_ask q = {.url = url, .fd = -1};

	if (*url == '\0' || !may_ask(k, url))
		remote_judge_row(row(k, "keys"), REMOTE_WRONG,
		    "The issuer's metadata must name a jwks_uri with https.",
		    "the issuer's metadata name no address of keys that can "
		    "be asked");
	else if (a != NULL && ask(k, &q, a))
		remote_judge_keys(&k->way, a, row(k, "keys"));
	else
		goto out;
	done(k);
out:
	free(a);
}

static void
issuer(struct check *k)
{
	struct remote_answer *a = malloc(sizeof(*a));
	char url[2 * REMOTE_URL_MAX], where[REMOTE_URL_MAX + 1] = "";
	struct remote_ask q = {.url = url, .fd = -1};
	bool known = false;

	if (a == NULL || k->way.issuer[0] == '\0')
		goto out;
	if (k->way.kind == REMOTE_ACCESS) {
		snprintf(
		    url, sizeof(url), "%s/cdn-cgi/access/certs", k->way.issuer);
		keys(k, url);
		goto out;
	}
	for (int place = k->way.kind == REMOTE_WORKER ? 1 : 0;
	    place < 3 && !known; place++) {
		metadata_url(k->way.issuer, place, url, sizeof(url));
		/* The Worker is at the public address itself. */
		q.to = k->way.kind == REMOTE_WORKER ? k->c->remote.from : NULL;
		if (!ask(k, &q, a))
			goto out;
		known = a->reached != REMOTE_ANSWERED || a->status == 200;
	}
	remote_judge_issuer(&k->way, k->way.issuer, a, row(k, "issuer"));
	done(k);
	/* Its clock dates the tokens. */
	if (a->date != 0)
		k->date = a->date;
	memcpy(where, a->said.jwks_uri, sizeof(where));
	if (k->way.kind == REMOTE_WORKER)
		remote_judge_row(row(k, "keys"), REMOTE_UNSEEN, "",
		    "the Worker shows no keys: the document has the one that "
		    "remote add made");
	else if (a->reached == REMOTE_ANSWERED && a->said.json)
		keys(k, where);
	else
		remote_judge_row(row(k, "keys"), REMOTE_UNSEEN, "",
		    "not asked: the issuer's metadata are missing");
out:
	free(a);
}

/* ---- this side ---- */

/* Connects to the tunnel's socket. root may; the child is given the descriptor.
 * -1 with errno. */
static int
connect_to(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), e;

	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (fd != -1 &&
	    connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		e = errno;
		close(fd);
		errno = e;
		fd = -1;
	}
	return fd;
}

static void
here(struct check *k, const struct remote_state *s)
{
	struct remote_answer *a = calloc(1, sizeof(*a));
	char url[REMOTE_URL_MAX + 64];
	struct remote_ask q = {.url = url, .fd = connect_to(k->socket)};

	snprintf(url, sizeof(url), "http://%s" WELL_KNOWN "/mcp", k->authority);
	remote_judge_clock(&k->way, k->date, row(k, "clock"));
	done(k);
	if (a != NULL && q.fd == -1)
		snprintf(a->why, sizeof(a->why), "%s", strerror(errno));
	if (a != NULL && (q.fd == -1 || ask(k, &q, a))) {
		remote_judge_listener(&k->way, a, row(k, "listener"));
		done(k);
	}
	if (q.fd != -1)
		close(q.fd);
	free(a);
	if (s->document == NULL && k->way.issuer[0] == '\0')
		return;
	if (strcmp(tables_text(s->answer, "in_force"), "true") == 0)
		remote_judge_row(row(k, "document"), REMOTE_RIGHT, "",
		    "the access document is in force");
	else
		remote_judge_row(row(k, "document"), REMOTE_WRONG,
		    "mcpboxctl access show says more; set it again.",
		    "the access document is not in force: %.500s",
		    tables_text(s->answer, "why"));
	done(k);
}

/* ---- a real call ---- */

static void
call(struct check *k)
{
	struct remote_answer *first = malloc(sizeof(*first)),
			     *then = malloc(sizeof(*then));
	struct remote_ask q = {.post = initialize,
	    .version = VERSION,
	    .bearer = (const char *)k->token.p};
	bool more;

	if (k->token.len == 0) {
		remote_judge_row(row(k, "call"), REMOTE_UNSEEN, "",
		    "nothing was called: --token FILE does");
		goto out;
	}
	if (first == NULL || then == NULL || !ask_outside(k, "/mcp", &q, first))
		goto out;
	more = first->reached == REMOTE_ANSWERED && first->status == 200 &&
	    first->said.result;
	if (more) {
		if (first->session[0] != '\0')
			q.session = first->session;
		q.post = initialized;
		if (!ask_outside(k, "/mcp", &q, then))
			goto out;
		q.post = list_tools;
		if (!ask_outside(k, "/mcp", &q, then))
			goto out;
	}
	remote_judge_call(first, more ? then : NULL, row(k, "call"));
	done(k);
	if (q.session != NULL) {
		q.post = NULL;
		q.end = true;
		(void)ask_outside(k, "/mcp", &q, then);
	}
out:
	free(first);
	free(then);
}

/* Reads the document's words about the issuer. */
static void
expect(struct check *k, const struct remote_state *s)
{
	struct json_object *issuer =
			       remote_document_issuer(s->document, k->name),
			   *v, *all = NULL;
	struct remote_way *w = &k->way;

	w->issuer = remote_document_text(issuer, "issuer");
	w->leeway_s = REMOTE_LEEWAY_S;
	if (issuer != NULL &&
	    json_object_object_get_ex(issuer, "leeway_seconds", &v) &&
	    json_object_get_int(v) > 0)
		w->leeway_s = (uint32_t)json_object_get_int(v);
	if (issuer != NULL && json_object_object_get_ex(issuer, "jwks", &v)) {
		w->own_keys = true;
		w->nkeys = remote_read_keys(v, w->keys);
	}
	/* Any issuer of this listener makes mcpbox answer with metadata. */
	if (s->document != NULL &&
	    json_object_object_get_ex(s->document, "issuers", &all) &&
	    json_object_is_type(all, json_type_array))
		for (size_t i = 0; i < json_object_array_length(all); i++) {
			struct json_object *list = NULL,
					   *o = json_object_array_get_idx(
					       all, i);
			bool tunnel =
			    !json_object_is_type(o, json_type_object) ||
			    !json_object_object_get_ex(o, "listeners", &list);

			for (size_t n = 0;
			    json_object_is_type(list, json_type_array) &&
			    n < json_object_array_length(list);
			    n++)
				tunnel = tunnel ||
				    strcmp(
					json_object_get_string(
					    json_object_array_get_idx(list, n)),
					"tunnel") == 0;
			w->serves = w->serves || tunnel;
		}
}

static enum ctl_status
prepare(struct check *k, const struct remote_state *s)
{
	enum ctl_status status = CTL_DONE;
	int kind = remote_state_kind(s, k->name);

	if (kind == -1)
		return remote_state_unknown(k->name);
	k->way.kind = (enum remote_kind)kind;
	k->way.url = remote_state_url(s, k->name);
	k->way.host = k->host;
	k->way.socket = k->socket;
	k->way.now = (int64_t)time(NULL);
	if (remote_host(k->way.url, k->host, k->authority) == -1) {
		fputs("mcpboxctl: the remote has no address https://HOST/mcp\n",
		    stderr);
		return CTL_REFUSED;
	}
	if (snprintf(k->socket, sizeof(k->socket),
		"%s/gatewayd-tunnel/mcp.sock",
		k->c->run_dir) >= (int)sizeof(k->socket)) {
		fputs("mcpboxctl: run directory is too long\n", stderr);
		return CTL_REFUSED;
	}
	snprintf(k->way.metadata, sizeof(k->way.metadata),
	    "https://%s" WELL_KNOWN "/mcp", k->authority);
	expect(k, s);
	if (k->c->remote.ca != NULL)
		status = transfer_read(k->c->remote.ca, &k->ca);
	if (status == CTL_DONE && k->c->remote.token != NULL) {
		status = transfer_read(k->c->remote.token, &k->token);
		while (k->token.len > 0 && k->token.p[k->token.len - 1] <= ' ')
			k->token.len--;
		for (size_t i = 0; i < k->token.len; i++)
			if (k->token.p[i] <= ' ' || k->token.p[i] > '~')
				status = CTL_REFUSED;
		if (status != CTL_DONE || k->token.len == 0) {
			fputs("mcpboxctl: --token is a file with one token\n",
			    stderr);
			return CTL_REFUSED;
		}
		buf_putc(&k->token, '\0');
	}
	return status;
}

enum ctl_status
remote_check(const struct ctl *c)
{
	struct check k = {.c = c, .name = c->words[2]};
	struct remote_screen screen = {.name = k.name, .way = &k.way};
	struct remote_state s;
	enum ctl_status status;

	buf_init(&k.ca, CA_MAX);
	buf_init(&k.token, TOKEN_MAX + 2);
	k.rows = calloc(ROWS_MAX, sizeof(*k.rows));
	status = remote_state_begin(c, &s);
	if (status == CTL_DONE && k.rows == NULL)
		status = CTL_REFUSED;
	if (status != CTL_DONE || (status = prepare(&k, &s)) != CTL_DONE)
		goto out;
	outside(&k);
	issuer(&k);
	here(&k, &s);
	call(&k);
	screen.rows = k.rows;
	screen.n = k.n;
	screen.right = !k.wrong && !k.failed;
	status =
	    c->json ? remote_screen_json(&screen) : remote_screen_show(&screen);
	if (k.wrong || k.failed)
		status = CTL_REFUSED;
out:
	free(k.rows);
	buf_free(&k.ca);
	buf_free(&k.token);
	remote_state_end(&s);
	return status;
}
