/*
 * mcpbox-runner: the zygote.
 *
 * pool-init starts it inside the pool's user namespace with one socket, fd 3.
 * It warms an interpreter, builds the root that its runners share, reports
 * which layers hold, and from then on answers each FORK with a fork of itself.
 * It has one thread, opens no socket, never runs a tool's code, and parses
 * nothing but fixed-size frames from pool-init. It ends when pool-init does.
 *
 *	mcpbox-runner [MODULE_STORE [COMMANDS]]
 *
 * Both arguments come from the configuration of mcpbox-sandboxd-spawn: the
 * place of granted modules (modules.c), and the list of programs that commands
 * may run (toolbox.c).
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confinement.h"
#include "filter.h"
#include "interpreter.h"
#include "ipc_io.h"
#include "layer.h"
#include "life.h"
#include "log.h"
#include "root.h"
#include "runner.h"

/*
 * Sets the environment that a tool sees. The strings that exec put on the stack
 * are wiped first: a runner inherits this memory and may read all of it.
 */
static void
environment(void)
{
	char **e;

	for (e = environ; e != NULL && *e != NULL; e++)
		explicit_bzero(*e, strlen(*e));
	if (clearenv() != 0 || setenv("HOME", "/tmp", 1) == -1 ||
	    setenv("PATH", "/usr/bin:/bin", 1) == -1 ||
	    setenv("LANG", "C.UTF-8", 1) == -1 ||
	    setenv("TZ", "UTC", 1) == -1 || setenv("TMPDIR", "/tmp", 1) == -1 ||
	    setenv("SSL_CERT_DIR", CERTS_DIR, 1) == -1)
		log_fatal("environment", "cannot set the environment");
}

/* Fills descriptors 0 to 2, which pool-init may leave closed: a descriptor
 * opened later must not land there and be taken for a standard stream. */
static void
standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd == -1)
			log_fatal("zygote", "cannot open /dev/null");
	} while (fd <= STDERR_FILENO);
	(void)close(fd);
}

/* Reports the layers. An empty `interpreter` says that this zygote can fork no
 * runner. */
static int
report(const struct zygote *z, const char *interpreter, struct err *err)
{
	struct ipc_pool_report m = {0};

	m.interpreter = ipc_str(interpreter);
	m.layers = ipc_bytes(z->layers.p, z->layers.len);
	return ipc_write(RUNNER_CHANNEL_FD, IPC_POOL_REPORT, 0, &m, err);
}

static void
start(struct zygote *z, const char *modules, const char *commands)
{
	const char *layer = "runner-seccomp";
	struct err err = {0};

	buf_init(&z->layers, 4096);
	z->filter = filter_new(0, &err);
	z->command_filter =
	    z->filter == NULL ? NULL : filter_new(FILTER_COMMAND, &err);
	if (z->command_filter == NULL)
		goto fail;
	/* Without these filters there are runners, but none with network:
	 * trial_run says so. */
	z->network_filter = filter_new(FILTER_NETWORK, NULL);
	z->command_network_filter =
	    filter_new(FILTER_COMMAND | FILTER_NETWORK, NULL);
	z->landlock_abi = fsrules_abi();
	layer = "runner-oom_score";
	if (limits_oom_zygote(&err) == -1)
		goto fail;
	layer = "zygote";
	if (fork_setup(z, &err) == -1 || python_start(z, &err) == -1)
		goto fail;
	layer = "runner-mounts";
	if (template_build(z, modules, commands, &err) == -1)
		goto fail;
	layer = "zygote";
	if (reseed_none(&err) == -1 || prefault_prepare(&err) == -1 ||
	    snapshot_take(&err) == -1 || python_settled(&err) == -1)
		goto fail;
	if (prefault_learn() == -1)
		log_event(LOG_LV_WARN, "prefault",
		    "the rehearsal failed: calls take longer");
	layer = "runner-capabilities";
	if (privileges_zygote(&err) == -1)
		goto fail;
	/* On failure trial_run() itself writes the layer's line, and the fix
	 * into err. */
	layer = NULL;
	if (trial_run(z, &z->layers, &err) == -1 ||
	    report(z, z->interpreter, &err) == -1)
		goto fail;
	return;
fail:
	if (layer != NULL)
		buf_putf(&z->layers, "%s=missing %s\n", layer, err.text);
	(void)report(z, "", NULL);
	log_fatal("zygote", "%s. %s", err.text,
	    layer != NULL ? layer_fix(layer, strlen(layer)) : "");
}

static void
fork_one(const struct zygote *z, const struct ipc_fork *m)
{
	struct ipc_forked forked = {0};
	struct ipc_fork_failed failed = {0};
	struct err err = {0};
	int pidfd = -1;
	pid_t pid;

	modules_open(z, m);
	pid = fork_runner(z, m->slot, &pidfd);
	if (pid == 0)
		child_main(z, m);
	failed.error = (uint32_t)errno;
	modules_close(m);
	if (pid == -1) {
		failed.slot = m->slot;
		failed.generation = m->generation;
		failed.step = ipc_str("clone3");
		if (ipc_write(RUNNER_CHANNEL_FD, IPC_FORK_FAILED, 0, &failed,
			&err) == -1)
			log_fatal("zygote", "%s", err.text);
		return;
	}
	forked.slot = m->slot;
	forked.generation = m->generation;
	forked.pidfd = pidfd;
	if (ipc_write(RUNNER_CHANNEL_FD, IPC_FORKED, 0, &forked, &err) == -1)
		log_fatal("zygote", "%s", err.text);
	(void)close(pidfd);
}

/* Takes one frame of pool-init. A frame of another type means a broken pool. */
static void
on_frame(const struct zygote *z, struct ipc_frame *frame)
{
	struct ipc_fork m;
	struct ipc_leaf leaf;
	struct ipc_peek_door door;
	struct err err = {0};

	switch (frame->type) {
	case IPC_FORK:
		if (ipc_decode(frame, &m, &err) == -1)
			break;
		fork_one(z, &m);
		(void)close(m.channel);
		return;
	case IPC_LEAF:
		if (ipc_decode(frame, &leaf, &err) == -1 ||
		    fork_leaf(leaf.slot, leaf.directory) == -1)
			break;
		return;
	case IPC_PEEK_DOOR:
		if (ipc_decode(frame, &door, &err) == -1)
			break;
		door_set(door.door);
		return;
	default:
		break;
	}
	log_fatal("zygote", "unexpected %s", ipc_name(frame->type));
}

int
main(int argc, char **argv)
{
	struct zygote z = {0};
	struct ipc_frame frame;
	struct err err = {0};
	int rc;

	log_init("runner", LOG_TEXT, LOG_LV_INFO);
	(void)prctl(PR_SET_NAME, "mcpbox-zygote", 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	if (fcntl(RUNNER_CHANNEL_FD, F_SETFD, FD_CLOEXEC) == -1)
		log_fatal("zygote", "fd 3 is not a socket to pool-init");
	standard_fds();
	environment();
	start(&z, argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
	for (;;) {
		rc = ipc_read(RUNNER_CHANNEL_FD, &frame, &err);
		if (rc == 0)
			return 0;
		if (rc == -1)
			log_fatal("zygote", "%s", err.text);
		on_frame(&z, &frame);
		ipc_frame_free(&frame);
	}
}
