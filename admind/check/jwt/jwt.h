/*
 * Signed tokens (JWT, RFC 7519) of the issuers of an access document. No I/O.
 * The token is hostile; the issuers are records that check_access() made.
 */
#ifndef JWT_H
#define JWT_H

#include "check.h"

/* The question of CHECK_JWT. */
struct jwt_question {
	unsigned listener;        /* enum listener that the token came to */
	unsigned via;             /* enum credential_via */
	uint64_t now_us;          /* Unix time in us to judge at */
	struct ipc_bytes token;   /* compact JWS */
	struct ipc_bytes issuers; /* TLV of ACCESS_ISSUER, others are skipped */
};

/* Fills c, which check_free() empties. Ok: c->fields has enum jwt_field,
 * ascending. Else c->summary is one sentence that quotes nothing of the token,
 * and the failure is UNAUTHENTICATED; or INTERNAL, if the issuers or libcrypto
 * are at fault. jwt_key_ready() must have been called. */
void check_jwt(struct check *c, const struct jwt_question *);

#endif
