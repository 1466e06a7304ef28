/*
 * A name, a host and a URL reach these files only as remote.c lets them: of
 * letters, digits, dots, hyphens. So nothing can end a directive of a proxy and
 * begin another.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "remote_files.h"

#include "remote_text.h"
#include "setup_conf.h"

enum { FILE_MAX = 64 * 1024, FILE_MODE = 0644, TAILSCALE_PORT = 8480 };

/* Addresses to which clients return from a sign-in (docs/ACCESS.md). */
static const char *const redirects[] = {
    "https://claude.ai/api/mcp/auth_callback",
    "https://claude.com/api/mcp/auth_callback",
    "https://chatgpt.com/connector_platform_oauth_redirect",
    "https://vscode.dev/redirect"};

enum { NREDIRECTS = sizeof(redirects) / sizeof(redirects[0]) };

/* The rest of a file's name, after the remote's. */
static const char *const endings[REMOTE_PROXY_COUNT] = {
    ".nginx.conf", ".caddy", ".cloudflared.yml"};

int
remote_files_proxy(const char *word)
{
	static const char *const words[] = {"nginx", "caddy", "cloudflared"};

	for (int i = 0; i < REMOTE_PROXY_COUNT; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return -1;
}

/* Appends an example with this host and this run directory. */
static void
example(const char *text, const char *host, const char *run_dir, struct buf *b)
{
	const size_t nhost = strlen(REMOTE_TEXT_HOST),
		     nrun = strlen(REMOTE_TEXT_RUN);

	while (*text != '\0')
		if (strncmp(text, REMOTE_TEXT_HOST, nhost) == 0) {
			buf_puts(b, host);
			text += nhost;
		} else if (strncmp(text, REMOTE_TEXT_RUN, nrun) == 0) {
			buf_putf(b, "%s/", run_dir);
			text += nrun;
		} else {
			buf_putc(b, *text++);
		}
}

static void
caddy(const char *authority, const char *run_dir, struct buf *b)
{
	buf_puts(b,
	    "# Caddy in front of mcpbox's tunnel listener: import it from the\n"
	    "# Caddyfile. Caddy's user must be in the group mcpbox-gw-tunnel.\n"
	    "# contrib/caddy/Caddyfile has the options that are for all "
	    "sites,\n"
	    "# `admin off` and time limits: put them first in yours.\n");
	example(remote_text_caddy, authority, run_dir, b);
}

/* nginx on loopback without TLS: tailscaled ends TLS and forwards to it. */
static void
tailscale(const char *run_dir, struct buf *b)
{
	buf_putf(b,
	    "# nginx between Tailscale Funnel, which ends TLS, and mcpbox's\n"
	    "# tunnel listener. For /etc/nginx/conf.d/; nginx's user must be\n"
	    "# in the group mcpbox-gw-tunnel.\n"
	    "server {\n"
	    "\tlisten 127.0.0.1:%d;\n"
	    "\tlarge_client_header_buffers 4 16k;\n"
	    "\tlocation ~ ^/(mcp(/[a-z][a-z0-9-]*)?|"
	    "\\.well-known/oauth-protected-resource(/mcp(/"
	    "[a-z][a-z0-9-]*)?)?)$ "
	    "{\n"
	    "\t\tproxy_pass http://unix:%s/gatewayd-tunnel/mcp.sock;\n"
	    "\t\tproxy_http_version 1.1;\n"
	    "\t\tproxy_set_header Connection \"\";\n"
	    "\t\tproxy_set_header Host $host;\n"
	    "\t\tproxy_buffering off;\n"
	    "\t\tgzip off;\n"
	    "\t\tclient_max_body_size 4m;\n"
	    "\t\tproxy_read_timeout 700s;\n"
	    "\t\tproxy_next_upstream off;\n"
	    "\t}\n"
	    "\tlocation / {\n"
	    "\t\treturn 404;\n"
	    "\t}\n"
	    "}\n",
	    TAILSCALE_PORT, run_dir);
}

/* ---- JSON ---- */

static void
add(struct json_object *o, const char *name, struct json_object *v)
{
	if (json_object_object_add(o, name, v) != 0)
		json_object_put(v);
}

static void
add_text(struct json_object *o, const char *name, const char *s)
{
	add(o, name, json_object_new_string(s));
}

static void
print(struct json_object *o, struct buf *b)
{
	buf_puts(b,
	    json_object_to_json_string_ext(o,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		    JSON_C_TO_STRING_NOSLASHESCAPE));
	buf_putc(b, '\n');
}

/* The self-hosted application with Managed OAuth, as the API of Cloudflare
 * Access takes it (POST /accounts/ID/access/apps). */
static void
application(const struct remote_wish *w, const char *authority, struct buf *b)
{
	struct json_object *o = json_object_new_object(),
			   *oauth = json_object_new_object(),
			   *clients = json_object_new_object(),
			   *grant = json_object_new_object(),
			   *uris = json_object_new_array();
	char domain[REMOTE_HOST_MAX + 16];

	snprintf(domain, sizeof(domain), "%s/mcp", authority);
	for (size_t i = 0; i < NREDIRECTS; i++)
		json_object_array_add(
		    uris, json_object_new_string(redirects[i]));
	add(clients, "enabled", json_object_new_boolean(true));
	add(clients, "allow_any_on_localhost", json_object_new_boolean(true));
	add(clients, "allow_any_on_loopback", json_object_new_boolean(true));
	add(clients, "allowed_uris", uris);
	add_text(grant, "access_token_lifetime", "5m");
	add_text(grant, "session_duration", "24h");
	add(oauth, "enabled", json_object_new_boolean(true));
	add(oauth, "dynamic_client_registration", clients);
	add(oauth, "grant", grant);
	add_text(o, "name", w->name);
	add_text(o, "type", "self_hosted");
	add_text(o, "domain", domain);
	add_text(o, "session_duration", "24h");
	add(o, "oauth_configuration", oauth);
	print(o, b);
	json_object_put(o);
}

static void
wrangler(const struct remote_wish *w, struct buf *b)
{
	struct json_object *o = json_object_new_object(),
			   *vars = json_object_new_object();

	add_text(vars, "RESOURCE", w->resource);
	add_text(vars, "OIDC_ISSUER", w->upstream != NULL ? w->upstream : "");
	add_text(vars, "OIDC_CLIENT_ID", "mcpbox");
	add(o, "vars", vars);
	buf_puts(b,
	    "// For wrangler.jsonc of the Worker. The private key is not "
	    "here:\n"
	    "// it is the secret SIGNING_KEY.\n");
	print(o, b);
	json_object_put(o);
}

/* ---- writing ---- */

static int
write_one(const char *dir, const char *name, const char *ending,
    const struct buf *text, struct json_object *paths, struct buf *said,
    struct err *err)
{
	char path[PATH_MAX], old[PATH_MAX];
	struct json_object *v;
	struct buf there;
	int have;

	if (text->failed ||
	    snprintf(path, sizeof(path), "%s/%s%s", dir, name, ending) >=
		(int)sizeof(path) ||
	    snprintf(old, sizeof(old), "%s.old", path) >= (int)sizeof(old))
		return err_set(
		    err, FAILURE_INVALID_PARAMS, "%s: too long", dir);
	buf_init(&there, 16 * FILE_MAX);
	have = setup_conf_read(path, &there, err);
	if (have == 1 &&
	    (there.len != text->len ||
		memcmp(there.p, text->p, text->len) != 0)) {
		if (rename(path, old) == -1)
			have = err_sys(err, FAILURE_INTERNAL, "%s", old);
		else
			buf_putf(
			    said, "%s was there: it is %s now\n", path, old);
	}
	buf_free(&there);
	if (have == -1 ||
	    setup_conf_write(path, text->p, text->len, FILE_MODE, err) == -1)
		return -1;
	buf_putf(said, "wrote %s\n", path);
	v = json_object_new_string(path);
	if (v != NULL && json_object_array_add(paths, v) != 0)
		json_object_put(v);
	return 0;
}

int
remote_files_write(const struct ctl *c, const struct remote_wish *w,
    enum remote_proxy proxy, const char *dir, struct json_object *paths,
    struct buf *said, struct err *err)
{
	char host[REMOTE_HOST_MAX + 1], authority[REMOTE_HOST_MAX + 7],
	    whole[PATH_MAX];
	struct buf b;
	int rc = -1;

	if (remote_host(w->resource, host, authority) == -1)
		return err_set(err, FAILURE_INVALID_PARAMS, "the resource");
	if (realpath(dir, whole) == NULL)
		return err_sys(err, FAILURE_INTERNAL, "%s", dir);
	buf_init(&b, FILE_MAX);
	if (w->kind == REMOTE_WORKER) {
		/* The public name is the Worker's; the way from it to us is in
		 * contrib/cloudflare. */
		wrangler(w, &b);
		rc = write_one(
		    whole, w->name, ".wrangler.jsonc", &b, paths, said, err);
		goto out;
	}
	if (w->kind == REMOTE_TAILSCALE)
		tailscale(c->run_dir, &b);
	else if (proxy == REMOTE_CADDY)
		caddy(authority, c->run_dir, &b);
	else
		example(proxy == REMOTE_NGINX ? remote_text_nginx
					      : remote_text_cloudflared,
		    host, c->run_dir, &b);
	if (write_one(whole, w->name,
		w->kind == REMOTE_TAILSCALE ? endings[REMOTE_NGINX]
					    : endings[proxy],
		&b, paths, said, err) == -1)
		goto out;
	buf_clear(&b);
	if (w->kind == REMOTE_ACCESS) {
		application(w, authority, &b);
		if (write_one(whole, w->name, ".access.json", &b, paths, said,
			err) == -1)
			goto out;
	}
	rc = 0;
out:
	buf_free(&b);
	return rc;
}

/* ---- steps by hand ---- */

struct left {
	struct buf *out;
	unsigned n;
};

static void __attribute__((format(printf, 2, 3)))
step(struct left *l, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_putf(l->out, "%u. %s\n", ++l->n, line);
}

/* Tells whether nginx reads the files of this folder. */
static bool
nginx_reads(const char *dir)
{
	static const char folder[] = "/etc/nginx/conf.d";
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return n == strlen(folder) && memcmp(dir, folder, n) == 0;
}

static void
way(struct left *l, const struct remote_wish *w, enum remote_proxy proxy,
    const char *dir)
{
	char host[REMOTE_HOST_MAX + 1];

	(void)remote_host(w->resource, host, NULL);
	if (w->kind == REMOTE_TAILSCALE) {
		step(l,
		    "Put %s%s into /etc/nginx/conf.d/, then: usermod -aG "
		    "mcpbox-gw-tunnel www-data && systemctl restart nginx",
		    dir != NULL ? w->name : "the site for nginx",
		    dir != NULL ? endings[REMOTE_NGINX] : " (--out DIR)");
		step(l, "tailscale funnel --bg http://127.0.0.1:%d",
		    TAILSCALE_PORT);
		step(l,
		    "tailscale funnel status shows https://%s; the tailnet's "
		    "policy must let this machine have Funnel",
		    host);
		return;
	}
	if (w->kind == REMOTE_WORKER) {
		step(l,
		    "Let the Worker reach the tunnel's socket: by a service of "
		    "Workers VPC, or under a name of its own (MCPBOX_URL), "
		    "with cloudflared or nginx");
	} else if (dir == NULL) {
		step(l,
		    "Let a proxy reach the tunnel's socket under https://%s "
		    "(contrib/nginx, contrib/cloudflared; --out DIR writes "
		    "its file)",
		    host);
	} else if (proxy == REMOTE_CLOUDFLARED) {
		step(l,
		    "Install %s%s as /etc/cloudflared/config.yml; its head "
		    "says how",
		    w->name, endings[proxy]);
	} else if (proxy == REMOTE_CADDY) {
		step(l,
		    "Import %s%s in the Caddyfile, then: usermod -aG "
		    "mcpbox-gw-tunnel caddy && systemctl restart caddy",
		    w->name, endings[proxy]);
	} else if (nginx_reads(dir)) {
		step(l,
		    "See that %s%s names your certificate, then: usermod -aG "
		    "mcpbox-gw-tunnel www-data && systemctl restart nginx",
		    w->name, endings[proxy]);
	} else {
		step(l,
		    "Put %s%s into /etc/nginx/conf.d/ with your certificate, "
		    "then: usermod -aG mcpbox-gw-tunnel www-data && systemctl "
		    "restart nginx",
		    w->name, endings[proxy]);
	}
}

static void
clients(struct left *l, const char *where)
{
	step(l, "%s, let clients return to these addresses:", where);
	for (size_t i = 0; i < NREDIRECTS; i++)
		buf_putf(l->out, "      %s\n", redirects[i]);
	buf_puts(l->out,
	    "      http://localhost:PORT/callback (Claude Code)\n"
	    "      http://127.0.0.1:33418 (VS Code)\n");
}

void
remote_files_left(const struct remote_wish *w, enum remote_proxy proxy,
    const char *dir, struct buf *out)
{
	struct left l = {out, 0};

	way(&l, w, proxy, dir);
	switch (w->kind) {
	case REMOTE_OIDC:
		step(&l, "At %s, make an API (resource) of exactly %s",
		    w->issuer, w->resource);
		clients(&l, "There, make a client for each program");
		break;
	case REMOTE_WORKER:
		step(&l,
		    "npx wrangler secret put SIGNING_KEY, and paste the "
		    "private key: it is shown this once");
		step(&l,
		    "Make a client for the Worker at %s, that returns to its "
		    "address; take OIDC_CLIENT_ID and the variables RESOURCE "
		    "%s and OIDC_ISSUER into wrangler.jsonc, then npx wrangler "
		    "deploy",
		    w->upstream, w->resource);
		break;
	case REMOTE_ACCESS:
		step(&l,
		    "In Zero Trust, make the self-hosted application of "
		    "%s.access.json, with a policy that lets these people in; "
		    "Managed OAuth on",
		    w->name);
		clients(&l, "In its allowed redirect addresses");
		break;
	case REMOTE_TOKEN:
	case REMOTE_TAILSCALE:
		step(&l,
		    "In the client, send this header with each request: "
		    "Authorization: Bearer TOKEN");
		break;
	}
	step(&l, "Add %s to the client", w->resource);
	step(&l, "mcpboxctl remote check %s", w->name);
}
