/*
 * Connections on a loop, over real sockets: HELLO, requests and answers,
 * memfds, reconnection, and the end of peers that break a rule.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <unistd.h>

#include <event2/event.h>

#include "ids.h"
#include "ipc_io.h"
#include "ipc_peer_internal.h"
#include "unit.h"
#include "waits.h"

struct world {
	struct event_base *base;
	char dir[64], path[96];
	struct ipc_server *server;
	int up, down, messages, answers, parts, gone;
	enum ipc_type last;
	size_t blob_len;
	enum failure failure;
	bool answer; /* answer requests at once */
	struct ipc_peer *asker;
	uint64_t asked[IPC_WAITERS_MAX + 1]; /* RUNs, oldest first */
	size_t nasked;
};

static void
up(struct ipc_peer *p, void *arg)
{
	((struct world *)arg)->up++;
}

static void
down(struct ipc_peer *p, void *arg)
{
	((struct world *)arg)->down++;
}

static int
message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct world *w = arg;
	struct ipc_call_result r = {.outcome = OUTCOME_DONE};
	struct ipc_run m;

	w->messages++;
	w->last = f->type;
	if (f->type != IPC_RUN)
		return 0;
	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	w->blob_len = m.arguments.n;
	w->asker = p;
	if (w->nasked <= IPC_WAITERS_MAX)
		w->asked[w->nasked++] = m.request;
	if (w->answer) {
		struct ipc_call_event ev = {.kind = 1, .json = ipc_str("{}")};

		r.body_meta = m.arguments;
		ipc_answer(p, m.request, IPC_CALL_EVENT, &ev);
		return ipc_answer(p, m.request, IPC_CALL_RESULT, &r);
	}
	return 0;
}

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct world *w = arg;

	if (f == NULL) {
		w->gone++;
		w->failure = gone;
	} else if (f->type == IPC_CALL_EVENT)
		w->parts++;
	else if (f->type == IPC_REFUSED) {
		struct ipc_refused r;

		assert_int_equal(ipc_decode(f, &r, NULL), 0);
		w->answers++;
		w->failure = (enum failure)r.failure;
	} else {
		struct ipc_call_result r;

		assert_int_equal(ipc_decode(f, &r, NULL), 0);
		w->answers++;
		w->blob_len = r.body_meta.n;
	}
}

static const struct ipc_handlers handlers = {up, message, down};

/* Runs the loop until *counter reaches want, at most five seconds. */
static void
until(struct world *w, const int *counter, int want)
{
	struct timeval tv = {0, 5000};

	for (int i = 0; i < 1000 && *counter < want; i++) {
		event_base_loopexit(w->base, &tv);
		event_base_loop(w->base, EVLOOP_ONCE);
	}
	assert_int_equal(*counter, want);
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	uid_t me = getuid();
	struct err e;

	assert_non_null(w);
	ipc_hello_set("test", "seccomp=enforced\n");
	w->base = event_base_new();
	snprintf(w->dir, sizeof(w->dir), "/tmp/mcpbox-ipc-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/s.sock", w->dir);
	w->server = ipc_server_new(w->base, w->path, "test server",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_GATEWAY, &me, 1, &handlers, w, &e);
	assert_non_null(w->server);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;
	struct timeval tv = {0, 20000};

	ipc_server_free(w->server);
	event_base_loopexit(w->base, &tv);
	event_base_dispatch(w->base);
	event_base_free(w->base);
	unlink(w->path);
	rmdir(w->dir);
	free(w);
	return 0;
}

static struct ipc_client *
connect_client(struct world *w)
{
	struct ipc_client *c = ipc_client_new(w->base, w->path, "test client",
	    IPC_ROLE_GATEWAY, IPC_ROLE_SANDBOXD, &handlers, w, NULL);

	assert_non_null(c);
	until(w, &w->up, 2);
	return c;
}

