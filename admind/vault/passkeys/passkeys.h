/*
 * The passkeys of one person, as they are stored in the database: one value,
 * sealed for the person's name (stored.h), with all that is needed to verify an
 * assertion. No I/O.
 *
 * One value a person, not one a passkey: so admind, which stores it, can
 * neither leave one passkey out nor bring back one that was removed, without
 * bringing back the whole older value. The value's time bounds that, as a
 * verifier's does (verifiers.h): the vault takes no value older than the newest
 * that it saw of the name, until it restarts.
 *
 * The handle is random and names the set. A password's verifier carries the
 * handle of its person's set, so admind can't hide the set: a verifier that has
 * a handle demands a passkey of the set with this handle, and no other set
 * counts (docs/decisions/0104).
 */
#ifndef PASSKEYS_H
#define PASSKEYS_H

#include "authdata.h"
#include "buf.h"
#include "keys.h"
#include "verifiers.h"

enum {
	/* Passkeys of a person: some devices, a key in a drawer. */
	PASSKEYS_MAX = 10,
	PASSKEYS_LABEL_MAX = 64, /* bytes of UTF-8: a name for a list */
	/* Bytes of a set before it is sealed: 10 ids of 1023 bytes, each with
	 * some 250 bytes beside it, and the set's own 60. */
	PASSKEYS_PLAIN_MAX = 16 * 1024,
	PASSKEYS_NAME_MAX = SESSIONS_USER_MAX
};

struct passkey {
	uint8_t id[AUTHDATA_ID_MAX];
	size_t nid;
	struct authkey key;
	uint32_t sign_count;
	bool backup_eligible;
	/* The role that this passkey conveys at most, or empty: the person's
	 * own. */
	char cap[SESSIONS_ROLE_MAX + 1];
	char label[PASSKEYS_LABEL_MAX + 1];
	uint64_t created_ms, used_ms; /* Unix time; used_ms 0: not yet */
};

struct passkeys {
	size_t n;
	struct passkey row[PASSKEYS_MAX];
	struct ipc_id handle; /* zero: without a set */
};

/* Seals a set for a person's name; *time_us receives the set's time, which is
 * later than any in `times` of that name. Replaces the content of out. 0 or -1.
 */
int passkeys_seal(const struct verifiers *times, const struct keys *,
    const char *name, const struct passkeys *, struct buf *out,
    uint64_t *time_us, struct err *);
/* Opens a set, and notes its time in `times`. -1 with FORBIDDEN if it was not
 * sealed here for this name, or is older than one that we saw. */
int passkeys_open(struct verifiers *times, const struct keys *,
    const char *name, struct ipc_bytes stored, struct passkeys *, struct err *);
/* Finds a passkey by its id; NULL if the set lacks it. */
struct passkey *passkeys_find(struct passkeys *, struct ipc_bytes id);
/* Adds a passkey and returns it, with the id and key that were registered, and
 * all else zero. NULL with err: the set is full, or has one of that id. */
struct passkey *passkeys_add(
    struct passkeys *, const struct authdata *, struct err *);
/* Removes a passkey of this set. */
void passkeys_drop(struct passkeys *, struct passkey *);
/* Returns whether this is an administrator's name, or a person's at an issuer:
 * ^[A-Za-z0-9_.-]{1,32}@[a-z0-9-]{1,32}$ */
bool passkeys_name_ok(struct ipc_bytes);
/* Returns the lesser of two roles. An empty one, or one that is unknown, does
 * not count; both returns "viewer". */
const char *passkeys_lesser(const char *role, const char *cap);

#endif
