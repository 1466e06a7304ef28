/*
 * One runner, and the zygote from which it is forked: the declarations that all
 * parts of this program share. root.h, interpreter.h, confinement.h and life.h
 * say what each part does. In each of them, a comment names the file that
 * implements the functions below it.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"

enum {
	/* Descriptors of a runner; 0 is /dev/null, 1 and 2 the output pipe. */
	RUNNER_CHANNEL_FD = 3, /* also the zygote's socket to pool-init */
	RUNNER_PIPE_FD = 4,    /* the output pipe's read end */
	RUNNER_EPOLL_FD = 5,   /* asyncio's loop: its epoll instance */
	RUNNER_WAKE_FD = 6,    /* socketpair that wakes the loop: 6 and 7 */
	RUNNER_FDS = 8,        /* number of descriptors of a runner */
	RUNNER_DOOR_FD = 8,    /* a network runner's socket to the process peek,
				* open until the listener of the seccomp filter
				* was sent by it (door.c) */
	/* Bytes of one piece of a result. The piece's header fits into the same
	 * frame. */
	RUNNER_PIECE_MAX = 48 * 1024,
	RUNNER_PATH_MAX = 512,
	RUNNER_LIBS_MAX = 256, /* shared objects of a standard library; Debian
				* 12 and 13 need about 30 */
};

/* The start directory of every tool, and the place of the template (template.c)
 * before pivot_root. */
#define RUNNER_BASE "/tmp"
/* TOOLBOX_BASE: the place of the root of commands before pivot_root.
 * RUNNER_MODULES: the place of granted modules in a root. */
#define TOOLBOX_BASE   "/mnt"
#define RUNNER_MODULES "/modules"

struct toolbox;

/* The zygote's preparations for its runners. Read-only after the first fork. */
struct zygote {
	struct filter *filter; /* compiled seccomp program for kind PYTHON */
	struct filter *command_filter; /* the same for kind COMMAND */
	/* The same two programs for runners that are granted hosts. Both are
	 * NULL if the kernel has no seccomp notifications. */
	struct filter *network_filter, *command_network_filter;
	struct toolbox *toolbox; /* toolbox.c */
	int store;               /* the module store, or -1 */
	int landlock_abi;        /* 0: the kernel has no Landlock */
	pid_t *tid_address;      /* where libc keeps the main thread's id */
	char stdlib[RUNNER_PATH_MAX]; /* /usr/lib/python3.11 */
	char interpreter[64]; /* magic number and version, for POOL_REPORT */
	struct buf layers;    /* name=state lines for POOL_REPORT */
};

/* A runner's data while the runner gets ready. The member fork has the runner's
 * profile. No call is known yet. */
struct runner {
	const struct zygote *zygote;
	const struct ipc_fork *fork;
};

#endif
