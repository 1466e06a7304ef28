/*
 * remote add KIND NAME.
 *
 * All that it gathers goes into one document, which access_change() shows, asks
 * about and sets. Nothing is written before that: after the answer no, nothing
 * has changed. A Worker's private key and an API token are printed once, on
 * standard output, and kept nowhere; standard error has everything else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "remote.h"

#include "access_change.h"
#include "calls.h"
#include "ids.h"
#include "json.h"
#include "objects.h"
#include "remote_document.h"
#include "remote_files.h"
#include "remote_kept.h"
#include "remote_key.h"
#include "tables.h"
#include "terminal.h"

enum {
	LINE_MAX_ = 1024, /* of an answer at the terminal */
	TOKEN_DAYS = 90,
	TEAM_MAX = 63,
	TEXT_MAX = 64 * 1024
};

static const char scopes_default[] = "tools:read,tools:call";

struct add {
	const struct ctl *c;
	struct remote_wish wish;
	enum remote_proxy proxy;
	const char *out, *jwks_file;
	bool asks; /* a person is at the terminal */
	bool lacks;
	char issuer[TEAM_MAX + REMOTE_HOST_MAX + 64], keys[TEAM_MAX + 64];
	struct json_object *holds, *jwks, *document, *paths;
	struct buf secret, said;
	char token[UUID_TEXT_LEN + 1];
};

static enum ctl_status
complain(const char *why)
{
	struct buf b;

	buf_init(&b, TEXT_MAX);
	show_text(&b, why, strlen(why), SHOW_LINE);
	fprintf(stderr, "mcpboxctl: %.*s\n", (int)b.len,
	    b.p != NULL ? (const char *)b.p : "");
	buf_free(&b);
	return CTL_REFUSED;
}

/* ---- the wish ---- */

/* Asks for a missing value, or complains that it is missing. The answer lives
 * as long as the process. */
static void
need(struct add *a, const char **field, const char *option, const char *what)
{
	char line[LINE_MAX_];

	if (*field != NULL && **field != '\0')
		return;
	*field = NULL;
	if (a->asks) {
		fprintf(stderr, "%s: ", what);
		if (fgets(line, sizeof(line), stdin) != NULL) {
			line[strcspn(line, "\n")] = '\0';
			*field = *line != '\0' ? strdup(line) : NULL;
		}
	}
	if (*field == NULL) {
		fprintf(
		    stderr, "mcpboxctl: --%s is missing: %s\n", option, what);
		a->lacks = true;
	}
}

