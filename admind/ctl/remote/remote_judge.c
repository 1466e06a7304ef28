#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "remote_judge.h"

enum { DAY_S = 24 * 3600, DATE_LEN = 32 };

static const char passes[] =
    "Let the proxy pass /mcp, /.well-known/oauth-protected-resource and "
    "/.well-known/oauth-protected-resource/mcp, and for endpoints the paths "
    "below /mcp, to the tunnel's socket (contrib/nginx, contrib/cloudflared; "
    "remote add --out DIR writes the file).";

void
remote_judge_row(struct remote_row *r, enum remote_verdict verdict,
    const char *fix, const char *fmt, ...)
{
	va_list ap;

	r->verdict = verdict;
	snprintf(
	    r->fix, sizeof(r->fix), "%s", verdict == REMOTE_WRONG ? fix : "");
	va_start(ap, fmt);
	(void)vsnprintf(r->found, sizeof(r->found), fmt, ap);
	va_end(ap);
}

/*
 * Judges an answer that does not come from mcpbox at all: none, a redirect, a
 * page, a gateway error. Returns true if it was one of these.
 */
static bool
is_strange(const struct remote_way *w, const char *what,
    const struct remote_answer *a, struct remote_row *r)
{
	char fix[REMOTE_FIX_MAX];

	if (a->reached != REMOTE_ANSWERED) {
		remote_judge_row(r, REMOTE_WRONG,
		    "See the proxy's log, and whether it reads whole requests.",
		    "%s: no answer: %s", what, a->why);
	} else if (a->status >= 300 && a->status < 400) {
		remote_judge_row(r, REMOTE_WRONG,
		    "A login page or another site is in front. Let these three "
		    "paths pass without it: clients can't log in to a page. "
		    "With Cloudflare Access, turn Managed OAuth on.",
		    "%s answers %u, and sends clients to %s", what, a->status,
		    a->location[0] != '\0' ? a->location : "somewhere else");
	} else if (a->status == 502 || a->status == 503 || a->status == 504) {
		snprintf(fix, sizeof(fix),
		    "If the listener below is right, the proxy must forward to "
		    "%s, and its user must be in the group mcpbox-gw-tunnel; "
		    "else mend the listener first.",
		    w->socket);
		remote_judge_row(r, REMOTE_WRONG, fix,
		    "%s answers %u: the proxy does not reach mcpbox", what,
		    a->status);
	} else if (a->said.html && a->status == 200) {
		remote_judge_row(r, REMOTE_WRONG, passes,
		    "%s answers %u with a web page: something else than mcpbox "
		    "is there",
		    what, a->status);
	} else {
		return false;
	}
	return true;
}

void
remote_judge_name(const struct remote_way *w, const struct remote_answer *a,
    struct remote_row *r)
{
	if (a->reached == REMOTE_NO_NAME)
		remote_judge_row(r, REMOTE_WRONG,
		    "Make a DNS record for it, or wait until it is known "
		    "everywhere; --from HOST:PORT asks another address.",
		    "the name %s does not resolve", w->host);
	else if (a->reached == REMOTE_NO_ROUTE)
		remote_judge_row(r, REMOTE_WRONG,
		    "Start the proxy or the tunnel; open the port in the "
		    "firewall and the router. From inside some networks the "
		    "public address is not reached: --from HOST:PORT.",
		    "%s: nothing accepts the connection: %s", w->host, a->why);
	else
		remote_judge_row(
		    r, REMOTE_RIGHT, "", "%s is %s", w->host, a->address);
}

void
remote_judge_certificate(const struct remote_way *w,
    const struct remote_answer *a, struct remote_row *r)
{
	static const char renew[] =
	    "Renew it, and have the proxy load it (certbot renew; systemctl "
	    "reload nginx).";
	char date[DATE_LEN] = "";
	time_t t = (time_t)a->ends;
	struct tm tm;

	if (a->ends != 0 && gmtime_r(&t, &tm) != NULL)
		(void)strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	if (a->reached == REMOTE_NO_TLS && a->ends != 0 && a->ends < w->now)
		remote_judge_row(r, REMOTE_WRONG, renew,
		    "the certificate ended on %s", date);
	else if (a->reached == REMOTE_NO_TLS)
		remote_judge_row(r, REMOTE_WRONG,
		    "Clients need a certificate for this name of a public "
		    "authority, with its whole chain. --ca FILE trusts an "
		    "authority of your own.",
		    "TLS fails: %s", a->why);
	else if (a->ends == 0)
		remote_judge_row(
		    r, REMOTE_RIGHT, "", "the certificate is good");
	else if (a->ends < w->now + REMOTE_ENDS_SOON_S)
		remote_judge_row(r, REMOTE_WRONG, renew,
		    "the certificate ends on %s, in %lld days", date,
		    (long long)(a->ends - w->now) / DAY_S);
	else
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "the certificate is good until %s", date);
}

