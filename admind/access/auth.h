/* The principal of a request. */
#ifndef AUTH_H
#define AUTH_H

#include "op.h"

struct token;

/* Finds the principal of a credential; `principal` has room for PRINCIPAL_MAX +
 * 1 bytes. *token receives the API token with the client's rights (tokens.h),
 * without a reference; NULL: the client has all rights. 0, or -1 with err. */
int auth_principal(struct admind *, enum listener, struct ipc_bytes credential,
    char *principal, struct token **token, struct err *);
int auth_load_token(struct admind *, struct err *); /* called at start */
/* Counts a refusal in the metrics and notes it in the activity log: of a
 * credential if the failure is UNAUTHENTICATED, else of a call of the tool
 * `name`. */
void auth_refused(struct link *, struct ipc_bytes name, enum failure);
int auth_message(struct link *,
    struct ipc_frame *); /* AUTHENTICATE, GW_ATTACH, SESSION_END */
void auth_vault_up(struct admind *);
void auth_session_ended(struct admind *, const char *payload);

#endif
