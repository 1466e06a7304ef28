/*
 * Administrators that sign in by an issuer (docs/decisions/0105).
 *
 *  state.h    the memory of a sign-in under way; no I/O
 *  offers.h   the document: issuers, rules, roles, names; no I/O
 *  signin.c   the list, and the way to the issuer
 *  back.c     the way back: code, ID token, role, grant
 *  ends.c     ends logins whose rules are gone
 */
#ifndef SIGNIN_H
#define SIGNIN_H

#include "offers.h"
#include "op.h"
#include "state.h"

enum {
	/* From the beginning until the browser is back: time for a password and
	 * a second factor at the issuer. */
	SIGNIN_TTL_MS = 10 * 60 * 1000,
	/* Exchanges at once. Strangers of this machine can begin each, and a
	 * run takes a place in the sandbox. */
	SIGNIN_RUNS_MAX = 4,
	/* Sign-ins that came back within SIGNIN_TTL_MS, each kept so that its
	 * state serves once. More are refused as busy. */
	SIGNIN_USED_MAX = 256,
	SIGNIN_CODE_MAX = 4096, /* bytes of a code; real ones have at most 2k */
	SIGNIN_WORD_MAX = 256   /* of `error` */
};

struct signin_used {
	struct ipc_id id;
	uint64_t until_ms; /* since boot; 0: free */
};

struct signin {
	uint8_t key[KEY_LEN]; /* of state.h; ends with this process */
	struct signin_used used[SIGNIN_USED_MAX];
	unsigned running; /* exchanges */
	/* The words to the vault (ends.c): 32 bytes an issuer. */
	bool told, clear;
	unsigned ntold;
	struct ipc_hash holds[ACCESS_ISSUERS_MAX];
};

int signin_start(struct admind *, struct err *);

/* Handles SIGNIN_LIST and SIGNIN_BEGIN. 0, or -1: malformed. */
int signin_message(struct link *, struct ipc_frame *);
/* Handles SIGNIN_BACK, likewise. */
int back_message(struct link *, struct ipc_frame *);

/* Tells the vault which logins may live, if that changed. */
void ends_tell(struct admind *);
/* Called when the vault is connected, which may be another process. */
void ends_vault_up(struct admind *);
/* Called when the database is back: withdrawals may have been missed, so all
 * these logins end. */
void ends_db_up(struct admind *);
/* Handles "withdrawn PRINCIPAL" of NOTIFY mcpbox_access. */
void ends_notified(struct admind *, const char *payload);

#endif
