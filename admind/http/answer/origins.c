/*
 * A proxy of the administrator's may serve the panel at an https name, since
 * browsers use passkeys at a name only. Then requests come with the proxy's
 * name in Host and in Origin.
 *
 * A list of such names loosens the guard against DNS rebinding (guard.c), so it
 * is empty unless root wrote it, and each entry is one whole origin.
 *
 * These may send such a Host: the proxy; each program of this machine, which
 * could always send what it likes; and a page in a browser of this machine
 * whose name resolves to 127.0.0.1. The last one needs the power over the name
 * that root wrote. It has no certificate for that name, so it is a page by
 * http. Its writes carry an Origin with http and are refused. Its reads carry
 * no cookie, since those of the panel's https page are Secure, and no second
 * half. So it reads what every program reads without a login.
 */
#include <string.h>
#include <strings.h>

#include "origins.h"

static const char scheme[] = "https://";
enum { SCHEME_LEN = sizeof(scheme) - 1 };

/* Returns whether these n bytes are a port as browsers write it. */
static bool
port_ok(const char *s, size_t n)
{
	unsigned v = 0;

	if (n == 0 || n > 5 || s[0] == '0')
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	return v <= ORIGINS_PORT_MAX && v != ORIGINS_HTTPS_PORT;
}

/* Returns whether the n bytes are one label. *digits: it has digits alone. */
static bool
label_ok(const char *s, size_t n, bool *digits)
{
	*digits = true;
	if (n == 0 || n > ORIGINS_LABEL_MAX || s[0] == '-' || s[n - 1] == '-')
		return false;
	for (size_t i = 0; i < n; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9';

		if (!digit && s[i] != '-' && (s[i] < 'a' || s[i] > 'z'))
			return false;
		*digits = *digits && digit;
	}
	return true;
}

/*
 * Returns whether the n bytes are a domain name. An address is refused, because
 * no passkey works there. So are localhost and all names below it: they mean
 * this machine, where the loopback names already are origins of their own
 * (guard_host), by http.
 */
static bool
name_ok(const char *s, size_t n)
{
	static const char local[] = "localhost";
	const char *end = s + n, *dot;
	bool digits = true;
	size_t len;

	if (n > ORIGINS_HOST_MAX)
		return false;
	for (;; s = dot + 1) {
		dot = memchr(s, '.', (size_t)(end - s));
		len = (size_t)((dot != NULL ? dot : end) - s);
		if (!label_ok(s, len, &digits))
			return false;
		if (dot == NULL)
			break;
	}
	return !digits &&
	    !(len == sizeof(local) - 1 && memcmp(s, local, len) == 0);
}

static bool
origin_ok(const char *s, size_t n)
{
	const char *colon;
	size_t name;

	if (n <= SCHEME_LEN || strncmp(s, scheme, SCHEME_LEN) != 0)
		return false;
	s += SCHEME_LEN;
	n -= SCHEME_LEN;
	colon = memchr(s, ':', n);
	name = colon != NULL ? (size_t)(colon - s) : n;
	return name_ok(s, name) &&
	    (colon == NULL || port_ok(colon + 1, n - name - 1));
}

int
origins_check(const char *list, struct err *e)
{
	unsigned count = 0;
	size_t n;

	if (*list == '\0')
		return 0;
	for (const char *p = list;; p += n + 1) {
		n = strcspn(p, ",");
		if (!origin_ok(p, n))
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "panel_origins is a list such as "
			    "https://mcpbox.example.org: https, a domain name "
			    "in lower case, a port other than 443, no path");
		if (++count > ORIGINS_COUNT_MAX)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "panel_origins has at most %d origins",
			    ORIGINS_COUNT_MAX);
		if (p[n] == '\0')
			return 0;
	}
}

bool
origins_have(const char *list, const char *host)
{
	size_t n, want = strlen(host);

	for (const char *p = list; *p != '\0'; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		if (n == SCHEME_LEN + want &&
		    strncasecmp(p + SCHEME_LEN, host, want) == 0)
			return true;
	}
	return false;
}
