/*
 * Security argument.
 *
 * admind asks for this context and may be hostile. The run connects to hosts of
 * the access document alone, and an administrator's login sealed that document.
 * We do not parse JSON. Each address that admind brings must be in the document
 * as a whole string, between quotation marks. It has no quotation mark and no
 * backslash itself, so the bytes between the marks are exactly the string. The
 * document must be the newest that we know, so a host that was taken out is not
 * reached.
 *
 * admind still chooses which of the document's strings it names, and these runs
 * send bytes that admind chooses. A hostile admind can send all that it knows:
 * as telemetry, or as the code of a sign-in, which is a run of kind KEYS, too.
 * So the address must be the value of a member that says its use, at the place
 * of the document where that member is. For telemetry that is "endpoint" of
 * "telemetry". For keys and sign-ins it is "issuer" of an entry of "issuers",
 * or "jwks_url" for keys without discovery. An administrator wrote it for this
 * use. In JSON a string before a colon is the name of a member; a string that
 * only looks so inside of another string has a backslash before its quotation
 * marks. Keys that are written into `jwks` may have members of any name (RFC
 * 7517 section 4), as their issuer chose, but they are deeper in the document.
 *
 * So a hostile admind can send all that it knows to issuers of the sealed
 * document, to the collector, and to targets of notifications. It may name any
 * of these issuers.
 *
 * A target of notifications is the value of "notify" of an entry of
 * "notifications": one text with the host and the name of the secret
 * (target.h). admind can't put the secret of one target before the host of
 * another, since no text of the document has both. The value opens only as that
 * server's secret of that name. The run gets it, so a taken-over run has this
 * one secret, which the host of the same text gets anyway. A secret that tools
 * have, too, may be named. An administrator wrote it there.
 *
 * A further host is any whole string of the document that is a host, so it may
 * be named wrongly. Our code sends telemetry to the host of the address alone.
 * It asks or sends to a further host only if the metadata at the address name
 * that host. Metadata name the issuer, byte by byte, or are not taken. So an
 * issuer alone can lead a run on, and only to a host of the document.
 */
#include "fetch.h"

#include <string.h>

#include "bounds.h"
#include "context.h"
#include "crypto.h"
#include "grantreq.h"
#include "ids.h"
#include "jsonw.h"
#include "netgrant.h"
#include "stored.h"
#include "target.h"
#include "tlv.h"

/* Bytes of an address: a URL of an access document. */
enum { ADDRESS_MAX = 512 };

/* The run's specification and its hosts. */
struct spec {
	struct buf json;
	struct jsonw w;
	unsigned hosts;
	bool http;         /* an address may be http */
	const char *usual; /* the port of a host without one */
};

/* Tells whether a string of the document, whose quotation mark is at `at`, is
 * the value of a member of this name. */
static bool
is_value(struct ipc_bytes document, const uint8_t *at, const char *name)
{
	size_t n = strlen(name), left = (size_t)(at - document.p);
	bool colon = false;

	for (; left > 0; left--) {
		uint8_t c = document.p[left - 1];

		if (c == ':' && !colon)
			colon = true;
		else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			break;
	}
	return colon && left >= n + 3 && document.p[left - 1] == '"' &&
	    memcmp(document.p + left - 1 - n, name, n) == 0 &&
	    document.p[left - 2 - n] == '"' && document.p[left - 3 - n] != '\\';
}

/* A use of such a run. */
struct use {
	/* The address must be the value of a member of one of these names, in
	 * so many objects and arrays, within this member of the document. */
	const char *members[3], *top;
	unsigned depth;
	const char *kind; /* text of CTX_KIND */
	bool http;        /* the address may be http */
	bool target;      /* the text is a target of notifications */
};

/* Tells whether a string of the document, whose quotation mark is at `at`, is
 * in the value of this member of the document itself, and in so many objects
 * and arrays. */
static bool
is_under(struct ipc_bytes document, const uint8_t *at, const struct use *use)
{
	const uint8_t *from = NULL; /* of the string that p is in */
	struct ipc_bytes top = {0}; /* the last string of the document itself:
				     * the name of the member that p is in */
	unsigned depth = 0;

	for (const uint8_t *p = document.p; p < at; p++) {
		if (from != NULL && *p == '\\') {
			p++;
		} else if (from != NULL && *p == '"') {
			if (depth == 1)
				top = ipc_bytes(from, (size_t)(p - from));
			from = NULL;
		} else if (from == NULL && *p == '"') {
			from = p + 1;
		} else if (from == NULL && (*p == '{' || *p == '[')) {
			depth++;
		} else if (from == NULL && (*p == '}' || *p == ']')) {
			if (depth == 0)
				return false;
			depth--;
		}
	}
	return from == NULL && depth == use->depth && ipc_streq(top, use->top);
}

