/*
 * OpenSSL's generators after a fork that it cannot notice: two children that
 * are pid 1 of their own namespaces, of a parent that is pid 1 as well. The
 * control shows that they draw the same where the parent's generators live on;
 * after reseed_none they must not.
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include <openssl/rand.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "confinement.h"
#include "unit.h"

enum { DRAWN = 32 }; /* 16 bytes public, 16 bytes private */

static void
draw(int fd)
{
	unsigned char b[DRAWN];

	if (getpid() != 1 || RAND_bytes(b, 16) != 1 ||
	    RAND_priv_bytes(b + 16, 16) != 1 ||
	    write(fd, b, sizeof(b)) != sizeof(b))
		_exit(1);
	_exit(0);
}

/* In pid 1 of a new namespace: two children, each pid 1 of another. Both
 * generators have been drawn from before. */
static void
zygote(int fd, bool none)
{
	unsigned char b[16];
	int status;
	long pid;

	if (getpid() != 1 || RAND_bytes(b, sizeof(b)) != 1 ||
	    RAND_priv_bytes(b, sizeof(b)) != 1)
		_exit(1);
	if (none && reseed_none(NULL) == -1)
		_exit(1);
	for (int i = 0; i < 2; i++) {
		pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			draw(fd);
		if (pid == -1 || waitpid((pid_t)pid, &status, 0) != pid ||
		    status != 0)
			_exit(1);
	}
	_exit(0);
}

static void
two_draws(bool none, unsigned char out[2][DRAWN])
{
	int fds[2], status;
	long pid;

	assert_int_equal(pipe(fds), 0);
	pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		zygote(fds[1], none);
	assert_true(pid > 0); /* needs root: tests run as root */
	assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], out, 2 * DRAWN), 2 * DRAWN);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void
test_control(void **state)
{
	unsigned char b[2][DRAWN];

	(void)state;
	two_draws(false, b);
	assert_memory_equal(b[0], b[1], DRAWN);
}

static void
test_none(void **state)
{
	static const unsigned char zero[16];
	unsigned char b[2][DRAWN];

	(void)state;
	two_draws(true, b);
	assert_memory_not_equal(b[0], b[1], 16);
	assert_memory_not_equal(b[0] + 16, b[1] + 16, 16);
	assert_memory_not_equal(b[0], zero, 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_control),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
