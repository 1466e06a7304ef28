#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "signin_fields.h"
#include "access_form.h"
#include "bounds.h"
#include "bytes.h"
#include "grantreq.h"
#include "name.h"
#include "netgrant.h"
#include "permit.h"
#include "target.h"

enum {
	HOST_MAX = 253, /* bytes of a name, RFC 1035 section 2.3.4 */
	LABEL_MAX = 63, /* of one label */
	PORT_MAX = 65535,
	PORT_DIGITS = 5,
	TYPE_MAX = 64, /* bytes of a `typ`; real ones have at most 20 */
	KID_MAX = 256  /* bytes of a `kid`; real ones have at most 64 */
};

/* ---- URLs ---- */

/* A URL in parts. */
struct url {
	struct ipc_bytes host; /* without brackets */
	struct ipc_bytes path; /* from the first slash on; may be empty */
	bool tls, v6;
};

static bool
starts(struct ipc_bytes s, const char *with)
{
	size_t n = strlen(with);

	return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* Tells whether this is an IPv6 address without a zone. */
static bool
is_v6(struct ipc_bytes s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (s.n == 0 || s.n >= sizeof(text))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	return strlen(text) == s.n && inet_pton(AF_INET6, text, &a) == 1;
}

/* Tells whether this is a name or an IPv4 address: labels of letters, digits
 * and hyphens. */
static bool
is_host(struct ipc_bytes s)
{
	size_t label = 0;

	if (s.n == 0 || s.n > HOST_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool word = (s.p[i] >= 'a' && s.p[i] <= 'z') ||
		    (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
		    (s.p[i] >= '0' && s.p[i] <= '9');

		if (s.p[i] == '.' && label > 0 && s.p[i - 1] != '-')
			label = 0;
		else if ((word || (s.p[i] == '-' && label > 0)) &&
		    label < LABEL_MAX)
			label++;
		else
			return false;
	}
	return label > 0 && s.p[s.n - 1] != '-';
}

static bool
is_port(struct ipc_bytes s)
{
	unsigned v = 0;

	if (s.n == 0 || s.n > PORT_DIGITS || s.p[0] == '0')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		v = v * 10 + (unsigned)(s.p[i] - '0');
	}
	return v <= PORT_MAX;
}

/* Takes host and port apart. Returns false if one is unusable. */
static bool
authority(struct ipc_bytes s, struct url *u)
{
	const uint8_t *end;

	if (s.n > 0 && s.p[0] == '[') {
		if ((end = memchr(s.p, ']', s.n)) == NULL)
			return false;
		u->v6 = true;
		u->host = ipc_bytes(s.p + 1, (size_t)(end - s.p) - 1);
		end++;
	} else {
		end = s.n > 0 ? memchr(s.p, ':', s.n) : NULL;
		if (end == NULL)
			end = s.p + s.n;
		u->host = ipc_bytes(s.p, (size_t)(end - s.p));
	}
	if (end < s.p + s.n &&
	    (*end != ':' ||
		!is_port(ipc_bytes(end + 1, (size_t)(s.p + s.n - end) - 1))))
		return false;
	return u->v6 ? is_v6(u->host) : is_host(u->host);
}

static const char *
read_url(const uint8_t *p, size_t n, struct url *u)
{
	struct ipc_bytes all = ipc_bytes(p, n);
	size_t start, end;

	memset(u, 0, sizeof(*u));
	if (n > ACCESS_URL_MAX)
		return "must have at most 512 bytes";
	for (size_t i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] >= 0x7f ||
		    strchr("\"<>\\^`{|}", p[i]) != NULL)
			return "has a character that a URL must not have";
	u->tls = starts(all, "https://");
	if (!u->tls && !starts(all, "http://"))
		return "must begin with https://";
	start = strlen(u->tls ? "https://" : "http://");
	if (memchr(p, '?', n) != NULL || memchr(p, '#', n) != NULL)
		return "must have no query and no fragment";
	for (end = start; end < n && p[end] != '/'; end++)
		if (p[end] == '@')
			return "must have no user name or password";
	if (!authority(ipc_bytes(p + start, end - start), u))
		return "has no usable host or port";
	u->path = ipc_bytes(p + end, n - end);
	return NULL;
}

/* Tells whether the host is this machine. A network can't come between then, so
 * http is good enough. */
static bool
is_loopback(const struct url *u)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct in_addr v4;

	if (u->host.n >= sizeof(text))
		return false;
	memcpy(text, u->host.p, u->host.n);
	text[u->host.n] = '\0';
	if (u->v6)
		return inet_pton(AF_INET6, text, &v6) == 1 &&
		    IN6_IS_ADDR_LOOPBACK(&v6);
	return strcmp(text, "localhost") == 0 ||
	    (inet_pton(AF_INET, text, &v4) == 1 &&
		ntohl(v4.s_addr) >> 24 == 127);
}