/* Tells whether the list of authorization servers has the issuer. */
static bool
names_issuer(const struct remote_way *w, const struct remote_said *s)
{
	for (uint32_t i = 0; i < s->nservers; i++)
		if (strcmp(s->servers[i], w->issuer) == 0)
			return true;
	/* A client gets no assertion of Access itself, and a Worker names
	 * itself. */
	return w->issuer[0] == '\0' || w->kind == REMOTE_ACCESS ||
	    w->kind == REMOTE_WORKER;
}

void
remote_judge_metadata(const struct remote_way *w, const char *path,
    const struct remote_answer *a, struct remote_row *r)
{
	const struct remote_said *s = &a->said;

	if (is_strange(w, path, a, r))
		return;
	if (a->status == 404 && s->json && !w->serves)
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "%s answers 404 by mcpbox: no issuer serves the tunnel, so "
		    "clients use API tokens",
		    path);
	else if (a->status == 404 && s->json)
		remote_judge_row(r, REMOTE_WRONG,
		    "Look at the listener and the document below; `listeners` "
		    "of the issuer must have tunnel.",
		    "%s answers 404 by mcpbox: it knows of no issuer for this "
		    "listener",
		    path);
	else if (a->status == 404 || a->status == 405)
		remote_judge_row(r, REMOTE_WRONG, passes,
		    "%s answers %u: the proxy does not pass it", path,
		    a->status);
	else if (a->status != 200 || s->resource[0] == '\0')
		remote_judge_row(r, REMOTE_WRONG, passes,
		    "%s answers %u, and no metadata of a resource", path,
		    a->status);
	else if (strcmp(s->resource, w->url) != 0)
		remote_judge_row(r, REMOTE_WRONG,
		    "Another instance answers, or the access document has "
		    "another resource: both must be equal byte by byte "
		    "(mcpboxctl access show).",
		    "%s says the resource %s, not %s", path, s->resource,
		    w->url);
	else if (!names_issuer(w, s))
		remote_judge_row(r, REMOTE_WRONG,
		    "Another instance answers, or a cache holds what was: the "
		    "access document has this issuer.",
		    "%s does not name the issuer %s", path, w->issuer);
	else
		remote_judge_row(
		    r, REMOTE_RIGHT, "", "%s says the right resource", path);
}

/* Access is in front: its own challenge must answer, and ours would be a fault.
 */
static void
challenge_of_access(const struct remote_answer *a, struct remote_row *r)
{
	if (a->said.bearer && strcmp(a->said.realm, "mcpbox") == 0)
		remote_judge_row(r, REMOTE_WRONG,
		    "Make the application for exactly this host and path, and "
		    "have the name's record proxied by Cloudflare.",
		    "mcpbox itself answers: Access is not in front");
	else if (a->status == 401 && a->said.bearer)
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "Access asks for a sign-in%s",
		    a->said.metadata[0] != '\0' ? ", and names its metadata"
						: "");
	else if (a->status >= 300 && a->status < 400)
		remote_judge_row(r, REMOTE_WRONG,
		    "Turn Managed OAuth on in the application.",
		    "Access answers %u with its login page: clients of MCP "
		    "can't use it",
		    a->status);
	else
		remote_judge_row(r, REMOTE_WRONG,
		    "Turn Managed OAuth on in the application, and look at its "
		    "policies.",
		    "a request without a credential gets %u, and no challenge",
		    a->status);
}

void
remote_judge_challenge(const struct remote_way *w,
    const struct remote_answer *a, struct remote_row *r)
{
	const struct remote_said *s = &a->said;

	if (w->kind == REMOTE_ACCESS && a->reached == REMOTE_ANSWERED &&
	    a->status != 502 && a->status != 503 && a->status != 504) {
		challenge_of_access(a, r);
		return;
	}
	if (is_strange(w, "POST /mcp", a, r))
		return;
	if (a->status == 404)
		remote_judge_row(r, REMOTE_WRONG, passes,
		    "POST /mcp answers 404: the proxy does not pass it");
	else if (a->status == 200)
		remote_judge_row(r, REMOTE_WRONG,
		    "The proxy must forward to the tunnel's socket, never to "
		    "the local listener, and must add no credential of its "
		    "own. Mend this before anything else.",
		    "POST /mcp answers without a credential: everybody is let "
		    "in");
	else if (a->status != 401)
		remote_judge_row(r, REMOTE_WRONG,
		    "Something before mcpbox refuses requests (a firewall of "
		    "the provider, a block of bots, a rate); let it pass.",
		    "POST /mcp without a credential answers %u instead of 401",
		    a->status);
	else if (!s->bearer)
		remote_judge_row(r, REMOTE_WRONG,
		    "The proxy must pass the field WWW-Authenticate of answers "
		    "(no proxy_hide_header, no own error page for 401).",
		    "POST /mcp answers 401 without WWW-Authenticate: the proxy "
		    "strips it");
	else if (w->serves && s->metadata[0] == '\0')
		remote_judge_row(r, REMOTE_WRONG,
		    "`listeners` of the issuer must have tunnel, and the proxy "
		    "must forward to the tunnel's socket.",
		    "the 401 does not name resource_metadata: no issuer serves "
		    "the listener that answers");
	else if (w->serves && w->kind != REMOTE_WORKER &&
	    strcmp(s->metadata, w->metadata) != 0)
		remote_judge_row(r, REMOTE_WRONG,
		    "Another instance answers, or another access document "
		    "holds there.",
		    "the 401 names the metadata %s, not %s", s->metadata,
		    w->metadata);
	else
		remote_judge_row(r, REMOTE_RIGHT, "",
		    w->serves ? "the 401 names the metadata"
			      : "401, and clients send an API token");
}