/* Tells whether the text is a whole string of the document. use: and the value
 * of a member for this use; NULL: any string. */
static bool
stands(struct ipc_bytes document, struct ipc_bytes text, const struct use *use)
{
	const uint8_t *at = document.p, *end = document.p + document.n;

	if (text.n == 0 || text.n > ADDRESS_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < ' ' || text.p[i] > '~' || text.p[i] == '"' ||
		    text.p[i] == '\\' ||
		    (text.p[i] == ' ' && (use == NULL || !use->target)))
			return false;
	while ((size_t)(end - at) >= text.n + 2 &&
	    (at = memmem(at, (size_t)(end - at), text.p, text.n)) != NULL) {
		if (at > document.p + 1 && at[-1] == '"' && at[-2] != '\\' &&
		    at + text.n < end && at[text.n] == '"') {
			if (use == NULL)
				return true;
			for (size_t i = 0; use->members[i] != NULL; i++)
				if (is_value(
					document, at - 1, use->members[i]) &&
				    is_under(document, at - 1, use))
					return true;
		}
		at++;
	}
	return false;
}

/* Adds a host in the spelling of `requires`. */
static int
put_host(
    struct buf *out, struct spec *s, struct ipc_bytes text, struct err *err)
{
	struct buf line;
	struct netgrant g;
	int rc = -1;

	buf_init(&line, NETGRANT_LINE_MAX + 8);
	if (grantreq_need(text, &line, err) == -1)
		goto out;
	if (line.len > 2 && memcmp(line.p + line.len - 2, " 0", 2) == 0) {
		line.len--;
		buf_puts(&line, s->usual);
	}
	if (line.failed) {
		err_set(err, FAILURE_BUSY, "out of memory");
		goto out;
	}
	if (netgrant_read(ipc_bytes(line.p, line.len), &g, err) == -1)
		goto out;
	if (g.any || g.form == GRANT_HOST_WILD || g.proto != NETGRANT_TCP) {
		err_set(err, FAILURE_FORBIDDEN,
		    "a run of ours reaches one host by TCP, and no wildcard");
		goto out;
	}
	if (s->hosts++ > FETCH_HOSTS_MAX) {
		err_set(err, FAILURE_LIMIT, "more than %d further hosts",
		    FETCH_HOSTS_MAX);
		goto out;
	}
	tlv_put(out, CTX_REQUIRE, line.p, line.len);
	tlv_put(out, CTX_GRANT, line.p, line.len);
	jsonw_strn(&s->w, line.p, line.len);
	rc = 0;
out:
	buf_free(&line);
	return rc;
}

/* Adds the host of a URL. */
static int
put_url(struct buf *out, struct spec *s, struct ipc_bytes url, struct err *err)
{
	static const char tls[] = "https://", clear[] = "http://";
	size_t start = 0, n;
	int rc;

	if (url.n > sizeof(tls) - 1 && memcmp(url.p, tls, sizeof(tls) - 1) == 0)
		start = sizeof(tls) - 1;
	else if (s->http && url.n > sizeof(clear) - 1 &&
	    memcmp(url.p, clear, sizeof(clear) - 1) == 0) {
		start = sizeof(clear) - 1;
		s->usual = "80";
	} else
		return err_set(
		    err, FAILURE_FORBIDDEN, "the address is not https");
	for (n = start; n < url.n && url.p[n] != '/'; n++)
		;
	rc = put_host(out, s, ipc_bytes(url.p + start, n - start), err);
	s->usual = "443";
	return rc;
}

static int
put_hosts(struct buf *out, struct spec *s, struct ipc_bytes document,
    struct ipc_bytes material, struct err *err)
{
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, material.p, material.n);
	while (tlv_next(&r, &f) == 1) {
		struct ipc_bytes host = ipc_bytes(f.p, f.n);

		if (f.tag != CTX_KEYS_HOST)
			continue;
		if (!stands(document, host, NULL))
			return err_set(err, FAILURE_FORBIDDEN,
			    "a host is not in the access document, or is "
			    "written there with an escape");
		if (put_host(out, s, host, err) == -1)
			return -1;
	}
	return 0;
}

/* Adds the secret that the target names. */
static int
put_secret(struct buf *out, const struct keys *k, const struct target *t,
    struct ipc_bytes material, struct err *err)
{
	const struct stored_place at = {STORED_SECRETS, t->server, t->secret};
	struct tlv name, stored;
	struct buf value;
	int rc;

