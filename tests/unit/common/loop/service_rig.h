/*
 * A daemon as a manager starts it: a child process whose environment the test
 * makes. Included once by each test of service.c.
 */
#ifndef SERVICE_RIG_H
#define SERVICE_RIG_H

#include "unit.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <event2/event.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "log.h"
#include "service.h"

static int manager = -1;

static char said[8192]; /* its standard error */

static pid_t
begin(void (*daemon)(void), int *err)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fflush(NULL); /* what is buffered is said once */
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		/* A test that fails leaves nobody behind; and the manager's
		 * socket is gone when the manager closes it. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(manager);
		dup2(fds[1], 2);
		log_init("unit", LOG_TEXT, LOG_LV_INFO);
		daemon();
		_exit(0);
	}
	close(fds[1]);
	*err = fds[0];
	return pid;
}

/* Its exit status; what it logged is in `said`. */
static int
end(pid_t pid, int err)
{
	size_t n = 0;
	ssize_t got;
	int status;

	while (n < sizeof(said) - 1 &&
	    (got = read(err, said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
run(void (*daemon)(void))
{
	int err;
	pid_t pid = begin(daemon, &err);

	return end(pid, err);
}

static void
set(const char *name, long v)
{
	char text[64];

	snprintf(text, sizeof(text), "%ld", v);
	setenv(name, text, 1);
}

#endif
