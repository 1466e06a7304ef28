/*
 * One runner, and the zygote it is forked from: what all parts of this program
 * share. root.h, interpreter.h, confinement.h and life.h say what each part
 * does; each block of theirs names the file that implements it.
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
	RUNNER_WAKE_FD = 6,    /* and the socketpair that wakes it: 6 and 7 */
	RUNNER_FDS = 8,        /* that many, no more */
	RUNNER_DOOR_FD = 8,    /* and, until its listener is handed over, the
				* door of one with network (door.c) */
	/* Bytes of one piece of a result: a frame with room for its header. */
	RUNNER_PIECE_MAX = 48 * 1024,
	RUNNER_PATH_MAX = 512,
	RUNNER_LIBS_MAX = 256, /* shared objects of a standard library; Debian
				* 12 and 13 need about 30 */
};

/* The start directory of every tool, and the template's place before
 * pivot_root. */
#define RUNNER_BASE "/tmp"
/* The root of commands, likewise; the place of granted modules in a root. */
#define TOOLBOX_BASE   "/mnt"
#define RUNNER_MODULES "/modules"

struct toolbox;

/* The zygote's preparations for its runners. Read-only after the first fork. */
struct zygote {
	struct filter *filter; /* compiled seccomp programs: of kind PYTHON */
	struct filter *command_filter; /* and of kind COMMAND */
	/* For runners that are granted hosts; both NULL if the kernel has no
	 * notifications. */
	struct filter *network_filter, *command_network_filter;
	struct toolbox *toolbox; /* toolbox.c */
	int store;               /* the module store, or -1 */
	int landlock_abi;        /* 0: the kernel has none */
	pid_t *tid_address;      /* where libc keeps the main thread's id */
	char stdlib[RUNNER_PATH_MAX]; /* /usr/lib/python3.11 */
	char interpreter[64]; /* magic number and version, for POOL_REPORT */
	struct buf layers;    /* name=state lines for POOL_REPORT */
};

/* A runner's knowledge while it gets ready: its profile, nothing of a call. */
struct runner {
	const struct zygote *zygote;
	const struct ipc_fork *fork;
};

#endif
