/*
 * Stands in for mcpbox-runner where tests need runners that misbehave on
 * command: a zygote that forks without confinement, and a runner whose
 * "code" is one word.
 *
 *	echo	result is the arguments' text
 *	secret	result, log line and output hold every secret's value
 *	sleep	never answers; starts a child that never ends either
 *	crash	SIGILL		exit	exit status 3
 *	flood	log lines without end	print	1 MiB of output, then done
 *	big	a result larger than it may be
 *	junk	a result that isn't JSON	hole	a body without content
 *	extra	a body with members that must not pass
 *	raw	bytes that are no frame	late	frames after the result
 *	close	closes its channel and lives
 *	slow	answers after 300 ms
 * FAKE_ZYGOTE in the libexec directory changes the zygote:
 *	nofork: FORK_FAILED to every FORK; die: exits at the first FORK
 *	stillborn: exits before it reports; mute: never reports
 *	another: reports another interpreter
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc_io.h"
#include "tlv.h"

enum { SOCK = 3 };

static int channel;

static void
say(enum ipc_type t, const void *m)
{
	struct err e;

	if (ipc_write(channel, t, 0, m, &e) != 0)
		_exit(9);
}

static void
result(const void *p, size_t n)
{
	struct ipc_run_result r = {.length = (uint32_t)n};

	for (size_t i = 0; i < n; i += 48000) {
		struct ipc_content_part m = {
		    .data = ipc_bytes(
			(const uint8_t *)p + i, n - i < 48000 ? n - i : 48000)};

		say(IPC_CONTENT_PART, &m);
	}
	say(IPC_RUN_RESULT, &r);
}

static void
text_result(const char *text)
{
	char body[4096];
	int n = snprintf(body, sizeof(body),
	    "{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}", text);

	result(body, (size_t)n);
}

static void
tell(struct ipc_bytes secrets)
{
	struct tlv_reader r;
	struct tlv t;
	char all[2048] = "", line[2100];
	struct ipc_stdout o;
	struct ipc_log l = {.level = 1};
	int n;

	tlv_open(&r, secrets.p, secrets.n);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == 2)
			strncat(all, (const char *)t.p, t.n);
	o.data = ipc_str(all);
	say(IPC_STDOUT, &o);
	n = snprintf(line, sizeof(line), "\"%s\"", all);
	l.json = ipc_bytes(line, (size_t)n);
	say(IPC_LOG, &l);
	text_result(all);
}

static void
flood(void)
{
	struct ipc_log l = {.level = 1, .json = ipc_str("\"x\"")};

	for (;;)
		say(IPC_LOG, &l);
}

static void
act(const char *code, struct ipc_bytes arguments, struct ipc_bytes secrets)
{
	static const char extra[] = "{\"_meta\":{\"a\":1},\"resultType\":\"x\","
				    "\"content\":[],\"id\":7}";
	static char big[3 * 1024 * 1024];
	struct ipc_stdout o;

	if (strcmp(code, "echo") == 0) {
		char esc[2048];
		size_t k = 0;

		for (size_t i = 0; i < arguments.n && k < 2000; i++) {
			if (arguments.p[i] == '"' || arguments.p[i] == '\\')
				esc[k++] = '\\';
			esc[k++] = (char)arguments.p[i];
		}
		esc[k] = '\0';
		text_result(esc);
	} else if (strcmp(code, "secret") == 0)
		tell(secrets);
	else if (strcmp(code, "sleep") == 0) {
		if (fork() == 0)
			close(channel);
		for (;;)
			pause();
	} else if (strcmp(code, "crash") == 0) {
		/* pid 1 of a namespace does not hear raise(3), but a fault. */
		__builtin_trap();
	} else if (strcmp(code, "exit") == 0)
		_exit(3);
	else if (strcmp(code, "flood") == 0)
		flood();
	else if (strcmp(code, "print") == 0) {
		memset(big, 'p', sizeof(big));
		for (int i = 0; i < 64; i++) {
			o.data = ipc_bytes(big, 16384);
			say(IPC_STDOUT, &o);
		}
		text_result("printed");
	} else if (strcmp(code, "big") == 0) {
		memset(big, ' ', sizeof(big));
		result(big, sizeof(big));
	} else if (strcmp(code, "junk") == 0)
		result("{\"content\":[", 12);
	else if (strcmp(code, "hole") == 0)
		result("{\"isError\":false}", 17);
	else if (strcmp(code, "extra") == 0)
		result(extra, strlen(extra));
	else if (strcmp(code, "raw") == 0) {
		if (write(channel, "garbage garbage garbage", 23) < 0)
			_exit(1);
		pause();
	} else if (strcmp(code, "late") == 0) {
		text_result("first");
		text_result("second");
	} else if (strcmp(code, "close") == 0) {
		close(channel);
		pause();
	} else if (strcmp(code, "slow") == 0) {
		usleep(300 * 1000);
		text_result("slow");
	} else
		text_result("unknown");
	for (;;)
		pause();
}

