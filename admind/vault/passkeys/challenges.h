/*
 * Challenges that wait for a passkey's answer. A challenge belongs to one login
 * and one purpose, is used once, and ends after CHALLENGES_MS by
 * CLOCK_BOOTTIME. A login has one at most: a new one replaces it. Kept in
 * memory alone. The file also keeps the codes that root made for first
 * passkeys. Times come from the caller.
 */
#ifndef CHALLENGES_H
#define CHALLENGES_H

#include "clientdata.h"
#include "passkeys.h"

enum challenges_kind {
	CHALLENGES_REGISTER = 1, /* a new passkey */
	CHALLENGES_LOGIN,        /* the second factor of a login */
	CHALLENGES_PROOF         /* a proof that the person is there */
};

enum {
	/* Time to find a device and unlock it; WebAuthn recommends 5 to 10
	 * minutes. */
	CHALLENGES_MS = 5 * 60 * 1000,
	/* One for each login that there can be. */
	CHALLENGES_MAX = SESSIONS_MAX,
	CHALLENGES_CODES = 16,              /* codes of root at once */
	CHALLENGES_CODE_BYTES = 20,         /* random: no guess finds it */
	CHALLENGES_CODE_TEXT = 27,          /* the same in base64url */
	CHALLENGES_CODE_MS = 15 * 60 * 1000 /* time to type it */
};

struct challenges;

struct challenges *challenges_new(void); /* NULL without memory */
void challenges_free(struct challenges *);

/* Makes the login's challenge. login: the login's id. */
void challenges_make(struct challenges *, const struct ipc_id *login,
    enum challenges_kind, uint64_t boot_ms, uint8_t out[CLIENTDATA_CHALLENGE]);
/* Takes the login's challenge, which is then gone, right or wrong. 0, or -1 if
 * the login has no valid one of this kind. */
int challenges_take(struct challenges *, const struct ipc_id *login,
    enum challenges_kind, uint64_t boot_ms, uint8_t out[CLIENTDATA_CHALLENGE]);

/* Makes a code with which this person may register a first passkey that conveys
 * at most this role. A name has one code, and the oldest of all goes when there
 * are too many. */
void challenges_code(struct challenges *, const char *name, const char *role,
    uint64_t boot_ms, char out[CHALLENGES_CODE_TEXT + 1]);
/* Finds the role of this person's code; NULL if the code is wrong or over. */
const char *challenges_code_role(struct challenges *, const char *name,
    struct ipc_bytes code, uint64_t boot_ms);
/* Ends the person's code. */
void challenges_code_end(struct challenges *, const char *name);

#endif
