/*
 * Security argument. A page of a stranger may ask the same passkey for a
 * signature, for a challenge of ours that it learnt. The browser then names the
 * page's origin here, and the authenticator signs the hash of these bytes. So
 * the origin is compared byte by byte, and at the place where browsers write
 * it: after type and challenge, which are known. A text within another member
 * can't pass for it, because nothing is searched for. The RP id, which the
 * signed authenticator data have, is compared elsewhere (assertion.c).
 */
#include <string.h>

#include "clientdata.h"
#include "ids.h"

static bool
take(struct ipc_bytes *b, const char *text, size_t n)
{
	if (b->n < n || memcmp(b->p, text, n) != 0)
		return false;
	*b = ipc_bytes(b->p + n, b->n - n);
	return true;
}

static bool
take_str(struct ipc_bytes *b, const char *text)
{
	return take(b, text, strlen(text));
}

static bool
holds(struct ipc_bytes b, const char *text)
{
	return memmem(b.p, b.n, text, strlen(text)) != NULL;
}

/* Takes one of the origins and the quote after it. */
static bool
take_origin(struct ipc_bytes *b, const char *origins)
{
	for (const char *p = origins; *p != '\0';) {
		struct ipc_bytes rest = *b;
		size_t n = strcspn(p, ",");

		if (take(&rest, p, n) && take_str(&rest, "\"")) {
			*b = rest;
			return true;
		}
		p += n;
		p += *p == ',';
	}
	return false;
}

/* Judges the rest: the end, or more members. Those are a browser's own
 * business, unless they say that the page is in a frame of another origin. */
static bool
rest_ok(struct ipc_bytes b)
{
	(void)take_str(&b, ",\"crossOrigin\":false");
	if (b.n == 1)
		return b.p[0] == '}';
	return b.n >= 2 && b.p[0] == ',' && b.p[b.n - 1] == '}' &&
	    !holds(b, "crossOrigin") && !holds(b, "topOrigin");
}

int
clientdata_check(struct ipc_bytes b, bool registers,
    const uint8_t challenge[CLIENTDATA_CHALLENGE], const char *origins,
    struct err *err)
{
	char text[CLIENTDATA_CHALLENGE * 4 / 3 + 3];

	if (b.n > CLIENTDATA_MAX)
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "the client data have more than 4096 bytes");
	if (!take_str(&b,
		registers ? "{\"type\":\"webauthn.create\""
			  : "{\"type\":\"webauthn.get\""))
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "the client data are not of %s",
		    registers ? "a registration" : "an assertion");
	b64url_encode(challenge, CLIENTDATA_CHALLENGE, text);
	if (!take_str(&b, ",\"challenge\":\"") || !take_str(&b, text) ||
	    !take_str(&b, "\""))
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "the client data have another challenge: ask for a new "
		    "one");
	if (!take_str(&b, ",\"origin\":\"") || !take_origin(&b, origins))
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "the client data name a page that is not of "
		    "passkey_origins");
	if (!rest_ok(b))
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "the client data are of a frame in another page, or "
		    "malformed at the end");
	return 0;
}

/* Tells whether this is localhost or NAME.localhost, with a port or without. At
 * no other name do browsers use passkeys by http. */
static bool
is_localhost(const char *host, size_t n)
{
	static const char name[] = "localhost";
	const char *colon = memchr(host, ':', n);
	size_t len = sizeof(name) - 1;

	if (colon != NULL) {
		for (const char *p = colon + 1; p < host + n; p++)
			if (*p < '0' || *p > '9')
				return false;
		n = (size_t)(colon - host);
	}
	return n >= len && memcmp(host + n - len, name, len) == 0 &&
	    (n == len || host[n - len - 1] == '.');
}

/*
 * Any user of this machine may bind [::1] at the port of admind-http, which
 * listens on 127.0.0.1 (docs/decisions/0084). To a browser a page there has the
 * same origin as ours at the name localhost. So an origin by http proves
 * nothing on a machine with other users, and is taken only if the setting says
 * so.
 */
bool
clientdata_origins_ok(const char *origins, bool localhost)
{
	unsigned count = 0;

	for (const char *p = origins; *p != '\0'; count++) {
		size_t n = strcspn(p, ",");
		size_t scheme = strncmp(p, "http://", 7) == 0 ? 7
		    : strncmp(p, "https://", 8) == 0          ? 8
							      : 0;

		if (scheme == 0 || n <= scheme || n > CLIENTDATA_ORIGIN_MAX)
			return false;
		if (scheme == 7 &&
		    !(localhost && is_localhost(p + scheme, n - scheme)))
			return false;
		for (size_t i = scheme; i < n; i++)
			if (strchr("abcdefghijklmnopqrstuvwxyz0123456789.-:[]",
				p[i]) == NULL)
				return false;
		p += n;
		if (*p == ',') {
			p++;
			if (*p == '\0')
				return false;
		}
	}
	return count >= 1 && count <= CLIENTDATA_ORIGINS_MAX;
}