void
remote_judge_authorization(const struct remote_way *w,
    const struct remote_answer *a, struct remote_row *r)
{
	const struct remote_said *s = &a->said;

	if (is_strange(w, "POST /mcp with a token", a, r))
		return;
	if (a->status == 401 && strcmp(s->error, "invalid_token") == 0)
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "a bad token is refused by name: %s",
		    s->description[0] != '\0' ? s->description
					      : "invalid_token");
	else if (a->status == 401 && !s->bearer)
		remote_judge_row(r, REMOTE_UNSEEN, "",
		    "the 401 has no WWW-Authenticate that would tell");
	else if (a->status == 401)
		remote_judge_row(r, REMOTE_WRONG,
		    "The proxy must pass the field Authorization of requests "
		    "as it came (no proxy_set_header Authorization, no "
		    "auth_basic, no login of its own).",
		    "a token gets the answer of a request without one: the "
		    "proxy strips Authorization");
	else
		remote_judge_row(r, REMOTE_WRONG,
		    "See the proxy's log and mcpbox-gatewayd@tunnel's.",
		    "a bad token gets %u instead of 401", a->status);
}

void
remote_judge_issuer(const struct remote_way *w, const char *expected,
    const struct remote_answer *a, struct remote_row *r)
{
	const struct remote_said *s = &a->said;

	(void)w;
	if (a->reached != REMOTE_ANSWERED)
		remote_judge_row(r, REMOTE_WRONG,
		    "Clients sign in there: mend the issuer, its name or its "
		    "certificate.",
		    "the issuer %s gives no metadata: %s", expected, a->why);
	else if (a->status != 200 || !s->json)
		remote_judge_row(r, REMOTE_WRONG,
		    "Compare `issuer` in the access document with the issuer's "
		    "own words; a path or a slash too many is enough.",
		    "the issuer %s gives no metadata: it answers %u", expected,
		    a->status);
	else if (strcmp(s->issuer, expected) != 0)
		remote_judge_row(r, REMOTE_WRONG,
		    "`issuer` in the access document must be equal to it byte "
		    "by byte, also in a slash at its end.",
		    "the issuer says it is %s, not %s",
		    s->issuer[0] != '\0' ? s->issuer : "nobody", expected);
	else if (!s->s256)
		remote_judge_row(r, REMOTE_WRONG,
		    "Turn PKCE with S256 on at the issuer: clients of MCP "
		    "refuse to sign in without it.",
		    "the issuer's metadata do not name "
		    "code_challenge_methods_supported S256");
	else
		remote_judge_row(
		    r, REMOTE_RIGHT, "", "%s answers, with S256", expected);
}

static bool
among(const struct remote_key *k, const struct remote_key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(keys[i].thumb, k->thumb) == 0)
			return true;
	return false;
}

/* Keys are compared by thumbprint: a name can be used again. */
void
remote_judge_keys(const struct remote_way *w, const struct remote_answer *a,
    struct remote_row *r)
{
	static const char again[] =
	    "Fetch the keys again and set them: curl -s JWKS_URI >keys.json, "
	    "put them at `jwks` of this issuer (mcpboxctl access show, access "
	    "set FILE). With `discovery` mcpbox follows by itself.";
	const struct remote_said *s = &a->said;
	uint32_t fresh = 0, gone = 0;
	const char *kid = "";

