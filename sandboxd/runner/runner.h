/*
 * One runner, and the zygote it is forked from: the declarations that the parts
 * of this program share. Each block names the file that implements it.
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
	/* and, until its listener is handed over, the door of one with network
	 * (door.c) */
	RUNNER_DOOR_FD = 8,
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

/*
 * Confines the runner: steps.c has the confinement as one list, in the only
 * order that works. On failure a CONFINE_FAILED frame was sent and -1 is
 * returned: the caller exits.
 */
int steps_run(struct runner *);
/* Notes the path a step works on, which is reported if it fails; errno says
 * why. */
void steps_path(const char *path);
const char *steps_failed_path(void);

/*
 * Appends a line for each layer: the namespaces, then each step as runner-NAME.
 * failed NULL: all hold, as far as this Landlock ABI goes; otherwise the step
 * that failed and why, and those after it are not reached.
 */
void steps_layers(
    struct buf *, int landlock_abi, const char *failed, const char *why);

/* Makes one runner that gets no call (trial.c), and appends which layers hold.
 * 0, or -1 with the step, its errno and the fix in err. */
int trial_run(const struct zygote *, struct buf *layers, struct err *);

/* Builds the root that all runners share (template.c), once, in the zygote.
 * modules: path of the module store, commands: the list for toolbox.c. */
int template_build(
    struct zygote *, const char *modules, const char *commands, struct err *);
/* Paths of the device nodes of a root; ends with NULL. */
extern const char *const template_devices[];
/* Builds the root's /etc, under RUNNER_BASE (etc.c). 0, or -1 with errno and
 * steps_path. */
int etc_build(void);
/* a step: lets names resolve if hosts are granted */
int etc_names(struct runner *);

/* Copies the host's certificate authorities into that /etc (certs.c). Returns
 * likewise. */
#define CERTS_DIR "/etc/ssl/certs"
int certs_build(void);

/* door.c: the way of a runner's listener to peek. */
void door_set(int fd); /* in the zygote; takes it */
/* Returns the door, or -1, closed, for a runner without network. In the child,
 * first of all. */
int door_of(const struct ipc_fork *);
/* Loads the network filter and hands its listener over. 0 or -1. */
int door_filter(struct runner *);

/* toolbox.c: the root of commands. A file that may be executed there: one of
 * the configured programs, or a dynamic loader. */
struct toolbox_file {
	char *path;
	uint8_t digest[32]; /* SHA-256 of its bytes in the toolbox */
	bool loader;
};
/* Builds the toolbox at TOOLBOX_BASE, in the zygote's mount namespace.
 * commands: paths on the host, separated by commas or blanks. */
int toolbox_build(struct zygote *, const char *commands, struct err *);
/* Finds a program by name; NULL if it is not on the list. */
const struct toolbox_file *toolbox_find(
    const struct zygote *, struct ipc_bytes name);
/* Returns the i-th file; NULL after the last. */
const struct toolbox_file *toolbox_file(const struct zygote *, size_t i);
int toolbox_mounts(struct runner *); /* a step */

/* modules.c: granted modules. */
/* In the zygote: open the store (before its own mounts cover it), and make the
 * places in the root. */
void modules_store(struct zygote *, const char *path);
int modules_places(void);
/* Open and close the modules around each fork; modules_mount is the step
 * between them in the child. */
void modules_open(const struct zygote *, const struct ipc_fork *);
void modules_close(const struct ipc_fork *);
int modules_mount(struct runner *);
size_t modules_count(const struct ipc_fork *);

/* mounts.c: steps. 0, or -1 with errno. */
/* Returns the place of this kind's root before pivot_root. */
const char *mounts_base(const struct runner *);
int mounts_proc(struct runner *);
int mounts_tmp(struct runner *);
int mounts_pivot(struct runner *);
int mounts_hostname(struct runner *);
int mounts_cwd(struct runner *);
/* Adds flags by mount_setattr(2): never drops a flag that the host's
 * administrator locked. recursive: the whole tree at path. */
int mounts_restrict(const char *path, uint64_t attrs, bool recursive);

/* limits.c: resource limits. */
int limits_fixed(struct runner *); /* those that no call changes */
/* Sets the limits of one call. They are lowered only, so this needs no right
 * and works after all other steps. 0, or -1 with errno. */
int limits_call(const struct ipc_execute *, bool command);
/* The order in which the kernel kills when memory runs out: runners, then the
 * zygote, whose end is the pool's, long before any daemon. */
