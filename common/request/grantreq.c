#include "grantreq.h"

#include <arpa/inet.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "tlv.h"

/* The terminating NUL is part of the magic. */
static const char magic[] = "mcpbox grant 1";

enum {
	AFFECTED_SIZE = 1 + 4 + 32, /* of one AFFECTED field */
	PORT_MAX = 65535,
	LABEL_MAX = 63 /* RFC 1035 */
};

static const char *const names[] = {[GRANTREQ_KIND] = "kind",
    [GRANTREQ_REQUEST] = "request",
    [GRANTREQ_SERVER_ID] = "server_id",
    [GRANTREQ_SERVER_NAME] = "server",
    [GRANTREQ_TOOL_ID] = "tool_id",
    [GRANTREQ_TOOL_NAME] = "tool",
    [GRANTREQ_NAME] = "module",
    [GRANTREQ_VERSION] = "version",
    [GRANTREQ_DIGEST] = "digest",
    [GRANTREQ_FILES] = "files",
    [GRANTREQ_SIZE] = "size",
    [GRANTREQ_PROTO] = "proto",
    [GRANTREQ_HOST] = "host",
    [GRANTREQ_PORT] = "port",
    [GRANTREQ_AFFECTED] = "affected"};

/* ---- hosts ---- */

/* Tells whether the text has only characters of hosts and addresses. A NUL or a
 * letter of another script is refused here. */
static bool
plain(struct ipc_bytes host)
{
	for (size_t i = 0; i < host.n; i++) {
		uint8_t c = host.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '.' && c != ':')
			return false;
	}
	return true;
}

/* Counts labels of letters, digits and inner dashes; 0: malformed. Refuses a
 * last label that begins with a digit: 127.1 and 0x7f.1 are addresses to
 * inet_aton(3), and no top-level domain begins so. */
static unsigned
labels(const char *s)
{
	unsigned n = 0;
	size_t len;

	for (;; s += len + 1) {
		len = strcspn(s, ".");
		if (len == 0 || len > LABEL_MAX || s[0] == '-' ||
		    s[len - 1] == '-' || memchr(s, ':', len) != NULL)
			return 0;
		n++;
		if (s[len] == '\0')
			return s[0] >= '0' && s[0] <= '9' ? 0 : n;
	}
}

static bool
ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static enum grant_host
address(const char *text)
{
	char back[INET6_ADDRSTRLEN];
	uint8_t a[16];

	if (inet_pton(AF_INET, text, a) == 1) {
		if (inet_ntop(AF_INET, a, back, sizeof(back)) == NULL ||
		    strcmp(back, text) != 0)
			return GRANT_HOST_BAD;
		/* this network, link-local, multicast and above */
		if (a[0] == 0 || (a[0] == 169 && a[1] == 254) || a[0] >= 224)
			return GRANT_HOST_BAD;
		return GRANT_HOST_IP;
	}
	if (inet_pton(AF_INET6, text, a) == 1) {
		static const uint8_t zero[10], loopback[16] = {[15] = 1};

		if (inet_ntop(AF_INET6, a, back, sizeof(back)) == NULL ||
		    strcmp(back, text) != 0)
			return GRANT_HOST_BAD;
		/* :: and IPv4 in disguise; link-local; multicast */
		if ((memcmp(a, zero, sizeof(zero)) == 0 &&
			memcmp(a, loopback, sizeof(loopback)) != 0) ||
		    (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) || a[0] == 0xff)
			return GRANT_HOST_BAD;
		return GRANT_HOST_IP;
	}
	return GRANT_HOST_BAD;
}

enum grant_host
grantreq_host(struct ipc_bytes host)
{
	static const char *const local[] = {".local", ".lan", ".internal",
	    ".intranet", ".private", ".corp", ".home", ".home.arpa"};
	char text[GRANTREQ_HOST_MAX + 1];
	const char *name = text;
	bool wild;
	unsigned n;

	if (host.n == 0 || host.n > GRANTREQ_HOST_MAX)
		return GRANT_HOST_BAD;
	if (host.n == 1 && host.p[0] == '*')
		return GRANT_HOST_ANY;
	memcpy(text, host.p, host.n);
	text[host.n] = '\0';
	wild = host.n > 2 && text[0] == '*' && text[1] == '.';
	if (wild)
		name = text + 2;
	if (!plain(ipc_bytes(name, host.n - (size_t)(name - text))))
		return GRANT_HOST_BAD;
	n = labels(name);
	if (n == 0)
		return wild ? GRANT_HOST_BAD : address(text);
	if (strcmp(name, "localhost") == 0 || ends_in(name, ".localhost"))
		return GRANT_HOST_BAD;
	if (wild)
		return n >= 2 ? GRANT_HOST_WILD : GRANT_HOST_BAD;
	if (n == 1)
		return GRANT_HOST_LOCAL;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (ends_in(name, local[i]))
			return GRANT_HOST_LOCAL;
	return GRANT_HOST_NAME;
}

