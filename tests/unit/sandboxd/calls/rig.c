/* See rig.h. */
#include <sys/socket.h>

#include <event2/event.h>

#include <errno.h>
#include <unistd.h>

#include "call_internal.h"
#include "ipc_io.h"
#include "rig.h"
#include "rights.h"
#include "unit.h"

static const struct ipc_id epoch = {"epoch epoch epoc"};

/* A turn sleeps a millisecond. No wait of the daemon that a test ends by time
 * is as long. */
enum { RIG_TURNS = 3000 };

struct rig rig;

/* FORK and KILL may come in either order: what is not wanted yet is kept. */
static struct ipc_frame kept[8];
static unsigned nkept;

static int
no_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	return -1;
}

static void
gw_down(struct ipc_peer *p, void *arg)
{
	calls_peer_gone(rig.calls, p);
	rig.gw_gone = true;
}

struct ipc_peer *
rig_adopt(int *ours, enum ipc_role role)
{
	static const struct ipc_handlers h = {
	    .message = no_message, .down = gw_down};
	struct ipc_peer *p;
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	*ours = sv[1];
	p = ipc_peer_adopt(rig.base, sv[0], "test", IPC_ROLE_SANDBOXD, role,
	    false, IPC_STATE_OPEN, &h, NULL, NULL);
	assert_non_null(p);
	return p;
}

void
rig_report(const char *interpreter)
{
	struct ipc_pool_report m = {.interpreter = ipc_str(interpreter),
	    .layers = ipc_str("fake=enforced\n")};

	assert_int_equal(
	    ipc_write(rig.pool_fd, IPC_POOL_REPORT, 0, &m, NULL), 0);
}

void
rig_give_pool(const char *interpreter)
{
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	rig.pool_fd = sv[1];
	assert_int_equal(pool_adopt(rig.pool, sv[0], 300), 0);
	rig_report(interpreter);
}

/* Where the kernel can't refuse descriptors: a closer that is never busy, since
 * no test sends any. */
static void
have_closer(void)
{
	static bool have;
	int sv[2];

	if (have || rights_refusable())
		return;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	rights_closer(sv[0]);
	have = true;
}

void
rig_start(const struct calls_conf *conf, unsigned slots)
{
	have_closer();
	memset(&rig, 0, sizeof(rig));
	while (nkept > 0)
		ipc_frame_free(&kept[--nkept]);
	rig.base = event_base_new();
	rig.records = records_new(rig.base, 16, &epoch);
	rig.calls = calls_new(rig.base, conf, rig.records);
	rig.pool = pool_new(rig.base, NULL, slots, &runners_pool_events,
	    calls_runners(rig.calls), NULL);
	calls_pool(rig.calls, rig.pool);
	rig.gw = rig_adopt(&rig.gw_fd, IPC_ROLE_GATEWAY);
	rig.adm = rig_adopt(&rig.adm_fd, IPC_ROLE_ADMIND);
	rig.fork.channel = -1;
	records_peer(rig.records, rig.adm);
	rig_give_pool("Python 3");
}

void
rig_end(void)
{
	if (rig.fork.channel >= 0)
		close(rig.fork.channel);
	if (rig.pool_fd >= 0)
		close(rig.pool_fd);
	if (rig.gw_fd >= 0)
		close(rig.gw_fd);
	close(rig.adm_fd);
	calls_free(rig.calls);
	records_free(rig.records);
	ipc_peer_close(rig.adm);
	if (!rig.gw_gone)
		ipc_peer_close(rig.gw);
	pool_free(rig.pool);
	/* What was closed is freed from the loop; nothing looks at it then. */
	rig.calls = calls_new(rig.base, &(struct calls_conf){0}, NULL);
	event_base_loop(rig.base, EVLOOP_NONBLOCK);
	calls_free(rig.calls);
	event_base_free(rig.base);
}