static bool
is_team(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= TEAM_MAX &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static void
need_people(struct add *a)
{
	struct remote_wish *w = &a->wish;

	w->emails = a->c->remote.email;
	w->subs = a->c->remote.sub;
	if (w->subs == NULL)
		need(a, &w->emails, "email",
		    "Who may come in: e-mail addresses, with commas between");
}

/* Asks for the keys, unless they are found without asking. */
static void
need_keys(struct add *a)
{
	a->jwks_file = a->c->remote.jwks;
	a->wish.discovery = a->c->remote.discovery;
	if (a->jwks_file == NULL && !a->wish.discovery &&
	    a->wish.jwks_url == NULL)
		need(a, &a->jwks_file, "jwks",
		    "A file with the issuer's public keys (its jwks_uri; "
		    "--discovery fetches them)");
}

static void
gather_issuer(struct add *a)
{
	struct remote_wish *w = &a->wish;
	const char *team = a->c->remote.team;
	char authority[REMOTE_HOST_MAX + 7];

	w->issuer = a->c->filter[ADMIN_FILTER_ISSUER];
	switch (w->kind) {
	case REMOTE_ACCESS:
		need(a, &team, "team",
		    "The team's name (NAME.cloudflareaccess.com)");
		w->audience = a->c->remote.aud;
		need(a, &w->audience, "aud",
		    "The application's AUD tag (Zero Trust, its overview)");
		if (team == NULL)
			break;
		if (!is_team(team)) {
			complain("--team is of a-z, 0-9 and -");
			a->lacks = true;
			break;
		}
		snprintf(a->issuer, sizeof(a->issuer),
		    "https://%s.cloudflareaccess.com", team);
		snprintf(a->keys, sizeof(a->keys),
		    "https://%s.cloudflareaccess.com/cdn-cgi/access/certs",
		    team);
		w->issuer = a->issuer;
		w->jwks_url = a->keys;
		break;
	case REMOTE_WORKER:
		/* The Worker is the issuer of its own tokens, under its own
		 * address. People sign in elsewhere. */
		w->upstream = w->issuer;
		need(a, &w->upstream, "issuer",
		    "The issuer where people sign in (OIDC_ISSUER)");
		if (w->resource == NULL ||
		    remote_host(w->resource, NULL, authority) == -1)
			return;
		snprintf(a->issuer, sizeof(a->issuer), "https://%s", authority);
		w->issuer = a->issuer;
		return;
	default:
		need(a, &w->issuer, "issuer",
		    "The issuer's URL, as its metadata says it");
	}
	need_keys(a);
}

static bool
has_issuer(const struct add *a)
{
	return a->wish.kind != REMOTE_TOKEN &&
	    (a->wish.kind != REMOTE_TAILSCALE ||
		a->c->filter[ADMIN_FILTER_ISSUER] != NULL);
}

static enum ctl_status
gather(struct add *a)
{
	const struct ctl *c = a->c;
	struct remote_wish *w = &a->wish;
	char host[REMOTE_HOST_MAX + 1];
	int kind = remote_kind_of(c->words[2]), proxy;

	if (kind == -1)
		return complain("a remote is of the kind worker, access, oidc, "
				"tailscale or token");
	w->kind = (enum remote_kind)kind;
	w->name = c->words[3];
	if (!remote_name_ok(w->name))
		return complain("a remote's name is a letter of a-z, then up "
				"to 31 of a-z, 0-9 and -");
	a->asks = !c->yes && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	w->resource = c->remote.resource;
	need(a, &w->resource, "resource",
	    "The address that clients will know: https://HOST/mcp");
	if (w->resource != NULL && remote_host(w->resource, host, NULL) == -1)
		return complain("--resource is https://HOST/mcp or "
				"https://HOST:PORT/mcp");
	w->set = c->set;
	w->scopes =
	    c->remote.scopes != NULL ? c->remote.scopes : scopes_default;
	w->allow = c->remote.allow != NULL ? c->remote.allow : "*";
	if (has_issuer(a)) {
		gather_issuer(a);
		need_people(a);
	}
	w->key_hosts = c->remote.key_hosts;
	if (w->key_hosts != NULL &&
	    (a->jwks_file != NULL || (!w->discovery && w->jwks_url == NULL)))
		return complain("--key-hosts is for keys that are fetched: by "
				"--discovery, or a team's without --jwks");
	a->out = c->remote.out;
	a->proxy = kind == REMOTE_ACCESS || kind == REMOTE_WORKER
	    ? REMOTE_CLOUDFLARED
	    : REMOTE_NGINX;
	if (c->remote.proxy != NULL) {
		if ((proxy = remote_files_proxy(c->remote.proxy)) == -1)
			return complain(
			    "--proxy is nginx, caddy or cloudflared");
		a->proxy = (enum remote_proxy)proxy;
	}
	return a->lacks ? CTL_USAGE : CTL_DONE;
}

/* ---- the document ---- */

static enum ctl_status
read_keys(struct add *a)
{
	enum ctl_status status;
	struct json_object *o = NULL, *keys;
	struct err err = {0};
	struct buf b;

	buf_init(&b, ACCESS_DOCUMENT_MAX);
	status = transfer_read(a->jwks_file, &b);
	if (status == CTL_DONE &&
	    (json_parse(b.p, b.len, &o, &err) == -1 ||
		!json_object_is_type(o, json_type_object) ||
		!json_object_object_get_ex(o, "keys", &keys))) {
		status = complain("--jwks is no JWK set: an object with the "
				  "list `keys` (the file of jwks_uri)");
	} else if (status == CTL_DONE) {
		/* Access shows further members beside the keys. */
		a->jwks = json_object_new_object();
		if (a->jwks == NULL ||
		    json_object_object_add(
			a->jwks, "keys", json_object_get(keys)) != 0)
			status = complain("out of memory");
		a->wish.jwks = a->jwks;
	}
	json_object_put(o);
	buf_free(&b);
	return status;
}

static enum ctl_status
set_document(struct add *a)
{
	struct json_object *now = NULL;
	enum ctl_status status;
	struct err err = {0};
	const char *text;
	struct buf bytes;

	if ((status = access_base(a->holds, &now)) != CTL_DONE)
		return status;
	if (a->wish.kind == REMOTE_WORKER) {
		if (remote_key_make(&a->jwks, &a->secret, &err) == -1)
			return complain(err.text);
		a->wish.jwks = a->jwks;
	} else if (a->jwks_file != NULL &&
	    (status = read_keys(a)) != CTL_DONE) {
		return status;
	}
	if (remote_document_add(now, &a->wish, &a->document, &err) == -1)
		return complain(err.text);
	text = json_object_to_json_string_ext(a->document,
	    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		JSON_C_TO_STRING_NOSLASHESCAPE);
	buf_init(&bytes, ACCESS_DOCUMENT_MAX);
	buf_puts(&bytes, text);
	fprintf(stderr,
	    "The access document gets this issuer; the first rule that fits a "
	    "person says what he may:\n");
	status = bytes.failed
	    ? complain("the access document would be larger than 256 KiB")
	    : access_change(a->c, a->holds, a->document, &bytes);
	buf_free(&bytes);
	return status;
}

/* ---- an API token ---- */

static char *
lines(const char *list)
{
	char *copy = strdup(list);

	for (char *p = copy; p != NULL && *p != '\0'; p++)
		if (*p == ',')
			*p = '\n';
	return copy;
}

static enum ctl_status
make_token(struct add *a)
{
	char *scopes = lines(a->wish.scopes), *allow = lines(a->wish.allow);
	struct ipc_token_created made;
	struct ipc_token_create m;
	struct json_object *o = NULL;
	enum ctl_status status;
	struct ipc_frame f;

	memset(&m, 0, sizeof(m));
	m.name = ipc_str(a->wish.name);
	m.scopes = ipc_str(scopes);
	m.listeners = ipc_str("tunnel");
	m.allow = ipc_str(allow);
	m.expires_ms =
	    now_us() / 1000 + (uint64_t)TOKEN_DAYS * 24 * 3600 * 1000;
	status = calls_ask(a->c, "admind", IPC_ROLE_ADMIND, IPC_TOKEN_CREATE,
	    &m, IPC_TOKEN_CREATED, &f);
	if (status == CTL_DONE) {
		if (ipc_decode(&f, &made, NULL) == -1 ||
		    json_parse(made.json.p, made.json.n, &o, NULL) == -1) {
			status = complain("admind's answer is unreadable");
		} else {
			buf_put(&a->secret, made.secret.p, made.secret.n);
			snprintf(a->token, sizeof(a->token), "%s",
			    remote_document_text(o, "id"));
		}
		ipc_frame_free(&f);
	}
	json_object_put(o);
	free(scopes);
	free(allow);
	return status;
}

/* ---- the end ---- */

static int
keep(struct add *a, struct err *err)
{
	struct json_object *row = json_object_new_object();

	if (row == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	json_object_object_add(
	    row, "name", json_object_new_string(a->wish.name));
	json_object_object_add(
	    row, "kind", json_object_new_string(remote_word(a->wish.kind)));
	json_object_object_add(
	    row, "url", json_object_new_string(a->wish.resource));
	if (a->token[0] != '\0')
		json_object_object_add(
		    row, "token", json_object_new_string(a->token));
	json_object_object_add(row, "files", json_object_get(a->paths));
	return remote_kept_put(a->c, a->wish.name, row, err);
}

static void
show(const char *text, size_t n, FILE *to)
{
	struct buf b;

	buf_init(&b, 2 * TEXT_MAX);
	for (size_t i = 0, len; i < n; i += len + 1) {
		const char *nl = memchr(text + i, '\n', n - i);

		len = nl != NULL ? (size_t)(nl - text) - i : n - i;
		show_text(&b, text + i, len, SHOW_LINE);
		buf_putc(&b, '\n');
	}
	(void)fwrite(b.p, 1, b.len, to);
	buf_free(&b);
}

static enum ctl_status
tell(struct add *a)
{
	const char *member =
	    a->wish.kind == REMOTE_WORKER ? "private_jwk" : "token";
	enum ctl_status status = CTL_DONE;
	struct json_object *o;
	struct buf left, out;
	const char *s;

	buf_init(&left, TEXT_MAX);
	buf_init(&out, 2 * TEXT_MAX);
	remote_files_left(&a->wish, a->proxy,
	    json_object_array_length(a->paths) > 0 ? a->out : NULL, &left);
	if (a->c->json) {
		o = json_object_new_object();
		json_object_object_add(
		    o, "name", json_object_new_string(a->wish.name));
		json_object_object_add(o, "kind",
		    json_object_new_string(remote_word(a->wish.kind)));
		json_object_object_add(
		    o, "url", json_object_new_string(a->wish.resource));
		if (a->secret.len > 0)
			json_object_object_add(o, member,
			    json_object_new_string_len(
				(const char *)a->secret.p, (int)a->secret.len));
		json_object_object_add(o, "files", json_object_get(a->paths));
		json_object_object_add(o, "left",
		    json_object_new_string_len(
			(const char *)left.p, (int)left.len));
		s = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
		status = tables_json((const uint8_t *)s, strlen(s));
		json_object_put(o);
	} else {
		show((const char *)a->said.p, a->said.len, stderr);
		if (a->secret.len > 0) {
			fprintf(stderr, "%s\n",
			    a->wish.kind == REMOTE_WORKER
				? "The Worker's private key, shown once and "
				  "kept nowhere:"
				: "The API token, shown once; whoever has it "
				  "may do what its scopes allow:");
			buf_put(&out, a->secret.p, a->secret.len);
			buf_putc(&out, '\n');
			terminal_out(&out);
			(void)fflush(stdout);
		}
		fprintf(stderr, "Left to do by hand:\n");
		show((const char *)left.p, left.len, stderr);
	}
	buf_free(&left);
	buf_free(&out);
	return status;
}

/* Complains if the name is one of a remote that is there. */
static enum ctl_status
is_free(struct add *a)
{
	struct json_object *rows = NULL, *now = NULL;
	enum ctl_status status = CTL_DONE;
	struct err err = {0};

	if (remote_kept_read(a->c, &rows, &err) == -1)
		return complain(err.text);
	(void)json_object_object_get_ex(a->holds, "document", &now);
	if (remote_kept_find(rows, a->wish.name) != NULL ||
	    remote_document_issuer(now, a->wish.name) != NULL)
		status = complain("there is a remote or an issuer of this name "
				  "already (mcpboxctl remote list)");
	json_object_put(rows);
	return status;
}

enum ctl_status
remote_add(const struct ctl *c)
{
	struct add a = {.c = c};
	enum ctl_status status;
	struct err err = {0};

	buf_init(&a.secret, REMOTE_JWK_MAX);
	buf_init(&a.said, TEXT_MAX);
	a.paths = json_object_new_array();
	if ((status = gather(&a)) != CTL_DONE ||
	    (status = access_holding(c, &a.holds)) != CTL_DONE ||
	    (status = is_free(&a)) != CTL_DONE ||
	    (status = has_issuer(&a) ? set_document(&a) : make_token(&a)) !=
		CTL_DONE)
		goto out;
	/* From here on the remote is there. A step that fails is told, and the
	 * others are done. */
	if (a.out != NULL &&
	    remote_files_write(
		c, &a.wish, a.proxy, a.out, a.paths, &a.said, &err) == -1)
		status = complain(err.text);
	if (keep(&a, &err) == -1)
		status = complain(err.text);
	if (tell(&a) != CTL_DONE)
		status = CTL_REFUSED;
out:
	json_object_put(a.holds);
	json_object_put(a.jwks);
	json_object_put(a.document);
	json_object_put(a.paths);
	buf_free(&a.secret);
	buf_free(&a.said);
	return status;
}