static struct ipc_frame
take(enum ipc_type want)
{
	struct ipc_frame f;
	struct err e;

	if (ipc_read(channel, &f, &e) != 1 || f.type != want)
		_exit(8);
	return f;
}

static _Noreturn void
runner(int fd)
{
	struct ipc_frame fx, fa, fs;
	struct ipc_arguments a;
	struct ipc_execute x;
	struct ipc_secrets s;
	struct ipc_ready r;
	struct err e;
	char *code;

	channel = fd;
	memset(&r, 0, sizeof(r));
	say(IPC_READY, &r);
	fx = take(IPC_EXECUTE);
	fa = take(IPC_ARGUMENTS);
	fs = take(IPC_SECRETS);
	if (ipc_decode(&fx, &x, &e) != 0 || ipc_decode(&fa, &a, &e) != 0 ||
	    ipc_decode(&fs, &s, &e) != 0)
		_exit(7);
	code = ipc_strdup(x.code);
	act(code, a.json, s.tlv);
	_exit(0);
}

/* A sibling of ours in a pid namespace of its own, as the zygote makes it. */
static pid_t
fork_sibling(int *pidfd)
{
	struct clone_args ca = {
	    .flags = CLONE_PARENT | CLONE_NEWPID | CLONE_PIDFD,
	    .pidfd = (uint64_t)(uintptr_t)pidfd,
	};

	return (pid_t)syscall(SYS_clone3, &ca, sizeof(ca));
}

static void
fail(const struct ipc_fork *m, const char *step)
{
	struct ipc_fork_failed f = {.slot = m->slot,
	    .generation = m->generation,
	    .error = 12,
	    .step = ipc_str(step)};
	struct err e;

	if (ipc_write(SOCK, IPC_FORK_FAILED, 0, &f, &e) != 0)
		_exit(5);
}

int
main(int argc, char **argv)
{
	struct ipc_pool_report rep = {.layers = ipc_str("fake=enforced\n")};
	char mode[32] = "", path[300];
	struct ipc_frame f;
	struct err e;
	int fd;

	if (snprintf(path, sizeof(path), "%.*s/FAKE_ZYGOTE",
		(int)(strrchr(argv[0], '/') - argv[0]), argv[0]) < 0)
		return 1;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		if (read(fd, mode, sizeof(mode) - 1) < 0)
			return 1;
		close(fd);
	}
	if (strncmp(mode, "stillborn", 9) == 0)
		return 1;
	while (strncmp(mode, "mute", 4) == 0)
		pause();
	rep.interpreter =
	    ipc_str(strncmp(mode, "another", 7) == 0 ? "Fake 2" : "Fake 1");
	if (ipc_write(SOCK, IPC_POOL_REPORT, 0, &rep, &e) != 0)
		return 1;
	while (ipc_read(SOCK, &f, &e) == 1) {
		struct ipc_fork m;
		struct ipc_forked ok = {.pidfd = -1};
		pid_t pid;

		/* The door to peek: nobody here has a listener. */
		if (f.type == IPC_PEEK_DOOR) {
			ipc_frame_free(&f);
			continue;
		}
		if (f.type != IPC_FORK || ipc_decode(&f, &m, &e) != 0)
			return 2;
		if (strncmp(mode, "die", 3) == 0)
			return 3;
		if (strncmp(mode, "nofork", 6) == 0) {
			fail(&m, "as told");
			close(m.channel);
			continue;
		}
		pid = fork_sibling(&ok.pidfd);
		if (pid == 0) {
			close(SOCK);
			runner(m.channel);
		}
		close(m.channel);
		if (pid < 0) {
			fail(&m, "clone3");
			continue;
		}
		if (strncmp(mode, "lazy", 4) == 0)
			usleep(200 * 1000);
		ok.slot = m.slot;
		ok.generation = m.generation;
		if (ipc_write(SOCK, IPC_FORKED, 0, &ok, &e) != 0)
			return 4;
		close(ok.pidfd);
		ipc_frame_free(&f);
	}
	return 0;
}
