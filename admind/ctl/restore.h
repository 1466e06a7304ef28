/* Shared by backup.c and restore.c. */
#ifndef RESTORE_H
#define RESTORE_H

#include "ctl.h"

/* Runs postgres_bin/program with args (NULL-terminated, 16 at most), standard
 * input and output from these descriptors (-1: ours), and waits. The child is
 * killed if we are. 0 if it ended well, else -1; stderr says why. */
int backup_run(const struct ctl *, const char *program, const char *const *args,
    int in, int out);

#endif
