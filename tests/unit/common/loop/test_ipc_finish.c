/*
 * The end of a listener over real sockets: what was sent before is answered,
 * what comes later fails on the sender's side, and nobody waits in vain.
 */
#include <sys/socket.h>

#include <unistd.h>

#include <event2/event.h>

#include "ipc_peer_internal.h"
#include "unit.h"

/* Requests: one turn of the reader takes IPC_BURST, a socket some 280 small
 * ones (its send buffer, which counts the kernel's own structures too). */
enum { MANY = 100, TOO_MANY = 1000 };

struct world {
	struct event_base *base;
	char dir[64], path[96];
	struct ipc_server *server;
	struct ipc_client *client;
	int up, down, messages, refused, gone, unsent;
	size_t answer; /* bytes; 0: upgrading */
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
	struct ipc_call_event ev = {.kind = 1};
	struct world *w = arg;
	char *text;

	w->messages++;
	if (w->answer > 0) {
		assert_non_null(text = calloc(1, w->answer));
		memset(text, 'x', w->answer - 1);
		ev.json = ipc_str(text);
		assert_int_equal(
		    ipc_answer(p, f->request, IPC_CALL_EVENT, &ev), 0);
		free(text);
	}
	return ipc_refuse(
	    p, f->request, FAILURE_UPGRADING, "it is being restarted", 0);
}

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct world *w = arg;

	if (f == NULL && gone == FAILURE_UPGRADING)
		w->unsent++;
	else if (f == NULL)
		w->gone++;
	else if (f->type == IPC_REFUSED)
		w->refused++;
}

static void
turn(struct world *w, long ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_base_loopexit(w->base, &tv);
	event_base_dispatch(w->base);
}

/* Runs the loop until *counter reaches want, at most five seconds. */
static void
until(struct world *w, const int *counter, int want)
{
	for (int i = 0; i < 1000 && *counter < want; i++)
		turn(w, 5);
	assert_int_equal(*counter, want);
}

static int
setup(void **state)
{
	static const struct ipc_handlers handlers = {up, message, down};
	struct world *w = calloc(1, sizeof(*w));
	uid_t me = getuid();

	assert_non_null(w);
	ipc_hello_set("test", "");
	assert_non_null(w->base = event_base_new());
	snprintf(w->dir, sizeof(w->dir), "/tmp/mcpbox-ipc-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/s.sock", w->dir);
	w->server = ipc_server_new(w->base, w->path, "test server",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_GATEWAY, &me, 1, &handlers, w, NULL);
	assert_non_null(w->server);
	w->client = ipc_client_new(w->base, w->path, "test client",
	    IPC_ROLE_GATEWAY, IPC_ROLE_SANDBOXD, &handlers, w, NULL);
	assert_non_null(w->client);
	until(w, &w->up, 2);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	ipc_client_free(w->client);
	ipc_server_free(w->server);
	turn(w, 20);
	event_base_free(w->base);
	unlink(w->path);
	rmdir(w->dir);
	free(w);
	return 0;
}

static int
ask(struct world *w, struct ipc_peer *p)
{
	struct ipc_run m = {0};

	return ipc_request(p, IPC_RUN, &m, 60000, answered, w, NULL);
}

static void
what_was_sent_is_answered_what_comes_later_fails(void **state)
{
	struct world *w = *state;
	struct ipc_peer *p = ipc_client_peer(w->client);

	for (int i = 0; i < MANY; i++)
		assert_int_equal(ask(w, p), 0);
	assert_false(ipc_server_finish(w->server));
	assert_int_equal(ask(w, p), -1);
	assert_null(ipc_client_peer(w->client));
	until(w, &w->down, 2);
	assert_int_equal(w->messages, MANY);
	assert_int_equal(w->refused, MANY);
	assert_int_equal(w->gone, 0);
	assert_true(ipc_server_finish(w->server));
	/* It comes back, but nobody lets it in. */
	turn(w, 400);
	assert_int_equal(w->up, 2);
	assert_null(ipc_client_peer(w->client));
}

