/*
 * Calls that may connect, against a scripted pool, runner and egress: what is
 * said to egress and when, what a refusal becomes, and that a call which
 * declares nothing says nothing.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <signal.h>
#include <unistd.h>

#include "call_internal.h"
#include "callnet.h"
#include "ids.h"
#include "ipc_io.h"
#include "json_scan.h"
#include "net_rig.h"
#include "unit.h"

/* One that declares nothing: no word to net_rig_egress, the ordinary profile.
 */
static void
test_nothing_declared_says_nothing(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_take_fork();
	assert_int_equal(rig.fork.network, 0);
	rig_ready();
	(void)rig_executed(CONTEXT_TOOL);
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	net_rig_end_runner();
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 0);
	rig_expect_silence(net_rig_egress);
}

/* Nothing runs before egress knows it; the record waits for the report. */
static void
test_opened_before_it_runs(void **state)
{
	static const char json[] = "[{\"host\":\"api.example\"}]";
	struct ipc_id id = net_rig_run(RIG_LONG_MS);
	struct ipc_frame f;
	uint64_t request;

	net_rig_forked();
	request = net_rig_take_open("tcp api.example 443\n");
	f = rig_expect(rig.fork.channel, IPC_EXECUTE);
	ipc_frame_free(&f);
	rig_expect_silence(rig.fork.channel);
	net_rig_answer_ok(request);
	f = rig_expect(rig.fork.channel, IPC_ARGUMENTS);
	ipc_frame_free(&f);
	f = rig_expect(rig.fork.channel, IPC_SECRETS);
	ipc_frame_free(&f);
	rig_send_result();
	net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	rig_expect_silence(net_rig_egress);
	net_rig_end_runner();
	rig_expect_silence(rig.adm_fd);
	net_rig_report(json);
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, json, 3);
}

/* egress' word may be read after the tool's error: it is in the error still. */
static void
test_a_refusal_is_in_the_error(void **state)
{
	struct ipc_id id = net_rig_run(RIG_LONG_MS);

	net_rig_to_running();
	net_rig_say_error(FAILURE_EXCEPTION);
	rig_turn(5);
	rig_expect_silence(rig.gw_fd);
	net_rig_tell(NET_EVENT_REFUSED, "other.example", 8080,
	    "no grant covers it\x1b[2J");
	net_rig_report("[]");
	net_rig_take_warning("other.example port 8080");
	net_rig_take_result(OUTCOME_FAILED, FAILURE_MISSING_GRANT,
	    "Network access to other.example port 8080 failed: no grant covers "
	    "it [2J. Ask for access with mcpbox_request_network_access.");
	net_rig_end_runner();
	net_rig_take_record(id, OUTCOME_FAILED, FAILURE_MISSING_GRANT, "", 3);
}

static void
test_what_no_grant_opens_is_no_missing_grant(void **state)
{
	struct ipc_id id = net_rig_run(RIG_LONG_MS);

	net_rig_to_running();
	net_rig_tell(NET_EVENT_NEVER, "169.254.169.254", 80, "cloud metadata.");
	net_rig_tell(NET_EVENT_FAILED, "api.example", 443, "no such name.");
	net_rig_take_warning("169.254.169.254 port 80");
	net_rig_take_warning("no such name");
	net_rig_say_error(FAILURE_EXCEPTION);
	net_rig_report("[]");
	net_rig_take_result(
	    OUTCOME_FAILED, FAILURE_EXCEPTION, "cloud metadata.");
	net_rig_end_runner();
	net_rig_take_record(id, OUTCOME_FAILED, FAILURE_EXCEPTION, "", 3);
}

/* A tool that minds a refusal itself has a result like any other. */
static void
test_a_refusal_that_was_minded(void **state)
{
	struct ipc_id id = net_rig_run(RIG_LONG_MS);

	net_rig_to_running();
	net_rig_tell(NET_EVENT_REFUSED, "other.example", 80, "no grant.");
	net_rig_take_warning("other.example");
	rig_send_result();
	net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	net_rig_end_runner();
	net_rig_report("[]");
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 3);
}

/* A hundred refusals are some warnings, and one error of bounded length; the
 * same place is named once. Secrets that are host names are not shown. */
static void
test_refusals_are_bounded_and_redacted(void **state)
{
	static const uint8_t secret[] = {1, 0, 0, 0, 1, 'k', 2, 0, 0, 0, 12,
	    'h', 'u', 'n', 't', 'e', 'r', '2', 'h', 'u', 'n', 't', 'r'};
	struct held *h = net_rig_connecting(1000);
	struct ipc_frame f;
	struct ipc_call_result m;
	unsigned warnings = 0, named = 0;
	char host[64];
	const uint8_t *at;

	buf_init(&h->secrets, sizeof(secret));
	buf_put(&h->secrets, secret, sizeof(secret));
	rig_run_held(h);
	net_rig_to_running();
	for (int i = 0; i < 100; i++) {
		(void)snprintf(
		    host, sizeof(host), "hunter2huntr.%d.example", i / 2);
		net_rig_tell(NET_EVENT_REFUSED, host, 80, "no grant.");
	}
	rig_turn(20);
	net_rig_say_error(FAILURE_EXCEPTION);
	net_rig_report("[]");
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
	net_rig_end_runner();
}

