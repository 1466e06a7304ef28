/* The principal of a request. */
#ifndef AUTH_H
#define AUTH_H

#include "op.h"

struct token;

/* Finds the principal of a credential (PRINCIPAL_MAX + 1 bytes). *token: its
 * rights (tokens.h), not referenced; NULL: all. Returns 0 or -1. */
int auth_principal(struct admind *, enum listener, struct ipc_bytes credential,
    char *principal, struct token **token, struct err *);
int auth_load_token(struct admind *, struct err *); /* at start */
/* For the activity log: a credential, or a call (its name), was refused. */
void auth_refused(struct link *, struct ipc_bytes name, enum failure);
int auth_message(struct link *,
    struct ipc_frame *); /* AUTHENTICATE, GW_ATTACH, SESSION_END */
void auth_vault_up(struct admind *);
void auth_session_ended(struct admind *, const char *payload);

#endif
