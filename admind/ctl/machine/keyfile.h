/*
 * The files of the master key (decision 0058). They are beside key_file, each
 * key in one of two forms: NAME as 32 plain bytes, or NAME.cred as
 * systemd-creds sealed them to this machine. NAME is key_file's for the key,
 * key_file's.next for the one of a rotation under way, key_file's.ID for former
 * ones.
 *
 * All names are used in the one directory that was opened first, and no link is
 * followed. Each file appears whole, and is on the disk before any process
 * relies on it. Functions may be repeated after any kill.
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

/* Opens the directory of the key. dir is then -1 or open; keyfile_close takes
 * both. 0, or -1 with err. */
int keyfile_open(const char *key_file, struct keyfile *, struct err *);
void keyfile_close(struct keyfile *);

/* Finds a key and its form. sealed may be NULL. 1 if there is one, 0 if not, or
 * -1 with err. */
int keyfile_find(
    const struct keyfile *, enum keyfile_which, bool *sealed, struct err *);
/* Reads a key's bytes; wipe them. 1; 0: there is none; -1 with err. */
int keyfile_read(const struct keyfile *, enum keyfile_which,
    uint8_t key[KEY_LEN], struct err *);
/* Reads a key's id. Returns as keyfile_read does. */
int keyfile_which_id(const struct keyfile *, enum keyfile_which,
    uint8_t id[KEY_ID_LEN], struct err *);

/* Makes a new key beside the present one, in its form, with its owner. */
int keyfile_next(const struct keyfile *, struct err *);
/* Opens the next key for the vault (KEY_NEXT): the plain file, or a sealed
 * memfd of root's. fd, or -1 with err. */
int keyfile_next_fd(const struct keyfile *, struct err *);
/* Makes the next key the key. The older key is kept; its file's name is in
 * kept. */
int keyfile_change(
    const struct keyfile *, char kept[NAME_MAX + 1], struct err *);

/* Writes a plain copy of a key into a new file of ours, 0400; path "-": a line
 * of base64 on standard output. 1; 0: there is none; -1 with err. */
int keyfile_export(
    const struct keyfile *, enum keyfile_which, const char *path, struct err *);
/*
 * Makes the key in a file (plain, in base64, or sealed on this machine) the
 * key. If there is another key, that becomes the next one: values under the
 * imported key open, and a rotation ends with the other. 1: done; 0: it is the
 * key already; -1 with err.
 */
int keyfile_import(const struct keyfile *, const char *path, struct err *);

/* Reads the id of the master key stored at key_file in any of its forms (plain,
 * or encrypted beside it), and the form's path in *where (for people). Returns
 * 1 and fills both; 0 if there is no key; -1 with err. */
int keyfile_id(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);
/*
 * Makes a key of 32 random bytes if keyfile_id finds none: in the best form
 * that this machine has (systemd-creds with a host key or a TPM, else a plain
 * file of root's, 0400), so that mcpbox-admind-vault.service can be given it.
 * Never overwrites. SETUP_DONE or SETUP_ALREADY fill id and where.
 */
enum setup_outcome keyfile_make(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);

#endif