/* ---- requirements of a version ---- */

/* Parses 1 to 65535 without leading zeros; 0: not a port. */
static uint16_t
port_of(struct ipc_bytes text)
{
	unsigned v = 0;

	if (text.n == 0 || text.n > 5 || text.p[0] == '0')
		return 0;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return 0;
		v = v * 10 + (unsigned)(text.p[i] - '0');
	}
	return v <= PORT_MAX ? (uint16_t)v : 0;
}

/* Takes the port off the end. 0; -1: the text after the host is not a port. */
static int
split_port(struct ipc_bytes *text, uint16_t *port)
{
	const uint8_t *colon = memchr(text->p, ':', text->n), *close;
	size_t at;

	*port = 0;
	if (text->p[0] == '[') {
		close = memchr(text->p, ']', text->n);
		if (close == NULL)
			return -1;
		at = (size_t)(close - text->p) + 1;
		if (at < text->n &&
		    (text->p[at] != ':' ||
			(*port = port_of(ipc_bytes(
			     text->p + at + 1, text->n - at - 1))) == 0))
			return -1;
		*text = ipc_bytes(text->p + 1, at - 2);
		/* only an IPv6 address may be in brackets */
		return memchr(text->p, ':', text->n) != NULL ? 0 : -1;
	}
	if (colon == NULL)
		return 0;
	at = (size_t)(colon - text->p);
	if (memchr(colon + 1, ':', text->n - at - 1) != NULL)
		return 0; /* an IPv6 address */
	*port = port_of(ipc_bytes(colon + 1, text->n - at - 1));
	text->n = at;
	return *port == 0 ? -1 : 0;
}

/* Spells a host: lower case, no final dots, an IPv6 address as inet_ntop(3)
 * writes it. */
static struct ipc_bytes
spelled(struct ipc_bytes host, char text[GRANTREQ_HOST_MAX + 1])
{
	uint8_t a[16];

	while (host.n > 2 && host.p[host.n - 1] == '.')
		host.n--;
	/* a NUL would end the text before the host ends */
	if (host.n > GRANTREQ_HOST_MAX || memchr(host.p, '\0', host.n) != NULL)
		return ipc_bytes(NULL, 0);
	for (size_t i = 0; i < host.n; i++)
		text[i] = (char)(host.p[i] >= 'A' && host.p[i] <= 'Z'
			? host.p[i] - 'A' + 'a'
			: host.p[i]);
	text[host.n] = '\0';
	if (inet_pton(AF_INET6, text, a) == 1 &&
	    inet_ntop(AF_INET6, a, text, GRANTREQ_HOST_MAX) == NULL)
		return ipc_bytes(NULL, 0);
	return ipc_bytes(text, strlen(text));
}

static int
need(struct ipc_bytes text, bool udp, struct buf *line)
{
	char spelling[GRANTREQ_HOST_MAX + 1];
	struct ipc_bytes host = text;
	uint16_t port;

	if (text.n == 0 || split_port(&host, &port) == -1 || (udp && port == 0))
		return -1;
	host = spelled(host, spelling);
	if (grantreq_host(host) == GRANT_HOST_BAD)
		return -1;
	buf_putf(line, "%s %.*s %u", udp ? "udp" : "tcp", (int)host.n,
	    (const char *)host.p, port);
	return 0;
}

int
grantreq_need(struct ipc_bytes text, struct buf *line, struct err *e)
{
	bool udp = text.n > 4 && memcmp(text.p, "udp:", 4) == 0;

	/* udp:53 is port 53 of the host udp, which is allowed like any other
	 * host */
	if ((udp && need(ipc_bytes(text.p + 4, text.n - 4), true, line) == 0) ||
	    need(text, false, line) == 0)
		return 0;
	return err_set(e, FAILURE_INVALID_PARAMS,
	    "requires: %.*s is no host, host:port or udp:host:port",
	    text.n < 64 ? (int)text.n : 64, (const char *)text.p);
}

/* ---- reading ---- */

bool
grantreq_is(const void *preimage, size_t n)
{
	return n >= sizeof(magic) &&
	    memcmp(preimage, magic, sizeof(magic)) == 0;
}

static int
bad(const struct tlv *f, struct err *e)
{
	return err_set(e, FAILURE_INVALID_PARAMS,
	    "grant: %s is not in its form", names[f->tag]);
}

