/* An issuer of signed tokens, as unit tests play it: keys, JWKs, tokens. */
#ifndef SIGNER_H
#define SIGNER_H

#include <openssl/evp.h>

#include "check.h"

/* The ways of signing a token. */
enum signer_way {
	SIGN_RS256,
	SIGN_PS256,
	SIGN_PS256_SALT, /* with a salt of another length */
	SIGN_ES256,
	SIGN_ES256_DER, /* the signature as libcrypto makes it */
	SIGN_EDDSA,
	SIGN_HS256 /* with the public key's DER as the secret */
};

enum signer_key {
	SIGNER_RSA,
	SIGNER_RSA_PS, /* its JWK names PS256 */
	SIGNER_EC,
	SIGNER_ED,
	SIGNER_OTHER, /* EC, in no document */
	SIGNER_KEYS
};

enum {
	SIGNER_JWK_MAX = 4096,
	SIGNER_TOKEN_MAX = 64 * 1024 /* longer than any that is read */
};

/* Makes the keys, once. */
void signer_start(void);
void signer_stop(void);
EVP_PKEY *signer_key(enum signer_key);
/* Writes a public key as JWK. more: further members, as ",'kid':'r'"; each ' is
 * written as ". */
void signer_jwk(EVP_PKEY *, const char *more, char out[SIGNER_JWK_MAX]);
/* Writes the text with each ' as ". */
void signer_quote(const char *, char *out, size_t max);
/* Signs a text. Returns the signature's length. */
size_t signer_sign(
    enum signer_way, EVP_PKEY *, const char *, size_t n, uint8_t out[512]);
/* Writes a token of header and claims, which have ' for ". */
void signer_token(enum signer_way, EVP_PKEY *, const char *header,
    const char *claims, char out[SIGNER_TOKEN_MAX]);

#endif
