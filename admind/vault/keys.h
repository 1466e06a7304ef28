/*
 * The master key and what is derived from it.
 *
 * The master key is read once, used to derive one sub-key a purpose (HKDF,
 * crypto.h) and wiped: a later read of the vault's memory finds sub-keys, not
 * the key that makes all of them. Sub-keys live in pages that are locked (no
 * swap), left out of core dumps and not inherited by a fork.
 */
#ifndef KEYS_H
#define KEYS_H

#include "buf.h"
#include "crypto.h"
#include "err.h"

enum { KEYS_ID = 1 }; /* key id in stored forms; rotation will count up */

struct keys {
	uint8_t secrets[KEY_LEN];     /* encrypts server secrets at rest */
	uint8_t approvals[KEY_LEN];   /* MACs approval seals */
	uint8_t audit[KEY_LEN];       /* MACs heads of the audit chain */
	uint8_t mcp_session[KEY_LEN]; /* given to gateways; conveys nothing */
	uint8_t verifiers[KEY_LEN];   /* encrypts password verifiers */
};

/* n zeroed bytes of locked memory; *locked (may be NULL) says whether mlock(2)
 * held. NULL when memory is out. Never freed: its life is the process's. */
void *keys_memory(size_t n, bool *locked);

/*
 * Reads the master key: $CREDENTIALS_DIRECTORY/master.key if that file exists,
 * else `path`. Refused unless it is a regular file of exactly 32 bytes,
 * reached without a symbolic link in its last step, owned by this user and
 * mode 0400 (a credential may be root's and show its ACL mask as group read,
 * as systemd makes it). *locked as above. NULL with err.
 */
const struct keys *keys_load(const char *path, bool *locked, struct err *);

/* The derivation alone: wipes master. For keys_load and its test. */
void keys_derive(uint8_t master[KEY_LEN], struct keys *);

#endif