const char *
access_form_resource(const uint8_t *p, size_t n)
{
	const char *fault;
	struct url u;

	if ((fault = read_url(p, n, &u)) != NULL)
		return fault;
	if (!u.tls)
		return "must begin with https://";
	/* Clients compare it with the address that they were given, byte by
	 * byte (RFC 9728 section 3.3). */
	for (size_t i = 0; i < u.host.n; i++)
		if (u.host.p[i] >= 'A' && u.host.p[i] <= 'Z')
			return "must have its host in lower case";
	if (!ipc_streq(u.path, "/mcp"))
		return "must have the path /mcp and nothing after it";
	return NULL;
}

const char *
access_form_issuer(const uint8_t *p, size_t n)
{
	const char *fault;
	struct url u;

	if ((fault = read_url(p, n, &u)) != NULL)
		return fault;
	if (!u.tls && !is_loopback(&u))
		return "must begin with https:// (http:// only for a host that "
		       "is this machine)";
	return NULL;
}

/* Whoever listens at this address gets the code and the state of a sign-in, and
 * can finish it if he began it. So http is for 127.0.0.1 alone, where
 * admind-http listens. Browsers ask [::1] first for the name localhost, and any
 * user of this machine can listen there, or at 127.0.0.2 (RFC 8252 section
 * 8.3). */
const char *
access_form_redirect(const uint8_t *p, size_t n)
{
	const char *fault;
	struct url u;

	if ((fault = read_url(p, n, &u)) != NULL)
		return fault;
	if (!u.tls && (u.v6 || !ipc_streq(u.host, "127.0.0.1")))
		return "must begin with https:// (http:// only for the address "
		       "127.0.0.1: at localhost another user's program can "
		       "take the sign-in over)";
	if (!ipc_streq(u.path, "/api/signin/callback"))
		return "must have the path /api/signin/callback and nothing "
		       "after it";
	return NULL;
}

static bool
is_graphic(const uint8_t *p, size_t n, size_t max)
{
	if (n == 0 || n > max)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] < '!' || p[i] > '~')
			return false;
	return true;
}

const char *
access_form_asked(const uint8_t *p, size_t n)
{
	return is_graphic(p, n, TYPE_MAX) && memchr(p, '"', n) == NULL &&
		memchr(p, '\\', n) == NULL
	    ? NULL
	    : "must be a scope of 1 to 64 characters without a space, a "
	      "quotation mark or a backslash";
}

const char *
access_form_client(const uint8_t *p, size_t n)
{
	return is_graphic(p, n, SIGN_IN_CLIENT_MAX)
	    ? NULL
	    : "must have 1 to 254 of the characters ! to ~";
}

/* Tells whether egress may open this host for a run (netgrant.h). */
static bool
is_reachable(struct ipc_bytes host)
{
	struct netgrant g;
	struct buf line;
	bool good;

	buf_init(&line, NETGRANT_LINE_MAX + 8);
	good = grantreq_need(host, &line, NULL) == 0 && !line.failed &&
	    netgrant_read(ipc_bytes(line.p, line.len), &g, NULL) == 0 &&
	    !g.any && g.form != GRANT_HOST_WILD && g.proto == NETGRANT_TCP;
	buf_free(&line);
	return good;
}

const char *
access_form_jwks_url(const uint8_t *p, size_t n)
{
	const size_t start = strlen("https://");
	const char *fault;
	struct url u;

	if ((fault = read_url(p, n, &u)) != NULL)
		return fault;
	if (!u.tls)
		return "must begin with https://";
	if (!is_reachable(ipc_bytes(p + start, n - start - u.path.n)))
		return "names a host that no run may reach";
	return NULL;
}

const char *
access_form_key_host(const uint8_t *p, size_t n)
{
	return n <= ACCESS_URL_MAX && is_graphic(p, n, ACCESS_URL_MAX) &&
		is_reachable(ipc_bytes(p, n))
	    ? NULL
	    : "must be a host that a run may reach, as keys.example.org, "
	      "192.0.2.1:8443 or [2001:db8::1]:443";
}

const char *
access_form_push(const uint8_t *p, size_t n)
{
	struct ipc_bytes host; /* with its port */
	const char *fault;
	size_t start;
	struct url u;

	if ((fault = read_url(p, n, &u)) != NULL)
		return fault;
	start = strlen(u.tls ? "https://" : "http://");
	host = ipc_bytes(p + start, n - start - u.path.n);
	if (!u.tls && !target_is_local(host))
		return "must begin with https:// (http:// only for an address "
		       "of the local network or of this machine, as "
		       "http://192.168.1.5:4318 or http://127.0.0.1:4318)";
	if (!is_reachable(host))
		return "names a host that no run may reach";
	return NULL;
}

const char *
access_form_collector(const uint8_t *p, size_t n)
{
	const char *fault = access_form_push(p, n);

	if (fault == NULL && p[n - 1] == '/')
		return "must have no slash at its end: /v1/traces and "
		       "/v1/metrics are put after it";
	return fault;
}

