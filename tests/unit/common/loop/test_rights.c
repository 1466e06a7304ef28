/*
 * Descriptors that a runner sends cost us nothing: where the kernel refuses
 * them (Linux 6.16), and, behind a filter that answers as an older kernel does,
 * where another process closes them. What is slow to close is a TCP socket that
 * lingers over bytes which its other side does not read: its last close waits
 * for that side, so whoever came back from a close did not make the last.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <stdatomic.h>
#include <unistd.h>

#include "closer.h"
#include "rights.h"
#include "unit.h"

enum { PASSRIGHTS = 83, LINGER_SECONDS = 1000 };

/* One end guarded, as ours, and the runner's. */
struct pair {
	int ours, runners;
};

static struct pair
pair_of(int type)
{
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv), 0);
	return (struct pair){sv[0], sv[1]};
}

/* n bytes and a descriptor (-1: none). 0 or an errno. */
static int
say(int sock, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	char bytes[64] = "";
	struct iovec iov = {bytes, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (fd != -1) {
		memset(&control, 0, sizeof(control));
		m.msg_control = control.buf;
		m.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) == -1 ? errno : 0;
}

/* A socket whose last close waits until *reader was read to its end. */
static int
slow(int *reader)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger l = {1, LINGER_SECONDS};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);
	char bytes[4096] = "";

	assert_int_equal(bind(listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, n), 0);
	*reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*reader >= 0);
	close(listener);
	assert_int_equal(
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	return fd;
}

/* Reads to the end, which comes when somebody made the last close. */
static void
closed_by_somebody(int reader)
{
	static char bytes[65536];
	ssize_t n;

	while ((n = read(reader, bytes, sizeof(bytes))) > 0)
		;
	assert_int_equal(n, 0);
	close(reader);
}

/* --- The kernel refuses. -------------------------------------------------- */

static void
test_refused(void **state)
{
	const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};
	char byte;

	if (!rights_refusable())
		skip();
	for (size_t i = 0; i < 2; i++) {
		struct pair p = pair_of(types[i]);

		assert_int_equal(say(p.runners, 1, 2), 0); /* control */
		assert_int_equal(recv(p.ours, &byte, 1, 0), 1);
		assert_int_equal(rights_guard(p.ours), 0);
		assert_int_equal(say(p.runners, 1, 2), EPERM);
		assert_int_equal(say(p.runners, 1, -1), 0);
		assert_false(rights_come(p.ours));
		assert_int_equal(rights_recv(p.ours, &byte, 1, 0), 1);
		/* Ours may send some: a call's code. */
		assert_int_equal(say(p.ours, 1, 2), 0);
		rights_close(p.ours);
		close(p.runners);
	}
}

static void
test_no_closer_is_started(void **state)
{
	struct err e;

	if (!rights_refusable())
		skip();
	assert_int_equal(closer_start(&e), 0);
}

/* --- An older kernel. ------------------------------------------------------
 */

static int
older(void **state)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	struct err e;
	int rc;

	assert_non_null(f);
	rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOPROTOOPT),
	    SCMP_SYS(setsockopt), 2, SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
	    SCMP_A2(SCMP_CMP_EQ, PASSRIGHTS));
	assert_int_equal(rc, 0);
	assert_int_equal(seccomp_load(f), 0);
	seccomp_release(f);
	assert_false(rights_refusable());
	/* Without a closer nobody takes such a socket for guarded. */
	assert_int_equal(rights_guard(2), -1);
	if (closer_start(&e) != 1)
		fail_msg("%s", e.text);
	return 0;
}

