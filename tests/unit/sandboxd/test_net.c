/*
 * Calls that may connect, against a scripted pool, runner and egress: what is
 * said to egress and when, what a refusal becomes, and that a call which
 * declares nothing says nothing.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "call_internal.h"
#include "callnet.h"
#include "ids.h"
#include "ipc_io.h"
#include "json.h"
#include "rig.h"

static int egress = -1; /* our end */
static struct ipc_peer *theirs;
static const struct ipc_id server = {"server of a call"};

static void
egress_up(void)
{
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	egress = sv[1];
	theirs = ipc_peer_adopt(rig.base, sv[0], "egress", IPC_ROLE_SANDBOXD,
	    IPC_ROLE_EGRESS, false, IPC_STATE_OPEN, &nets_handlers,
	    calls_nets(rig.calls), NULL);
	assert_non_null(theirs);
	nets_adopt(calls_nets(rig.calls), theirs);
}

static void
egress_down(void)
{
	close(egress);
	egress = -1;
	theirs = NULL;
	rig_turn(5);
}

static int
setup(void **state)
{
	static const struct calls_conf conf = {
	    .queue = 2, .queue_wait_ms = 500};

	rig_start(&conf, 2);
	egress_up();
	return 0;
}

static int
teardown(void **state)
{
	if (egress >= 0)
		close(egress);
	egress = -1;
	rig_end();
	return 0;
}

static struct held *
connecting(uint64_t timeout_ms)
{
	struct held *h = rig_held(timeout_ms, 0);

	buf_init(&h->requires, 1024);
	buf_init(&h->grants, 1024);
	buf_puts(&h->requires, "tcp api.example 0\n");
	buf_puts(&h->grants, "tcp api.example 443\n");
	h->has_server = true;
	h->server = server;
	h->granted_by = 7;
	h->limit[LIMIT_CONNECTIONS] = 9;
	h->limit[LIMIT_NETWORK_BYTES] = 5000;
	h->limit[LIMIT_NETWORK_RATE] = 6000;
	return h;
}

static struct ipc_id
run(uint64_t timeout_ms)
{
	rig_run_held(connecting(timeout_ms));
	return (struct ipc_id){{rig.ids}};
}

/* NET_OPEN of the present runner; its request. */
static uint64_t
take_open(const char *grants)
{
	struct ipc_frame f = rig_expect(egress, IPC_NET_OPEN);
	struct ipc_net_open m;
	size_t n = strlen("tcp api.example 0\n");

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.net, rig.fork.generation);
	assert_int_equal(m.execution.b[0], rig.ids);
	assert_int_equal(m.connections, 9);
	assert_int_equal(m.bytes, 5000);
	assert_int_equal(m.bytes_minute, 6000);
	assert_int_equal(m.requires_len, n);
	assert_memory_equal(m.hosts.p, "tcp api.example 0\n", n);
	assert_int_equal(m.hosts.n - n, strlen(grants));
	assert_memory_equal(m.hosts.p + n, grants, m.hosts.n - n);
	ipc_frame_free(&f);
	return m.request;
}

static void
answer_ok(uint64_t request)
{
	struct ipc_ok m = {0};

	assert_int_equal(ipc_write(egress, IPC_OK, request, &m, NULL), 0);
}

static void
forked(void)
{
	rig_take_fork();
	assert_int_equal(rig.fork.network, 1);
	rig_ready();
}

/* From RUN to a tool that runs. */
static void
to_running(void)
{
	forked();
	answer_ok(take_open("tcp api.example 443\n"));
	(void)rig_executed(CONTEXT_TOOL);
}

static void
tell(uint8_t kind, const char *host, uint16_t port, const char *text)
{
	struct ipc_net_event m = {.net = rig.fork.generation,
	    .kind = kind,
	    .host = ipc_str(host),
	    .port = port,
	    .text = ipc_str(text)};

	assert_int_equal(ipc_write(egress, IPC_NET_EVENT, 0, &m, NULL), 0);
}

