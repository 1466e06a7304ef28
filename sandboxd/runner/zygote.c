/*
 * mcpbox-runner: the zygote.
 *
 * pool-init starts it inside the pool's user namespace with one socket, fd 3.
 * It warms an interpreter, builds the root that its runners share, reports
 * which layers hold, and from then on answers each FORK with a fork of
 * itself. It has one thread, opens no socket, never runs a tool's code, and
 * parses nothing but fixed-size frames from pool-init. It ends when pool-init
 * does.
 *
 *	mcpbox-runner [MODULE_STORE [COMMANDS]]
 *
 * Both from the configuration of mcpbox-sandboxd-spawn: where granted modules
 * are (modules.c), and which programs commands may run (toolbox.c).
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

#include "filter.h"
#include "ipc_io.h"
#include "log.h"
#include "runner.h"

/*
 * What a tool sees as its environment. The strings that exec put on the stack
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
	    setenv("TZ", "UTC", 1) == -1 || setenv("TMPDIR", "/tmp", 1) == -1)
		log_fatal("environment", "cannot set the environment");
}

/* pool-init may leave 0 to 2 closed; a descriptor opened later must not land
 * there and be taken for a standard stream. */
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

static void
layers(struct zygote *z)
{
	buf_init(&z->layers, 4096);
	buf_puts(&z->layers,
	    "runner-namespaces=enforced\nrunner-mounts=enforced\n"
	    "runner-capabilities=enforced\nrunner-rlimits=enforced\n"
	    "runner-seccomp=enforced\n");
	buf_putf(&z->layers, "runner-landlock=%s\n",
	    z->landlock_abi > 0 ? "enforced" : "missing");
	/* Below ABI 6 the namespaces alone keep abstract sockets and signals
	 * apart: enough, but one layer fewer. */
	buf_putf(&z->layers, "runner-landlock-scope=%s\n",
	    z->landlock_abi >= 6 ? "enforced" : "missing");
}

static void
start(struct zygote *z, const char *modules, const char *commands)
{
	struct ipc_pool_report report = {0};
	struct err err = {0};

	z->filter = filter_new(false, &err);
	z->command_filter = z->filter == NULL ? NULL : filter_new(true, &err);
	if (z->command_filter == NULL)
		goto fail;
	z->landlock_abi = fsrules_abi();
	if (limits_oom_zygote(&err) == -1 || fork_setup(z, &err) == -1 ||
	    python_start(z, &err) == -1 || 
	    template_build(z, modules, commands, &err) == -1 ||
	    reseed_none(&err) == -1 || snapshot_take(&err) == -1)
		goto fail;
	if (prefault_learn() == -1)
		log_event(LOG_LV_WARN, "prefault",
		    "the rehearsal failed: calls take longer");
	if (privileges_zygote(&err) == -1)
		goto fail;
	layers(z);
	report.interpreter = ipc_str(z->interpreter);
	report.layers = ipc_bytes(z->layers.p, z->layers.len);
	if (ipc_write(RUNNER_CHANNEL_FD, IPC_POOL_REPORT, 0, &report, &err) ==
	    -1)
		goto fail;
	return;
fail:
	log_fatal("zygote", "%s", err.text);
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

/* One frame of pool-init: another end than these is a broken pool's. */
static void
on_frame(const struct zygote *z, struct ipc_frame *frame)
{
	struct ipc_fork m;
	struct ipc_leaf leaf;
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
