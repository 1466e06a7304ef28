/*
 * The memory of a sign-in under way, which takes no memory. No I/O.
 *
 * Anybody on this machine may begin to sign in, as often as he likes. A row for
 * each beginning would let him fill memory, or push out others. So `state`
 * itself carries the time and the ticket's hash, under a MAC of a key that ends
 * with this process. Verifier and nonce are made of the same parts and the key,
 * so they need no memory either, and no other process can make
 * them.
 */
#ifndef STATE_H
#define STATE_H

#include "bytes.h"
#include "crypto.h"
#include "err.h"

enum {
	STATE_TEXT = 118,      /* characters of `state`: 88 bytes */
	STATE_SECRET_TEXT = 43 /* of a verifier or a nonce: 32 bytes */
};

/* One sign-in. The first three are in `state`, the basis is in its MAC. */
struct state {
	struct ipc_id id;       /* random */
	uint64_t begun_ms;      /* since boot */
	struct ipc_hash ticket; /* SHA-256 of both halves */
	/* The offer (offers.h): SHA-256 of the document's words about this
	 * issuer's administrators. */
	struct ipc_hash basis;
	struct ipc_hash mac; /* as read */
};

/* Writes `state`. */
void state_make(
    const uint8_t key[KEY_LEN], const struct state *, char out[STATE_TEXT + 1]);
/* Reads the parts that the text has. 0, or -1: it can't be one of ours. The
 * caller then fills in the basis, and asks state_is(). */
int state_read(struct state *, struct ipc_bytes text);
/* Tells whether this process made the text for this ticket and basis. */
bool state_is(const uint8_t key[KEY_LEN], const struct state *);
/* Write the PKCE verifier (RFC 7636) and the nonce of a sign-in. */
void state_verifier(const uint8_t key[KEY_LEN], const struct state *,
    char out[STATE_SECRET_TEXT + 1]);
void state_nonce(const uint8_t key[KEY_LEN], const struct state *,
    char out[STATE_SECRET_TEXT + 1]);
/* Writes the code challenge S256 of a verifier. */
void state_challenge(const char *verifier, char out[STATE_SECRET_TEXT + 1]);

#endif
