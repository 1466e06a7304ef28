/*
 * The two ceremonies of WebAuthn (Level 3, sections 7.1 and 7.2): a passkey is
 * registered, a passkey is used. All checks that need no database. No I/O.
 */
#ifndef CEREMONY_H
#define CEREMONY_H

#include "clientdata.h"
#include "passkeys.h"

/* The question of the vault. */
struct ceremony {
	const char *rp_id;   /* a domain name */
	const char *origins; /* pages that may ask; see clientdata.h */
	uint8_t challenge[CLIENTDATA_CHALLENGE];
};

/* An assertion, as a browser brought it. */
struct ceremony_answer {
	struct ipc_bytes client_data, auth_data, signature;
	struct ipc_bytes handle; /* of the person, or empty */
};

/* Judges a registration; *out borrows its id from `attestation`. 0; -1 with
 * INVALID_PARAMS (malformed) or PASSKEY_REFUSED. */
int ceremony_register(const struct ceremony *, struct ipc_bytes client_data,
    struct ipc_bytes attestation, struct authdata *out, struct err *);
/* Judges an assertion by a passkey of the set with this handle; *count receives
 * the passkey's new signature counter. 0; -1 as above, with *cloned true if all
 * was right but the counter. */
int ceremony_assert(const struct ceremony *, const struct ceremony_answer *,
    const struct passkey *, const struct ipc_id *handle, uint32_t *count,
    bool *cloned, struct err *);

#endif
