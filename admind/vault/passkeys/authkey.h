/*
 * The public key of a passkey, and the signatures that it verifies: ES256 (RFC
 * 9053 section 2.1) over P-256, and EdDSA (section 2.2) over Ed25519. Only this
 * file of the room calls libcrypto for keys.
 */
#ifndef AUTHKEY_H
#define AUTHKEY_H

#include "bytes.h"
#include "err.h"

enum {
	AUTHKEY_ES256 = -7, /* numbers of COSE (RFC 9053) */
	AUTHKEY_EDDSA = -8,
	AUTHKEY_COORDINATE = 32, /* bytes of a coordinate of either curve */
	/* The longest signature: two numbers of 33 bytes in DER. */
	AUTHKEY_SIGNATURE_MAX = 72
};

struct authkey {
	int alg;                       /* one of the two above */
	uint8_t x[AUTHKEY_COORDINATE]; /* Ed25519: the whole key */
	uint8_t y[AUTHKEY_COORDINATE]; /* Ed25519: zero */
};

/* Reads a COSE_Key (RFC 9052 section 7) from the front of *cose, and takes its
 * bytes off. It must have exactly the members of such a key. 0, or -1 with
 * INVALID_PARAMS. */
int authkey_read(struct ipc_bytes *cose, struct authkey *, struct err *);
/* Returns whether this is a key that we verify with: a point of its curve, and
 * none for which everybody can sign. */
bool authkey_good(const struct authkey *);
/* Returns whether this is the key's signature over a, followed by the bytes of
 * b. */
bool authkey_verify(const struct authkey *, struct ipc_bytes a,
    const struct ipc_hash *b, struct ipc_bytes signature);
/* Loads libcrypto's algorithms and tries them. To be called before the process
 * is confined. 0 or -1. */
int authkey_ready(struct err *);

#endif
