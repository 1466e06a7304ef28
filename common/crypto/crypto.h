/*
 * Cryptography over OpenSSL's EVP: SHA-256, HMAC-SHA256, HKDF-SHA256 (RFC
 * 5869), AES-256-GCM (NIST SP 800-38D).
 */
#ifndef CRYPTO_H
#define CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "err.h"

enum {
	KEY_LEN = 32,
	GCM_NONCE_LEN = 12,
	GCM_TAG_LEN = 16,
	/* Length of a master key's id in sealed values. With this length two
	 * keys of one installation never have the same id by chance. */
	KEY_ID_LEN = 8
};

/* The functions down to master_key_id fail only for lack of memory, and then
 * abort, so no caller can use a digest that was not computed. The caller wipes
 * keys and outputs. */
void sha256(const void *, size_t, struct ipc_hash *out);
void sha256_2(const void *, size_t, const void *, size_t, struct ipc_hash *);
/* SHA-256 of data that comes in pieces. sha256_begin returns NULL without
 * memory; the other functions abort as above. */
struct sha256_pieces;
struct sha256_pieces *sha256_begin(void);
void sha256_add(struct sha256_pieces *, const void *, size_t);
/* Writes the digest so far, then starts again. */
void sha256_end(struct sha256_pieces *, struct ipc_hash *out);
void sha256_free(struct sha256_pieces *);
void hmac_sha256(
    const uint8_t key[KEY_LEN], const void *, size_t, struct ipc_hash *out);
/* Does all of RFC 5869, extract and expand; public for the RFC's test vectors.
 * out_len <= 255 * 32 and info_len <= 256; more is a programming error and
 * aborts. */
void hkdf_sha256_salted(const void *ikm, size_t ikm_len, const void *salt,
    size_t salt_len, const void *info, size_t info_len, uint8_t *out,
    size_t out_len);
/* Derives a sub-key for one label: empty salt, info is the label's text. */
void hkdf_sha256(
    const uint8_t key[KEY_LEN], const char *label, uint8_t out[KEY_LEN]);
/* Writes a master key's id, which is derived from the key but reveals nothing
 * about it. */
void master_key_id(const uint8_t key[KEY_LEN], uint8_t id[KEY_ID_LEN]);
/* Encrypts. out: n + GCM_TAG_LEN bytes, ciphertext then tag. 0 or -1. */
int gcm_seal(const uint8_t key[KEY_LEN], const uint8_t nonce[GCM_NONCE_LEN],
    const void *aad, size_t aadlen, const void *in, size_t n, uint8_t *out,
    struct err *);
/* Decrypts. in: n bytes, tag last; out: n - GCM_TAG_LEN bytes, wiped on
 * failure. 0 or -1. */
int gcm_open(const uint8_t key[KEY_LEN], const uint8_t nonce[GCM_NONCE_LEN],
    const void *aad, size_t aadlen, const void *in, size_t n, uint8_t *out,
    struct err *);

#endif