	if (tlv_find(material.p, material.n, CTX_SECRET_NAME, &name) != 1 ||
	    tlv_find(material.p, material.n, CTX_SECRET_VALUE, &stored) != 1)
		return t->secret.n == 0
		    ? 0
		    : err_set(err, FAILURE_INVALID_REQUEST,
			  "context material lacks the target's secret");
	if (name.n != t->secret.n || name.n == 0 ||
	    memcmp(name.p, t->secret.p, name.n) != 0)
		return err_set(err, FAILURE_FORBIDDEN,
		    "the target does not name this secret");
	buf_init(&value, SECRET_VALUE_MAX);
	rc = stored_open(k, &at, stored.p, stored.n, &value, err);
	if (rc == 0) {
		tlv_puts(out, CTX_SECRET_NAME, NOTIFY_SECRET);
		tlv_put(out, CTX_SECRET_VALUE, value.p, value.len);
	}
	buf_free(&value);
	return rc;
}

/* Adds the host of a target, and its secret. */
static int
put_target(struct buf *out, struct spec *s, const struct keys *k,
    struct ipc_bytes text, struct ipc_bytes material, struct err *err)
{
	struct target t;
	const char *fault = target_read(text, &t);

	if (fault != NULL)
		return err_set(
		    err, FAILURE_INVALID_REQUEST, "the target %s", fault);
	jsonw_kv_strn(&s->w, "target", t.words.p, t.words.n);
	jsonw_name(&s->w, "hosts");
	jsonw_arr(&s->w);
	s->usual = t.port;
	return put_host(out, s, t.host, err) == -1
	    ? -1
	    : put_secret(out, k, &t, material, err);
}

/* Adds the host of an address, and further ones. */
static int
put_address(struct buf *out, struct spec *s, struct ipc_bytes document,
    struct ipc_bytes url, struct ipc_bytes material, struct err *err)
{
	jsonw_kv_strn(&s->w, "url", url.p, url.n);
	jsonw_name(&s->w, "hosts");
	jsonw_arr(&s->w);
	return put_url(out, s, url, err) == -1
	    ? -1
	    : put_hosts(out, s, document, material, err);
}

static int
put(struct buf *out, const struct keys *k, struct access *newest,
    struct ipc_bytes material, const struct use *use, struct err *err)
{
	struct tlv seal, document, url;
	struct ipc_bytes text, address;
	struct ipc_hash hash;
	struct spec s = {.http = use->http, .usual = "443"};
	int rc = -1;

	if (newest == NULL ||
	    tlv_find(material.p, material.n, CTX_ACCESS_SEAL, &seal) != 1 ||
	    tlv_find(material.p, material.n, CTX_ACCESS_DOCUMENT, &document) !=
		1 ||
	    tlv_find(material.p, material.n, CTX_KEYS_URL, &url) != 1)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material has no access document, seal or address");
	sha256(document.p, document.n, &hash);
	if (access_check(k, ipc_bytes(seal.p, seal.n), &hash, now_us(), newest,
		err) == -1)
		return -1;
	text = ipc_bytes(document.p, document.n);
	address = ipc_bytes(url.p, url.n);
	if (!stands(text, address, use))
		return err_set(err, FAILURE_FORBIDDEN,
		    "the access document has no such address for this use, or "
		    "has it or its member's name with an escape");
	buf_init(&s.json, CODE_MAX);
	jsonw_open(&s.w, &s.json);
	jsonw_obj(&s.w);
	if ((use->target
		    ? put_target(out, &s, k, address, material, err)
		    : put_address(out, &s, text, address, material, err)) == -1)
		goto out;
	jsonw_arr_end(&s.w);
	jsonw_obj_end(&s.w);
	tlv_puts(out, CTX_KIND, use->kind);
	tlv_put(out, CTX_SPEC, s.json.p, s.json.len);
	if (s.json.failed)
		out->failed = true;
	rc = 0;
out:
	buf_free(&s.json);
	return rc;
}

int
fetch_put(struct buf *out, const struct keys *k, struct access *newest,
    uint8_t kind, struct ipc_bytes material, struct err *err)
{
	static const struct use keys = {
	    {"issuer", "jwks_url", NULL}, "issuers", 3, "keys", false, false};
	static const struct use telemetry = {
	    {"endpoint", NULL}, "telemetry", 2, "telemetry", true, false};
	static const struct use notify = {
	    {"notify", NULL}, "notifications", 4, "notify", true, true};

	switch (kind) {
	case CONTEXT_KEYS:
		return put(out, k, newest, material, &keys, err);
	case CONTEXT_TELEMETRY:
		return put(out, k, newest, material, &telemetry, err);
	case CONTEXT_NOTIFY:
		return put(out, k, newest, material, &notify, err);
	default:
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "a context of this kind reaches no host of the access "
		    "document");
	}
}
