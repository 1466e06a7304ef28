/*
 * Authenticator data and attestation objects (WebAuthn Level 3, sections 6.1
 * and 6.5.4). No I/O, no memory of its own.
 */
#ifndef AUTHDATA_H
#define AUTHDATA_H

#include <stdbool.h>

#include "authkey.h"
#include "bytes.h"
#include "err.h"

enum {
	/* Bytes of a credential id: the most that WebAuthn allows (section 4).
	 * Keys that store nothing put their whole secret into it, so a smaller
	 * bound would shut some out. */
	AUTHDATA_ID_MAX = 1023,
	/* Authenticator data: 37 bytes, AAGUID, id and key have some 1200; the
	 * rest is for extensions. */
	AUTHDATA_MAX = 4096,
	/* An attestation object: the same with a statement that we do not
	 * ask for; those of known formats have one to three certificates. */
	AUTHDATA_ATTESTATION_MAX = 16 * 1024,
	AUTHDATA_AAGUID = 16
};

struct authdata {
	struct ipc_hash rp_id; /* SHA-256 of the RP id */
	bool user_present, user_verified;
	/* the passkey may be copied to other devices; it was copied */
	bool backup_eligible, backed_up;
	uint32_t sign_count;
	/* Only of a registration, else empty. */
	struct ipc_bytes id; /* borrowed */
	struct authkey key;
};

/* Reads authenticator data of an assertion (which has no credential) or, if
 * `registers`, of a registration (which must have one). 0, or -1 with
 * INVALID_PARAMS. */
int authdata_read(
    struct ipc_bytes, bool registers, struct authdata *, struct err *);
/* Reads an attestation object and the authenticator data in it. The attestation
 * statement is passed over: nothing that it says is believed. 0, or -1 with
 * INVALID_PARAMS. */
int authdata_attested(struct ipc_bytes, struct authdata *, struct err *);

#endif
