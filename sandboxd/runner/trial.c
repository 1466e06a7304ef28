/*
 * A runner that gets no call, before the zygote says that it is ready.
 *
 * Every step of the confinement is made once, by the same code, in a process
 * like any runner's. So what a kernel or a service manager does not allow is
 * known at start, named with step, path and errno, and the pool does not come
 * up; nobody's call is the first to find out.
 */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ipc_io.h"
#include "layer.h"
#include "log.h"
#include "runner.h"

enum {
	/* Some ms; a machine under load may need a hundred times that. */
	TRIAL_MS = 10 * 1000,
	/* No call gets id 1 (POOL_UID_FIRST in sandboxd/pool.h). */
	TRIAL_UID = 1,
	TRIAL_TMP = 1 << 20,
	TRIAL_INODES = 16
};

/* What the runner said: READY (0), or a step and why (-1). */
static int
listen_to(int sock, char *step, size_t nstep, char *why, size_t nwhy)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct ipc_frame frame;
	struct ipc_confine_failed m;
	int rc = -1;

	(void)snprintf(step, nstep, "namespaces");
	(void)snprintf(why, nwhy, "the runner ended or hung");
	if (poll(&p, 1, TRIAL_MS) != 1 || ipc_read(sock, &frame, NULL) != 1)
		return -1;
	if (frame.type == IPC_READY)
		rc = 0;
	else if (frame.type == IPC_CONFINE_FAILED &&
	    ipc_decode(&frame, &m, NULL) == 0) {
		(void)snprintf(
		    step, nstep, "%.*s", (int)m.step.n, (const char *)m.step.p);
		(void)snprintf(why, nwhy, "%.*s%s%s", (int)m.path.n,
		    (const char *)m.path.p, m.path.n > 0 ? ": " : "",
		    strerror((int)m.error));
	}
	ipc_frame_free(&frame);
	return rc;
}

/*
 * It is pool-init's child like every runner, and reaped there. Its uid must be
 * free again before a call may get it: hence the wait for its end.
 */
static int
wait_for(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, TRIAL_MS) == 1 ? 0 : -1;
}

int
trial_run(const struct zygote *z, struct buf *layers, struct err *err)
{
	struct ipc_fork fork = {
	    .uid = TRIAL_UID,
	    .kind = RUNNER_PYTHON,
	    .tmp_bytes = TRIAL_TMP,
	    .tmp_inodes = TRIAL_INODES,
	};
	char step[64], why[RUNNER_PATH_MAX + 128], name[80];
	int sv[2], pidfd = -1, rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return err_sys(err, FAILURE_INTERNAL, "socketpair");
	fork.channel = sv[1];
	pid = fork_runner(z, 0, &pidfd);
	if (pid == 0) {
		(void)close(sv[0]);
		child_main(z, &fork);
	}
	if (pid == -1) {
		(void)snprintf(step, sizeof(step), "namespaces");
		(void)snprintf(why, sizeof(why), "clone3: %s", strerror(errno));
	}
	(void)close(sv[1]);
	rc = pid == -1 ? -1
		       : listen_to(sv[0], step, sizeof(step), why, sizeof(why));
	(void)close(sv[0]); /* which ends it */
	if (pid != -1) {
		if (wait_for(pidfd) == -1 && rc == 0) {
			rc = -1;
			(void)snprintf(
			    why, sizeof(why), "the runner did not end");
		}
		(void)close(pidfd);
	}
	steps_layers(layers, z->landlock_abi, rc == 0 ? NULL : step, why);
	if (rc == 0)
		return 0;
	(void)snprintf(name, sizeof(name), "runner-%s", step);
	return err_set(err, FAILURE_SANDBOX_UNAVAILABLE,
	    "a trial runner failed at %s: %s. %s", step, why,
	    layer_fix(name, strlen(name)));
}
