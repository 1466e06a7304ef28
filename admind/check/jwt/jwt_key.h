/*
 * Public keys of issuers, and the signatures that they verify: RS256, PS256 and
 * ES256 (RFC 7518 section 3), EdDSA with Ed25519 (RFC 8037). A key is DER
 * SubjectPublicKeyInfo. This file is the only one that calls libcrypto.
 */
#ifndef JWT_KEY_H
#define JWT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access_fields.h"
#include "buf.h"
#include "bytes.h"
#include "err.h"

enum jwt_kind {
	JWT_KIND_NONE = 0, /* no key that we verify with */
	JWT_KIND_RSA,
	JWT_KIND_P256,
	JWT_KIND_ED25519
};

enum {
	/* Bits of an RSA modulus: shorter ones are forged (RFC 7518 section
	 * 3.3), longer ones cost time on each token. */
	JWT_RSA_BITS_MIN = 2048,
	JWT_RSA_BITS_MAX = 4096,
	/* Bytes of an RSA exponent. All issuers use 3 bytes, and libcrypto
	 * takes no more than 8 with a long modulus. */
	JWT_RSA_E_MAX = 8,
	JWT_COORDINATE = 32, /* bytes of a coordinate of P-256 or Ed25519 */
	/* Bytes of a key: 4096 bits of modulus, 64 of exponent, their frame. */
	JWT_SPKI_MAX = 600
};

/* Prepares libcrypto: no configuration file, no module of a file, and each
 * algorithm loaded and tried. To be called before the process is confined, once
 * (later calls are harmless). 0, or -1 with err. */
int jwt_key_ready(struct err *);

/* Finds an algorithm by its name in `alg`. Returns 0 for any other name. */
unsigned jwt_algorithm(struct ipc_bytes name);
/* Returns the name of an algorithm, or "" for any other number. */
const char *jwt_algorithm_name(unsigned);
/* Returns the kind of keys that an algorithm uses. */
enum jwt_kind jwt_algorithm_kind(unsigned);

/* Appends a key to spki. The numbers are big endian. NULL, or a sentence that
 * says why this key cannot be used; spki is then unchanged. */
const char *jwt_key_rsa(
    struct buf *spki, struct ipc_bytes n, struct ipc_bytes e);
const char *jwt_key_p256(
    struct buf *spki, struct ipc_bytes x, struct ipc_bytes y);
const char *jwt_key_ed25519(struct buf *spki, struct ipc_bytes x);
/* Returns the kind of a key that one of these functions made. */
enum jwt_kind jwt_key_kind(struct ipc_bytes spki);

/* Tells whether this is the key's signature over `text`. 1 it is, 0 it is not,
 * -1 with err if it could not be judged (a key of another form, no memory). */
int jwt_key_verify(unsigned algorithm, struct ipc_bytes spki,
    struct ipc_bytes text, struct ipc_bytes signature, struct err *);

#endif
