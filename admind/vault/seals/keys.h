/*
 * The master key and its derived keys.
 *
 * The master key is read once, used to derive one sub-key for each purpose
 * (HKDF, crypto.h), and wiped. So a later read of the vault's memory finds
 * sub-keys, but not the key that makes all of them. Sub-keys live in pages that
 * are locked (no swap), left out of core dumps and not inherited by a fork.
 *
 * While a rotation is under way two master keys are valid: new values are made
 * with the new one, and stored values open with either (decision 0039).
 */
#ifndef KEYS_H
#define KEYS_H

#include "buf.h"
#include "crypto.h"
#include "err.h"

struct keys {
	/* the master key's id, as sealed values name it */
	uint8_t id[KEY_ID_LEN];
	uint8_t secrets[KEY_LEN];     /* encrypts server secrets at rest */
	uint8_t approvals[KEY_LEN];   /* MACs decisions of persons (macs.h) */
	uint8_t audit[KEY_LEN];       /* MACs heads of the audit chain */
	uint8_t mcp_session[KEY_LEN]; /* given to gateways; conveys no right */
	uint8_t verifiers[KEY_LEN];   /* encrypts password verifiers */
	/* The older valid key during a rotation, or NULL. Values are opened and
	 * checked with the keys of this chain, and made with its head. */
	struct keys *also;
};

/* Allocates n zeroed bytes of locked memory; *locked (may be NULL) says whether
 * mlock(2) succeeded. NULL without memory. The memory is never freed. */
void *keys_memory(size_t n, bool *locked);

/*
 * Reads the master key: $CREDENTIALS_DIRECTORY/master.key.cred, else
 * .../master.key, else `path` (systemd.exec(5); a credential of the four bytes
 * `none` counts as missing, decision 0058). The file must be a regular file of
 * exactly 32 bytes, owned by this user, with mode 0400, and its last path
 * component must be no symbolic link. (A credential may be root's and show its
 * ACL mask as group read, as systemd makes it.) Then reads the same name with
 * .next (master.key.next.cred for a credential), if it exists, by the same
 * rules: that key becomes the head, and the first key its `also`. *locked is
 * that of keys_memory; *credential says whether the key came from a credential.
 * NULL with err.
 */
struct keys *keys_load(
    const char *path, bool *locked, bool *credential, struct err *);

/*
 * Loads a key from the open file fd; the key is not yet in a chain. The rules
 * of keys_load apply, and the file must still be linked in a directory.
 * credential is the result of keys_load; if true, the file may be root's, or a
 * memfd with every seal. The caller still owns fd. NULL with err: mostly
 * INVALID_PARAMS.
 */
struct keys *keys_read(int fd, bool credential, struct err *);
/* Begins a rotation: k becomes the head, and the present head its `also`. If k
 * is the head already, nothing happens. Takes ownership of k in any case. 0; -1
 * with CONFLICT if two other keys are valid. */
int keys_push(struct keys **head, struct keys *k, struct err *);
/* Wipes a key and frees its place. NULL does nothing. */
void keys_drop(struct keys *);
/* Wipes the older key, after a rotation has ended. */
void keys_forget(struct keys *head);

/* Finds the key of that id in the chain, or NULL. */
const struct keys *keys_find(
    const struct keys *head, const uint8_t id[KEY_ID_LEN]);

/* Derives the sub-keys from master, and wipes master. For keys.c and its
 * test. */
void keys_derive(uint8_t master[KEY_LEN], struct keys *);

#endif
