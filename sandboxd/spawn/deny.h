/*
 * spawn's seccomp list. Unlike the other daemons' it names the denied calls: a
 * filter is inherited by every child, and here the children build a sandbox
 * (mount, pivot_root, clone with namespaces) and then run Python, whose own,
 * closed list the runner loads itself (DESIGN.md).
 */
#ifndef DENY_H
#define DENY_H

#include "err.h"

/* Loads the list; needs no_new_privs. Other architectures' calls (x32, int
 * 0x80) kill the process. 0 or -1. */
int deny_load(struct err *);

#endif