static void
requests_are_answered_with_parts_and_memfds(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	size_t big = 200000;
	uint8_t *blob = calloc(1, big);
	struct ipc_run m = {.arguments = {blob, big}};

	assert_string_equal(
	    ipc_peer_layers(ipc_client_peer(c)), "seccomp=enforced\n");
	w->answer = true;
	assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m, 1000,
			     answered, w, NULL),
	    0);
	until(w, &w->answers, 1);
	assert_int_equal(w->parts, 1);
	assert_int_equal(w->blob_len, big);
	ipc_client_free(c);
	free(blob);
}

static void
a_lost_peer_tells_its_waiters_and_comes_back(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	struct ipc_run m = {0};
	uid_t me = getuid();

	assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m, 5000,
			     answered, w, NULL),
	    0);
	until(w, &w->messages, 1);
	ipc_server_free(w->server);
	until(w, &w->gone, 1);
	assert_int_equal(w->failure, FAILURE_SANDBOX_UNAVAILABLE);
	assert_null(ipc_client_peer(c));
	w->server = ipc_server_new(w->base, w->path, "second",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_GATEWAY, &me, 1, &handlers, w, NULL);
	assert_non_null(w->server);
	until(w, &w->up, 4);
	assert_non_null(ipc_client_peer(c));
	ipc_client_free(c);
}

/* Its waiters are told later, from the loop: who frees what it waits with
 * meanwhile says so to the peer, closing or not. */
static void
forgotten_at_a_closing_peer(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	struct ipc_peer *asked = ipc_client_peer(c);
	struct ipc_run m = {0};
	uint64_t id[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    ipc_request(asked, IPC_RUN, &m, 5000, answered, w, &id[i]),
		    0);
	until(w, &w->messages, 2);
	ipc_peer_close(asked);
	assert_null(ipc_client_peer(c));
	ipc_forget(asked, id[0]);
	until(w, &w->gone, 1);
	until(w, &w->up, 4); /* connected again: all were told */
	assert_int_equal(w->gone, 1);
	ipc_client_free(c);
}

static void
a_late_answer_is_dropped_but_not_a_violation(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	struct ipc_run m = {0};

	assert_int_equal(
	    ipc_request(ipc_client_peer(c), IPC_RUN, &m, 1, answered, w, NULL),
	    0);
	until(w, &w->gone, 1);
	assert_int_equal(w->failure, FAILURE_BUSY);
	assert_int_equal(w->down, 0);
	ipc_client_free(c);
}

static void
a_slow_machine_waits_longer(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	uint64_t began = now_boot_ms();
	struct ipc_run m = {0};

	wait_factor_set(4);
	assert_int_equal(
	    ipc_request(ipc_client_peer(c), IPC_RUN, &m, 50, answered, w, NULL),
	    0);
	wait_factor_set(1);
	until(w, &w->gone, 1);
	assert_int_equal(w->failure, FAILURE_BUSY);
	/* libevent's clock may be some ms early */
	assert_true(now_boot_ms() - began >= 4 * 50 - 10);
	ipc_client_free(c);
}