static bool
take_kept(enum ipc_type want, struct ipc_frame *f)
{
	for (unsigned i = 0; i < nkept; i++)
		if (kept[i].type == want) {
			*f = kept[i];
			nkept--;
			memmove(&kept[i], &kept[i + 1],
			    (nkept - i) * sizeof(kept[0]));
			return true;
		}
	return false;
}

/* Turns the loop until fd has a frame. Fails the test after RIG_TURNS, which
 * take longer on a slow machine: each lets the loop do all that is due. */
struct ipc_frame
rig_expect(int fd, enum ipc_type want)
{
	struct ipc_frame f;
	struct err e;
	int rc;

	if (fd == rig.pool_fd && take_kept(want, &f))
		return f;
	for (int i = 0; i < RIG_TURNS; i++) {
		event_base_loop(rig.base, EVLOOP_NONBLOCK);
		rc = ipc_read(fd, &f, &e);
		if (rc == 1 && f.type == want)
			return f;
		if (rc == 1 && fd == rig.pool_fd && nkept < 8) {
			kept[nkept++] = f;
			continue;
		}
		if (rc == 1)
			fail_msg("%s came", ipc_name(f.type));
		if (rc == 0 || errno != EAGAIN)
			fail_msg("closed while waiting for %s", ipc_name(want));
		usleep(1000);
	}
	fail_msg("no %s", ipc_name(want));
	abort();
}

