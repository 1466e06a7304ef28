/*
 * Requests to the vault that are no logins. Each NAME_message handles one
 * message; -1 closes the peer (malformed).
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "vault.h"

/* APPROVE, REJECT, APPROVE_AUTO. */
int decide_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* POLICY_SET, POLICY_GET, SEAL_VERIFY. */
int policies_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* SECRET_SET. */
int secrets_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* Returns whether this is a valid name of a secret. */
bool secrets_key_ok(struct ipc_bytes);
/* CREDENTIAL_STORE. */
int credential_store_message(
    struct port *, struct ipc_peer *, struct ipc_frame *);
/* Requests that are answered at once: contexts, keys, signatures, doctor. */
int answers_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* EXPORT_SIGN, EXPORT_CHECK. */
int transfer_message(struct port *, struct ipc_peer *, struct ipc_frame *);

int rotate_init(struct vault *); /* 0, or -1 without memory */
void rotate_free(struct vault *);
/* KEY_STATUS, KEY_NEXT, KEY_STEP, KEY_END. */
int rotate_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* Tells admind, which has just connected, about a rotation under way. */
void rotate_admind_up(struct vault *);

#endif