/* Takes NET_CLOSE and reports this. */
static void
report(const char *json)
{
	struct ipc_frame f = rig_expect(egress, IPC_NET_CLOSE);
	struct ipc_net_close q;
	struct ipc_net_report m = {.bytes = 77, .connections = 3, .refused = 1};

	assert_int_equal(ipc_decode(&f, &q, NULL), 0);
	assert_int_equal(q.net, rig.fork.generation);
	ipc_frame_free(&f);
	m.net = q.net;
	m.json = ipc_str(json);
	assert_int_equal(
	    ipc_write(egress, IPC_NET_REPORT, q.request, &m, NULL), 0);
}

static void
take_record(struct ipc_id id, enum outcome o, enum failure fl,
    const char *network, uint32_t connections)
{
	struct ipc_frame f = rig_expect(rig.adm_fd, IPC_RECORD);
	struct ipc_record m;
	struct ipc_ok ok = {0};

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_memory_equal(&m.execution, &id, sizeof(id));
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, fl);
	assert_true(ipc_streq(m.network, network));
	assert_int_equal(m.connections, connections);
	assert_int_equal(m.net_refused, connections == 0 ? 0 : 1);
	assert_int_equal(m.net_bytes, connections == 0 ? 0 : 77);
	assert_int_equal(
	    ipc_write(rig.adm_fd, IPC_OK, m.request, &ok, NULL), 0);
	ipc_frame_free(&f);
}

static void
say_error(enum failure fl)
{
	static const char body[] =
	    "{\"content\":[{\"type\":\"text\",\"text\":\"PermissionError\"}],"
	    "\"isError\":true}";
	struct ipc_content_part p = {.data = ipc_str(body)};
	struct ipc_run_error e = {
	    .failure = (uint16_t)fl, .length = sizeof(body) - 1};

	rig_say(IPC_CONTENT_PART, &p);
	rig_say(IPC_RUN_ERROR, &e);
}

/* CALL_RESULT; its body and _meta must hold this text. */
static void
take_result(enum outcome o, enum failure fl, const char *text)
{
	struct ipc_frame f = rig_expect(rig.gw_fd, IPC_CALL_RESULT);
	struct ipc_call_result m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, fl);
	if (text != NULL)
		assert_non_null(
		    memmem(m.body_meta.p, m.body_len, text, strlen(text)));
	else
		assert_null(memmem(
		    m.body_meta.p, m.body_len, "Network", strlen("Network")));
	assert_int_equal(json_scan(m.body_meta.p, m.body_len, NULL), 0);
	ipc_frame_free(&f);
}

static void
take_warning(const char *text)
{
	struct ipc_frame f = rig_expect(rig.gw_fd, IPC_CALL_EVENT);
	struct ipc_call_event m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.kind, 2);
	assert_non_null(memmem(m.json.p, m.json.n, text, strlen(text)));
	assert_non_null(memmem(m.json.p, m.json.n, "\"warning\"", 9));
	ipc_frame_free(&f);
}

static void
end_runner(void)
{
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
}

/* One that declares nothing: no word to egress, the ordinary profile. */
static void
test_nothing_declared_says_nothing(void **state)
{
	struct ipc_id id = rig_run(1000);

	rig_take_fork();
	assert_int_equal(rig.fork.network, 0);
	rig_ready();
	(void)rig_executed(CONTEXT_TOOL);
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	end_runner();
	take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 0);
	rig_expect_silence(egress);
}

/* Nothing runs before egress knows it; the record waits for the report. */
static void
test_opened_before_it_runs(void **state)
{
	static const char json[] = "[{\"host\":\"api.example\"}]";
	struct ipc_id id = run(1000);
	struct ipc_frame f;
	uint64_t request;

	forked();
	request = take_open("tcp api.example 443\n");
	f = rig_expect(rig.fork.channel, IPC_EXECUTE);
	ipc_frame_free(&f);
	rig_expect_silence(rig.fork.channel);
	answer_ok(request);
	f = rig_expect(rig.fork.channel, IPC_ARGUMENTS);
	ipc_frame_free(&f);
	f = rig_expect(rig.fork.channel, IPC_SECRETS);
	ipc_frame_free(&f);
	rig_send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	rig_expect_silence(egress);
	end_runner();
	rig_expect_silence(rig.adm_fd);
	report(json);
	take_record(id, OUTCOME_DONE, FAILURE_NONE, json, 3);
}

