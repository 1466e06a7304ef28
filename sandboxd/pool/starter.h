/*
 * The process that starts zygotes, and peek.
 *
 * A zygote needs the capabilities of the pool's root; pool-init, which talks to
 * the broker, keeps CAP_KILL alone. So, before it gives up the others, it forks
 * this process, which has them and hears from pool-init alone: on a socketpair,
 * one byte (which of the two) and one descriptor for each, answered by its pid.
 * The programs and their arguments were fixed before. They are pool-init's
 * children (CLONE_PARENT).
 *
 * An attacker who takes over pool-init gains nothing by it beyond the zygote he
 * commands already: another process of the same program with the same rights.
 * It ends with pool-init, whose pid namespace it lives in.
 */
#ifndef STARTER_H
#define STARTER_H

#include <sys/types.h>

#include "cgroup.h"
#include "err.h"

/* Starts the starter. argv: pool-init's: program, libexec directory, module
 * store, commands. The first is overwritten in the new process, so that ps(1)
 * tells the two apart. Called once, while all capabilities are there. Returns
 * its pid, or -1. */
pid_t starter_start(const struct cgroup *, char *const argv[4], struct err *);
/*
 * Starts mcpbox-runner of the libexec directory with the other two arguments,
 * in the zygotes' cgroup if there is one, with one end of a socketpair on fd
 * 3, standard error and nothing else. *sock is ours (CLOEXEC), *pid its
 * process, a child of ours. 0 or -1.
 */
int starter_zygote(int *sock, pid_t *pid, struct err *);
/* Likewise mcpbox-peek, without arguments, in the starter's own cgroup. */
int starter_peek(int *sock, pid_t *pid, struct err *);

#endif
