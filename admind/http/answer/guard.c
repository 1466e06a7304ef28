#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "guard.h"
#include "ids.h"
#include "origins.h"

/* Room for GUARD_HTTPS and the longest of our names. */
enum { COOKIE_NAME_MAX = 32 };

/* True if s is empty, or a colon and one to five digits up to 65535. */
static bool
port_ok(const char *s)
{
	unsigned v = 0, n = 0;

	if (*s == '\0')
		return true;
	if (*s++ != ':')
		return false;
	for (; *s >= '0' && *s <= '9' && n < 6; s++, n++)
		v = v * 10 + (unsigned)(*s - '0');
	return *s == '\0' && n >= 1 && n <= 5 && v <= 65535;
}

/*
 * DNS rebinding: a page of evil.example may resolve its own name to 127.0.0.1
 * and then talk to us as its own origin. The page's requests carry the page's
 * name in Host. So only localhost, 127.0.0.1 and [::1] are accepted: no DNS
 * server of an attacker answers for these. Names that root listed come beside
 * them (origins.c).
 */
bool
guard_host(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	size_t n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = strlen(names[i]);
		if (strncasecmp(host, names[i], n) == 0 && port_ok(host + n))
			return true;
	}
	return false;
}

bool
guard_localhost(const char *host, const char **port)
{
	static const char name[] = "localhost";

	if (strncasecmp(host, name, sizeof(name) - 1) != 0)
		return false;
	*port = host + sizeof(name) - 1;
	return true;
}

/* Accepts http at a loopback name, because we serve no TLS, and https at a name
 * of panel_origins, which a proxy serves. "null" (sandboxed frames, data:
 * pages) and another port are other origins. To a browser localhost and
 * 127.0.0.1 are two origins as well. */
bool
guard_origin(const char *origin, const char *host, bool https)
{
	const char *scheme = https ? "https://" : "http://";
	size_t n = strlen(scheme);

	return strncasecmp(origin, scheme, n) == 0 &&
	    strcasecmp(origin + n, host) == 0;
}

static bool
token_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	    (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/*
 * Finds a cookie (RFC 6265 section 4.2.1: pairs with "; " between). Other
 * cookies belong to other programs (cookies are shared by all ports of a host)
 * and are passed over. Two cookies of this name mean that one was planted, so
 * neither is believed. The value has min to max characters of base64url. name
 * ends with =, and with https it has GUARD_HTTPS before it. 1 found, 0 absent,
 * -1 twice or malformed.
 */
static int
find_cookie(const char *cookie, bool https, const char *name, size_t min,
    size_t max, char *out)
{
	char whole[COOKIE_NAME_MAX];
	size_t n, len;
	int found = 0;

	len = (size_t)snprintf(
	    whole, sizeof(whole), "%s%s", https ? GUARD_HTTPS : "", name);
	while (*cookie != '\0') {
		while (*cookie == ' ' || *cookie == ';')
			cookie++;
		n = strcspn(cookie, ";");
		if (strncmp(cookie, whole, len) == 0) {
			if (found++ != 0 || n < len + min || n > len + max)
				return -1;
			for (size_t i = len; i < n; i++)
				if (!token_char(cookie[i]))
					return -1;
			memcpy(out, cookie + len, n - len);
			out[n - len] = '\0';
		}
		cookie += n;
	}
	return found;
}

int
guard_cookie(const char *cookie, bool https, char half[LOGIN_HALF + 1])
{
	return find_cookie(
	    cookie, https, "mcpbox_session=", LOGIN_HALF, LOGIN_HALF, half);
}

int
guard_signin(const char *cookie, bool https, char half[LOGIN_HALF + 1])
{
	return find_cookie(
	    cookie, https, "mcpbox_signin=", LOGIN_HALF, LOGIN_HALF, half);
}

bool
guard_half(const char *text, char half[LOGIN_HALF + 1])
{
	size_t n = strlen(text);

	if (n != LOGIN_HALF)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!token_char(text[i]))
			return false;
	memcpy(half, text, n + 1);
	return true;
}

int
guard_device(const char *cookie, bool https, char device[DEVICE_TEXT_MAX + 1])
{
	return find_cookie(
	    cookie, https, "mcpbox_device=", 1, DEVICE_TEXT_MAX, device);
}

