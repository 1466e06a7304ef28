/*
 * A command's process: what is read, what is kept, what is told of its end.
 * The programs are the host's; confinement is not this test's matter.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "unit.h"

enum { KEPT = 64 * 1024 };

static char *const empty[] = {NULL};

/* Runs `sh -c script` with that input. */
static void
run(struct command *c, const char *script, const char *input, size_t n)
{
	char *argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
	    (char *)(uintptr_t)script, NULL};

	memset(c, 0, sizeof(*c));
	c->path = "/bin/sh";
	c->argv = argv;
	c->envp = empty;
	c->input = input;
	c->input_n = n;
	buf_init(&c->out.kept, KEPT);
	buf_init(&c->err.kept, 100);
	assert_int_equal(command_run(c), 0);
}

static void
done(struct command *c)
{
	buf_free(&c->out.kept);
	buf_free(&c->err.kept);
}

static void
streams(void **state)
{
	struct command c;

	(void)state;
	run(&c, "echo out; echo err >&2; exit 3", NULL, 0);
	assert_true(WIFEXITED(c.status) && WEXITSTATUS(c.status) == 3);
	assert_int_equal(c.out.total, 4);
	assert_memory_equal(c.out.kept.p, "out\n", 4);
	assert_int_equal(c.err.total, 4);
	assert_memory_equal(c.err.kept.p, "err\n", 4);
	done(&c);
	run(&c, "kill -KILL $$", NULL, 0);
	assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL);
	assert_int_equal(c.out.total, 0);
	done(&c);
}

/* More than both pipes hold, in and out at once: nobody waits for ever. */
static void
through(void **state)
{
	size_t n = 300000;
	char *text = malloc(n);
	struct command c;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n);
	run(&c, "cat", text, n);
	assert_int_equal(c.status, 0);
	assert_int_equal(c.out.total, n);
	assert_int_equal(c.out.kept.len, KEPT);
	done(&c);
	/* It does not read; it reads a part; there is none. */
	run(&c, "exit 0", text, n);
	assert_int_equal(c.status, 0);
	done(&c);
	run(&c, "head -c 5", text, n);
	assert_int_equal(c.out.total, 5);
	done(&c);
	run(&c, "cat", text, 0);
	assert_int_equal(c.out.total, 0);
	done(&c);
	free(text);
}

/* Without input it reads the end of a file, whatever our own stdin is. */
static void
no_input(void **state)
{
	struct command c;

	(void)state;
	run(&c, "wc -c", NULL, 0);
	assert_true(c.out.kept.len > 0 && c.out.kept.p[0] == '0');
	done(&c);
}

static void
descriptors(void **state)
{
	int fd = dup(STDERR_FILENO); /* not close-on-exec */
	struct command c;

	(void)state;
	assert_true(fd > 2);
	run(&c, "for f in /proc/self/fd/*; do echo; done", NULL, 0);
	/* 0, 1, 2, and the directory that the shell has open */
	assert_true(c.out.total <= 5);
	done(&c);
	close(fd);
}

static void
holders(void **state)
{
	struct command c;

	(void)state;
	run(&c, "sleep 30 & echo $!", NULL, 0);
	assert_true(c.duration_ms < 20000);
	buf_putc(&c.out.kept, '\0');
	assert_true(c.out.total > 1);
	kill((pid_t)strtol((char *)c.out.kept.p, NULL, 10), SIGKILL);
	done(&c);
}

static void
environment(void **state)
{
	char *const envp[] = {(char *)(uintptr_t)"ONE=1", NULL};
	char *const argv[] = {(char *)(uintptr_t)"env", NULL};
	struct command c = {.path = "/usr/bin/env", .argv = argv, .envp = envp};

	(void)state;
	buf_init(&c.out.kept, KEPT);
	buf_init(&c.err.kept, KEPT);
	assert_int_equal(command_run(&c), 0);
	assert_int_equal(c.out.kept.len, 6);
	assert_memory_equal(c.out.kept.p, "ONE=1\n", 6);
	done(&c);
}

static void
not_started(void **state)
{
	char *const argv[] = {(char *)(uintptr_t)"x", NULL};
	struct command c = {
	    .path = "/nonexistent", .argv = argv, .envp = empty};

	(void)state;
	assert_int_equal(command_run(&c), -1);
	assert_int_equal(errno, ENOENT);
	c.path = "/";
	assert_int_equal(command_run(&c), -1);
	assert_int_equal(errno, EACCES);
}

/* Nothing is left open, run after run. */
static void
no_leak(void **state)
{
	struct command c;
	int before, after;

	(void)state;
	before = dup(0);
	close(before);
	for (int i = 0; i < 20; i++) {
		run(&c, "cat", "x", 1);
		done(&c);
	}
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(streams),
	    cmocka_unit_test(through),
	    cmocka_unit_test(no_input),
	    cmocka_unit_test(descriptors),
	    cmocka_unit_test(holders),
	    cmocka_unit_test(environment),
	    cmocka_unit_test(not_started),
	    cmocka_unit_test(no_leak),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as the zygote */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