void
rig_turn(int ms)
{
	for (int i = 0; i < ms; i++) {
		event_base_loop(rig.base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

void
rig_until(bool (*is)(const void *arg), const void *arg)
{
	for (int i = 0; i < RIG_TURNS && !is(arg); i++)
		rig_turn(1);
	assert_true(is(arg));
}

struct call *
rig_call(struct ipc_id id)
{
	struct call *c = TABLE_OBJECT(
	    struct call, node, table_find(&rig.calls->by_id, &id, sizeof(id)));

	assert_non_null(c);
	return c;
}

/* Nothing may have come on fd. */
void
rig_expect_silence(int fd)
{
	struct ipc_frame f;
	struct err e;

	rig_turn(20);
	if (fd == rig.pool_fd)
		assert_int_equal(nkept, 0);
	assert_int_equal(ipc_read(fd, &f, &e), -1);
	assert_int_equal(errno, EAGAIN);
}

struct held *
rig_held(uint64_t timeout_ms, uint8_t version)
{
	struct held *h = calloc(1, sizeof(*h));

	h->id.b[0] = ++rig.ids;
	h->kind = CONTEXT_TOOL;
	h->listener = LISTENER_LOCAL;
	h->timeout_ms = timeout_ms;
	h->code = ipc_str("code");
	h->name = ipc_str("demo__t");
	h->limit[LIMIT_MEMORY_BYTES] = 1 << 28;
	h->limit[LIMIT_PROCESSES] = 64;
	h->limit[LIMIT_TMP_BYTES] = 1 << 26;
	h->limit[LIMIT_RESULT_BYTES] = RESULT_MAX;
	h->limit[LIMIT_STDOUT_BYTES] = STDOUT_SHOWN_MAX;
	h->limit[LIMIT_LOG_RATE] = 10;
	h->limit[LIMIT_PROGRESS_RATE] = 10;
	if (version != 0) {
		h->has_version = true;
		memset(&h->version, version, sizeof(h->version));
	}
	h->principal = ipc_str("local");
	h->record = record_new(&h->id, ipc_str("intent"));
	return h;
}

void
rig_run_held(struct held *h)
{
	assert_int_equal(
	    calls_run(rig.calls, rig.gw, rig.ids, h, ipc_str("{}")), 0);
}

struct ipc_id
rig_run_version(uint64_t timeout_ms, uint8_t version)
{
	rig_run_held(rig_held(timeout_ms, version));
	/* The call may be over, and what was held gone, by now. */
	return (struct ipc_id){{rig.ids}};
}

struct ipc_fork
rig_fork(void)
{
	struct ipc_frame f = rig_expect(rig.pool_fd, IPC_FORK);
	struct ipc_fork m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	/* Nothing here asks for modules: what m borrows is empty. */
	m.modules = ipc_bytes(NULL, 0);
	(void)evutil_make_socket_nonblocking(m.channel);
	ipc_frame_free(&f);
	return m;
}

struct ipc_id
rig_run(uint64_t timeout_ms)
{
	return rig_run_version(timeout_ms, 0);
}

void
rig_take_fork(void)
{
	if (rig.fork.channel >= 0)
		close(rig.fork.channel);
	rig.fork = rig_fork();
}

void
rig_say(enum ipc_type t, const void *m)
{
	assert_int_equal(ipc_write(rig.fork.channel, t, 0, m, NULL), 0);
}

void
rig_ready(void)
{
	struct ipc_ready ready;

	memset(&ready, 0, sizeof(ready));
	rig_say(IPC_READY, &ready);
}

/* EXECUTE, ARGUMENTS, SECRETS. How many bytes EXECUTE's blob has. */
size_t
rig_executed(uint8_t kind)
{
	struct ipc_frame f = rig_expect(rig.fork.channel, IPC_EXECUTE);
	struct ipc_execute x;
	size_t n;

	assert_int_equal(ipc_decode(&f, &x, NULL), 0);
	assert_int_equal(x.kind, kind);
	n = x.code.n;
	ipc_frame_free(&f);
	f = rig_expect(rig.fork.channel, IPC_ARGUMENTS);
	ipc_frame_free(&f);
	f = rig_expect(rig.fork.channel, IPC_SECRETS);
	ipc_frame_free(&f);
	return n;
}

/* From FORK to a running tool. */
void
rig_to_running(void)
{
	rig_take_fork();
	rig_ready();
	(void)rig_executed(CONTEXT_TOOL);
}

void
rig_send_result(void)
{
	static const char body[] = "{\"content\":[]}";
	struct ipc_content_part p = {.data = ipc_str(body)};
	struct ipc_run_result res = {.length = sizeof(body) - 1};

	rig_say(IPC_CONTENT_PART, &p);
	rig_say(IPC_RUN_RESULT, &res);
}

void
rig_send_exited(uint32_t code, uint32_t status)
{
	struct ipc_exited m = {.slot = rig.fork.slot,
	    .generation = rig.fork.generation,
	    .status = code << 16 | status,
	    .cpu_us = 1234};

	assert_int_equal(ipc_write(rig.pool_fd, IPC_EXITED, 0, &m, NULL), 0);
}

void
rig_take_kill(void)
{
	struct ipc_frame f = rig_expect(rig.pool_fd, IPC_KILL);
	struct ipc_kill k;

	assert_int_equal(ipc_decode(&f, &k, NULL), 0);
	assert_int_equal(k.generation, rig.fork.generation);
	ipc_frame_free(&f);
}

void
rig_take_result(enum outcome o, enum failure fl)
{
	struct ipc_frame f = rig_expect(rig.gw_fd, IPC_CALL_RESULT);
	struct ipc_call_result m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, fl);
	ipc_frame_free(&f);
}

uint64_t
rig_take_refused(enum failure fl)
{
	struct ipc_frame f = rig_expect(rig.gw_fd, IPC_REFUSED);
	struct ipc_refused m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.failure, fl);
	ipc_frame_free(&f);
	return m.retry_after_ms;
}

void
rig_take_record(
    struct ipc_id id, enum outcome o, enum failure fl, bool delivered, bool ok)
{
	struct ipc_frame f = rig_expect(rig.adm_fd, IPC_RECORD);
	struct ipc_record m;
	struct ipc_ok answer;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_memory_equal(&m.execution, &id, sizeof(id));
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, fl);
	assert_int_equal(m.delivered, delivered);
	assert_true(ipc_streq(m.intent, "intent"));
	memset(&answer, 0, sizeof(answer));
	if (ok)
		assert_int_equal(
		    ipc_write(rig.adm_fd, IPC_OK, m.request, &answer, NULL), 0);
	ipc_frame_free(&f);
}