bool
guard_device_text(struct ipc_bytes text)
{
	if (text.n > DEVICE_TEXT_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (!token_char((char)text.p[i]))
			return false;
	return true;
}

int
guard_etag(const char *value, struct ipc_hash *hash)
{
	if (strlen(value) != HEX32_LEN + 2 || value[0] != '"' ||
	    value[HEX32_LEN + 1] != '"')
		return -1;
	return hex_decode(value + 1, HEX32_LEN, hash->b);
}

bool
guard_json_type(const char *type)
{
	if (strncasecmp(type, "application/json", 16) != 0)
		return false;
	type += 16;
	while (*type == ' ' || *type == '\t')
		type++;
	if (*type == '\0')
		return true;
	if (*type++ != ';')
		return false;
	while (*type == ' ' || *type == '\t')
		type++;
	return strcasecmp(type, "charset=utf-8") == 0;
}

/* Undoes percent-encoding, and turns each + into a space, because encoders of
 * queries write both. Refuses control characters, an empty result, and a
 * result longer than out. */
static int
decode(const char *s, size_t n, char *out, size_t len)
{
	size_t o = 0;
	int byte;
	char c;

	for (size_t i = 0; i < n; i++) {
		c = s[i] == '+' ? ' ' : s[i];
		if (c == '%') {
			if (n - i < 3 ||
			    (byte = hex_number((const uint8_t *)s + i + 1, 2)) <
				0)
				return -1;
			c = (char)byte;
			i += 2;
		}
		if ((unsigned char)c < 0x20 || c == 0x7f || o + 1 >= len)
			return -1;
		out[o++] = c;
	}
	out[o] = '\0';
	return o > 0 ? 0 : -1;
}

static int
set_limit(const char *s, struct params *p)
{
	unsigned v = 0;
	size_t n = 0;

	for (; s[n] >= '0' && s[n] <= '9' && n < 4; n++)
		v = v * 10 + (unsigned)(s[n] - '0');
	if (s[n] != '\0' || v < 1 || v > PAGE_MAX)
		return -1;
	p->limit = v;
	return 0;
}

/* Takes a cursor. Cursors are made by this suite in ASCII, so no other byte is
 * accepted. */
static int
set_cursor(const char *value, struct params *p)
{
	size_t n = strlen(value);

	if (n > ADMIN_CURSOR_MAX)
		return -1;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] >= 0x7f)
			return -1;
	memcpy(p->cursor, value, n + 1);
	return 0;
}

/* True if value is one of the words (n bytes), which | separates. */
static bool
in_words(const char *words, size_t n, const char *value)
{
	size_t len, want = strlen(value);

	for (const char *end = words + n; words < end; words += len + 1) {
		for (len = 0; words + len < end && words[len] != '|';)
			len++;
		if (len == want && memcmp(words, value, len) == 0)
			return true;
	}
	return false;
}

/* A parameter of a route, as the route's row describes it. */
struct allowed {
	const char *words; /* allowed values, separated by |; NULL: any */
	size_t nwords;
	unsigned number; /* position in the route's list */
};

/* Finds name (n bytes) in a route's list of parameters, and fills *a. */
static bool
is_allowed(const char *list, const char *name, size_t n, struct allowed *a)
{
	size_t whole, len;

	for (a->number = 0; *list != '\0'; a->number++) {
		whole = strcspn(list, " ");
		len = strcspn(list, "= ");
		if (len == n && memcmp(list, name, n) == 0) {
			a->words = len < whole ? list + len + 1 : NULL;
			a->nwords = len < whole ? whole - len - 1 : 0;
			return true;
		}
		list += whole;
		list += strspn(list, " ");
	}
	return false;
}