/* egress' word may be read after the tool's error: it is in the error still. */
static void
test_a_refusal_is_in_the_error(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	say_error(FAILURE_EXCEPTION);
	rig_turn(5);
	rig_expect_silence(rig.gw_fd);
	tell(NET_EVENT_REFUSED, "other.example", 8080,
	    "no grant covers it\x1b[2J.");
	report("[]");
	take_warning("other.example port 8080");
	take_result(OUTCOME_FAILED, FAILURE_MISSING_GRANT,
	    "Network access to other.example port 8080 failed: no grant covers "
	    "it [2J. Ask for access with mcpbox_request_network_access.");
	end_runner();
	take_record(id, OUTCOME_FAILED, FAILURE_MISSING_GRANT, "", 3);
}

static void
test_what_no_grant_opens_is_no_missing_grant(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	tell(NET_EVENT_NEVER, "169.254.169.254", 80, "cloud metadata.");
	tell(NET_EVENT_FAILED, "api.example", 443, "no such name.");
	take_warning("169.254.169.254 port 80");
	take_warning("no such name");
	say_error(FAILURE_EXCEPTION);
	report("[]");
	take_result(OUTCOME_FAILED, FAILURE_EXCEPTION, "cloud metadata.");
	end_runner();
	take_record(id, OUTCOME_FAILED, FAILURE_EXCEPTION, "", 3);
}

/* A tool that minds a refusal itself has a result like any other. */
static void
test_a_refusal_that_was_minded(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	tell(NET_EVENT_REFUSED, "other.example", 80, "no grant.");
	take_warning("other.example");
	rig_send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	end_runner();
	report("[]");
	take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 3);
}

/* A hundred refusals are some warnings, and one error of bounded length; the
 * same place is named once. Secrets that are host names are not shown. */
static void
test_refusals_are_bounded_and_redacted(void **state)
{
	static const uint8_t secret[] = {1, 0, 0, 0, 1, 'k', 2, 0, 0, 0, 12,
	    'h', 'u', 'n', 't', 'e', 'r', '2', 'h', 'u', 'n', 't', 'r'};
	struct held *h = connecting(1000);
	struct ipc_frame f;
	struct ipc_call_result m;
	unsigned warnings = 0, named = 0;
	char host[64];
	const uint8_t *at;

	buf_init(&h->secrets, sizeof(secret));
	buf_put(&h->secrets, secret, sizeof(secret));
	rig_run_held(h);
	to_running();
	for (int i = 0; i < 100; i++) {
		(void)snprintf(
		    host, sizeof(host), "hunter2huntr.%d.example", i / 2);
		tell(NET_EVENT_REFUSED, host, 80, "no grant.");
	}
	rig_turn(20);
	say_error(FAILURE_EXCEPTION);
	report("[]");
	for (;;) {
		int rc;

		rig_turn(1);
		rc = ipc_read(rig.gw_fd, &f, NULL);
		if (rc == -1)
			continue;
		assert_int_equal(rc, 1);
		if (f.type == IPC_CALL_RESULT)
			break;
		warnings++;
		ipc_frame_free(&f);
	}
	assert_int_equal(warnings, CALLNET_LINES_MAX);
	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	at = m.body_meta.p;
	while ((at = memmem(at, (size_t)(m.body_meta.p + m.body_len - at),
		    "Network access to [secret].",
		    strlen("Network access to [secret]."))) != NULL) {
		named++;
		at++;
	}
	assert_int_equal(named, CALLNET_NOTES);
	assert_null(memmem(m.body_meta.p, m.body_meta.n, "hunter2huntr", 12));
	ipc_frame_free(&f);
	end_runner();
}

