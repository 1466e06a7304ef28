/*
 * The starter: the process that starts zygotes, and peek.
 *
 * A zygote needs the capabilities of the pool's root. pool-init, which talks to
 * sandboxd, keeps CAP_KILL only. So pool-init forks the starter before it gives
 * up the other capabilities. The starter keeps them, and takes requests from
 * pool-init only, on a socketpair: one byte, which names the program, and one
 * descriptor for the program. The answer is the new process' pid. The programs
 * and their arguments were fixed before. The processes are children of
 * pool-init (CLONE_PARENT).
 *
 * An attacker who takes over pool-init commands a zygote already. Through the
 * starter he gains only more processes of the same programs, with the same
 * rights. The starter ends with pool-init, in whose pid namespace it lives.
 */
#ifndef STARTER_H
#define STARTER_H

#include <sys/types.h>

#include "cgroup.h"
#include "err.h"

/* Starts the starter. argv: pool-init's arguments (program, libexec directory,
 * module store, commands). The new process overwrites argv[0], so that ps(1)
 * shows which of the two it is. Called once, while pool-init has all
 * capabilities. Returns the starter's pid, or -1. */
pid_t starter_start(const struct cgroup *, char *const argv[4], struct err *);
/*
 * Starts mcpbox-runner of the libexec directory, with module store and commands
 * as arguments, in the zygotes' cgroup if there is one. The zygote has
 * descriptors 0 to 2, one end of a socketpair as 3, and no other. *sock is the
 * other end (CLOEXEC, the caller's), *pid the process, a child of ours. 0 or
 * -1.
 */
int starter_zygote(int *sock, pid_t *pid, struct err *);
/* Does the same for mcpbox-peek, without arguments, in the starter's cgroup. */
int starter_peek(int *sock, pid_t *pid, struct err *);

#endif
