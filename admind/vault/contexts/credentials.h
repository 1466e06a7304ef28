/*
 * Credentials that a run of a source makes (OAuth tokens, decision 0051): the
 * runner seals them for the vault, and no process between the two can read or
 * change them.
 *
 * Each run has a key of its own for one secret. The key is made from our
 * secrets' key, the execution's id, the version's hash, the name of the
 * version's server and the name of the secret that the version names. The key
 * leaves the vault only in the sealed context of that run, together with the
 * secrets. The runner encrypts its result under the key; admind hands the
 * result back, and the vault computes the key again. Only one text is sealed
 * under a key, because a run has one result.
 *
 * Python's standard library has HMAC and no cipher, so the sealed form is made
 * of HMAC-SHA256 alone: {16-byte nonce, ciphertext, 32-byte tag}. The keys
 * "enc" and "mac" are HMAC(key, name). Block i of the key stream is HMAC(enc,
 * nonce, u32be i). The tag is HMAC(mac, nonce, ciphertext) and is checked
 * first.
 */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include "buf.h"
#include "crypto.h"
#include "keys.h"

enum {
	CREDENTIAL_OVERHEAD = 16 + 32,
	KEY_NAME_MAX = 255 /* of a secret, as in the database */
};

/* The return key's name among a run's secrets. No secret has this name, because
 * the names of secrets are in upper case. */
#define CREDENTIAL_KEY_NAME "mcpbox_return_key"

void credentials_key(const struct keys *, const struct ipc_id *execution,
    const struct ipc_hash *version, struct ipc_bytes server,
    struct ipc_bytes secret, uint8_t out[KEY_LEN]);
/* Opens a text sealed under the key; out (initialised) receives it. 0; -1 with
 * FAILURE_FORBIDDEN if the text was not sealed under the key. */
int credentials_open(const uint8_t key[KEY_LEN], const uint8_t *sealed,
    size_t n, struct buf *out, struct err *);

#endif
