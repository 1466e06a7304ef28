/* A person's yes to one call: what the seal binds, and that it is used once. */
#include "calls.h"
#include "contexts.h"
#include "ids.h"
#include "seal.h"
#include "tlv.h"
#include "unit.h"
#include "version.h"

enum { NOW_S = 1000000 };
#define NOW_US (NOW_S * UINT64_C(1000000))
/* Since this machine was started. */
#define NOW_BOOT_MS UINT64_C(5000000)
static const struct calls_time now = {NOW_US, NOW_BOOT_MS};

static struct keys keys;
static const struct seal_by by = {
    .approver = {(const uint8_t *)"admin", 5}, .time_us = 77};
static struct ipc_id request = {{7}};
static const char arguments[] = "{\"n\":1}";

static struct callreq
call(void)
{
	struct callreq r = {.tool = ipc_str("demo__wipe"),
	    .principal = ipc_str("anna"),
	    .arguments = ipc_str(arguments),
	    .request = request,
	    .listener = LISTENER_LOCAL,
	    .expires_ms = NOW_S * UINT64_C(1000) + 60000};

	memset(r.version.b, 5, sizeof(r.version.b));
	return r;
}

static int
seal_it(const struct calls *c, const struct callreq *r, struct buf *seal,
    struct err *err)
{
	struct ipc_hash hash, want;
	struct buf pre;
	int rc;

	buf_init(&pre, CALLREQ_MAX);
	buf_init(seal, CALLS_SEAL_MAX);
	assert_int_equal(callreq_write(r, &pre, NULL), 0);
	rc = calls_seal(c, &keys, &request, ipc_bytes(pre.p, pre.len),
	    ipc_str("admin"), &now, seal, &hash, err);
	if (rc == 0) {
		sha256(pre.p, pre.len, &want);
		assert_memory_equal(&hash, &want, sizeof(hash));
	}
	buf_free(&pre);
	return rc;
}

static struct calls_run
run_of(const struct callreq *r, struct ipc_hash *args)
{
	struct calls_run run = {.version = r->version,
	    .tool = r->tool,
	    .principal = r->principal,
	    .listener = r->listener};

	sha256(r->arguments.p, r->arguments.n, args);
	run.args_sha256 = ipc_bytes(args->b, sizeof(args->b));
	return run;
}

static int
check_at(struct calls *c, const struct buf *seal, size_t n,
    const struct calls_run *run, uint64_t unix_us)
{
	/* Both clocks agree, unless a test says otherwise. */
	const struct calls_time at = {
	    unix_us, NOW_BOOT_MS + (unix_us - NOW_US) / 1000};
	struct ipc_hash hash;
	uint64_t until;
	struct err err;
	int rc = calls_check(
	    c, &keys, ipc_bytes(seal->p, n), run, &at, &hash, &until, &err);

	if (rc == -1)
		assert_int_equal(err.failure, FAILURE_NOT_CONFIRMED);
	return rc;
}