const char *
access_form_panel(const uint8_t *p, size_t n)
{
	const char *fault;
	struct url u;

	if ((fault = read_url(p, n, &u)) != NULL)
		return fault;
	if (u.path.n > 0 && p[n - 1] == '/')
		return "must have no slash at its end: names of pages follow "
		       "it";
	return NULL;
}

/* ---- names and values ---- */

const char *
access_form_name(const uint8_t *p, size_t n)
{
	bool good = n > 0 && n <= ACCESS_NAME_MAX && p[0] >= 'a' && p[0] <= 'z';

	for (size_t i = 0; good && i < n; i++)
		good = (p[i] >= 'a' && p[i] <= 'z') ||
		    (p[i] >= '0' && p[i] <= '9') || p[i] == '-';
	return good ? NULL
		    : "must have 1 to 32 of a to z, 0 to 9 and -, the first a "
		      "letter";
}

/* Tells whether the text has 1 to max bytes without control characters. */
static bool
is_plain(const uint8_t *p, size_t n, size_t max)
{
	if (n == 0 || n > max)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] < ' ' || p[i] == 0x7f)
			return false;
	return true;
}

const char *
access_form_audience(const uint8_t *p, size_t n)
{
	if (!is_plain(p, n, ACCESS_URL_MAX))
		return "must have 1 to 512 bytes without control characters";
	/* One slash at the end does not count, so this would be nothing. */
	if (n == 1 && p[0] == '/')
		return "must be more than a slash";
	return NULL;
}

const char *
access_form_type(const uint8_t *p, size_t n)
{
	static const char prefix[] = "application/";
	static const char *const never[] = {"logout+jwt", "secevent+jwt"};

	if (n == 0)
		return NULL;
	if (!is_graphic(p, n, TYPE_MAX))
		return "must be a media type of at most 64 bytes, or \"\" for "
		       "a "
		       "token without one";
	if (n >= sizeof(prefix) - 1 &&
	    strncasecmp((const char *)p, prefix, sizeof(prefix) - 1) == 0) {
		p += sizeof(prefix) - 1;
		n -= sizeof(prefix) - 1;
	}
	if (n == 0)
		return "must have a name after application/";
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (n == strlen(never[i]) &&
		    strncasecmp((const char *)p, never[i], n) == 0)
			return "is never taken: such a token gives no access";
	return NULL;
}

const char *
access_form_kid(const uint8_t *p, size_t n)
{
	return is_plain(p, n, KID_MAX)
	    ? NULL
	    : "must have 1 to 256 bytes without control characters";
}

const char *
access_form_value(const uint8_t *p, size_t n)
{
	return is_plain(p, n, ACCESS_VALUE_MAX)
	    ? NULL
	    : "must have 1 to 254 bytes without control characters";
}

const char *
access_form_sub(const uint8_t *p, size_t n)
{
	return is_graphic(p, n, JWT_SUB_MAX)
	    ? NULL
	    : "must have 1 to 200 of the characters ! to ~";
}

const char *
access_form_email(const uint8_t *p, size_t n)
{
	const uint8_t *at;

	if (!is_graphic(p, n, ACCESS_VALUE_MAX) ||
	    (at = memchr(p, '@', n)) == NULL || at == p || at == p + n - 1 ||
	    memchr(at + 1, '@', (size_t)(p + n - at) - 1) != NULL)
		return "must be an e-mail address of at most 254 of the "
		       "characters ! to ~, with one @";
	return NULL;
}

const char *
access_form_domain(const uint8_t *p, size_t n)
{
	return is_host(ipc_bytes(p, n))
	    ? NULL
	    : "must be a domain, as example.org, without @";
}

/* ---- permission sets ---- */

const char *
access_form_scope(const uint8_t *p, size_t n)
{
	char word[16];

	if (n > 0 && n < sizeof(word) && memchr(p, '\n', n) == NULL) {
		memcpy(word, p, n);
		word[n] = '\0';
		if (strlen(word) == n && permit_scopes(word) != 0)
			return NULL;
	}
	return "must be tools:read, tools:call, manage or manage:edit";
}

/* As mcpbox.token_patterns_ok() (sql/schema/tokens.sql). */
const char *
access_form_pattern(const uint8_t *p, size_t n)
{
	static const char fault[] =
	    "must be *, server__*, server__tool or the name of a tool";
	const char *s = (const char *)p, *two;
	size_t left;

	if (n > NAME_EXPOSED_MAX || n == 0)
		return fault;
	if ((n == 1 && p[0] == '*') || name_valid(s, n, n))
		return NULL;
	if ((two = memmem(s, n, "__", 2)) == NULL)
		return fault;
	left = (size_t)(two - s);
	if (!name_valid(s, left, n))
		return fault;
	two += 2;
	left = n - left - 2;
	return (left == 1 && *two == '*') || name_valid(two, left, n) ? NULL
								      : fault;
}
