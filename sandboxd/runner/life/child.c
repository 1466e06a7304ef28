/*
 * A runner's life: from the fork to its one result.
 *
 * The channel's other end is sandboxd's. Frames are taken in one order only,
 * EXECUTE, ARGUMENTS, SECRETS; anything else ends the process.
 * The process ends itself without any clean-up: there is nothing to save, and
 * exit handlers could be the tool's.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "confinement.h"
#include "interpreter.h"
#include "ipc_io.h"
#include "life.h"
#include "root.h"
#include "runner.h"
#include "steps_path.h"

/* Exit codes, seen in EXITED; a tool can imitate them. */
enum { END_OK = 0, END_CONFINE = 110, END_PROTOCOL = 111, END_SET_UP = 112 };

/* Longest wait of linger(). sandboxd ends us at once, or after 0.3 ms. */
enum { LINGER_MS = 20 };

/* Sets the descriptors: 0 is /dev/null, 1 and 2 the output pipe, 3 the channel.
 * All other descriptors that the zygote had open are closed, its socket to
 * pool-init, too. */
int
child_descriptors(int channel, int door)
{
	int null;

	/* Before this dup3, descriptor 3 is the zygote's socket to pool-init. A
	 * runner must not send anything there, so a failure here is not
	 * reported. */
	if (channel != RUNNER_CHANNEL_FD &&
	    dup3(channel, RUNNER_CHANNEL_FD, O_CLOEXEC) == -1)
		_exit(END_SET_UP);
	/* The door (door.c) is above 3, so the dup3 above did not replace it.
	 * The door and the channel are two sockets, so peek, which reads the
	 * door, can't read the channel. */
	if (door != -1 && door != RUNNER_DOOR_FD &&
	    dup3(door, RUNNER_DOOR_FD, O_CLOEXEC) == -1)
		return -1;
	if (syscall(SYS_close_range, RUNNER_CHANNEL_FD + 1,
		door != -1 ? RUNNER_DOOR_FD - 1 : ~0U, 0) == -1 ||
	    (door != -1 &&
		syscall(SYS_close_range, RUNNER_DOOR_FD + 1, ~0U, 0) == -1))
		return -1;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1)
		return -1;
	(void)close(null);
	return output_pipe();
}

/* Reports a failure outside the list of steps.c, and ends the runner. */
static _Noreturn void
fail(const char *step)
{
	struct ipc_confine_failed m = {0};

	m.error = (uint32_t)errno;
	m.step = ipc_str(step);
	m.path = ipc_str(steps_failed_path());
	(void)ipc_write(RUNNER_CHANNEL_FD, IPC_CONFINE_FAILED, 0, &m, NULL);
	_exit(END_SET_UP);
}

/* Reads one frame that must be of this type. The frame is never freed: data
 * that msg borrows lives as long as the process. */
static void
expect(enum ipc_type type, void *msg)
{
	static struct ipc_frame frames[4];
	static unsigned n;
	struct ipc_frame *f = &frames[n++];
	int rc;

	rc = ipc_read(RUNNER_CHANNEL_FD, f, NULL);
	if (rc == 0)
		_exit(END_OK); /* sandboxd does not need this runner any more */
	if (rc == -1 || f->type != type || ipc_decode(f, msg, NULL) == -1)
		_exit(END_PROTOCOL);
}

/* Tells whether ARGUMENTS has not come yet. */
static bool
waiting(void)
{
	struct pollfd p = {.fd = RUNNER_CHANNEL_FD, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

/*
 * Waits until sandboxd ends this process. The result is on its way to a client
 * that waits. It takes longer to take this process apart than to carry the
 * result to the client, and an exit that has begun can't be put off. So
 * sandboxd ends the process when the answer has left.
 */
static void
linger(void)
{
	(void)poll(NULL, 0, LINGER_MS);
}

/* Serves a call from its first frame to its one result (life.h). */
int
child_serve(const struct runner *r, enum runner_kind kind, bool rehearsing)
{
	struct ipc_execute execute;
	struct ipc_arguments arguments;
	struct ipc_secrets secrets;

	expect(IPC_EXECUTE, &execute);
	if (limits_call(&execute, kind == RUNNER_COMMAND) == -1)
		return -1;
	/* ARGUMENTS and SECRETS come only after the commit of the intent row.
	 * Until then there is time to prepare the code. */
	if (kind == RUNNER_PYTHON)
		python_prepare(&execute, rehearsing || waiting());
	expect(IPC_ARGUMENTS, &arguments);
	expect(IPC_SECRETS, &secrets);
	output_limit(execute.stdout_max);
	return kind == RUNNER_COMMAND
	    ? python_command(r, &execute, arguments.json)
	    : python_run(&execute, arguments.json, secrets.tlv);
}

void
child_main(const struct zygote *z, const struct ipc_fork *fork)
{
	struct runner r = {.zygote = z, .fork = fork};
	struct ipc_ready ready = {0};
	int guards, modules, door;

	guards = guards_renew() == -1 ? errno : 0;
	door = door_of(fork);
	(void)prctl(PR_SET_NAME, "mcpbox-tool", 0, 0, 0);
	/* Mounted before child_descriptors() closes the modules'
	 * descriptors. */
	modules = modules_mount(&r) == -1 ? errno : 0;
	if (child_descriptors(fork->channel, door) == -1)
		fail("descriptors");
	if (guards != 0) {
		errno = guards;
		fail("guards");
	}
	if (modules != 0) {
		errno = modules;
		fail("modules");
	}
	if (steps_run(&r) == -1)
		_exit(END_CONFINE);
	/* A command has pipes of its own (command.c), so no output goes to the
	 * output pipe. */
	if (fork->kind == RUNNER_PYTHON && output_start() == -1)
		fail("output");
	if (output_send(IPC_READY, &ready) == -1)
		_exit(END_PROTOCOL);

	/* Here a runner of the pool waits. */
	prefault_while_idle();
	if (child_serve(&r, (enum runner_kind)fork->kind, false) == -1)
		_exit(END_PROTOCOL);
	if (fork->kind == RUNNER_PYTHON)
		linger();
	_exit(END_OK);
}
