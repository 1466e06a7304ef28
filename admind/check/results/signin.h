/* The ID token of an administrator that signs in (docs/decisions/0105). No I/O.
 * The bytes are hostile. */
#ifndef CHECK_SIGNIN_H
#define CHECK_SIGNIN_H

#include "check.h"

/* A question of admind. */
struct signin_question {
	uint64_t now_us;
	struct ipc_bytes client, nonce; /* which the token must have */
	struct ipc_bytes issuer; /* record ACCESS_ISSUER, with its keys */
	struct ipc_bytes result; /* the answer of mcpbox_signin.py */
};

/* Judges the token. Fills c, which check_free() empties. Ok: c->fields has enum
 * jwt_field, as for CHECK_JWT. Else c->summary has the fault of the token, or
 * the run's own words. */
void check_signin(struct check *c, const struct signin_question *);

#endif
