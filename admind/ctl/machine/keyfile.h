/*
 * The files of the master key (decision 0058), in the directory of key_file.
 * Each key has one of two forms: NAME holds its 32 plain bytes, NAME.cred holds
 * them as systemd-creds sealed them to this machine. NAME is key_file's name
 * for the master key. NAME with .next is the new key of a rotation under way,
 * and NAME with .ID is a former key.
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

/* Opens the directory of the key. On failure dir is -1, which keyfile_close
 * accepts. 0, or -1 with err. */
int keyfile_open(const char *key_file, struct keyfile *, struct err *);
void keyfile_close(struct keyfile *);

/* Finds a key and its form. sealed may be NULL. 1 if there is one, 0 if not, or
 * -1 with err. */
int keyfile_find(
    const struct keyfile *, enum keyfile_which, bool *sealed, struct err *);
/* Reads a key's bytes; wipe them. 1; 0: there is no such key; -1 with err. */
int keyfile_read(const struct keyfile *, enum keyfile_which,
    uint8_t key[KEY_LEN], struct err *);
/* Computes a key's id. Returns as keyfile_read does. */
int keyfile_which_id(const struct keyfile *, enum keyfile_which,
    uint8_t id[KEY_ID_LEN], struct err *);

/* Makes the next key, in the form and with the owner of the present key's file.
 * 0, or -1 with err. */
int keyfile_next(const struct keyfile *, struct err *);
/* Opens the next key for the vault (KEY_NEXT): the plain file or, if the file
 * is sealed, a memfd of root's with the plain bytes. fd, or -1 with err. */
int keyfile_next_fd(const struct keyfile *, struct err *);
/* Puts the next key in the master key's place, and keeps the older key. kept
 * gets the name of the older key's file. 0, or -1 with err. */
int keyfile_change(
    const struct keyfile *, char kept[NAME_MAX + 1], struct err *);

/* Writes a plain copy of a key into a new file (mode 0400), or as a line of
 * base64 to standard output if path is "-". 1; 0: there is no such key; -1 with
 * err. */
int keyfile_export(
    const struct keyfile *, enum keyfile_which, const char *path, struct err *);
/*
 * Makes the key in a file (plain, in base64, or sealed on this machine) the
 * master key. If another key was the master key, it becomes the next key. So
 * values under the imported key open, and a rotation then makes the former key
 * the master key again. 1: done; 0: the key is the master key already; -1 with
 * err.
 */
int keyfile_import(const struct keyfile *, const char *path, struct err *);

/* Reads the id of the master key at key_file, in either form. where gets the
 * path of the key's file, to show to people. 1; 0 if there is no key; -1 with
 * err. */
int keyfile_id(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);
/*
 * Makes a master key of 32 random bytes if keyfile_id finds none. The key gets
 * the best form that this machine has: sealed by systemd-creds with a host key
 * or a TPM, else a plain file of root's, 0400. systemd can give either form to
 * mcpbox-admind-vault.service. No file is overwritten. SETUP_DONE or
 * SETUP_ALREADY fill id and where.
 */
enum setup_outcome keyfile_make(const char *key_file, uint8_t id[KEY_ID_LEN],
    char where[SETUP_PATH_MAX], struct err *);

#endif