static void
test_limits_end_the_call(void **state)
{
	static const struct {
		uint8_t kind;
		const char *says;
	} rows[] = {{NET_EVENT_BYTES, "the limit network_bytes is 5000 bytes"},
	    {NET_EVENT_RATE, "the limit network_rate is 6000 bytes a minute"}};

	for (int i = 0; i < 2; i++) {
		struct ipc_id id = run(1000);

		to_running();
		tell(rows[i].kind, "", 0, "used up");
		take_result(OUTCOME_FAILED, FAILURE_LIMIT, rows[i].says);
		end_runner();
		report("[]");
		take_record(id, OUTCOME_FAILED, FAILURE_LIMIT, "", 3);
	}
}

static void
test_refused_by_egress(void **state)
{
	struct ipc_refused no = {.failure = FAILURE_BUSY,
	    .message = ipc_str("too many calls are open")};
	struct ipc_id id = run(1000);

	forked();
	assert_int_equal(ipc_write(egress, IPC_REFUSED,
			     take_open("tcp api.example 443\n"), &no, NULL),
	    0);
	(void)rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	end_runner();
	take_record(id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, "", 0);
}

/* Away for a moment it is waited for; running calls are opened again, with
 * what they are granted by then. */
static void
test_egress_is_restarted(void **state)
{
	struct regrant r = {.server = server, .number = 8};
	struct ipc_id id = run(3000);

	to_running();
	egress_down();
	buf_init(&r.grants, 100);
	buf_puts(&r.grants, "tcp b.example 0\n");
	calls_regrant(rig.calls, &r);
	regrant_free(&r);
	egress_up();
	answer_ok(take_open("tcp b.example 0\n"));
	rig_turn(5);
	rig_send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	end_runner();
	report("[{\"host\":\"b.example\"}]");
	/* What it did before is not known, and that is said. */
	take_record(id, OUTCOME_DONE, FAILURE_NONE,
	    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended "
	    "or did not report: what was connected to before is not known\"},"
	    "{\"host\":\"b.example\"}]",
	    3);
	/* One that begins meanwhile waits for it. */
	egress_down();
	id = run(3000);
	forked();
	rig_turn(5);
	egress_up();
	answer_ok(take_open("tcp api.example 443\n"));
	(void)rig_executed(CONTEXT_TOOL);
	egress_down();
	rig_send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	end_runner();
	take_record(id, OUTCOME_DONE, FAILURE_NONE,
	    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended "
	    "or did not report: what was connected to before is not known\"}]",
	    0);
}

/* Away for long: only calls that would connect notice. */
static void
test_no_egress(void **state)
{
	struct ipc_id id;

	egress_down();
	usleep((NET_AWAY_MS + 50) * 1000);
	id = run(1000);
	forked();
	(void)rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	end_runner();
	take_record(id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, "", 0);
	id = rig_run(1000);
	rig_to_running();
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	end_runner();
	take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 0);
}

/* egress that is stuck delays the call's record, not its answer. */
static void
test_a_report_that_does_not_come(void **state)
{
	struct ipc_id id = run(1000);
	struct ipc_frame f;

	to_running();
	rig_send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	end_runner();
	f = rig_expect(egress, IPC_NET_CLOSE);
	ipc_frame_free(&f);
	take_record(id, OUTCOME_DONE, FAILURE_NONE,
	    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended "
	    "or did not report: what was connected to before is not known\"}]",
	    0);
	/* One that failed gets its error without it. */
	id = run(1000);
	to_running();
	say_error(FAILURE_EXCEPTION);
	f = rig_expect(egress, IPC_NET_CLOSE);
	ipc_frame_free(&f);
	take_result(OUTCOME_FAILED, FAILURE_EXCEPTION, NULL);
}

static void
test_a_report_that_is_none(void **state)
{
	static const char *const bad[] = {"{}", "[", "[1] x", "null"};

	for (int i = 0; i < 4; i++) {
		struct ipc_id id = run(1000);

		to_running();
		rig_send_result();
		take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
		end_runner();
		report(bad[i]);
		take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 3);
	}
}