	if (a->reached != REMOTE_ANSWERED || a->status != 200 || !s->has_keys) {
		remote_judge_row(r, REMOTE_WRONG,
		    "Look at the issuer: its jwks_uri must answer with a JWK "
		    "set.",
		    "the issuer's keys are not to be had: %s%s%u",
		    a->reached != REMOTE_ANSWERED ? a->why : "",
		    a->reached != REMOTE_ANSWERED ? ", status " : "status ",
		    a->status);
		return;
	}
	for (uint32_t i = 0; i < s->nkeys; i++)
		if (!among(&s->keys[i], w->keys, w->nkeys)) {
			fresh++;
			kid = s->keys[i].kid;
		}
	for (uint32_t i = 0; i < w->nkeys; i++)
		gone += !among(&w->keys[i], s->keys, s->nkeys);
	if (!w->own_keys)
		remote_judge_row(r, s->nkeys > 0 ? REMOTE_RIGHT : REMOTE_WRONG,
		    "The issuer must sign by RS256, PS256, ES256 or EdDSA.",
		    "%u keys that can sign for us; admind fetches them itself",
		    s->nkeys);
	else if (fresh > 0)
		remote_judge_row(r, REMOTE_WRONG, again,
		    "the issuer changed its keys: %u (%s%s) not in the access "
		    "document, so tokens of them are refused",
		    fresh, *kid != '\0' ? "kid " : "",
		    *kid != '\0' ? kid : "without a name");
	else if (gone == w->nkeys)
		remote_judge_row(r, REMOTE_WRONG, again,
		    "the issuer shows none of the access document's keys");
	else if (gone > 0)
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "the issuer's keys are in the access document, and %u "
		    "older ones that it no longer shows",
		    gone);
	else
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "the issuer's keys (%u) are those of the access document",
		    s->nkeys);
}

void
remote_judge_clock(
    const struct remote_way *w, int64_t date, struct remote_row *r)
{
	long long ahead = (long long)(date - w->now);

	if (date == 0)
		remote_judge_row(
		    r, REMOTE_UNSEEN, "", "no answer from outside had a Date");
	else if (ahead > w->leeway_s || ahead < -(long long)w->leeway_s)
		remote_judge_row(r, REMOTE_WRONG,
		    "timedatectl set-ntp true, here or there: tokens count "
		    "only within leeway_seconds.",
		    "this machine's clock is %lld s %s the other side's",
		    ahead > 0 ? ahead : -ahead,
		    ahead > 0 ? "behind" : "ahead of");
	else
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "within %lld s of the other side's",
		    ahead > 0 ? ahead : -ahead);
}

void
remote_judge_listener(const struct remote_way *w, const struct remote_answer *a,
    struct remote_row *r)
{
	static const char restart[] =
	    "systemctl status mcpbox-gatewayd@tunnel.socket "
	    "mcpbox-gatewayd@tunnel; mcpboxctl doctor says what else it "
	    "lacks.";

	if (a->reached != REMOTE_ANSWERED)
		remote_judge_row(r, REMOTE_WRONG, restart,
		    "gatewayd-tunnel gives no answer at %s: %s", w->socket,
		    a->why);
	else if (a->status == 404 && !w->serves)
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "gatewayd-tunnel answers at %s", w->socket);
	else if (a->status == 503)
		remote_judge_row(r, REMOTE_WRONG,
		    "systemctl status mcpbox-admind; mcpboxctl health.",
		    "gatewayd-tunnel answers, but has no word from admind");
	else if (a->status == 404)
		remote_judge_row(r, REMOTE_WRONG,
		    "`listeners` of an issuer must have tunnel (mcpboxctl "
		    "access show).",
		    "gatewayd-tunnel answers, but no issuer serves it");
	else if (a->status != 200 || strcmp(a->said.resource, w->url) != 0)
		remote_judge_row(r, REMOTE_WRONG, restart,
		    "gatewayd-tunnel answers %u, with the resource %s",
		    a->status,
		    a->said.resource[0] != '\0' ? a->said.resource : "of none");
	else
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "gatewayd-tunnel answers at %s", w->socket);
}

void
remote_judge_call(const struct remote_answer *initialize,
    const struct remote_answer *tools, struct remote_row *r)
{
	const struct remote_answer *a = tools != NULL ? tools : initialize;
	const char *what = tools != NULL ? "tools/list" : "initialize";
	const struct remote_said *s = &a->said;

	if (a->reached != REMOTE_ANSWERED)
		remote_judge_row(r, REMOTE_WRONG, "See the proxy's log.",
		    "%s: no answer: %s", what, a->why);
	else if (a->status == 200 && s->result && tools != NULL)
		remote_judge_row(r, REMOTE_RIGHT, "",
		    "initialize and tools/list, with %u tools", s->ntools);
	else
		remote_judge_row(r, REMOTE_WRONG,
		    "docs/ACCESS.md, \"When a client is refused\".",
		    "%s answers %u: %s", what, a->status,
		    s->description[0] != '\0'     ? s->description
			: s->rpc_error[0] != '\0' ? s->rpc_error
						  : "without a reason");
}
