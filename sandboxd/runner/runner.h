/*
 * One runner, and the zygote it is forked from. What the parts of this
 * program share; each block names the file that implements it.
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

/* Where every tool starts, and the template's place before pivot_root. */
#define RUNNER_BASE "/tmp"
/* The root of commands, likewise; where granted modules are in a root. */
#define TOOLBOX_BASE   "/mnt"
#define RUNNER_MODULES "/modules"

struct toolbox;

/* What the zygote prepared for its runners. Read-only after the first fork. */
struct zygote {
	struct filter *filter; /* compiled seccomp programs: of kind PYTHON */
	struct filter *command_filter; /* and of kind COMMAND */
	/* Where hosts are granted; both NULL where the kernel has no
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

/* What a runner knows while it gets ready: its profile, nothing of a call. */
struct runner {
	const struct zygote *zygote;
	const struct ipc_fork *fork;
};

/*
 * steps.c: the confinement as one list, in the only order that works. On
 * failure a CONFINE_FAILED frame was sent and -1 is returned: the caller
 * exits.
 */
int steps_run(struct runner *);
/* A step reports the path it worked on when it fails; errno says why. */
void steps_path(const char *path);
const char *steps_failed_path(void);

/*
 * Appends a line for each layer: the namespaces, then each step as
 * runner-NAME. failed NULL: all hold, as far as this Landlock ABI goes; else
 * the step that failed and why, those behind it not reached.
 */
void steps_layers(
    struct buf *, int landlock_abi, const char *failed, const char *why);

/* trial.c: makes one runner that gets no call, and appends which layers hold.
 * 0, or -1 with the step, its errno and the fix in err. */
int trial_run(const struct zygote *, struct buf *layers, struct err *);

/* template.c: the root that all runners share, built once by the zygote.
 * modules: path of the module store, commands: what toolbox.c takes. */
int template_build(
    struct zygote *, const char *modules, const char *commands, struct err *);
/* Paths of the device nodes that a root has; ends with NULL. */
extern const char *const template_devices[];
/* etc.c: its /etc, under RUNNER_BASE. 0, or -1 with errno and steps_path. */
int etc_build(void);
int etc_names(struct runner *); /* a step: names resolve, where hosts are
				 * granted */

/* certs.c: the host's certificate authorities, in that /etc. Likewise. */
#define CERTS_DIR "/etc/ssl/certs"
int certs_build(void);

/* door.c: how a runner's listener gets to peek. */
void door_set(int fd); /* in the zygote; takes it */
/* In the child, first of all: the door, or -1, closed, for one without. */
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
/* At TOOLBOX_BASE, in the zygote's mount namespace. commands: paths on the
 * host, separated by commas or blanks. */
int toolbox_build(struct zygote *, const char *commands, struct err *);
/* A program by name; NULL if it is not on the list. */
const struct toolbox_file *toolbox_find(
    const struct zygote *, struct ipc_bytes name);
/* The i-th file; NULL behind the last. */
const struct toolbox_file *toolbox_file(const struct zygote *, size_t i);
int toolbox_mounts(struct runner *); /* a step */

/* modules.c: granted modules. */
/* In the zygote: opens the store (before its own mounts cover it), makes the
 * places in the root. */
void modules_store(struct zygote *, const char *path);
int modules_places(void);
/* Around each fork, and the step between them in the child. */
void modules_open(const struct zygote *, const struct ipc_fork *);
void modules_close(const struct ipc_fork *);
int modules_mount(struct runner *);
size_t modules_count(const struct ipc_fork *);

/* mounts.c: steps. 0, or -1 with errno. */
/* Where the root of this runner's kind is before pivot_root. */
const char *mounts_base(const struct runner *);
int mounts_proc(struct runner *);
int mounts_tmp(struct runner *);
int mounts_pivot(struct runner *);
int mounts_hostname(struct runner *);
int mounts_cwd(struct runner *);
/* mount_setattr(2) with flags to add: never drops a flag that the host's
 * administrator locked. recursive: the whole tree at path. */
int mounts_restrict(const char *path, uint64_t attrs, bool recursive);

/* limits.c: resource limits. */
int limits_fixed(struct runner *); /* those that no call changes */
/* Those of one call. They are lowered only, so this needs no right and works
 * behind all other steps. 0, or -1 with errno. */
int limits_call(const struct ipc_execute *, bool command);
/* Who the kernel kills first when memory runs out: runners, then the zygote,
 * whose end is the pool's, long before any daemon. */
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
/* The zygote keeps only the capabilities that the steps above need. */
int privileges_zygote(struct err *);

/* fsrules.c: Landlock. */
int fsrules_abi(void); /* 0: not in this kernel */
int fsrules_apply(struct runner *);

/* reseed.c: user-space random generators. */
/* In the zygote: takes OpenSSL's generators down, so that each child that
 * draws makes its own. 0 or -1. */
int reseed_none(struct err *);

/* guards.c: in a runner, by a function that never returns: guards of its own
 * for stack and pointers. 0, or -1 with errno. */
int guards_renew(void);

/* snapshot.c: makes the zygote's memory cheap to fork. Last of all: what is
 * written after it is copied at each fork. */
int snapshot_take(struct err *);

/* prefault.c: which pages each call writes, found out by trying, and had ready
 * before the call is there. Learning fails without harm; -1 says so. */
int prefault_prepare(struct err *); /* before the snapshot: it runs Python */
int prefault_learn(void);
/* In a runner that said READY: returns when the call is there or all is done,
 * at once if the call came at once. */
void prefault_while_idle(void);

/* output.c: what the tool prints. */
int output_pipe(void);  /* fds 1, 2 and RUNNER_PIPE_FD */
int output_start(void); /* the thread that reads the pipe */
/* Bytes to send at most; before the first one is printed. */
void output_limit(size_t max);
/* All bytes written so far are sent when it returns. Of the runner's process
 * alone, not of one that the tool forked. */
void output_flush(void);
/* All bytes written so far are sent when it returns, and none after. The
 * captured text stays valid until the process ends. */
void output_stop(const char **text, size_t *n, bool *truncated);
/* The channel is written by two threads; frames must not be torn apart by a
 * full socket, so both come through here. Blocks. 0 or -1. */
int output_send(enum ipc_type, const void *msg);

/* python.c: the interpreter. */
int python_start(struct zygote *, struct err *);
/* What the interpreter needs anew in each child: descriptors of its event
 * loop, a seed. A step. */
int python_child(struct runner *);
/* After the snapshot: malloc as tools know it again. 0 or -1. */
int python_settled(struct err *);
/* Unpacks what was compiled of the code that python_run will run; executes
 * nothing of it. time: the rest of the call is not there yet. */
void python_prepare(const struct ipc_execute *, bool time);
/* Runs or inspects one tool; sends everything, RUN_RESULT included. */
int python_run(const struct ipc_execute *, struct ipc_bytes arguments,
    struct ipc_bytes secrets);
/* The same for a command. */
int python_command(const struct runner *, const struct ipc_execute *,
    struct ipc_bytes arguments);

/* pyfork.c, before the snapshot: source and compiled form of a main that
 * returns its argument, as EXECUTE has them. 0 or -1. */
int pyfork_rehearsal(
    bool is_async, struct buf *code, uint32_t *source_len, struct err *);

/* child.c: a runner's life, from the fork to its end. */
/* The channel as descriptor 3, the output pipe, the door (or -1) as
 * RUNNER_DOOR_FD, nothing else. 0 or -1. */
int child_descriptors(int channel, int door);
/* A call, from EXECUTE to RUN_RESULT. 0 or -1. rehearsing: all its frames are
 * there; what is done while they are awaited is done all the same. */
int child_serve(const struct runner *, enum runner_kind, bool rehearsing);
_Noreturn void child_main(const struct zygote *, const struct ipc_fork *);

/* fork.c: clone3(2) with all namespaces but the user namespace, as a sibling
 * of the zygote, in the slot's cgroup if there are any. 0 in the child, the
 * pid in the zygote with *pidfd set, or -1 with errno. */
int fork_setup(struct zygote *, struct err *);
pid_t fork_runner(const struct zygote *, uint32_t slot, int *pidfd);
/* The cgroup of a slot from now on; takes the descriptor. 0 or -1. */
int fork_leaf(uint32_t slot, int directory);
int fork_cgroup(struct runner *); /* a step: its own cgroup namespace */

#endif
