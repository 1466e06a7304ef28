/*
 * Trial runners: they get no call and run before the zygote says that it is
 * ready.
 *
 * Every step of the confinement is made once, by the same code, in a process
 * like any runner's. If the kernel or the service manager does not allow a
 * step, the pool does not start, and the error names the step, path and errno.
 * So no call is the first to meet the failure. A second trial runner has
 * network.
 */
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confinement.h"
#include "ipc_io.h"
#include "layer.h"
#include "life.h"
#include "log.h"
#include "runner.h"

enum {
	/* A trial takes some ms; under load it may take a hundred times
	 * that. */
	TRIAL_MS = 10 * 1000,
	/* No call gets uid 1 (POOL_UID_FIRST in sandboxd/runners/pool.h). */
	TRIAL_UID = 1,
	TRIAL_TMP = 1 << 20,
	TRIAL_INODES = 16
};

/* Takes the runner's report. 0: READY. -1: sets the step that failed and
 * why. */
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
 * Waits for the runner's end. The runner is a child of pool-init, like every
 * runner, and is reaped there. Its uid must be free before the next trial.
 */
static int
wait_for(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, TRIAL_MS) == 1 ? 0 : -1;
}

/* Makes one runner of this profile, from its fork to its end. 0, or -1 with the
 * step that failed and why. */
static int
try(const struct zygote *z, bool network, char *step, size_t nstep, char *why,
    size_t nwhy)
{
	struct ipc_fork fork = {
	    .uid = TRIAL_UID,
	    .kind = RUNNER_PYTHON,
	    .network = network,
	    .tmp_bytes = TRIAL_TMP,
	    .tmp_inodes = TRIAL_INODES,
	};
	int sv[2], pidfd = -1, rc;
	pid_t pid;

	(void)snprintf(step, nstep, "namespaces");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1) {
		(void)snprintf(why, nwhy, "socketpair: %s", strerror(errno));
		return -1;
	}
	fork.channel = sv[1];
	pid = fork_runner(z, 0, &pidfd);
	if (pid == 0) {
		(void)close(sv[0]);
		child_main(z, &fork);
	}
	if (pid == -1)
		(void)snprintf(why, nwhy, "clone3: %s", strerror(errno));
	(void)close(sv[1]);
	rc = pid == -1 ? -1 : listen_to(sv[0], step, nstep, why, nwhy);
	(void)close(sv[0]); /* ends the runner */
	if (pid != -1) {
		if (wait_for(pidfd) == -1 && rc == 0) {
			rc = -1;
			(void)snprintf(why, nwhy, "the runner did not end");
		}
		(void)close(pidfd);
	}
	return rc;
}

/* Tells whether the runner sent its listener to the door (door.c). */
static bool
handed_over(int door)
{
	struct pollfd p = {.fd = door, .events = POLLIN};
	struct ipc_frame frame;
	struct ipc_listener m;
	bool ok;

	if (poll(&p, 1, 0) != 1 || ipc_read(door, &frame, NULL) != 1)
		return false;
	ok = frame.type == IPC_LISTENER && ipc_decode(&frame, &m, NULL) == 0;
	if (ok)
		(void)close(m.listener);
	ipc_frame_free(&frame);
	return ok;
}

/*
 * Tries a runner with network. We hold the other end of its door (door.c). If
 * this fails, runners without network still work. The layer runner-network
 * names the failed step. Later forks with network fail at the same step.
 */
static void
trial_network(const struct zygote *z, struct buf *layers)
{
	char step[64], why[RUNNER_PATH_MAX + 128];
	int door[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door) == -1) {
		buf_putf(layers, "runner-network=missing socketpair: %s\n",
		    strerror(errno));
		return;
	}
	door_set(door[1]);
	if (try(z, true, step, sizeof(step), why, sizeof(why)) == -1)
		buf_putf(layers, "runner-network=missing %s: %s\n", step, why);
	else if (!handed_over(door[0]))
		buf_puts(layers,
		    "runner-network=missing no listener was handed over\n");
	else
		buf_puts(layers, "runner-network=enforced\n");
	door_set(-1);
	(void)close(door[0]);
}

int
trial_run(const struct zygote *z, struct buf *layers, struct err *err)
{
	char step[64], why[RUNNER_PATH_MAX + 128], name[80];
	const int rc = try(z, false, step, sizeof(step), why, sizeof(why));

	steps_layers(layers, z->landlock_abi, rc == 0 ? NULL : step, why);
	if (rc == 0) {
		trial_network(z, layers);
		return 0;
	}
	(void)snprintf(name, sizeof(name), "runner-%s", step);
	return err_set(err, FAILURE_SANDBOX_UNAVAILABLE,
	    "a trial runner failed at %s: %s. %s", step, why,
	    layer_fix(name, strlen(name)));
}
