#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "child.h"

/* Added to the caller's variables: a path for programs that run others
 * (Debian's pg_dump is a wrapper in Perl), and a locale that does not depend on
 * the machine. */
static const char *const base_env[] = {
    "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8"};

enum { BASE_ENV = 2, ENV_MAX = 16, NOT_RUN = 127 };

/*
 * Runs in the child. Gives up groups, group and user in this order, since each
 * step needs the rights that later steps give up. setres*id change the saved
 * ids too, so there is no way back.
 */
static bool
become(const struct child *c)
{
	if (c->uid == 0)
		return true;
	return setgroups(1, &c->gid) == 0 &&
	    setresgid(c->gid, c->gid, c->gid) == 0 &&
	    setresuid(c->uid, c->uid, c->uid) == 0;
}

static bool
nothing(int as, int flags)
{
	int fd = open("/dev/null", flags | O_CLOEXEC);

	return fd != -1 && dup2(fd, as) == as;
}

static _Noreturn void
run(const struct child *c, int err, pid_t parent)
{
	const char *argv[CHILD_ARGS_MAX + 2], *env[ENV_MAX + 1];
	int n, e;

	argv[0] = c->program;
	for (n = 0; n < CHILD_ARGS_MAX && c->args[n] != NULL; n++)
		argv[n + 1] = c->args[n];
	argv[n + 1] = NULL;
	for (e = 0; e < BASE_ENV; e++)
		env[e] = base_env[e];
	for (n = 0; c->env != NULL && c->env[n] != NULL && e < ENV_MAX; n++)
		env[e++] = c->env[n];
	env[e] = NULL;
	/*
	 * Leaves a program of another user no descriptor of root's terminal.
	 * That user's processes can take the program over (ptrace(2)) and could
	 * then put text into the terminal (TIOCSTI), which root's shell
	 * executes.
	 */
	if (c->uid != 0 &&
	    (setsid() == -1 ||
		(c->in == -1 && !nothing(STDIN_FILENO, O_RDONLY)) ||
		(c->out == -1 && !nothing(STDOUT_FILENO, O_WRONLY)) ||
		(err == -1 && !nothing(STDERR_FILENO, O_WRONLY))))
		_exit(NOT_RUN);
	/* A change of user clears PDEATHSIG, so it is set after become(). */
	if (!become(c) || prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    getppid() != parent)
		_exit(NOT_RUN);
	(void)signal(SIGPIPE, SIG_DFL);
	if ((c->in != -1 && dup2(c->in, STDIN_FILENO) == -1) ||
	    (c->out != -1 && dup2(c->out, STDOUT_FILENO) == -1) ||
	    (err != -1 && dup2(err, STDERR_FILENO) == -1))
		_exit(NOT_RUN);
	execve(c->program, (char *const *)(uintptr_t)argv,
	    (char *const *)(uintptr_t)env);
	dprintf(STDERR_FILENO, "%s: %s\n", c->program, strerror(errno));
	_exit(NOT_RUN);
}

/* Reads to the end, even if not all is kept, because a full pipe would stop the
 * program. */
static void
listen_to(int fd, struct buf *said)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return;
		if (said->len + (size_t)n <= CHILD_SAID_MAX)
			buf_put(said, chunk, (size_t)n);
	}
}

int
child_run(const struct child *c, struct buf *said, struct err *err)
{
	int pipefd[2] = {-1, -1}, status;
	pid_t pid, parent = getpid();

	if (said != NULL && pipe2(pipefd, O_CLOEXEC) == -1)
		return err_sys(err, FAILURE_INTERNAL, "pipe");
	pid = fork();
	if (pid == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "fork");
		if (said != NULL) {
			close(pipefd[0]);
			close(pipefd[1]);
		}
		return -1;
	}
	if (pid == 0)
		run(c, pipefd[1], parent);
	if (said != NULL) {
		close(pipefd[1]);
		listen_to(pipefd[0], said);
		close(pipefd[0]);
	}
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return err_sys(err, FAILURE_INTERNAL, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
