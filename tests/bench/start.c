/*
 * bench-start -n COUNT [-j AT_ONCE] -- COMMAND [ARG ...]
 *
 * Starts a command COUNT times, AT_ONCE of them at a time, each as soon as
 * another ended, and prints how long each took from before its start until it
 * was reaped. What the starting itself costs is a vfork.
 */
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "times.h"

enum { AT_ONCE_MAX = 256, COUNT_MAX = 1000000 };

struct job {
	pid_t pid;
	uint64_t begin;
};

static void
launch(struct job *j, char **argv, const posix_spawn_file_actions_t *quiet)
{
	int e;

	j->begin = times_now();
	e = posix_spawnp(&j->pid, argv[0], quiet, NULL, argv, environ);
	if (e != 0)
		errx(1, "%s: %s", argv[0], strerror(e));
}

static struct job *
reap(struct job *jobs, unsigned long n)
{
	int status;
	pid_t pid;

	do {
		pid = waitpid(-1, &status, 0);
	} while (pid == -1 && errno == EINTR);
	if (pid == -1)
		err(1, "waitpid");
	if (status != 0)
		errx(1, "the command failed: wait status %d", status);
	for (unsigned long i = 0; i < n; i++) {
		if (jobs[i].pid == pid)
			return &jobs[i];
	}
	errx(1, "reaped an unknown process");
}

int
main(int argc, char **argv)
{
	struct job jobs[AT_ONCE_MAX] = {{0}};
	struct times times = {0};
	posix_spawn_file_actions_t quiet;
	unsigned long count = 0, at_once = 1, started, i;
	struct job *j;
	uint64_t begin;
	int c;

	while ((c = getopt(argc, argv, "+n:j:")) != -1) {
		if (c == 'n')
			count = times_number(optarg, 1, COUNT_MAX);
		else if (c == 'j')
			at_once = times_number(optarg, 1, AT_ONCE_MAX);
		else
			return 2;
	}
	if (count == 0 || optind == argc)
		errx(2, "usage: bench-start -n COUNT [-j AT_ONCE] -- COMMAND");
	if (posix_spawn_file_actions_init(&quiet) != 0 ||
	    posix_spawn_file_actions_addopen(
		&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0)
		errx(1, "posix_spawn_file_actions");
	begin = times_now();
	for (i = 0; i < at_once && i < count; i++)
		launch(&jobs[i], argv + optind, &quiet);
	for (started = i; times.n < count;) {
		j = reap(jobs, at_once);
		times_add(&times, j->begin);
		j->pid = 0;
		if (started < count) {
			launch(j, argv + optind, &quiet);
			started++;
		}
	}
	(void)printf("{");
	times_print(&times, (double)(times_now() - begin) / 1e9);
	(void)printf("}\n");
	return 0;
}
