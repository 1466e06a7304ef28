/* See net_rig.h. */
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

int net_rig_egress = -1;
static struct ipc_peer *theirs;
const struct ipc_id net_rig_server = {"server of a call"};

void
net_rig_egress_up(void)
{
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	net_rig_egress = sv[1];
	theirs = ipc_peer_adopt(rig.base, sv[0], "egress", IPC_ROLE_SANDBOXD,
	    IPC_ROLE_EGRESS, false, IPC_STATE_OPEN, &nets_handlers,
	    calls_nets(rig.calls), NULL);
	assert_non_null(theirs);
	nets_adopt(calls_nets(rig.calls), theirs);
}

void
net_rig_egress_down(void)
{
	close(net_rig_egress);
	net_rig_egress = -1;
	theirs = NULL;
	rig_turn(5);
}

int
net_rig_setup(void **state)
{
	static const struct calls_conf conf = {
	    .queue = 2, .queue_wait_ms = RIG_LONG_MS};

	rig_start(&conf, 2);
	net_rig_egress_up();
	return 0;
}

int
net_rig_teardown(void **state)
{
	if (net_rig_egress >= 0)
		close(net_rig_egress);
	net_rig_egress = -1;
	rig_end();
	return 0;
}

struct held *
net_rig_connecting(uint64_t timeout_ms)
{
	struct held *h = rig_held(timeout_ms, 0);

	buf_init(&h->requires, 1024);
	buf_init(&h->grants, 1024);
	buf_puts(&h->requires, "tcp api.example 0\n");
	buf_puts(&h->grants, "tcp api.example 443\n");
	h->has_server = true;
	h->server = net_rig_server;
	h->granted_by = 7;
	h->limit[LIMIT_CONNECTIONS] = 9;
	h->limit[LIMIT_NETWORK_BYTES] = 5000;
	h->limit[LIMIT_NETWORK_RATE] = 6000;
	return h;
}

struct ipc_id
net_rig_run(uint64_t timeout_ms)
{
	rig_run_held(net_rig_connecting(timeout_ms));
	return (struct ipc_id){{rig.ids}};
}

/* NET_OPEN of the present runner; its request. */
uint64_t
net_rig_take_open(const char *grants)
{
	struct ipc_frame f = rig_expect(net_rig_egress, IPC_NET_OPEN);
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

void
net_rig_answer_ok(uint64_t request)
{
	struct ipc_ok m = {0};

	assert_int_equal(
	    ipc_write(net_rig_egress, IPC_OK, request, &m, NULL), 0);
}

void
net_rig_forked(void)
{
	rig_take_fork();
	assert_int_equal(rig.fork.network, 1);
	rig_ready();
}

/* From RUN to a tool that runs. */
void
net_rig_to_running(void)
{
	net_rig_forked();
	net_rig_answer_ok(net_rig_take_open("tcp api.example 443\n"));
	(void)rig_executed(CONTEXT_TOOL);
}

void
net_rig_tell(uint8_t kind, const char *host, uint16_t port, const char *text)
{
	struct ipc_net_event m = {.net = rig.fork.generation,
	    .kind = kind,
	    .host = ipc_str(host),
	    .port = port,
	    .text = ipc_str(text)};

	assert_int_equal(
	    ipc_write(net_rig_egress, IPC_NET_EVENT, 0, &m, NULL), 0);
}

/* Takes NET_CLOSE and reports this. */
void
net_rig_report(const char *json)
{
	struct ipc_frame f = rig_expect(net_rig_egress, IPC_NET_CLOSE);
	struct ipc_net_close q;
	struct ipc_net_report m = {.bytes = 77, .connections = 3, .refused = 1};

	assert_int_equal(ipc_decode(&f, &q, NULL), 0);
	assert_int_equal(q.net, rig.fork.generation);
	ipc_frame_free(&f);
	m.net = q.net;
	m.json = ipc_str(json);
	assert_int_equal(
	    ipc_write(net_rig_egress, IPC_NET_REPORT, q.request, &m, NULL), 0);
}

void
net_rig_take_record(struct ipc_id id, enum outcome o, enum failure fl,
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

void
net_rig_say_error(enum failure fl)
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
void
net_rig_take_result(enum outcome o, enum failure fl, const char *text)
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

void
net_rig_take_warning(const char *text)
{
	struct ipc_frame f = rig_expect(rig.gw_fd, IPC_CALL_EVENT);
	struct ipc_call_event m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.kind, 2);
	assert_non_null(memmem(m.json.p, m.json.n, text, strlen(text)));
	assert_non_null(memmem(m.json.p, m.json.n, "\"warning\"", 9));
	ipc_frame_free(&f);
}

void
net_rig_end_runner(void)
{
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
}
