#include <string.h>

#include "bounds.h"
#include "ids.h"
#include "session.h"

enum {
	FORMAT = 2,
	IDS_AT_ONCE = 16,
	PRINCIPAL_KEPT = 321 /* an e-mail address fits */
};

static void
put_be64(uint8_t *p, uint64_t v)
{
	int i;

	for (i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

/* Hashes a principal's name. Many requests in a row are of one principal, so
 * the last hash is remembered. With a single user it is always the right
 * one. */
static void
principal_hash(const char *principal, struct ipc_hash *out)
{
	static char last[PRINCIPAL_KEPT];
	static struct ipc_hash hash;
	static bool any;
	size_t n;

	if (!any || strcmp(last, principal) != 0) {
		sha256(principal, strlen(principal), out);
		n = strlen(principal) + 1;
		any = n <= sizeof(last);
		if (!any)
			return;
		memcpy(last, principal, n);
		hash = *out;
	}
	*out = hash;
}

/* Makes an id of 128 random bits. The kernel gives bits for many ids at once,
 * since a system call for each id costs as much as making its token. This
 * process never forks, so no other process has a copy of the ids that are
 * left. */
static void
random_id(struct ipc_id *id)
{
	static struct ipc_id rest[IDS_AT_ONCE];
	static unsigned n;

	if (n == 0) {
		random_bytes(rest, sizeof(rest));
		n = IDS_AT_ONCE;
	}
	*id = rest[--n];
	explicit_bzero(&rest[n], sizeof(rest[n]));
}

/* The name follows the fields, whose length is fixed, so the bytes mean one
 * session at one endpoint. */
static void
make_mac(const uint8_t key[KEY_LEN], const uint8_t plain[SESSION_PLAIN_LEN],
    const char *endpoint, struct ipc_hash *mac)
{
	uint8_t b[SESSION_PLAIN_LEN + ENDPOINT_NAME_MAX];
	size_t n = strnlen(endpoint, ENDPOINT_NAME_MAX);

	memcpy(b, plain, SESSION_PLAIN_LEN);
	memcpy(b + SESSION_PLAIN_LEN, endpoint, n);
	hmac_sha256(key, b, SESSION_PLAIN_LEN + n, mac);
}

void
session_make(const uint8_t key[KEY_LEN], uint8_t listener, enum mcp_rev rev,
    uint64_t expires_ms, const char *principal, const char *endpoint,
    uint32_t declared, struct session *s, char text[SESSION_TEXT_LEN + 1])
{
	uint8_t b[SESSION_LEN];
	struct ipc_hash mac;
	int i;

	random_id(&s->id);
	s->listener = listener;
	s->rev = rev;
	s->expires_ms = expires_ms;
	principal_hash(principal, &s->principal);
	s->declared = declared;

	b[0] = FORMAT;
	b[1] = listener;
	b[2] = (uint8_t)rev;
	put_be64(b + 3, expires_ms);
	memcpy(b + 11, s->id.b, 16);
	memcpy(b + 27, s->principal.b, 32);
	for (i = 0; i < 4; i++)
		b[59 + i] = (uint8_t)(declared >> (24 - 8 * i));
	make_mac(key, b, endpoint, &mac);
	memcpy(b + SESSION_PLAIN_LEN, mac.b, 32);
	b64url_encode(b, sizeof(b), text);
}

/* Reads a token. The MAC is checked before any field is believed. */
int
session_open(const uint8_t key[KEY_LEN], const char *text, uint64_t now_ms,
    uint8_t listener, const char *principal, const char *endpoint,
    struct session *out)
{
	uint8_t b[SESSION_LEN + 3];
	struct ipc_hash mac, who;
	struct session s;

	if (strlen(text) != SESSION_TEXT_LEN ||
	    b64url_decode(text, SESSION_TEXT_LEN, b) != SESSION_LEN)
		return -1;
	make_mac(key, b, endpoint, &mac);
	if (!ct_equal(mac.b, b + SESSION_PLAIN_LEN, 32))
		return -1;
	principal_hash(principal, &who);
	if (b[0] != FORMAT || b[1] != listener ||
	    b[2] > MCP_REV_LEGACY_NEWEST || get_be64(b + 3) <= now_ms ||
	    memcmp(b + 27, who.b, 32) != 0)
		return -1;
	memset(&s, 0, sizeof(s));
	s.listener = b[1];
	s.rev = (enum mcp_rev)b[2];
	s.expires_ms = get_be64(b + 3);
	memcpy(s.id.b, b + 11, 16);
	memcpy(s.principal.b, b + 27, 32);
	s.declared = get_be32(b + 59);
	*out = s;
	return 0;
}