/* A running call's grants change; another server's leave it alone, and so does
 * an older list. */
static void
test_regrant(void **state)
{
	struct regrant r = {.server = server, .number = 8};
	struct ipc_net_grants m;
	struct ipc_frame f;

	(void)run(3000);
	to_running();
	buf_init(&r.grants, 100);
	buf_puts(&r.grants, "tcp c.example 0\n");
	r.server.b[0] ^= 1;
	calls_regrant(rig.calls, &r);
	r.server.b[0] ^= 1;
	r.number = 7;
	calls_regrant(rig.calls, &r);
	rig_expect_silence(egress);
	r.number = 8;
	calls_regrant(rig.calls, &r);
	f = rig_expect(egress, IPC_NET_GRANTS);
	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.net, rig.fork.generation);
	assert_true(ipc_streq(m.grants, "tcp c.example 0\n"));
	ipc_frame_free(&f);
	/* The same once more, as a replay would have it. */
	calls_regrant(rig.calls, &r);
	rig_expect_silence(egress);
	/* All of them withdrawn. */
	buf_clear(&r.grants);
	r.number = 9;
	calls_regrant(rig.calls, &r);
	f = rig_expect(egress, IPC_NET_GRANTS);
	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.grants.n, 0);
	ipc_frame_free(&f);
	regrant_free(&r);
}

/* Its runner died before it ran: another one, which is another net. */
static void
test_another_runner_is_another_net(void **state)
{
	struct ipc_frame f;
	struct ipc_net_close q;
	uint64_t first;

	(void)run(3000);
	forked();
	(void)take_open("tcp api.example 443\n");
	first = rig.fork.generation;
	rig_send_exited(CLD_KILLED, SIGKILL);
	f = rig_expect(egress, IPC_NET_CLOSE);
	assert_int_equal(ipc_decode(&f, &q, NULL), 0);
	assert_int_equal(q.net, first);
	ipc_frame_free(&f);
	forked();
	assert_true(rig.fork.generation > first);
	answer_ok(take_open("tcp api.example 443\n"));
	(void)rig_executed(CONTEXT_TOOL);
}

/* The pool dies under a call: it ends as lost, and its net is closed. */
static void
test_a_pool_that_dies(void **state)
{
	struct ipc_id id = run(3000);

	to_running();
	close(rig.pool_fd);
	rig.pool_fd = -1;
	rig_turn(5);
	report("[{\"host\":\"api.example\"}]");
	(void)rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_record(id, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE,
	    "[{\"host\":\"api.example\"}]", 3);
}

/* Events of no net, or of one that is over, have no effect; whatever egress
 * says else ends the connection. */
static void
test_what_egress_may_say(void **state)
{
	struct ipc_ok ok = {0};
	uint8_t byte;

	(void)run(3000);
	to_running();
	rig.fork.generation += 1000;
	tell(NET_EVENT_BYTES, "", 0, "of nobody");
	rig.fork.generation -= 1000;
	tell(99, "", 0, "of no kind");
	rig_expect_silence(rig.gw_fd);
	assert_int_equal(ipc_write(egress, IPC_OK, 12345, &ok, NULL), 0);
	rig_turn(5);
	assert_int_equal(recv(egress, &byte, 1, MSG_DONTWAIT), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(test_nothing_declared_says_nothing),
	    T(test_opened_before_it_runs), T(test_a_refusal_is_in_the_error),
	    T(test_what_no_grant_opens_is_no_missing_grant),
	    T(test_a_refusal_that_was_minded),
	    T(test_refusals_are_bounded_and_redacted),
	    T(test_limits_end_the_call), T(test_refused_by_egress),
	    T(test_egress_is_restarted), T(test_no_egress),
	    T(test_a_report_that_does_not_come), T(test_a_report_that_is_none),
	    T(test_regrant), T(test_another_runner_is_another_net),
	    T(test_a_pool_that_dies), T(test_what_egress_may_say)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
