/*
 * Answers from outside, as typed fields: the parser of `remote check`, without
 * I/O. Its input is hostile: a proxy, a login page, an issuer that was taken
 * over. It runs in a process without rights (remote_fetch.c).
 *
 * All fields have fixed sizes, so that an answer can cross a pipe as it is. A
 * text that does not fit, or has a character outside of ! to ~ (texts for
 * people: blank to ~), is left empty, as if it were absent.
 */
#ifndef REMOTE_READ_H
#define REMOTE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

enum {
	REMOTE_URL_MAX = 512,  /* as long as GW_ACCESS_URL_MAX, and some more */
	REMOTE_TEXT_MAX = 256, /* a sentence of a challenge or an error */
	REMOTE_WORD_MAX = 64,
	/* as many keys as the access document takes of an issuer, and twice
	 * that, to see those that are too many */
	REMOTE_KEYS_MAX = 64,
	REMOTE_SERVERS_MAX = 16,
	REMOTE_THUMB_LEN = 43, /* base64url of a SHA-256 */
	/* bytes of a body: a key set of 64 keys is smaller */
	REMOTE_BODY_MAX = 256 * 1024
};

/* A public key: its name, and its thumbprint (RFC 7638). */
struct remote_key {
	char kid[REMOTE_WORD_MAX + 1], thumb[REMOTE_THUMB_LEN + 1];
};

struct remote_said {
	/* the body */
	bool html; /* begins as a page does, or says so in Content-Type */
	bool json; /* is one JSON object */
	char resource[REMOTE_URL_MAX + 1]; /* RFC 9728 */
	uint32_t nservers;
	char servers[REMOTE_SERVERS_MAX][REMOTE_URL_MAX + 1];
	char issuer[REMOTE_URL_MAX + 1]; /* RFC 8414 */
	char jwks_uri[REMOTE_URL_MAX + 1];
	bool s256;
	bool has_keys; /* member `keys` is a list */
	uint32_t nkeys;
	struct remote_key keys[REMOTE_KEYS_MAX];
	bool result;     /* JSON-RPC: a result */
	uint32_t ntools; /* of tools/list */
	char rpc_error[REMOTE_TEXT_MAX + 1];
	/* WWW-Authenticate (RFC 6750, RFC 9728 section 5.1) */
	bool bearer;
	char realm[REMOTE_WORD_MAX + 1];
	char metadata[REMOTE_URL_MAX + 1];
	char error[REMOTE_WORD_MAX + 1];
	char description[REMOTE_TEXT_MAX + 1];
};

/* Reads a body. type: Content-Type, or "". */
void remote_read_body(
    const void *, size_t, const char *type, struct remote_said *);

/* Reads the value of a field WWW-Authenticate. Only the first challenge
 * `Bearer` counts. */
void remote_read_challenge(const char *, size_t, struct remote_said *);

/* Reads the keys of a JWK set that can sign for us: RSA, P-256, Ed25519, and
 * not for encryption. Returns how many there are in `keys`. */
uint32_t remote_read_keys(
    struct json_object *set, struct remote_key keys[REMOTE_KEYS_MAX]);

/* Writes the thumbprint of a JWK (RFC 7638 section 3, RFC 8037 appendix A.3).
 * 0, or -1 if a member is missing or too long, or the kind of key is
 * unknown. */
int remote_read_thumb(struct json_object *jwk, char out[REMOTE_THUMB_LEN + 1]);

#endif
