/*
 * Values that are stored in the database, and that only the vault can read or
 * make: {u8 format 2, 8-byte key id, 12-byte random nonce, ciphertext, 16-byte
 * tag}, AES-256-GCM, AAD = table NUL row NUL column. Values made before
 * rotation existed are {u8 format 1, u8 1, nonce, ...}; they name no key, so
 * every valid key is tried.
 *
 * The AAD binds a value to its place. admind holds the rows and could move a
 * value to another row, but the value would not open there. admind can put back
 * an older value of the same place; docs/THREATS.md says so.
 *
 * Nonces are random. With up to 2^32 values under one key the chance of a
 * repeated nonce is below 2^-32 (NIST SP 800-38D section 8.3). A home has some
 * hundreds of values.
 */
#ifndef STORED_H
#define STORED_H

#include "buf.h"
#include "crypto.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

enum { STORED_OVERHEAD = 1 + KEY_ID_LEN + GCM_NONCE_LEN + GCM_TAG_LEN };

/* The kinds of values; each has a sub-key of its own. */
enum stored_table {
	STORED_SECRETS,   /* row: server's name, column: secret's name */
	STORED_VERIFIERS, /* row: administrator, column: role */
	STORED_PASSKEYS   /* row: person, column: "passkeys" */
};

/* Neither name may hold a NUL (IPC strings cannot). */
struct stored_place {
	enum stored_table table;
	struct ipc_bytes row, column;
};

/* Seals a value with the newest key. Replaces the content of out (initialised).
 * 0 or -1. */
int stored_seal(const struct keys *, const struct stored_place *,
    const void *plain, size_t n, struct buf *out, struct err *);
/* Opens a value with any valid key. Replaces the content of out. 0; -1 with
 * FAILURE_FORBIDDEN if the value was not sealed here for this place. */
int stored_open(const struct keys *, const struct stored_place *,
    const uint8_t *stored, size_t n, struct buf *out, struct err *);

#endif
