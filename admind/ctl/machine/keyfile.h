/*
 * How the master key rests (decision 0058): beside key_file, each key in one of
 * two forms, NAME as 32 plain bytes or NAME.cred as systemd-creds sealed them
 * to this machine. NAME is key_file's for the key, key_file's.next for the one
 * of a rotation under way, key_file's.ID for those that were.
 *
 * All names are taken in the one directory that was opened first, and none is
 * followed if it is a link. Each file appears whole, on the disk before
 * anybody relies on it; functions may be repeated after any kill.
 */
#ifndef KEYFILE_H
#define KEYFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto.h"
#include "err.h"
#include "setup_outcome.h"

/* The directory of the key, and the key's name in it. */
struct keyfile {
	int dir;
	char name[NAME_MAX + 1];
};

enum keyfile_which { KEYFILE_KEY, KEYFILE_NEXT };

/* dir is -1 or open; keyfile_close takes both. 0 or -1 with err. */
int keyfile_open(const char *key_file, struct keyfile *, struct err *);
void keyfile_close(struct keyfile *);

/* Is there one, and in which form? 1, 0, or -1 with err. sealed may be NULL. */
int keyfile_find(
    const struct keyfile *, enum keyfile_which, bool *sealed, struct err *);
/* Its bytes; wipe them. 1; 0: there is none; -1 with err. */
int keyfile_read(const struct keyfile *, enum keyfile_which,
    uint8_t key[KEY_LEN], struct err *);
/* Its id. As keyfile_read. */
int keyfile_which_id(const struct keyfile *, enum keyfile_which,
    uint8_t id[KEY_ID_LEN], struct err *);

/* A new key beside the one there is, in its form, with its owner. */
int keyfile_next(const struct keyfile *, struct err *);
/* The next key for the vault (KEY_NEXT): the open plain file, or a sealed memfd
 * of root's. fd, or -1 with err. */
int keyfile_next_fd(const struct keyfile *, struct err *);
/* The next key takes the key's place; that one is kept, and its name is in
 * kept. */
int keyfile_change(
    const struct keyfile *, char kept[NAME_MAX + 1], struct err *);

/* A plain copy of one into a new file of ours, 0400; path "-": a line of base64
 * on standard output. 1; 0: there is none; -1 with err. */
int keyfile_export(
    const struct keyfile *, enum keyfile_which, const char *path, struct err *);
/*
 * The key in a file, plain, in base64 or sealed on this machine, becomes the
 * key. If another one is there it becomes the next one: what rests under the
 * imported key opens, and a rotation ends with the other. 1: done, 0: it is the
 * key already, -1 with err.
 */
int keyfile_import(const struct keyfile *, const char *path, struct err *);

/*
 * The id of the master key that rests at key_file in any of its forms (plain,
 * or encrypted beside it), and which one in *where (a path, for people).
 * Returns 1 and fills both; 0 if there is no key; -1 with err.
 */
int keyfile_id(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);
/*
 * Makes a key of 32 random bytes if keyfile_id finds none: in the best form
 * that this machine has (systemd-creds with a host key or a TPM, else a plain
 * file of root's, 0400), and whatever mcpbox-admind-vault.service needs to be
 * given it. Never overwrites. SETUP_DONE or SETUP_ALREADY fill id and where.
 */
enum setup_outcome keyfile_make(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);

#endif
