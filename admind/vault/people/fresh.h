/*
 * The requests for which a login alone is not enough: its person must have
 * proved to be there a short time ago (SESSIONS_PROOF_MS).
 *
 * A login lives for hours in a browser. A person at a browser that was left
 * open, or a thief of both halves of a token, has the login. Neither has the
 * password or the passkey. So the vault asks for a fresh proof of each change
 * that outlives the login: an approval, a policy, the access document, an
 * administrator. A login by an issuer was made on admind's word. A hostile
 * admind can invent such a login, so a secret's value needs a proof, too, if
 * such a login brings it.
 *
 * The proof is judged once, when the request arrives. admind answers later, so
 * a slow admind can't make a proof stale.
 */
#ifndef FRESH_H
#define FRESH_H

#include "sessions.h"

enum fresh_need {
	FRESH_NEVER,     /* the login is enough */
	FRESH_BY_ISSUER, /* a proof, if the login began at an issuer */
	FRESH_ALWAYS     /* a proof */
};

/* Returns the need of a message that a login brings to the vault. A message
 * without a row in the table needs a proof. */
enum fresh_need fresh_need(enum ipc_type);
/* Returns 0 if the login may do this now, or -1 with PROOF_REQUIRED. */
int fresh_check(
    const struct session *, enum ipc_type, uint64_t boot_ms, struct err *);

#endif