/* Takes one parameter's value. 0, or -1 if the value is not allowed. */
static int
set_param(struct params *p, const struct allowed *a, const char *name, size_t n,
    const char *value)
{
	struct ipc_id id;
	int f;

	if (n == 5 && memcmp(name, "limit", n) == 0)
		return set_limit(value, p);
	if (n == 6 && memcmp(name, "cursor", n) == 0)
		return set_cursor(value, p);
	f = admin_filter_find(name, n);
	if (f == -1 ||
	    !admin_filter_ok((enum admin_filter)f, value, strlen(value)) ||
	    (a->words != NULL && !in_words(a->words, a->nwords, value)))
		return -1;
	memcpy(p->filter[f], value, strlen(value) + 1);
	if (uuid_parse(value, strlen(value), &id) == 0)
		uuid_text(&id, p->filter[f]); /* in lower case */
	return 0;
}

/* Parses a query. A misspelt filter that is ignored would show more than was
 * asked for, so unknown, repeated, empty and malformed parameters are all
 * errors. */
int
guard_query(
    const char *query, const char *allowed, struct params *p, struct err *e)
{
	char value[ADMIN_FILTER_MAX + 1] = "";
	struct allowed a;
	unsigned seen = 0;
	const char *eq;
	size_t n, name;

	memset(p, 0, sizeof(*p));
	p->limit = PAGE_DEFAULT;
	while (query != NULL && *query != '\0') {
		n = strcspn(query, "&");
		eq = memchr(query, '=', n);
		name = eq != NULL ? (size_t)(eq - query) : n;
		if (eq == NULL || !is_allowed(allowed, query, name, &a))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    *allowed == '\0'
				? "this address takes no parameters"
				: "unknown parameter; allowed: %s",
			    allowed);
		if ((seen & 1u << a.number) != 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "parameter %.*s occurs twice", (int)name, query);
		seen |= 1u << a.number;
		if (decode(eq + 1, n - name - 1, value, sizeof(value)) < 0 ||
		    set_param(p, &a, query, name, value) < 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "parameter %.*s has no valid value", (int)name,
			    query);
		query += n;
		if (*query == '&') {
			query++;
			if (*query == '\0')
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "the query ends in &");
		}
	}
	return 0;
}

int
guard_query_value(const char *query, const char *name, char *out, size_t len)
{
	size_t n, want = strlen(name);
	int found = 0;

	out[0] = '\0';
	while (query != NULL && *query != '\0') {
		n = strcspn(query, "&");
		if (n > want && query[want] == '=' &&
		    strncmp(query, name, want) == 0) {
			if (found++ > 0)
				return -1;
			if (n > want + 1 &&
			    decode(query + want + 1, n - want - 1, out, len) ==
				-1)
				return -1;
		}
		query += n + (query[n] == '&');
	}
	return found;
}

/*
 * A browser on this machine shows anyone's pages. Such a page can send requests
 * here, although it can't read answers. Its requests carry its Origin, or at
 * least Sec-Fetch-Site, which no script can forge (Fetch, forbidden header
 * names). "same-site" is refused as well: another port of localhost is the same
 * site, so SameSite=Strict alone doesn't keep that port's pages out.
 *
 * At a name of panel_origins the same holds, with https in the Origin: the
 * proxy passes Host and Origin on as the browser wrote them. Host alone decides
 * which of the two it is. No field of a proxy's (X-Forwarded-*) is read, since
 * every client may write one.
 */
int
guard_request(const struct http1_request *r, const char *origins, bool callback,
    bool *https, struct err *e)
{
	const char *host, *origin, *site;
	unsigned count;
	bool named;

	host = http1_field(r, "host", &count);
	named =
	    host != NULL && !guard_host(host) && origins_have(origins, host);
	if (host == NULL || count != 1 || !(named || guard_host(host)))
		return err_set(e, FAILURE_FORBIDDEN_ORIGIN,
		    "Host is neither a loopback name nor one of panel_origins");
	origin = http1_field(r, "origin", &count);
	if (origin != NULL &&
	    (count != 1 || !guard_origin(origin, host, named)))
		return err_set(e, FAILURE_FORBIDDEN_ORIGIN,
		    "Origin is not this server's own");
	site = http1_field(r, "sec-fetch-site", &count);
	if (site != NULL && !callback &&
	    (count != 1 ||
		(strcmp(site, "same-origin") != 0 &&
		    strcmp(site, "none") != 0)))
		return err_set(e, FAILURE_FORBIDDEN_ORIGIN,
		    "the request comes from another site's page");
	*https = named;
	return 0;
}