/* Takes a name. All these names are visible ASCII, so no two look the same. */
static int
take_text(const struct tlv *f, size_t max, struct ipc_bytes *out, struct err *e)
{
	if (f->n == 0 || f->n > max)
		return bad(f, e);
	for (size_t i = 0; i < f->n; i++)
		if (f->p[i] <= 0x20 || f->p[i] >= 0x7f)
			return bad(f, e);
	*out = ipc_bytes(f->p, f->n);
	return 0;
}

static int
take_id(const struct tlv *f, struct ipc_id *out, struct err *e)
{
	if (f->n != sizeof(out->b))
		return bad(f, e);
	memcpy(out->b, f->p, f->n);
	return 0;
}

static int
take_number(const struct tlv *f, uint64_t max, uint64_t *out, struct err *e)
{
	return tlv_u64(f, out) == -1 || *out > max ? bad(f, e) : 0;
}

static int
take(const struct tlv *f, struct grantreq *out, struct err *e)
{
	switch (f->tag) {
	case GRANTREQ_REQUEST:
		return take_id(f, &out->request, e);
	case GRANTREQ_SERVER_ID:
		return take_id(f, &out->server, e);
	case GRANTREQ_SERVER_NAME:
		return take_text(f, GRANTREQ_NAME_MAX, &out->server_name, e);
	case GRANTREQ_TOOL_ID:
		return take_id(f, &out->tool, e);
	case GRANTREQ_TOOL_NAME:
		return take_text(f, GRANTREQ_NAME_MAX, &out->tool_name, e);
	case GRANTREQ_NAME:
		return take_text(f, GRANTREQ_NAME_MAX, &out->name, e);
	case GRANTREQ_VERSION:
		return take_text(f, GRANTREQ_VERSION_MAX, &out->version, e);
	case GRANTREQ_DIGEST:
		if (f->n != sizeof(out->digest.b))
			return bad(f, e);
		memcpy(out->digest.b, f->p, f->n);
		return 0;
	case GRANTREQ_FILES:
		return take_number(f, INT64_MAX, &out->files, e);
	case GRANTREQ_SIZE:
		return take_number(f, INT64_MAX, &out->size, e);
	case GRANTREQ_PROTO:
		if (!ipc_streq(ipc_bytes(f->p, f->n), "tcp") &&
		    !ipc_streq(ipc_bytes(f->p, f->n), "udp"))
			return bad(f, e);
		out->proto = ipc_bytes(f->p, f->n);
		return 0;
	case GRANTREQ_HOST:
		out->host = ipc_bytes(f->p, f->n);
		return grantreq_host(out->host) == GRANT_HOST_BAD ? bad(f, e)
								  : 0;
	case GRANTREQ_PORT:
		if (take_number(f, PORT_MAX, &out->port, e) == -1)
			return -1;
		/* datagrams have no usual port, as TCP has 80 and 443 */
		return out->port == 0 && ipc_streq(out->proto, "udp")
		    ? bad(f, e)
		    : 0;
	default:
		return bad(f, e);
	}
}

/* Returns the field that comes next for this kind; 0 when only AFFECTED may
 * follow. */
static uint8_t
next_tag(uint8_t tag, enum grant_kind kind)
{
	if (tag == GRANTREQ_SERVER_NAME && kind == GRANT_NETWORK)
		return GRANTREQ_PROTO;
	if (tag == GRANTREQ_SIZE || tag == GRANTREQ_PORT)
		return 0;
	return tag + 1;
}

/* Takes the version hashes at the end. They ascend, so that one set has one
 * form. */
static int
take_affected(struct tlv_reader *r, struct tlv *f, int rc, struct grantreq *out,
    struct err *e)
{
	const uint8_t *last = NULL;

	for (; rc == 1; rc = tlv_next(r, f)) {
		if (f->tag != GRANTREQ_AFFECTED || f->n != 32 ||
		    (last != NULL && memcmp(last, f->p, 32) >= 0) ||
		    out->naffected == GRANTREQ_AFFECTED_MAX)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "grant: affected versions are not in their form");
		if (last == NULL)
			out->affected = f->p;
		last = f->p;
		out->naffected++;
	}
	return rc == 0 ? 0
		       : err_set(e, FAILURE_INVALID_PARAMS, "grant: cut short");
}