/* A name that is a secret is in no record; one that is like the report's own
 * words leaves nothing that could be misread. */
static void
test_the_record_has_no_secret(void **state)
{
	static const uint8_t host[] = {1, 0, 0, 0, 1, 'k', 2, 0, 0, 0, 12, 'h',
	    'u', 'n', 't', 'e', 'r', '2', 'h', 'u', 'n', 't', 'r'};
	static const uint8_t word[] = {1, 0, 0, 0, 1, 'k', 2, 0, 0, 0, 9, 'b',
	    'y', 't', 'e', 's', '_', 'o', 'u', 't', 1, 0, 0, 0, 1, 'l', 2, 0, 0,
	    0, 8, 'b', 'y', 't', 'e', 's', '_', 'i', 'n'};

	for (int i = 0; i < 2; i++) {
		struct held *h = net_rig_connecting(1000);
		struct ipc_id id = h->id;

		buf_init(&h->secrets, 100);
		if (i == 0)
			buf_put(&h->secrets, host, sizeof(host));
		else
			buf_put(&h->secrets, word, sizeof(word));
		rig_run_held(h);
		net_rig_to_running();
		rig_send_result();
		net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
		net_rig_end_runner();
		net_rig_report("[{\"host\":\"hunter2huntr.example\","
			       "\"bytes_in\":1,\"bytes_out\":2}]");
		net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE,
		    i == 0 ? "[{\"host\":\"[secret].example\",\"bytes_in\":1,"
			     "\"bytes_out\":2}]"
			   : "",
		    3);
	}
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
		struct ipc_id id = net_rig_run(RIG_LONG_MS);

		net_rig_to_running();
		net_rig_tell(rows[i].kind, "", 0, "used up");
		net_rig_take_result(
		    OUTCOME_FAILED, FAILURE_LIMIT, rows[i].says);
		net_rig_end_runner();
		net_rig_report("[]");
		net_rig_take_record(id, OUTCOME_FAILED, FAILURE_LIMIT, "", 3);
	}
}

static void
test_refused_by_egress(void **state)
{
	struct ipc_refused no = {.failure = FAILURE_BUSY,
	    .message = ipc_str("too many calls are open")};
	struct ipc_id id = net_rig_run(RIG_LONG_MS);

	net_rig_forked();
	assert_int_equal(
	    ipc_write(net_rig_egress, IPC_REFUSED,
		net_rig_take_open("tcp api.example 443\n"), &no, NULL),
	    0);
	(void)rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	net_rig_end_runner();
	net_rig_take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, "", 0);
}

/* A running call's grants change; another server's leave it alone, and so does
 * an older list. */
static void
test_regrant(void **state)
{
	struct regrant r = {.server = net_rig_server, .number = 8};
	struct ipc_net_grants m;
	struct ipc_frame f;

	(void)net_rig_run(RIG_LONG_MS);
	net_rig_to_running();
	buf_init(&r.grants, 100);
	buf_puts(&r.grants, "tcp c.example 0\n");
	r.server.b[0] ^= 1;
	calls_regrant(rig.calls, &r);
	r.server.b[0] ^= 1;
	r.number = 7;
	calls_regrant(rig.calls, &r);
	rig_expect_silence(net_rig_egress);
	r.number = 8;
	calls_regrant(rig.calls, &r);
	f = rig_expect(net_rig_egress, IPC_NET_GRANTS);
	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.net, rig.fork.generation);
	assert_true(ipc_streq(m.grants, "tcp c.example 0\n"));
	ipc_frame_free(&f);
	/* The same once more, as a replay would have it. */
	calls_regrant(rig.calls, &r);
	rig_expect_silence(net_rig_egress);
	/* All of them withdrawn. */
	buf_clear(&r.grants);
	r.number = 9;
	calls_regrant(rig.calls, &r);
	f = rig_expect(net_rig_egress, IPC_NET_GRANTS);
	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.grants.n, 0);
	ipc_frame_free(&f);
	held_regrant_free(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, net_rig_setup, net_rig_teardown)
	    T(test_nothing_declared_says_nothing),
	    T(test_opened_before_it_runs), T(test_a_refusal_is_in_the_error),
	    T(test_what_no_grant_opens_is_no_missing_grant),
	    T(test_a_refusal_that_was_minded),
	    T(test_refusals_are_bounded_and_redacted),
	    T(test_the_record_has_no_secret), T(test_limits_end_the_call),
	    T(test_refused_by_egress), T(test_regrant)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
