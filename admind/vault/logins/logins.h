/*
 * Messages about logins. Each function handles one message; -1 closes the peer
 * (malformed).
 */
#ifndef LOGINS_H
#define LOGINS_H

#include "vault.h"

/* LOGIN. */
int logins_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* PROVE. */
int prove_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* SIGNIN_GRANT, SIGNIN_REDEEM, SIGNIN_HOLDS, SIGNIN_DROP. */
int signin_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* LOGOUT, WHOAMI, SESSION_LOOKUP. */
int tokens_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* Answers with SESSION_INFO about a login, or UNAUTHENTICATED if s is NULL. */
void tokens_answer(struct vault *, struct vault_ref, const struct session *);
/* LOGINS_GET, LOGIN_END. */
int endings_message(struct port *, struct ipc_peer *, struct ipc_frame *);

#endif
