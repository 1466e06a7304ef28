/*
 * Password verifiers as they rest in the database: an Argon2id PHC string
 * preceded by the time it was sealed, sealed for one name and role (stored.h).
 *
 * The time bounds what admind can do with an older verifier of the same person:
 * we remember the newest time we saw of each name, and take no older verifier.
 * So a former password, a role that was taken away, or a deleted person comes
 * back only after a restart of ours (decision 0040).
 */
#ifndef VERIFIERS_H
#define VERIFIERS_H

#include "buf.h"
#include "keys.h"
#include "slots.h"
#include "sessions.h"

enum {
	VERIFIERS_NAMES = 256, /* administrators remembered */
	/* "t", up to 20 digits, a space, the PHC string */
	VERIFIERS_PLAIN_MAX = SLOTS_ENCODED_MAX + 22
};

struct verifiers;

struct verifiers *verifiers_new(void); /* NULL without memory */
void verifiers_free(struct verifiers *);

/* Seals phc for name and role; *time_us receives the time in it, which is later
 * than any we saw of that name. 0 or -1. */
int verifiers_seal(struct verifiers *, const struct keys *, const char *name,
    const char *role, const char *phc, struct buf *out, uint64_t *time_us,
    struct err *);
/* Opens a verifier: phc (SLOTS_ENCODED_MAX) and its time. -1 with FORBIDDEN if
 * it was not sealed here for name and role, or is older than one we saw. */
int verifiers_open(struct verifiers *, const struct keys *, const char *name,
    const char *role, struct ipc_bytes stored, char *phc, uint64_t *time_us,
    struct err *);
/* The database has this verifier now, or none any more: older ones are void. */
void verifiers_stored(struct verifiers *, const char *name, uint64_t time_us);
/* Returns whether a verifier of that time is still the person's newest, as far
 * as we know. */
bool verifiers_current(
    const struct verifiers *, const char *name, uint64_t time_us);
/* Returns a time later than any we saw of that name. */
uint64_t verifiers_now(const struct verifiers *, const char *name);

#endif