/* The control: this process' own last close waits. */
static void
test_the_last_close_waits(void **state)
{
	char path[64], text[512] = "";
	int reader, fd = slow(&reader), stat;
	atomic_int *alone = mmap(NULL, sizeof(*alone), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	char *state_of;

	assert_true(alone != MAP_FAILED);
	if ((pid = fork()) == 0) {
		close(reader);
		while (*alone == 0) /* it sleeps nowhere but in its close */
			;
		close(fd);
		_exit(0);
	}
	close(fd);
	*alone = 1;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do {
		stat = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(stat >= 0);
		assert_true(read(stat, text, sizeof(text) - 1) > 0);
		close(stat);
		state_of = strrchr(text, ')');
		assert_non_null(state_of);
	} while (state_of[2] != 'S' && state_of[2] != 'Z');
	assert_int_equal(state_of[2], 'S');
	closed_by_somebody(reader);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(alone, sizeof(*alone));
}

static void
test_packets(void **state)
{
	struct pair p = pair_of(SOCK_SEQPACKET);
	int reader, fd = slow(&reader), err;
	char byte;

	assert_int_equal(rights_guard(p.ours), 0);
	assert_false(rights_come(p.ours)); /* nothing there */
	assert_int_equal(say(p.runners, 1, -1), 0);
	assert_int_equal(say(p.runners, 1, fd), 0);
	close(fd);
	assert_false(rights_come(p.ours));
	assert_int_equal(rights_recv(p.ours, &byte, 1, 0), 1);
	for (int i = 0; i < 3; i++) { /* it stays where it is */
		assert_true(rights_come(p.ours));
		assert_int_equal(rights_recv(p.ours, &byte, 1, 0), -1);
		assert_int_equal(errno, EPROTO);
	}
	rights_close(p.ours);
	/* The first to write after the closer's close is told of the reset. */
	err = say(p.runners, 1, 2);
	assert_true(err == EPIPE || err == ECONNRESET);
	closed_by_somebody(reader);
	close(p.runners);
}

/* The bytes of a stream before the descriptors are read, and no more. */
static void
test_stream(void **state)
{
	struct pair p = pair_of(SOCK_STREAM);
	int reader, fd = slow(&reader);
	char bytes[64];

	assert_int_equal(rights_guard(p.ours), 0);
	assert_int_equal(rights_recv(p.ours, bytes, sizeof(bytes), 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(say(p.runners, 10, -1), 0);
	assert_int_equal(rights_recv(p.ours, bytes, 4, 0), 4);
	assert_int_equal(rights_recv(p.ours, bytes, sizeof(bytes), 0), 6);
	assert_int_equal(say(p.runners, 10, fd), 0);
	close(fd);
	assert_int_equal(rights_recv(p.ours, bytes, sizeof(bytes), 0), -1);
	assert_int_equal(errno, EPROTO);
	rights_close(p.ours);
	closed_by_somebody(reader);
	close(p.runners);
}

/* A datagram longer than its room says its length, as by recv(2). */
static void
test_lengths(void **state)
{
	struct pair p = pair_of(SOCK_SEQPACKET);
	char bytes[8];

	assert_int_equal(rights_guard(p.ours), 0);
	assert_int_equal(say(p.runners, 40, -1), 0);
	assert_int_equal(say(p.runners, 3, -1), 0);
	assert_int_equal(
	    rights_recv(p.ours, bytes, sizeof(bytes), MSG_TRUNC), 40);
	assert_int_equal(rights_recv(p.ours, bytes, sizeof(bytes), 0), 3);
	close(p.runners);
	assert_int_equal(rights_recv(p.ours, bytes, sizeof(bytes), 0), 0);
	rights_close(p.ours);
}

/* Packets that are never read, because the call ends: after packets without
 * bytes, too, which read like the end. */
static void
test_unread(void **state)
{
	struct pair p;
	int reader, fd;

	for (int before = 0; before < 3; before++)
		for (size_t n = 0; n < 2; n++) {
			fd = slow(&reader);
			p = pair_of(SOCK_SEQPACKET);
			assert_int_equal(rights_guard(p.ours), 0);
			for (int i = 0; i < before; i++)
				assert_int_equal(say(p.runners, 0, -1), 0);
			assert_int_equal(say(p.runners, n, fd), 0);
			close(fd);
			close(p.runners);
			rights_close(p.ours);
			closed_by_somebody(reader);
		}
}

/* More than the closer's queue holds, while it waits in the first: ours does
 * not wait, and each later close tries again those that had no room. */
static void
test_many(void **state)
{
	enum {
		MANY = 400,
		/* Milliseconds: the closer gets little beside who only asks. */
		STEP = 1
	};
	int first, fd = slow(&first), pipes[2];
	struct pair p = pair_of(SOCK_SEQPACKET);
	struct pollfd hung = {.events = 0};

	assert_int_equal(rights_guard(p.ours), 0);
	assert_int_equal(say(p.runners, 1, fd), 0);
	close(fd);
	close(p.runners);
	rights_close(p.ours);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	for (int i = 0; i < MANY; i++) {
		p = pair_of(SOCK_SEQPACKET);
		assert_int_equal(rights_guard(p.ours), 0);
		assert_int_equal(say(p.runners, 1, pipes[1]), 0);
		close(p.runners);
		rights_close(p.ours);
	}
	close(pipes[1]);
	closed_by_somebody(first);
	hung.fd = pipes[0];
	do {
		p = pair_of(SOCK_SEQPACKET);
		assert_int_equal(rights_guard(p.ours), 0);
		close(p.runners);
		rights_close(p.ours);
	} while (poll(&hung, 1, STEP) == 0);
	assert_true((hung.revents & POLLHUP) != 0);
	close(pipes[0]);
}

int
main(void)
{
	const struct CMUnitTest newer_tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_no_closer_is_started),
	};
	const struct CMUnitTest older_tests[] = {
	    cmocka_unit_test(test_the_last_close_waits),
	    cmocka_unit_test(test_packets),
	    cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_lengths),
	    cmocka_unit_test(test_unread),
	    cmocka_unit_test(test_many),
	};
	int failed =
	    cmocka_run_group_tests_name("refused", newer_tests, NULL, NULL);

	return failed +
	    cmocka_run_group_tests_name("given away", older_tests, older, NULL);
}
