/*
 * Requests about passkeys. Each is an attempt (attempt.h), so that its person's
 * verifier is fetched and sealed as for a change of a password.
 */
#ifndef PASSKEY_H
#define PASSKEY_H

#include "attempt.h"
#include "ceremony.h"
#include "challenges.h"

enum {
	/* The text in a set's list: ids of 1364 characters and all else. */
	PASSKEY_JSON_MAX = 64 * 1024,
	PASSKEY_DETAIL_MAX = 1024
};

/* Belongs to an attempt about passkeys (attempt->passkey). */
struct passkey_op {
	bool by_password; /* the person has a verifier here */
	struct passkeys set;
	/* the bytes of the request */
	uint8_t client_data[CLIENTDATA_MAX];
	uint8_t data[AUTHDATA_ATTESTATION_MAX]; /* attestation or auth_data */
	uint8_t signature[AUTHKEY_SIGNATURE_MAX];
	uint8_t credential[AUTHDATA_ID_MAX];
	uint8_t handle[sizeof(struct ipc_id)];
	size_t nclient, ndata, nsignature, ncredential, nhandle;
	char label[PASSKEYS_LABEL_MAX + 1];
	char code[CHALLENGES_CODE_TEXT + 1];
	/* the rest of its way */
	struct ceremony ceremony;
	enum challenges_kind kind;
	bool coded;                      /* root's code was right */
	char cap[SESSIONS_ROLE_MAX + 1]; /* of the passkey used or made */
	uint64_t set_us;                 /* time in the set being stored */
};

/* Begins an attempt for the person of a login, which may be pending if
 * `pending`. NULL: the request was refused. *s receives the login. */
struct attempt *passkey_begin(struct port *, struct ipc_peer *,
    uint64_t request, struct ipc_bytes token, bool pending,
    const struct session **s);
/* Begins an attempt for a person whom root names. NULL: as above. */
struct attempt *passkey_begin_root(
    struct port *, struct ipc_peer *, uint64_t request, struct ipc_bytes name);
/* Checks that passkeys are on. 0, or -1: they are off, and the request was
 * refused. */
int passkey_on(struct attempt *);
/* Copies a field of the request into the attempt. 0, or -1: it does not fit,
 * and the request was refused. */
int passkey_copy(struct attempt *, struct ipc_bytes from, uint8_t *to,
    size_t size, size_t *n);
/* Fetches the person's verifier and set, then calls `then` with the set
 * opened. */
void passkey_find(struct attempt *, void (*then)(struct attempt *));
/* Makes this attempt the one change that is under way. 0, or -1: another one
 * is, and the request was refused. */
int passkey_alone(struct attempt *);
/* Seals the set and has admind commit it as this change: with an administrator
 * whose first passkey came or whose last one went also a new verifier. */
void passkey_store(
    struct attempt *, const char *change, void (*then)(struct attempt *));

/* PASSKEY_CHALLENGE, PASSKEYS_GET, PASSKEY_REMOVE, PASSKEY_CODE_MAKE. -1 closes
 * the peer. */
int passkey_lists_message(struct port *, struct ipc_peer *, struct ipc_frame *);
/* PASSKEY_REGISTER, PASSKEY_ASSERT. -1 closes the peer. */
int passkey_use_message(struct port *, struct ipc_peer *, struct ipc_frame *);

#endif