/* Sends raw bytes after an honest HELLO; the server must close. */
static void
expect_closed(struct world *w, const void *bytes, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct ipc_hello h = {
	    .table = ipc_table_hash, .process = ipc_str("evil")};
	int before = w->messages, downs = w->down, sock;

	sock = ipc_connect_path(w->path, true, NULL);
	assert_true(sock >= 0);
	assert_int_equal(ipc_write(sock, IPC_HELLO, 0, &h, NULL), 0);
	if (fd >= 0) {
		struct cmsghdr *c;

		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	assert_true(sendmsg(sock, &mh, 0) == (ssize_t)n);
	until(w, &w->down, downs + 1);
	assert_int_equal(w->messages, before);
	close(sock);
}

static void
rule_breakers_are_closed_without_effect(void **state)
{
	struct world *w = *state;
	uint8_t held[16] = {0, IPC_HELD};
	uint8_t ok[16] = {0, IPC_OK};
	uint8_t unknown[16] = {0, 251};
	uint8_t run_short[17] = {0, IPC_RUN, 0, 0, 0, 0, 0, 1};
	uint8_t run_memfd[36] = {0, IPC_RUN, 0, 1, 0, 0, 0, 20};
	int plain, fds[2];

	expect_closed(w, held, sizeof(held), -1); /* not its role */
	expect_closed(w, ok, sizeof(ok), -1);     /* answers nothing */
	expect_closed(w, unknown, sizeof(unknown), -1);
	/* A descriptor that no message of this type carries. */
	assert_int_equal(pipe(fds), 0);
	expect_closed(w, run_short, sizeof(run_short), fds[0]);
	/* A blob that is a pipe, then one whose memfd is not sealed. */
	expect_closed(w, run_memfd, sizeof(run_memfd), fds[0]);
	plain = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(plain >= 0);
	expect_closed(w, run_memfd, sizeof(run_memfd), plain);
	close(plain);
	close(fds[0]);
	close(fds[1]);
}

static void
another_build_is_closed(void **state)
{
	struct world *w = *state;
	struct ipc_hello h = {.process = ipc_str("old")};
	char c;
	int sock = ipc_connect_path(w->path, false, NULL);
	struct timeval tv = {0, 50000};

	assert_true(sock >= 0);
	assert_int_equal(ipc_write(sock, IPC_HELLO, 0, &h, NULL), 0);
	event_base_loopexit(w->base, &tv);
	event_base_dispatch(w->base);
	assert_int_equal(w->up, 0);
	/* Its HELLO may be read, then the end. */
	while (recv(sock, &c, 1, MSG_DONTWAIT) > 0)
		;
	assert_int_equal(recv(sock, &c, 1, MSG_DONTWAIT), 0);
	close(sock);
}

static void
other_users_are_refused(void **state)
{
	struct world *w = *state;
	uid_t other = getuid() + 1;
	char path[128], c;
	struct ipc_server *s;
	struct timeval tv = {0, 50000};
	int sock;

	snprintf(path, sizeof(path), "%s2", w->path);
	s = ipc_server_new(w->base, path, "others only", IPC_ROLE_SANDBOXD,
	    IPC_ROLE_GATEWAY, &other, 1, &handlers, w, NULL);
	assert_non_null(s);
	sock = ipc_connect_path(path, false, NULL);
	assert_true(sock >= 0);
	event_base_loopexit(w->base, &tv);
	event_base_dispatch(w->base);
	assert_int_equal(recv(sock, &c, 1, MSG_DONTWAIT), 0);
	assert_int_equal(w->up, 0);
	close(sock);
	ipc_server_free(s);
	unlink(path);
}

/* Every place taken, answered from the last to the first. */
static void
all_places_are_found_in_any_order(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	struct ipc_run m = {0};
	int i;

	for (i = 0; i < IPC_WAITERS_MAX; i++) {
		assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m,
				     60000, answered, w, NULL),
		    0);
		if (i % 64 == 63)
			until(w, &w->messages, i + 1);
	}
	assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m, 60000,
			     answered, w, NULL),
	    -1);
	assert_non_null(ipc_client_peer(c)); /* busy, not silent */
	for (i = 1; i <= IPC_WAITERS_MAX; i++) {
		assert_int_equal(
		    ipc_refuse(w->asker, w->asked[IPC_WAITERS_MAX - i],
			FAILURE_REVOKED, "", 0),
		    0);
		if (i % 64 == 0)
			until(w, &w->answers, i);
	}
	assert_int_equal(w->gone, 0);
	assert_int_equal(w->down, 0);
	ipc_client_free(c);
}

/* A peer that answers nothing loses its connection once every place is taken
 * by requests whose time has passed; then service resumes. */
static void
a_silent_peer_is_closed(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	struct ipc_run m = {0};
	int i, ups = w->up;

	for (i = 0; i < IPC_WAITERS_MAX; i++) {
		assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m, 1,
				     answered, w, NULL),
		    0);
		if (i % 64 == 63)
			until(w, &w->gone, i + 1);
	}
	assert_int_equal(
	    ipc_request(ipc_client_peer(c), IPC_RUN, &m, 1, answered, w, NULL),
	    -1);
	until(w, &w->up, ups + 2);
	assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m, 1000,
			     answered, w, NULL),
	    0);
	ipc_client_free(c);
}

static void
turn(struct world *w, long ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_base_loopexit(w->base, &tv);
	event_base_dispatch(w->base);
}

