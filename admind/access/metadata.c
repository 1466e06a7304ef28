/*
 * GW_ACCESS: the words of a gateway to clients that have no valid credential.
 *
 * The metadata of a protected resource (RFC 9728) are made here, of the
 * document's texts alone. They never contain a part of a request. URLs in a
 * document are ASCII without quotation marks (compiled.c), so they may be put
 * into a header as they are.
 *
 * Our scopes are named only for issuers whose tokens' scopes count. Any other
 * issuer need not know them, and would refuse a client that asked for them. Yet
 * clients ask for the scopes that they find here, and there are issuers that
 * refuse a client that asks for none. So for such an issuer the metadata name
 * scopes that each OpenID provider knows (OpenID Connect Core 3.1.2.1, 5.4):
 * `openid`, and `email` if a rule judges by it.
 */
#include <string.h>

#include "access.h"
#include "jsonw.h"
#include "permit.h"

/* RFC 9728 section 3.1: the word goes between the host and the path. */
#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* Returns the scopes that clients of this listener may ask an issuer for. */
static unsigned
scopes_at(const struct compiled *c, unsigned listener)
{
	unsigned scopes = 0;

	for (unsigned i = 0; i < c->nrules; i++) {
		const struct issuer *s = c->rule[i].issuer;

		if (s->narrows && s->via == VIA_AUTHORIZATION &&
		    (s->listeners & 1u << listener) != 0)
			scopes |= c->rule[i].set->scopes;
	}
	return scopes;
}

/* Returns whether a rule of this listener's issuers judges an address. */
static bool
judges_email(const struct compiled *c, unsigned listener)
{
	for (unsigned i = 0; i < c->nrules; i++) {
		const struct rule *r = &c->rule[i];

		if (r->issuer->via == VIA_AUTHORIZATION &&
		    (r->issuer->listeners & 1u << listener) != 0 &&
		    (r->claim == RULE_EMAIL || r->claim == RULE_EMAIL_DOMAIN))
			return true;
	}
	return false;
}

static const struct {
	unsigned mask;
	const char *word;
} words[] = {{PERMIT_READ, "tools:read"}, {PERMIT_CALL, "tools:call"},
    {PERMIT_MANAGE, "manage"}, {PERMIT_EDIT, "manage:edit"}};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

static void
put_metadata(struct buf *b, const struct compiled *c, unsigned listener)
{
	unsigned scopes = scopes_at(c, listener);
	struct jsonw w;

	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_strn(&w, "resource", c->resource.p, c->resource.n);
	/* A member without values is left out (RFC 9728 section 3.2). Clients
	 * get no assertion themselves, so its issuer is not named. */
	if (issuers_serve(c, listener, VIA_AUTHORIZATION)) {
		jsonw_name(&w, "authorization_servers");
		jsonw_arr(&w);
		for (unsigned i = 0; i < c->nissuers; i++)
			if (c->issuer[i].via == VIA_AUTHORIZATION &&
			    (c->issuer[i].listeners & 1u << listener) != 0)
				jsonw_strn(
				    &w, c->issuer[i].url.p, c->issuer[i].url.n);
		jsonw_arr_end(&w);
	}
	if (scopes != 0) {
		jsonw_name(&w, "scopes_supported");
		jsonw_arr(&w);
		for (int i = 0; i < WORDS; i++)
			if ((scopes & words[i].mask) != 0)
				jsonw_str(&w, words[i].word);
		jsonw_arr_end(&w);
	} else if (issuers_serve(c, listener, VIA_AUTHORIZATION)) {
		jsonw_name(&w, "scopes_supported");
		jsonw_arr(&w);
		jsonw_str(&w, "openid");
		if (judges_email(c, listener))
			jsonw_str(&w, "email");
		jsonw_arr_end(&w);
	}
	jsonw_name(&w, "bearer_methods_supported");
	jsonw_arr(&w);
	jsonw_str(&w, "header");
	jsonw_arr_end(&w);
	jsonw_kv_str(&w, "resource_name", "mcpbox");
	jsonw_obj_end(&w);
}

/* Appends the URL of the metadata of https://HOST/mcp. */
static void
put_url(struct buf *b, struct ipc_bytes resource)
{
	const uint8_t *path = resource.p + resource.n;

	while (path > resource.p && path[-1] != '/')
		path--;
	path -= path > resource.p;
	buf_put(b, resource.p, (size_t)(path - resource.p));
	buf_puts(b, WELL_KNOWN);
	buf_put(b, path, (size_t)(resource.p + resource.n - path));
}

static void
send_to(struct ipc_peer *peer, void *arg)
{
	(void)ipc_send(peer, IPC_GW_ACCESS, arg);
}

/* Sends the message of a listener to one peer; NULL: to all its gateways. */
static void
tell(struct admind *a, enum listener listener, struct ipc_peer *peer)
{
	const struct compiled *c = a->access != NULL ? a->access->now : NULL;
	struct ipc_gw_access m = {0};
	struct buf json, url, scope;

	buf_init(&json, RESULT_MAX);
	buf_init(&url, IPC_FRAME_MAX / 4);
	buf_init(&scope, IPC_FRAME_MAX / 4);
	m.assertion = issuers_serve(c, listener, VIA_ASSERTION);
	m.bound = issuers_bind(c, listener);
	if (c != NULL && issuers_at(c, listener)) {
		put_metadata(&json, c, listener);
		put_url(&url, c->resource);
		permit_put_scopes(&scope, scopes_at(c, listener));
	}
	/* Without memory clients get fewer hints. */
	if (!json.failed && !url.failed && !scope.failed) {
		m.metadata = ipc_bytes(json.p, json.len);
		m.resource_metadata = ipc_bytes(url.p, url.len);
		m.scope = ipc_bytes(scope.p, scope.len);
	}
	if (peer != NULL)
		send_to(peer, &m);
	else
		ipc_server_each(
		    listener == LISTENER_LOCAL ? a->gw_local : a->gw_tunnel,
		    send_to, &m);
	buf_free(&json);
	buf_free(&url);
	buf_free(&scope);
}

/* Says nothing before it was read which issuers there are. Clients throw their
 * tokens away if they hear that there are no issuers. */
void
metadata_send(struct link *l)
{
	const struct access *x = l->a->access;

	if (l->peer != NULL && x != NULL && (x->ready || x->now != NULL))
		tell(l->a, l->listener, l->peer);
}

void
metadata_tell(struct admind *a)
{
	tell(a, LISTENER_LOCAL, NULL);
	tell(a, LISTENER_TUNNEL, NULL);
}
