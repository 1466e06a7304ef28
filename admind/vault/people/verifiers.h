/*
 * Password verifiers as they are stored in the database: an Argon2id PHC string
 * after the time of its sealing, sealed for one name and role (stored.h).
 *
 * The time bounds what admind can do with an older verifier of the same person:
 * we remember the newest time we saw of each name, and take no older verifier.
 * So a former password, a role that was taken away, or a deleted person can
 * come back only after a restart of the vault (decision 0040).
 *
 * A verifier of a person with passkeys carries the handle of the set
 * (passkeys.h). The password is then half a login. admind stores both, but it
 * can't make a verifier without the handle, so it can't take the second half
 * away (decision 0104).
 */
#ifndef VERIFIERS_H
#define VERIFIERS_H

#include "buf.h"
#include "keys.h"
#include "slots.h"
#include "sessions.h"

enum {
	VERIFIERS_NAMES = 256, /* administrators remembered */
	/* A name. Times of passkeys are remembered here, too, and people of an
	 * issuer have those (passkeys.h). */
	VERIFIERS_NAME_MAX = SESSIONS_USER_MAX,

	/* The longest text that verifiers_seal() encrypts: "p", the time in up
	 * to 20 digits, a space, the handle in hex, a space, the PHC string. */
	VERIFIERS_PLAIN_MAX = SLOTS_ENCODED_MAX + 22 + 33
};

struct verifiers;

struct verifiers *verifiers_new(void); /* NULL without memory */
void verifiers_free(struct verifiers *);

/* Seals phc for name and role, and the handle of the person's passkeys (zero:
 * without); *time_us receives the verifier's time, which is later than any that
 * we saw of that name. 0 or -1. */
int verifiers_seal(struct verifiers *, const struct keys *, const char *name,
    const char *role, const char *phc, const struct ipc_id *handle,
    struct buf *out, uint64_t *time_us, struct err *);
/* Opens a verifier. phc (SLOTS_ENCODED_MAX bytes) receives its PHC string,
 * *handle the handle of the person's passkeys (zero: none), *time_us its time.
 * -1 with FORBIDDEN if it was not sealed here for name and role, or is older
 * than one that we saw. */
int verifiers_open(struct verifiers *, const struct keys *, const char *name,
    const char *role, struct ipc_bytes stored, char *phc, struct ipc_id *handle,
    uint64_t *time_us, struct err *);
/* Notes that the database now has the verifier of this time, or that the person
 * was deleted at this time. Older verifiers of the name are void. */
void verifiers_stored(struct verifiers *, const char *name, uint64_t time_us);
/* Returns whether a verifier of that time is still the person's newest, as far
 * as we know. */
bool verifiers_current(
    const struct verifiers *, const char *name, uint64_t time_us);
/* Returns a time later than any we saw of that name. */
uint64_t verifiers_now(const struct verifiers *, const char *name);

#endif
