/*
 * A command's process, seen from pid 1 of its namespace.
 *
 * pid 1 stays the platform's own code: it forks the program, feeds it, reads
 * both of its streams and reports what happened. So a command, unlike a tool in
 * Python, can't forge its own result. The channel is closed in the command's
 * process. pid 1 is another process, is not dumpable and has no handler for any
 * signal. The filter of both processes allows no ptrace and no process_vm_*.
 * Apart from that the two processes are equal: they have the same uid, root,
 * limits, Landlock domain and filter, all set before anything of the call was
 * known (steps.c).
 *
 * There is no shell: argv goes to execve as it is.
 *
 * The command's output takes a bounded amount of memory. Each stream is kept up
 * to its maximum, and the rest is read slowly and thrown away. So a command
 * that prints for ever mostly waits for us until its time is over, and takes no
 * processor from its neighbours or from us.
 */
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

enum {
	CHUNK = 64 * 1024, /* a pipe's capacity */
	/* Pause between two chunks that are thrown away: some 64 MB/s. */
	PAUSE_NS = 1000000
};

struct pipes {
	int in[2], out[2], err[2]; /* read end first */
	int child;                 /* signalfd for SIGCHLD */
};

static uint64_t
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
close_fd(int *fd)
{
	if (*fd != -1)
		(void)close(*fd);
	*fd = -1;
}

static void
close_all(struct pipes *p)
{
	int *fds[] = {&p->in[0], &p->in[1], &p->out[0], &p->out[1], &p->err[0],
	    &p->err[1], &p->child};
	unsigned i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		close_fd(fds[i]);
}

/* Makes the pipes. Our own ends must not block, because one stalled stream
 * would stall the others. */
static int
make_pipes(struct pipes *p, bool input)
{
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) == -1)
		return -1;
	p->child = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->child == -1 || (input && pipe2(p->in, O_CLOEXEC) == -1) ||
	    pipe2(p->out, O_CLOEXEC) == -1 || pipe2(p->err, O_CLOEXEC) == -1)
		return -1;
	if ((input && fcntl(p->in[1], F_SETFL, O_NONBLOCK) == -1) ||
	    fcntl(p->out[0], F_SETFL, O_NONBLOCK) == -1 ||
	    fcntl(p->err[0], F_SETFL, O_NONBLOCK) == -1)
		return -1;
	return 0;
}

/*
 * Starts the program with its three streams and nothing else: every other
 * descriptor is closed by number, whatever its flags are. All signals get their
 * default action again, because the zygote ignores SIGPIPE, and a program that
 * writes to a pipe must not ignore it.
 */
static int
start(const struct command *c, const struct pipes *p, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	if ((rc = posix_spawn_file_actions_init(&fa)) != 0)
		goto out;
	if ((rc = posix_spawnattr_init(&attr)) != 0)
		goto out_fa;
	sigemptyset(&none);
	sigfillset(&all);
	rc = p->in[0] != -1
	    ? posix_spawn_file_actions_adddup2(&fa, p->in[0], STDIN_FILENO)
	    : posix_spawn_file_actions_addopen(
		  &fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(
		    &fa, p->out[1], STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(
		    &fa, p->err[1], STDERR_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(
		    &fa, STDERR_FILENO + 1);
	if (rc == 0)
		rc = posix_spawnattr_setsigmask(&attr, &none);
	if (rc == 0)
		rc = posix_spawnattr_setsigdefault(&attr, &all);
	if (rc == 0)
		rc = posix_spawnattr_setflags(
		    &attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (rc == 0)
		rc = posix_spawn(pid, c->path, &fa, &attr, c->argv, c->envp);
	(void)posix_spawnattr_destroy(&attr);
out_fa:
	(void)posix_spawn_file_actions_destroy(&fa);
out:
	errno = rc;
	return rc == 0 ? 0 : -1;
}

static void
keep(struct command_output *o, const uint8_t *p, size_t n)
{
	size_t room = o->kept.max - o->kept.len;

	o->total += n;
	if (!o->kept.failed)
		buf_put(&o->kept, p, n < room ? n : room);
}

/* Reads the available bytes, about `most` of them, so that no stream keeps us
 * from the others. Closes the descriptor at the end of the stream. */
static void
take(int *fd, struct command_output *o, size_t most)
{
	static uint8_t chunk[CHUNK];
	ssize_t n;

	while (*fd != -1 && most > 0) {
		n = read(*fd, chunk, sizeof(chunk));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close_fd(fd);
			return;
		}
		keep(o, chunk, (size_t)n);
		most = (size_t)n < most ? most - (size_t)n : 0;
	}
}

/* Feeds the command. Input that it doesn't read is no error. */
static void
feed(int *fd, const struct command *c, size_t *done)
{
	ssize_t n = 0;

	if (*done < c->input_n)
		n = write(*fd, c->input + *done, c->input_n - *done);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1 || (*done += (size_t)n) == c->input_n)
		close_fd(fd);
}

/* Reaps the command, and orphans that became our children. Returns true if the
 * command has ended. */
static bool
reap(pid_t pid, struct command *c, int child)
{
	struct signalfd_siginfo si;
	bool ended = false;
	int status;
	pid_t got;

	while (read(child, &si, sizeof(si)) > 0)
		;
	while ((got = waitpid(-1, &status, WNOHANG)) > 0)
		if (got == pid) {
			c->status = status;
			ended = true;
		}
	return ended;
}

static void
serve(struct command *c, struct pipes *p, pid_t pid)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct pollfd set[4];
	size_t done = 0;

	for (;;) {
		/* poll(2) passes over negative descriptors. */
		set[0] = (struct pollfd){.fd = p->in[1], .events = POLLOUT};
		set[1] = (struct pollfd){.fd = p->out[0], .events = POLLIN};
		set[2] = (struct pollfd){.fd = p->err[0], .events = POLLIN};
		set[3] = (struct pollfd){.fd = p->child, .events = POLLIN};
		if (poll(set, 4, -1) == -1)
			continue;
		if (set[0].revents != 0)
			feed(&p->in[1], c, &done);
		if (set[1].revents != 0)
			take(&p->out[0], &c->out, CHUNK);
		if (set[2].revents != 0)
			take(&p->err[0], &c->err, CHUNK);
		if (set[3].revents != 0 && reap(pid, c, p->child))
			break;
		if (c->out.total > c->out.kept.max ||
		    c->err.total > c->err.kept.max)
			(void)nanosleep(&pause, NULL);
	}
	/* The rest of the command's output is in the pipes. A pipe holds no
	 * more than CHUNK bytes, so these calls empty both pipes. */
	take(&p->out[0], &c->out, CHUNK);
	take(&p->err[0], &c->err, CHUNK);
}

int
command_run(struct command *c)
{
	struct pipes p = {{-1, -1}, {-1, -1}, {-1, -1}, -1};
	struct rusage ru = {0};
	uint64_t started;
	pid_t pid;
	int rc = -1, saved;

	if (make_pipes(&p, c->input != NULL) == -1)
		goto out;
	started = now_ms();
	if (start(c, &p, &pid) == -1)
		goto out;
	close_fd(&p.in[0]);
	close_fd(&p.out[1]);
	close_fd(&p.err[1]);
	serve(c, &p, pid);
	c->duration_ms = now_ms() - started;
	(void)getrusage(RUSAGE_CHILDREN, &ru);
	c->cpu_ms = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000 +
	    (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1000;
	rc = 0;
out:
	saved = errno;
	close_all(&p);
	errno = saved;
	return rc;
}