/* More than the socket takes: what waits in the sender's queue was never read,
 * and whoever waits for an answer to it is told so once. */
static void
what_never_left_was_never_read(void **state)
{
	struct world *w = *state;
	struct ipc_peer *p = ipc_client_peer(w->client);
	uint64_t forgotten;
	struct ipc_run m = {0};
	int left;

	for (int i = 0; i < TOO_MANY; i++)
		assert_int_equal(ask(w, p), 0);
	assert_int_equal(
	    ipc_request(p, IPC_RUN, &m, 60000, answered, w, &forgotten), 0);
	ipc_forget(p, forgotten);
	assert_false(TAILQ_EMPTY(&p->out));
	assert_false(ipc_server_finish(w->server));
	until(w, &w->down, 2);
	left = TOO_MANY - w->messages;
	assert_in_range(left, 1, TOO_MANY - 1);
	assert_int_equal(w->refused, w->messages);
	assert_int_equal(w->unsent, left);
	assert_int_equal(w->gone, 0);
}

/* One that just ends had read none of what was still here; what the socket had
 * taken it may have. */
static void
what_never_left_is_told_apart(void **state)
{
	struct world *w = *state;
	struct ipc_peer *p = ipc_client_peer(w->client);
	struct ipc_peer *stuck = LIST_FIRST(&w->server->peers);
	struct ipc_out *o;
	int left = 0;

	ipc_peer_pause(stuck);
	for (int i = 0; i < TOO_MANY; i++)
		assert_int_equal(ask(w, p), 0);
	turn(w, 20);
	TAILQ_FOREACH(o, &p->out, link)
		left++;
	assert_in_range(left, 1, TOO_MANY - 1);
	ipc_peer_close(stuck);
	until(w, &w->gone, TOO_MANY - left);
	assert_int_equal(w->unsent, left);
	assert_int_equal(w->messages + w->refused, 0);
	until(w, &w->up, 4);
	assert_int_equal(ask(w, ipc_client_peer(w->client)), 0);
	until(w, &w->refused, 1);
}

/* Answers that the socket can't take at once, to one who reads late. */
static void
answers_leave_before_the_end(void **state)
{
	struct world *w = *state;
	struct ipc_peer *p = ipc_client_peer(w->client);

	w->answer = 60000;
	ipc_peer_pause(p);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ask(w, p), 0);
	assert_false(ipc_server_finish(w->server));
	until(w, &w->messages, MANY);
	turn(w, 100);
	assert_false(ipc_server_finish(w->server));
	assert_int_equal(w->refused + w->gone, 0);
	ipc_peer_resume(p);
	until(w, &w->refused, MANY);
	until(w, &w->down, 2);
	assert_int_equal(w->gone, 0);
}

/* One that is stuck there: requests fail at once, and a moment later the
 * connection is given up and made anew. */
static void
who_never_closes_is_given_up(void **state)
{
	struct world *w = *state;
	struct ipc_peer *p = ipc_client_peer(w->client);
	struct ipc_peer *stuck = LIST_FIRST(&w->server->peers);

	ipc_peer_pause(stuck);
	assert_int_equal(ask(w, p), 0);
	assert_int_equal(shutdown(stuck->fd, SHUT_RD), 0);
	assert_int_equal(ask(w, p), -1);
	assert_int_equal(ask(w, p), -1);
	turn(w, 200);
	assert_int_equal(w->down, 0);
	until(w, &w->gone, 1); /* the one that had left */
	until(w, &w->up, 4);
	assert_int_equal(ask(w, ipc_client_peer(w->client)), 0);
	until(w, &w->refused, 1);
	ipc_peer_close(stuck);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		what_was_sent_is_answered_what_comes_later_fails, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		what_never_left_was_never_read, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		what_never_left_is_told_apart, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		answers_leave_before_the_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		who_never_closes_is_given_up, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
