/*
 * Commands for the database as a whole and for the master key: backup, restore,
 * key.
 */
#ifndef RESTORE_H
#define RESTORE_H

#include "crypto.h"
#include "ctl.h"

/*
 * backup.c: runs postgres_bin/program with args (NULL-terminated,
 * CHILD_ARGS_MAX at most) and waits. in and out become the program's standard
 * input and output (-1: ours). If this process is killed, so is the program. 0
 * if the program ended well, else -1; standard error then says why.
 */
int backup_run(const struct ctl *, const char *program, const char *const *args,
    int in, int out);

/* keys.c: reads the ids, in hexadecimal, of the keys that a vault would read if
 * it started now. key gets the id of the master key, next the id of the key to
 * which a rotation changes ("": there is none). 0, or -1 with err. */
int keys_on_disk(const char *key_file, char key[2 * KEY_ID_LEN + 1],
    char next[2 * KEY_ID_LEN + 1], struct err *);

enum ctl_status backup_command(const struct ctl *);
enum ctl_status restore_command(const struct ctl *);
enum ctl_status keys_command(const struct ctl *);

#endif
