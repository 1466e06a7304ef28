/*
 * The database as a whole, and the master key.
 */
#ifndef RESTORE_H
#define RESTORE_H

#include "crypto.h"
#include "ctl.h"

/* backup.c: runs postgres_bin/program with args (NULL-terminated, 16 at most),
 * standard input and output from these descriptors (-1: ours), and waits. 0 if
 * it ended well, else -1; it has said why on standard error. It is killed if we
 * are. */
int backup_run(const struct ctl *, const char *program, const char *const *args,
    int in, int out);

/* keys.c: reads the ids, in hexadecimal, of the keys that a vault which starts
 * now reads: the key's and the next one's ("": there is none). 0, or -1 with
 * err. */
int keys_on_disk(const char *key_file, char key[2 * KEY_ID_LEN + 1],
    char next[2 * KEY_ID_LEN + 1], struct err *);

enum ctl_status backup_command(const struct ctl *);
enum ctl_status restore_command(const struct ctl *);
enum ctl_status keys_command(const struct ctl *);

#endif
