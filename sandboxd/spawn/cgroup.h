/*
 * Which cgroup v2 this process was given, and whether it may divide it.
 * Version 1 hierarchies are never used.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "buf.h"

/*
 * Appends one line "cgroup=degraded WHY" to layers: what carries memory,
 * processes and CPU instead, and what is missing. Reads /proc/self/cgroup and
 * the cgroup's own files; changes nothing.
 */
void cgroup_probe(struct buf *layers);

#endif
