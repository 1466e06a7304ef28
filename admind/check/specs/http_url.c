/* Checks the URL template of a declared REST call. Host and port must be
 * literal, so that a reviewer sees the target of the call, and a grant can name
 * the target. The segments of the path may have placeholders. */
#include <stdio.h>
#include <string.h>

#include "grantreq.h"
#include "http_spec.h"
#include "ids.h"

enum { URL_MAX = 4096, PORT_MAX = 65535 };

/* Reads a decimal port, 1 to 65535, without leading zeros. Returns 0 for any
 * other text. */
static unsigned
port_of(const uint8_t *s, size_t n)
{
	unsigned v = 0;

	if (n == 0 || n > 5 || s[0] == '0')
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	return v <= PORT_MAX ? v : 0;
}

bool
http_host(struct report *r, const struct path *at, const uint8_t *s, size_t n,
    unsigned usual, char out[HTTP_REQUIRE_MAX])
{
	const uint8_t *colon = n > 0 ? memrchr(s, ':', n) : NULL;
	bool v6 = n > 0 && s[0] == '[';
	unsigned port = usual;
	size_t host = n;

	if (v6 && (n < 3 || memchr(s, ']', n) == NULL)) {
		report_add(r, at, "has no usable host");
		return false;
	}
	if (v6 && s[n - 1] == ']')
		colon = NULL;
	if (colon != NULL) {
		host = (size_t)(colon - s);
		port = port_of(colon + 1, n - host - 1);
		if (port == 0) {
			report_add(r, at, "its port must be 1 to 65535");
			return false;
		}
	}
	if (v6 &&
	    (s[host - 1] != ']' ||
		grantreq_host(ipc_bytes(s + 1, host - 2)) != GRANT_HOST_IP)) {
		report_add(r, at, "has no usable host");
		return false;
	}
	if (!v6 && grantreq_host(ipc_bytes(s, host)) == GRANT_HOST_BAD) {
		report_add(r, at,
		    "its host must be a name in lower case (other letters as "
		    "xn--...) or an address, and one that may be granted");
		return false;
	}
	if (port == 0)
		snprintf(
		    out, HTTP_REQUIRE_MAX, "%.*s", (int)host, (const char *)s);
	else
		snprintf(out, HTTP_REQUIRE_MAX, "%.*s:%u", (int)host,
		    (const char *)s, port);
	return true;
}

/* Checks one character or placeholder of the path. Returns the number of bytes
 * to skip. If they are wrong, reports that and clears *ok. */
static size_t
path_char(
    struct http *h, const struct path *at, const uint8_t *s, size_t n, bool *ok)
{
	size_t len;

	if (s[0] == '{') {
		if ((len = http_placeholder(s, n)) == 0) {
			report_add(h->r, at,
			    "its braces must be placeholders, {name}");
			*ok = false;
			return n;
		}
		http_used(h, at, s + 1, len);
		return len + 2;
	}
	if (s[0] == '%' && (n < 3 || hex_number(s + 1, 2) < 0)) {
		report_add(h->r, at, "has %% without two hex digits");
		*ok = false;
		return n;
	}
	if (s[0] <= ' ' || s[0] >= 0x7f ||
	    strchr("?#\\\"<>}|^`", s[0]) != NULL) {
		report_add(h->r, at,
		    s[0] == '?' ? "must have no query: use `query` and "
				  "parameters"
				: "has a character that must be "
				  "percent-encoded, or a fragment");
		*ok = false;
		return n;
	}
	return 1;
}

static void
check_path(struct http *h, const struct path *at, const uint8_t *s, size_t n)
{
	size_t segment = 0;
	bool ok = true;

	for (size_t i = 0; i < n && ok;)
		i += path_char(h, at, s + i, n - i, &ok);
	for (size_t i = 0; ok && i <= n; i++) {
		if (i < n && s[i] != '/') {
			segment++;
			continue;
		}
		if ((segment == 1 && s[i - 1] == '.') ||
		    (segment == 2 && s[i - 1] == '.' && s[i - 2] == '.')) {
			report_add(
			    h->r, at, "must not have . or .. as a segment");
			ok = false;
		}
		segment = 0;
	}
}

void
http_url(struct http *h, const struct doc_node *v)
{
	const struct path at = {NULL, (const uint8_t *)"url", 3, 0};
	unsigned usual = 443;
	size_t start = 8, end;

	if (v == NULL || v->kind != DOC_STRING || v->len > URL_MAX) {
		report_add(
		    h->r, &at, "must be a string of at most %d bytes", URL_MAX);
		return;
	}
	if (v->len >= 7 && memcmp(v->str, "http://", 7) == 0) {
		usual = 80;
		start = 7;
	} else if (v->len < 8 || memcmp(v->str, "https://", 8) != 0) {
		report_add(h->r, &at, "must begin with https:// or http://");
		return;
	}
	for (end = start; end < v->len && v->str[end] != '/' &&
	    v->str[end] != '?' && v->str[end] != '#';
	    end++)
		if (v->str[end] == '@' || v->str[end] == '{') {
			report_add(h->r, &at,
			    v->str[end] == '@'
				? "must have no user name or password: use "
				  "a header with a secret"
				: "must have a literal host: placeholders "
				  "stand in the path");
			return;
		}
	if (http_host(h->r, &at, v->str + start, end - start, usual,
		h->require[h->nrequire]))
		h->nrequire++;
	check_path(h, &at, v->str + end, v->len - end);
}
