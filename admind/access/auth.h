/* The principal of a request. */
#ifndef AUTH_H
#define AUTH_H

#include "op.h"

struct token;

/* The client of a request. */
struct auth {
	char principal[PRINCIPAL_MAX + 1];
	struct token *token; /* its rights (token.h), without a reference; NULL:
			      * all rights */
	uint64_t expires_us; /* Unix time: the end of its credential; 0: none */
};

/* Returns whether a credential must be a signed token: it came as an assertion,
 * or it has the form of a JWS (RFC 7515 section 7.1). Such a client is never
 * `local`. via: enum credential_via. */
bool auth_is_signed(uint8_t via, struct ipc_bytes credential);
/* Finds the client of a credential, with its rights at an endpoint (empty: the
 * whole). 0, or -1 with err. */
int auth_principal(struct admind *, enum listener, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint, struct auth *,
    struct err *);
/* Finds a live token, a remembered person, or one of these narrowed to an
 * endpoint, by the name of the permission set at this listener, or NULL. Adds
 * no reference. */
struct token *auth_of_set(struct admind *, enum listener, struct ipc_bytes set);
/* Answers an AUTHENTICATE whose token was bound to its request: with the
 * identity and the ticket that is good from now on. */
void auth_admitted(struct link *, uint64_t request, struct ipc_bytes endpoint,
    const char *ticket);
int auth_load_token(struct admind *, struct err *); /* called at start */
/* Counts a refusal in the metrics and notes it in the activity log: of a
 * credential if the failure is UNAUTHENTICATED, else of a call of the tool
 * `name`. */
void auth_refused(struct link *, struct ipc_bytes name, enum failure);
/* The same for a signed token. principal: its owner, or "". The text of err has
 * no byte of the token. */
void auth_refused_token(
    struct link *, const char *principal, const struct err *);
int auth_message(struct link *,
    struct ipc_frame *); /* AUTHENTICATE, GW_ATTACH, SESSION_END */
void auth_vault_up(struct admind *);
void auth_session_ended(struct admind *, const char *payload);

#endif
