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
/* Finds the asking person: uid 0, or the user of a login. If `changes` is not
 * NULL, the login must be an administrator's; `changes` is part of the error's
 * sentence. The login needs a fresh proof if this type of message does
 * (fresh.h). actor (at least POLICY_ACTOR_MAX + 1 bytes, empty) receives the
 * person's name if it is known, even if -1 is returned. 0; -1 with
 * UNAUTHENTICATED, FORBIDDEN, PROOF_REQUIRED or INVALID_REQUEST. */
int policies_who(struct port *, struct ipc_bytes token, enum ipc_type,
    const char *changes, char *actor, struct err *);
/* Writes the audit event of a refusal, with its failure. actor: a name, or ""
 * if it is not known. */
void policies_refused(struct port *, const char *actor, const char *action,
    const char *subject, enum failure);
/* ACCESS_SET, ACCESS_CHECK. */
int access_message(struct port *, struct ipc_peer *, struct ipc_frame *);
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
