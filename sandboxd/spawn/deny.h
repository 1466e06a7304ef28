/*
 * spawn's seccomp list. Unlike the lists of the other daemons, this list names
 * the calls that are denied. Children inherit the list, and they need many
 * calls: they build a sandbox (mount, pivot_root, clone with namespaces) and
 * then run Python. Each runner loads a closed list of its own for Python
 * (DESIGN.md).
 */
#ifndef DENY_H
#define DENY_H

#include "err.h"

/* Loads the list; needs no_new_privs. Other architectures' calls (x32, int
 * 0x80) kill the process. 0 or -1. */
int deny_load(struct err *);

#endif
