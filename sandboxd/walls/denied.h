/*
 * The system calls that no confined program needs. spawn denies them to the
 * whole pool (spawn/deny.c), and mcpbox-run to its program
 * (local/inside/filter.c).
 */
#ifndef DENIED_H
#define DENIED_H

#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>

/* Flags of clone(2) for new namespaces. clone(2) has no CLONE_NEWTIME: that bit
 * is part of the exit signal. */
#define DENIED_NAMESPACES                                              \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
	    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* Adds EPERM for each of these calls: code loading, keys, file handles that
 * skip path checks, clocks, whole-machine switches. 0 or -1. */
int denied_add(scmp_filter_ctx);
/* Adds EPERM for the calls by which a process reads or changes another process
 * of its namespace: tracing and its like. 0 or -1. */
int denied_add_tracing(scmp_filter_ctx);

#endif