enum { LIMITS_OOM_RUNNER = 1000, LIMITS_OOM_ZYGOTE = 900 };
int limits_oom(struct runner *);
int limits_oom_zygote(struct err *);

/* privileges.c: ids and capabilities. */
int privileges_bounding(struct runner *);
int privileges_securebits(struct runner *);
int privileges_ids(struct runner *);
int privileges_drop(struct runner *);
int privileges_dumpable(struct runner *);
int privileges_no_new(struct runner *);
/* Leaves the zygote only the capabilities that the steps above need. */
int privileges_zygote(struct err *);

/* fsrules.c: Landlock. */
int fsrules_abi(void); /* 0: not in this kernel */
int fsrules_apply(struct runner *);

/* reseed.c: user-space random generators. */
/* Takes OpenSSL's generators down in the zygote, so that each child that draws
 * makes its own. 0 or -1. */
int reseed_none(struct err *);

/* Gives a runner guards of its own for stack and pointers (guards.c). Called by
 * a function that never returns. 0, or -1 with errno. */
int guards_renew(void);

/* Makes the zygote's memory cheap to fork (snapshot.c). Called last: memory
 * written after it is copied at each fork. */
int snapshot_take(struct err *);

/* prefault.c: finds the pages that each call writes by trying, and readies them
 * before the call comes. Learning fails without harm; -1 says so. */
int prefault_prepare(struct err *); /* before the snapshot: it runs Python */
int prefault_learn(void);
/* Readies the pages in a runner that said READY. Returns when the call comes or
 * all is done, at once if the call has come. */
void prefault_while_idle(void);

/* output.c: the tool's output. */
int output_pipe(void);  /* fds 1, 2 and RUNNER_PIPE_FD */
int output_start(void); /* the thread that reads the pipe */
/* Sets the bytes to send at most; before any output. */
void output_limit(size_t max);
/* Sends all bytes written so far before it returns. For the runner's process
 * alone, not for one that the tool forked. */
void output_flush(void);
/* Sends all bytes written so far before it returns, and none after. The
 * captured text stays valid until the process ends. */
void output_stop(const char **text, size_t *n, bool *truncated);
/* Sends a frame; blocks. Two threads write the channel, and a full socket must
 * not tear frames apart, so both use this. 0 or -1. */
int output_send(enum ipc_type, const void *msg);

/* python.c: the interpreter. */
int python_start(struct zygote *, struct err *);
/* Renews the interpreter's parts that each child needs: descriptors of its
 * event loop, a seed. A step. */
int python_child(struct runner *);
/* Restores malloc as tools know it, after the snapshot. 0 or -1. */
int python_settled(struct err *);
/* Unpacks the compiled form of the code that python_run will run; executes
 * nothing of it. time: the rest of the call is not there yet. */
void python_prepare(const struct ipc_execute *, bool time);
/* Runs or inspects one tool; sends everything, RUN_RESULT included. */
int python_run(const struct ipc_execute *, struct ipc_bytes arguments,
    struct ipc_bytes secrets);
/* Does the same for a command. */
int python_command(const struct runner *, const struct ipc_execute *,
    struct ipc_bytes arguments);

/* Makes source and compiled form of a main that returns its argument, as
 * EXECUTE has them (pyfork.c, before the snapshot). 0 or -1. */
int pyfork_rehearsal(
    bool is_async, struct buf *code, uint32_t *source_len, struct err *);

/* child.c: a runner's life, from the fork to its end. */
/* Sets the descriptors: the channel as 3, the output pipe, the door (or -1) as
 * RUNNER_DOOR_FD, no others. 0 or -1. */
int child_descriptors(int channel, int door);
/* Serves a call, from EXECUTE to RUN_RESULT. 0 or -1. rehearsing: all its
 * frames are there, but the work during the wait for them is done all the
 * same. */
int child_serve(const struct runner *, enum runner_kind, bool rehearsing);
_Noreturn void child_main(const struct zygote *, const struct ipc_fork *);

/* fork.c: clone3(2) with all namespaces but the user namespace, as a sibling of
 * the zygote, in the slot's cgroup if there are any. 0 in the child, the pid in
 * the zygote with *pidfd set, or -1 with errno. */
int fork_setup(struct zygote *, struct err *);
pid_t fork_runner(const struct zygote *, uint32_t slot, int *pidfd);
/* Sets the cgroup of a slot from now on; takes the descriptor. 0 or -1. */
int fork_leaf(uint32_t slot, int directory);
int fork_cgroup(struct runner *); /* a step: its own cgroup namespace */

#endif