static bool
is_closed(int sock)
{
	char c[4096];
	ssize_t n;

	while ((n = recv(sock, c, sizeof(c), MSG_DONTWAIT)) > 0)
		;
	return n == 0;
}

/* Connects and says nothing: on either side the place is free again. */
static void
who_says_no_hello_is_closed(void **state)
{
	struct world *w = *state;
	struct ipc_client *c;
	char path[128];
	struct err e;
	int sock, mute, i, n;

	ipc_peer_hello_ms = 100;
	sock = ipc_connect_path(w->path, true, NULL);
	assert_true(sock >= 0);
	snprintf(path, sizeof(path), "%s.mute", w->path);
	mute = ipc_listen_path(path, &e);
	assert_true(mute >= 0);
	c = ipc_client_new(w->base, path, "mute", IPC_ROLE_GATEWAY,
	    IPC_ROLE_SANDBOXD, &handlers, w, NULL);
	assert_non_null(c);
	for (n = 0; n < 250 && !is_closed(sock); n++)
		turn(w, 20);
	assert_true(is_closed(sock));
	close(sock);
	/* The client gives the mute one up and tries again. */
	for (i = 0; i < 2; i++) {
		for (n = 0; n < 250; n++) {
			sock = accept4(mute, NULL, NULL, SOCK_CLOEXEC);
			if (sock >= 0)
				break;
			turn(w, 20);
		}
		assert_true(sock >= 0);
		close(sock);
	}
	assert_int_equal(w->up, 0);
	ipc_client_free(c);
	close(mute);
	unlink(path);
	/* An honest one stays. */
	c = connect_client(w);
	turn(w, 300);
	assert_non_null(ipc_client_peer(c));
	assert_int_equal(w->down, 0);
	ipc_client_free(c);
	ipc_peer_hello_ms = IPC_HELLO_MS;
}

/* No descriptor left: a waiting connection must not make the loop spin, and a
 * large answer becomes a small one instead of none. */
static void
out_of_descriptors(void **state)
{
	struct world *w = *state;
	struct ipc_client *c = connect_client(w);
	struct timeval tv = {0, 50000};
	struct ipc_call_result r = {.outcome = OUTCOME_DONE};
	uint8_t *blob = calloc(1, 300000);
	struct ipc_run m = {0};
	struct rlimit old, none;
	int sock, turns = 0, ups;
	uint64_t end;

	assert_non_null(blob);
	assert_int_equal(ipc_request(ipc_client_peer(c), IPC_RUN, &m, 5000,
			     answered, w, NULL),
	    0);
	until(w, &w->messages, 1);
	ups = w->up;
	sock = ipc_connect_path(w->path, true, NULL);
	assert_true(sock >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r.body_meta = ipc_bytes(blob, 300000);
	assert_int_equal(
	    ipc_answer(w->asker, w->asked[0], IPC_CALL_RESULT, &r), -1);
	for (end = now_boot_ms() + 350; now_boot_ms() < end; turns++) {
		event_base_loopexit(w->base, &tv);
		event_base_loop(w->base, EVLOOP_ONCE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	if (turns > 40)
		fail_msg("%d turns of the loop", turns);
	assert_int_equal(w->answers, 1);
	assert_int_equal(w->failure, FAILURE_LOST);
	assert_int_equal(w->down, 0);
	/* Who waited is taken now. */
	{
		struct ipc_hello h = {
		    .table = ipc_table_hash, .process = ipc_str("late")};

		assert_int_equal(ipc_write(sock, IPC_HELLO, 0, &h, NULL), 0);
		until(w, &w->up, ups + 1);
	}
	close(sock);
	free(blob);
	ipc_client_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		requests_are_answered_with_parts_and_memfds, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_lost_peer_tells_its_waiters_and_comes_back, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		forgotten_at_a_closing_peer, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_late_answer_is_dropped_but_not_a_violation, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_slow_machine_waits_longer, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		rule_breakers_are_closed_without_effect, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		another_build_is_closed, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		other_users_are_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		all_places_are_found_in_any_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_silent_peer_is_closed, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		who_says_no_hello_is_closed, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		out_of_descriptors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
