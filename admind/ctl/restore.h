/*
 * What backup.c and restore.c share.
 */
#ifndef RESTORE_H
#define RESTORE_H

#include "ctl.h"

/* Runs postgres_bin/program with args (NULL-terminated, 16 at most), standard
 * input and output from these descriptors (-1: ours), and waits. 0 if it
 * ended well, else -1; it has said why on standard error. It is killed if we
 * are. */
int backup_run(const struct ctl *, const char *program, const char *const *args,
    int in, int out);

#endif
