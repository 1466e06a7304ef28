/*
 * A connection for which memory runs out as it begins. Without a HELLO of ours
 * the other side takes no message, so there must be no peer that its HELLO
 * opens.
 */
#include <sys/socket.h>

#include <event2/event.h>
#include <unistd.h>

#include "ipc_peer_internal.h"
#include "unit.h"

/* No memory for frames to send. */
static bool no_frames;

void *__real_calloc(size_t, size_t);
void *__wrap_calloc(size_t, size_t);

void *
__wrap_calloc(size_t n, size_t size)
{
	return no_frames && size == sizeof(struct ipc_out)
	    ? NULL
	    : __real_calloc(n, size);
}

static struct event_base *base;
static unsigned ups, downs;

static void
up(struct ipc_peer *p, void *arg)
{
	ups++;
}

static void
down(struct ipc_peer *p, void *arg)
{
	downs++;
}

static int
message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	return 0;
}

static const struct ipc_handlers handlers = {up, message, down};

static struct ipc_peer *
adopt(int sock, enum ipc_role local, enum ipc_role peer, struct err *e)
{
	return ipc_peer_adopt(base, sock, "test", local, peer, true,
	    IPC_STATE_NEW, &handlers, NULL, e);
}

static int
setup(void **unused)
{
	ipc_hello_set("test", "");
	base = event_base_new();
	ups = downs = 0;
	no_frames = false;
	return base == NULL ? -1 : 0;
}

static int
teardown(void **unused)
{
	event_base_free(base);
	return 0;
}

static void
no_memory_for_hello(void **unused)
{
	struct err e;
	char c;
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	no_frames = true;
	assert_null(adopt(sv[0], IPC_ROLE_GATEWAY, IPC_ROLE_SANDBOXD, &e));
	no_frames = false;
	assert_int_equal(e.failure, FAILURE_BUSY);
	/* It is the caller's, still, and said nothing. */
	assert_int_equal(close(sv[0]), 0);
	assert_int_equal(recv(sv[1], &c, 1, MSG_DONTWAIT), 0);
	close(sv[1]);
}

/* The other end is gone: nothing comes up, and the loop frees the peer. */
static void
nobody_to_hear_hello(void **unused)
{
	struct ipc_peer *p;
	struct err e;
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	close(sv[1]);
	p = adopt(sv[0], IPC_ROLE_GATEWAY, IPC_ROLE_SANDBOXD, &e);
	assert_non_null(p);
	assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1);
	assert_int_equal(ups + downs, 0);
	assert_int_equal(close(sv[0]), -1);
}

/* As ever: both ends come up. */
static void
hello_opens(void **unused)
{
	struct ipc_peer *p[2];
	struct err e;
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	p[0] = adopt(sv[0], IPC_ROLE_GATEWAY, IPC_ROLE_SANDBOXD, &e);
	p[1] = adopt(sv[1], IPC_ROLE_SANDBOXD, IPC_ROLE_GATEWAY, &e);
	assert_true(p[0] != NULL && p[1] != NULL);
	while (ups < 2)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	ipc_peer_close(p[0]);
	ipc_peer_close(p[1]);
	while (downs < 2)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(no_memory_for_hello), T(nobody_to_hear_hello), T(hello_opens)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