int
grantreq_read(
    const void *preimage, size_t n, struct grantreq *out, struct err *e)
{
	uint8_t want = GRANTREQ_REQUEST;
	struct tlv_reader r;
	struct tlv f;
	uint64_t kind;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!grantreq_is(preimage, n) || n > GRANTREQ_MAX)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "grant: does not start with its magic, or is too long");
	tlv_open(
	    &r, (const uint8_t *)preimage + sizeof(magic), n - sizeof(magic));
	if (tlv_next(&r, &f) != 1 || f.tag != GRANTREQ_KIND ||
	    tlv_u64(&f, &kind) == -1 ||
	    (kind != GRANT_MODULE && kind != GRANT_NETWORK))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "grant: it begins with no known kind");
	out->kind = (enum grant_kind)kind;
	while (want != 0) {
		rc = tlv_next(&r, &f);
		/* The fields of a module that is not recorded end after its
		 * name. */
		if (want == GRANTREQ_VERSION &&
		    (rc == 0 || (rc == 1 && f.tag == GRANTREQ_AFFECTED)))
			return take_affected(&r, &f, rc, out, e);
		if (rc != 1)
			return err_set(
			    e, FAILURE_INVALID_PARAMS, "grant: cut short");
		if (f.tag != want)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "grant: field %u is not the next", f.tag);
		if (take(&f, out, e) == -1)
			return -1;
		want = next_tag(want, out->kind);
	}
	out->recorded = out->kind == GRANT_MODULE;
	rc = tlv_next(&r, &f);
	return take_affected(&r, &f, rc, out, e);
}

const uint8_t *
grantreq_affected(const struct grantreq *g, size_t i)
{
	return g->affected + i * AFFECTED_SIZE;
}

/* ---- showing ---- */

void
grantreq_host_text(const struct grantreq *g, struct buf *out)
{
	bool bracket = g->port != 0 && memchr(g->host.p, ':', g->host.n);

	buf_putf(out, "%s%s%.*s%s", ipc_streq(g->proto, "udp") ? "udp:" : "",
	    bracket ? "[" : "", (int)g->host.n, (const char *)g->host.p,
	    bracket ? "]" : "");
	if (g->port != 0)
		buf_putf(out, ":%u", (unsigned)g->port);
}

static void
kv_id(struct jsonw *w, uint8_t tag, const struct ipc_id *id)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_text(id, text);
	jsonw_kv_str(w, names[tag], text);
}

static void
kv_text(struct jsonw *w, uint8_t tag, struct ipc_bytes text)
{
	jsonw_kv_strn(w, names[tag], text.p, text.n);
}

static void
show_module(struct jsonw *w, const struct grantreq *g)
{
	char hex[HEX32_LEN + 1];

	kv_id(w, GRANTREQ_TOOL_ID, &g->tool);
	kv_text(w, GRANTREQ_TOOL_NAME, g->tool_name);
	kv_text(w, GRANTREQ_NAME, g->name);
	jsonw_kv_bool(w, "recorded", g->recorded);
	if (!g->recorded)
		return;
	kv_text(w, GRANTREQ_VERSION, g->version);
	hex_encode(g->digest.b, sizeof(g->digest.b), hex);
	jsonw_kv_str(w, names[GRANTREQ_DIGEST], hex);
	jsonw_name(w, names[GRANTREQ_FILES]);
	jsonw_u64(w, g->files);
	jsonw_name(w, names[GRANTREQ_SIZE]);
	jsonw_u64(w, g->size);
}

int
grantreq_json(const void *preimage, size_t n, struct buf *out, struct err *e)
{
	char hex[HEX32_LEN + 1];
	struct grantreq g;
	struct jsonw w;

	if (grantreq_read(preimage, n, &g, e) == -1)
		return -1;
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, names[GRANTREQ_KIND],
	    g.kind == GRANT_MODULE ? "module" : "network");
	kv_id(&w, GRANTREQ_REQUEST, &g.request);
	kv_id(&w, GRANTREQ_SERVER_ID, &g.server);
	kv_text(&w, GRANTREQ_SERVER_NAME, g.server_name);
	if (g.kind == GRANT_MODULE) {
		show_module(&w, &g);
	} else {
		kv_text(&w, GRANTREQ_PROTO, g.proto);
		kv_text(&w, GRANTREQ_HOST, g.host);
		jsonw_name(&w, names[GRANTREQ_PORT]);
		if (g.port == 0)
			jsonw_null(&w);
		else
			jsonw_u64(&w, g.port);
	}
	jsonw_name(&w, names[GRANTREQ_AFFECTED]);
	jsonw_arr(&w);
	for (size_t i = 0; i < g.naffected; i++) {
		hex_encode(grantreq_affected(&g, i), 32, hex);
		jsonw_str(&w, hex);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	return out->failed
	    ? err_set(e, FAILURE_INTERNAL, "grant: too large to show")
	    : 0;
}