static void
binds(void **state)
{
	struct calls *c = calls_new();
	struct callreq r = call();
	struct ipc_hash args, other;
	struct calls_run run = run_of(&r, &args), bad;
	struct buf seal;

	assert_int_equal(seal_it(c, &r, &seal, NULL), 0);
	assert_int_equal(check_at(c, &seal, seal.len, &run, NOW_US), 0);
	/* Each in its turn another. */
	bad = run;
	bad.version.b[31] ^= 1;
	assert_int_equal(check_at(c, &seal, seal.len, &bad, NOW_US), -1);
	bad = run;
	bad.tool = ipc_str("demo__wipes");
	assert_int_equal(check_at(c, &seal, seal.len, &bad, NOW_US), -1);
	bad = run;
	bad.principal = ipc_str("ann");
	assert_int_equal(check_at(c, &seal, seal.len, &bad, NOW_US), -1);
	bad = run;
	bad.listener = LISTENER_TUNNEL;
	assert_int_equal(check_at(c, &seal, seal.len, &bad, NOW_US), -1);
	sha256("{\"n\":2}", 7, &other);
	bad = run;
	bad.args_sha256 = ipc_bytes(other.b, sizeof(other.b));
	assert_int_equal(check_at(c, &seal, seal.len, &bad, NOW_US), -1);
	/* Too late: at the very millisecond. */
	assert_int_equal(
	    check_at(c, &seal, seal.len, &run, r.expires_ms * 1000 - 1), 0);
	assert_int_equal(
	    check_at(c, &seal, seal.len, &run, r.expires_ms * 1000), -1);
	/* Not whole, not ours, not this life's. */
	for (size_t n = 0; n < seal.len; n++)
		assert_int_equal(check_at(c, &seal, n, &run, NOW_US), -1);
	for (size_t bit = 0; bit < seal.len * 8; bit++) {
		seal.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(
		    check_at(c, &seal, seal.len, &run, NOW_US), -1);
		seal.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_int_equal(
	    check_at(calls_new(), &seal, seal.len, &run, NOW_US), -1);
	assert_int_equal(check_at(c, &seal, seal.len, &run, NOW_US), 0);
	buf_free(&seal);
}

static void
seals_only_what_may_be(void **state)
{
	struct calls *c = calls_new();
	struct callreq r = call();
	struct buf seal;
	struct err err;

	r.request.b[0] = 8; /* of another request */
	assert_int_equal(seal_it(c, &r, &seal, &err), -1);
	assert_int_equal(err.failure, FAILURE_INVALID_PARAMS);
	r = call();
	r.expires_ms = NOW_S * UINT64_C(1000);
	assert_int_equal(seal_it(c, &r, &seal, &err), -1);
	assert_int_equal(err.failure, FAILURE_ALREADY_DECIDED);
	r.expires_ms = NOW_S * UINT64_C(1000) + CALLREQ_LIFE_MAX_MS;
	assert_int_equal(seal_it(c, &r, &seal, &err), 0);
	buf_free(&seal);
	r.expires_ms++;
	assert_int_equal(seal_it(c, &r, &seal, &err), -1);
	assert_int_equal(err.failure, FAILURE_TOO_LARGE);
	r.expires_ms = UINT64_MAX;
	assert_int_equal(seal_it(c, &r, &seal, &err), -1);
}

/* What is used is remembered until it has expired, and the memory is bounded:
 * when it is full nothing more is let by, rather than something forgotten. */
static void
remembers(void **state)
{
	struct calls *c = calls_new();
	struct callreq r = call();
	struct ipc_hash args, hash = {{0}};
	struct calls_time later = now;
	struct calls_run run = run_of(&r, &args);
	uint64_t until;
	struct buf seal;
	struct err err;

	assert_int_equal(seal_it(c, &r, &seal, NULL), 0);
	assert_int_equal(calls_check(c, &keys, ipc_bytes(seal.p, seal.len),
			     &run, &now, &hash, &until, &err),
	    0);
	assert_int_equal(until, NOW_BOOT_MS + 60000);
	assert_int_equal(calls_use(c, &hash, until, &now, &err), 0);
	assert_int_equal(check_at(c, &seal, seal.len, &run, NOW_US), -1);
	memset(&hash, 0, sizeof(hash));
	for (unsigned i = 1; i < CALLS_USED_MAX; i++) {
		hash.b[0] = (uint8_t)i;
		hash.b[1] = (uint8_t)(i >> 8);
		hash.b[2] = 1;
		assert_int_equal(calls_use(c, &hash, until, &now, &err), 0);
	}
	hash.b[3] = 1;
	assert_int_equal(calls_use(c, &hash, until, &now, &err), -1);
	assert_int_equal(err.failure, FAILURE_BUSY);
	assert_int_equal(check_at(c, &seal, seal.len, &run, NOW_US), -1);
	/* They expired: there is room. */
	later.boot_ms = until;
	assert_int_equal(calls_use(c, &hash, until + 1, &later, &err), 0);
	buf_free(&seal);
}

/* The wall clock jumps ahead and is set back, as a virtual machine's does: what
 * was used stays used, and a yes lives no longer than was said. */
static void
clock_is_set(void **state)
{
	struct calls *c = calls_new();
	struct callreq r = call();
	struct ipc_hash args, hash, other = {{1}};
	struct calls_run run = run_of(&r, &args);
	struct calls_time at = now;
	struct buf seal;
	uint64_t until;
	struct err err;

	assert_int_equal(seal_it(c, &r, &seal, NULL), 0);
	assert_int_equal(calls_check(c, &keys, ipc_bytes(seal.p, seal.len),
			     &run, &now, &hash, &until, &err),
	    0);
	assert_int_equal(calls_use(c, &hash, until, &now, &err), 0);
	/* Ahead: another call is used, which makes room. And back. */
	at.unix_us += UINT64_C(1000000) * 86400;
	at.boot_ms += 1000;
	assert_int_equal(calls_use(c, &other, until, &at, &err), 0);
	assert_int_equal(check_at(c, &seal, seal.len, &run, NOW_US), -1);
	buf_free(&seal);
	/* One that was not used: too late by the clock that nobody sets. */
	c = calls_new();
	assert_int_equal(seal_it(c, &r, &seal, NULL), 0);
	at = (struct calls_time){NOW_US, NOW_BOOT_MS + 59999};
	assert_int_equal(calls_check(c, &keys, ipc_bytes(seal.p, seal.len),
			     &run, &at, &hash, &until, &err),
	    0);
	at.boot_ms++;
	assert_int_equal(calls_check(c, &keys, ipc_bytes(seal.p, seal.len),
			     &run, &at, &hash, &until, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_NOT_CONFIRMED);
	buf_free(&seal);
}

/* ---- contexts ---- */

static void
make_version(struct buf *b, bool confirm)
{
	uint8_t id[16] = {1};

	buf_init(b, IPC_BLOB_MAX);
	version_begin(b);
	tlv_put_u64(b, VERSION_FORMAT, 1);
	tlv_put(b, VERSION_SERVER_ID, id, 16);
	tlv_put(b, VERSION_TOOL_ID, id, 16);
	tlv_puts(b, VERSION_SERVER_NAME, "demo");
	tlv_puts(b, VERSION_NAME, "wipe");
	tlv_puts(b, VERSION_EXPOSED_NAME, "demo__wipe");
	tlv_puts(b, VERSION_INPUT_SCHEMA, "{}");
	tlv_puts(b, VERSION_KIND, "python");
	tlv_puts(b, VERSION_CODE, "pass");
	if (confirm)
		tlv_put_u64(b, VERSION_CONFIRM, 1);
	assert_false(b->failed);
}

static enum failure
context(struct contexts *c, const struct buf *pre, const struct buf *call_seal,
    const char *principal, const char *args)
{
	struct ipc_seal_context msg = {
	    .kind = CONTEXT_TOOL, .listener = LISTENER_LOCAL};
	struct buf m, seal, intent, out;
	struct ipc_hash hash, digest;
	struct err err = {0};
	enum failure f = FAILURE_NONE;

	buf_init(&m, IPC_BLOB_MAX);
	buf_init(&seal, SEAL_MAX);
	buf_init(&intent, 1024);
	buf_init(&out, IPC_BLOB_MAX);
	assert_int_equal(seal_make(&keys, &request, pre->p, pre->len, &by,
			     &seal, &hash, NULL),
	    0);
	tlv_puts(&intent, INTENT_PRINCIPAL, principal);
	tlv_put_u64(&intent, INTENT_LISTENER, LISTENER_LOCAL);
	sha256(args, strlen(args), &digest);
	tlv_put(&m, CTX_PREIMAGE, pre->p, pre->len);
	tlv_put(&m, CTX_APPROVAL, seal.p, seal.len);
	tlv_put(&m, CTX_ARGS_SHA256, digest.b, 32);
	tlv_put_u64(&m, CTX_TIMEOUT_MS, 30000);
	tlv_put(&m, CTX_INTENT, intent.p, intent.len);
	if (call_seal != NULL)
		tlv_put(&m, CTX_CALL_APPROVAL, call_seal->p, call_seal->len);
	msg.material = ipc_bytes(m.p, m.len);
	if (contexts_seal(c, &keys, &msg, &out, &err) == -1)
		f = err.failure;
	buf_free(&m);
	buf_free(&seal);
	buf_free(&intent);
	buf_free(&out);
	return f;
}

static void
context_of_a_confirmed_call(void **state)
{
	struct contexts *c = contexts_new();
	struct callreq r = call();
	uint8_t key[KEY_LEN];
	struct ipc_id epoch = {{0}};
	struct buf pre, seal, plain, version_seal;
	struct ipc_hash hash;
	struct err err;
	struct calls_time then;
	struct buf call_pre;

	contexts_key(c, &epoch, key);
	make_version(&pre, true);
	make_version(&plain, false);
	sha256(pre.p, pre.len, &r.version);
	buf_init(&call_pre, CALLREQ_MAX);
	buf_init(&seal, CALLS_SEAL_MAX);
	r.expires_ms = 4000000000000; /* year 2096 */
	then.unix_us = r.expires_ms * 1000 - 1000000;
	then.boot_ms = now_boot_ms() + 60000;
	assert_int_equal(callreq_write(&r, &call_pre, NULL), 0);
	assert_int_equal(calls_seal(contexts_calls(c), &keys, &request,
			     ipc_bytes(call_pre.p, call_pre.len),
			     ipc_str("admin"), &then, &seal, &hash, &err),
	    0);
	/* None; a version's; another's; other arguments. */
	assert_int_equal(
	    context(c, &pre, NULL, "anna", arguments), FAILURE_NOT_CONFIRMED);
	buf_init(&version_seal, SEAL_MAX);
	assert_int_equal(seal_make(&keys, &request, pre.p, pre.len, &by,
			     &version_seal, &hash, NULL),
	    0);
	assert_int_equal(context(c, &pre, &version_seal, "anna", arguments),
	    FAILURE_NOT_CONFIRMED);
	assert_int_equal(
	    context(c, &pre, &seal, "bert", arguments), FAILURE_NOT_CONFIRMED);
	assert_int_equal(context(c, &pre, &seal, "anna", "{\"n\":2}"),
	    FAILURE_NOT_CONFIRMED);
	/* A version that needs none may not bring a bad one either. */
	assert_int_equal(
	    context(c, &plain, NULL, "anna", arguments), FAILURE_NONE);
	assert_int_equal(context(c, &plain, &seal, "anna", arguments),
	    FAILURE_NOT_CONFIRMED);
	/* What was refused used nothing up; then once. */
	assert_int_equal(
	    context(c, &pre, &seal, "anna", arguments), FAILURE_NONE);
	assert_int_equal(
	    context(c, &pre, &seal, "anna", arguments), FAILURE_NOT_CONFIRMED);
	buf_free(&pre);
	buf_free(&plain);
	buf_free(&seal);
	buf_free(&version_seal);
	buf_free(&call_pre);
}

static int
set_up(void **state)
{
	memset(&keys, 1, KEY_LEN);
	memset(&keys, 2, KEY_LEN);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(binds),
	    cmocka_unit_test(seals_only_what_may_be),
	    cmocka_unit_test(remembers),
	    cmocka_unit_test(clock_is_set),
	    cmocka_unit_test(context_of_a_confirmed_call),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
