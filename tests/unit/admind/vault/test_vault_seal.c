/* Approval seals and what contexts_seal makes of them. */
#include "contexts.h"
#include "limit.h"
#include "seal.h"
#include "stored.h"
#include "tlv.h"
#include "unit.h"
#include "version.h"

static struct keys keys;
static const struct seal_by by = {
    .approver = {(const uint8_t *)"admin", 5}, .time_us = 77};
static struct ipc_id request;

static void
make_preimage(struct buf *b, const char *code, const char *secret)
{
	uint8_t id[16] = {1};

	buf_init(b, IPC_BLOB_MAX);
	version_begin(b);
	tlv_put_u64(b, VERSION_FORMAT, 1);
	tlv_put(b, VERSION_SERVER_ID, id, 16);
	tlv_put(b, VERSION_TOOL_ID, id, 16);
	tlv_puts(b, VERSION_SERVER_NAME, "demo");
	tlv_puts(b, VERSION_NAME, "greet");
	tlv_puts(b, VERSION_EXPOSED_NAME, "demo__greet");
	tlv_puts(b, VERSION_DESCRIPTION, "greets");
	tlv_puts(b, VERSION_INPUT_SCHEMA, "{}");
	tlv_puts(b, VERSION_KIND, "python");
	tlv_puts(b, VERSION_CODE, code);
	if (secret != NULL)
		tlv_puts(b, VERSION_SECRET, secret);
	tlv_put_u64(b, VERSION_MEMORY_BYTES, 44040192);
	assert_false(b->failed);
}

static void
make_seal(const struct buf *pre, struct buf *seal)
{
	struct ipc_hash hash, want;

	buf_init(seal, SEAL_MAX);
	assert_int_equal(seal_make(&keys, &request, pre->p, pre->len, &by, seal,
			     &hash, NULL),
	    0);
	sha256(pre->p, pre->len, &want);
	assert_memory_equal(&hash, &want, sizeof(hash));
}

static int
check(const struct buf *seal, size_t n, const struct buf *pre)
{
	const uint8_t *fields;
	struct ipc_hash h;
	size_t len;

	return seal_check(
	    &keys, seal->p, n, pre->p, pre->len, &fields, &len, &h, NULL);
}

static void
seal_says(void **state)
{
	const uint8_t *fields;
	struct buf pre, seal;
	struct ipc_hash h, got;
	struct tlv f;
	uint64_t v;
	size_t n;

	make_preimage(&pre, "pass", "TOKEN");
	make_seal(&pre, &seal);
	assert_int_equal(seal_check(&keys, seal.p, seal.len, pre.p, pre.len,
			     &fields, &n, &got, NULL),
	    0);
	sha256(pre.p, pre.len, &h);
	assert_memory_equal(&got, &h, sizeof(h));
	assert_int_equal(tlv_find(fields, n, SEAL_APPROVER, &f), 1);
	assert_memory_equal(f.p, "admin", 5);
	assert_int_equal(tlv_find(fields, n, SEAL_TIME_US, &f), 1);
	assert_int_equal(tlv_u64(&f, &v), 0);
	assert_int_equal(v, 77);
	assert_int_equal(tlv_find(fields, n, SEAL_REQUEST, &f), 1);
	assert_memory_equal(f.p, request.b, 16);
	assert_int_equal(tlv_find(fields, n, SEAL_HOST, &f), 0);
	assert_true(seal_names_secret(fields, n, ipc_str("TOKEN")));
	assert_false(seal_names_secret(fields, n, ipc_str("TOKE")));
	assert_false(seal_names_secret(fields, n, ipc_str("admin")));
	assert_false(seal_names_secret(fields, n, ipc_str("")));
	buf_free(&pre);
	buf_free(&seal);
}

static void
seal_refuses(void **state)
{
	struct buf pre, other, seal;
	struct ipc_hash h;
	const uint8_t *end;
	struct buf out;

	make_preimage(&pre, "pass", "TOKEN");
	make_preimage(&other, "evil", "TOKEN");
	make_seal(&pre, &seal);
	assert_int_equal(check(&seal, seal.len, &pre), 0);
	assert_int_equal(check(&seal, seal.len, &other), -1);
	for (size_t n = 0; n < seal.len; n++)
		assert_int_equal(check(&seal, n, &pre), -1);
	for (size_t bit = 0; bit < seal.len * 8; bit++) {
		seal.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(check(&seal, seal.len, &pre), -1);
		seal.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	keys.approvals[0] ^= 1;
	assert_int_equal(check(&seal, seal.len, &pre), -1);
	keys.approvals[0] ^= 1;
	/* What is no version is not sealed. */
	buf_init(&out, SEAL_MAX);
	end = memmem(pre.p, pre.len, "python", 6);
	assert_non_null(end);
	for (size_t n = 0; n < (size_t)(end - pre.p) + 6; n++)
		assert_int_equal(
		    seal_make(&keys, &request, pre.p, n, &by, &out, &h, NULL),
		    -1);
	assert_int_equal(out.len, 0);
	buf_free(&pre);
	buf_free(&other);
	buf_free(&seal);
}

static void
begin_material(struct buf *m)
{
	uint8_t digest[32] = {9};

	buf_init(m, IPC_BLOB_MAX);
	tlv_put(m, CTX_ARGS_SHA256, digest, 32);
	tlv_put_u64(m, CTX_TIMEOUT_MS, 30000);
	tlv_put_u64(m, CTX_MEMORY, 33554432);
}

/* Seals m for kind, opens it with the epoch's key; failure or FAILURE_NONE. */
static enum failure
build(const struct buf *m, uint8_t kind, uint8_t listener, struct buf *plain)
{
	struct contexts *c = contexts_new();
	struct ipc_seal_context msg;
	struct context_binding b;
	uint8_t key[KEY_LEN];
	struct buf sealed;
	struct err err;

	memset(&msg, 0, sizeof(msg));
	memset(&b, 0, sizeof(b));
	msg.kind = b.kind = kind;
	msg.listener = b.listener = listener;
	msg.material = ipc_bytes(m->p, m->len);
	buf_init(&sealed, IPC_BLOB_MAX);
	buf_init(plain, IPC_BLOB_MAX);
	contexts_key(c, &msg.epoch, key);
	if (contexts_seal(c, &keys, &msg, &sealed, &err) == -1) {
		assert_int_equal(sealed.len, 0);
		return err.failure;
	}
	assert_int_equal(
	    context_open(key, &b, sealed.p, sealed.len, plain, NULL), 0);
	buf_free(&sealed);
	return FAILURE_NONE;
}

/* Whatever admind has stored: code is not sealed whose lines Python divides
 * otherwise than who reads it. */
static void
lines(void **state)
{
	static const char *const codes[] = {"# a comment\r    evil()\n",
	    "pass\r\n", "if x:\n    pass\n    \fevil()\n",
	    "x = '\xe2\x80\xa8'\n", "x = '\xc2\x85'\n"};
	struct buf pre, seal;
	struct ipc_hash h;
	struct err e;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		make_preimage(&pre, codes[i], NULL);
		buf_init(&seal, SEAL_MAX);
		assert_int_equal(seal_make(&keys, &request, pre.p, pre.len, &by,
				     &seal, &h, &e),
		    -1);
		assert_memory_equal(e.text, "code: character ", 16);
		assert_int_equal(seal.len, 0);
		buf_free(&seal);
		buf_free(&pre);
	}
	make_preimage(&pre, "def main():\n\tpass  # \xc3\xa9\n", NULL);
	make_seal(&pre, &seal);
	buf_free(&seal);
	buf_free(&pre);
}

static void
tool_context(void **state)
{
	struct stored_place at = {
	    STORED_SECRETS, ipc_str("demo"), ipc_str("TOKEN")};
	struct buf pre, seal, m, stored, plain;
	struct tlv f;
	uint64_t v;

	make_preimage(&pre, "pass", "TOKEN");
	make_seal(&pre, &seal);
	buf_init(&stored, 1024);
	stored_seal(&keys, &at, "CANARY", 6, &stored, NULL);
	begin_material(&m);
	tlv_put(&m, CTX_PREIMAGE, pre.p, pre.len);
	tlv_put(&m, CTX_APPROVAL, seal.p, seal.len);
	tlv_puts(&m, CTX_SECRET_NAME, "TOKEN");
	tlv_put(&m, CTX_SECRET_VALUE, stored.p, stored.len);
	assert_int_equal(
	    build(&m, CONTEXT_TOOL, LISTENER_LOCAL, &plain), FAILURE_NONE);
	assert_int_equal(tlv_find(plain.p, plain.len, CTX_SECRET_VALUE, &f), 1);
	assert_int_equal(f.n, 6);
	assert_memory_equal(f.p, "CANARY", 6);
	/* The reviewed limit, not admind's. */
	assert_int_equal(tlv_find(plain.p, plain.len, CTX_MEMORY, &f), 1);
	assert_int_equal(tlv_u64(&f, &v), 0);
	assert_int_equal(v, 44040192);
	assert_int_equal(tlv_find(plain.p, plain.len, CTX_PREIMAGE, &f), 0);
	assert_int_equal(tlv_find(plain.p, plain.len, CTX_APPROVAL, &f), 0);
	buf_free(&plain);
	/* The same material as an inspection is refused. */
	assert_int_equal(build(&m, CONTEXT_INSPECT, LISTENER_ADMIND, &plain),
	    FAILURE_INVALID_REQUEST);
	buf_free(&pre);
	buf_free(&seal);
	buf_free(&m);
	buf_free(&stored);
}

static void
plain_context(void **state)
{
	struct buf m, plain;
	struct tlv f;

	begin_material(&m);
	tlv_puts(&m, CTX_NAME, "draft");
	tlv_puts(&m, CTX_CODE, "print(1)");
	assert_int_equal(
	    build(&m, CONTEXT_TEST, LISTENER_ADMIND, &plain), FAILURE_NONE);
	assert_int_equal(tlv_find(plain.p, plain.len, CTX_CODE, &f), 1);
	assert_memory_equal(f.p, "print(1)", 8);
	buf_free(&plain);
	assert_int_equal(build(&m, CONTEXT_TEST, LISTENER_TUNNEL, &plain),
	    FAILURE_FORBIDDEN);
	assert_int_equal(build(&m, CONTEXT_TOOL, LISTENER_LOCAL, &plain),
	    FAILURE_INVALID_REQUEST);
	/* What a test's result must be its author says; an inspection has
	 * none. */
	tlv_puts(&m, CTX_OUTPUT_SCHEMA, "{}");
	assert_int_equal(
	    build(&m, CONTEXT_TEST, LISTENER_ADMIND, &plain), FAILURE_NONE);
	assert_int_equal(
	    tlv_find(plain.p, plain.len, CTX_OUTPUT_SCHEMA, &f), 1);
	buf_free(&plain);
	assert_int_equal(build(&m, CONTEXT_INSPECT, LISTENER_ADMIND, &plain),
	    FAILURE_INVALID_REQUEST);
	tlv_puts(&m, CTX_SECRET_NAME, "TOKEN");
	tlv_puts(&m, CTX_SECRET_VALUE, "x");
	assert_int_equal(build(&m, CONTEXT_TEST, LISTENER_ADMIND, &plain),
	    FAILURE_INVALID_REQUEST);
	buf_free(&m);
}

/* The material has a place for each tag up to the last; any tag after that is
 * refused, for each kind. */
static void
tags(void **state)
{
	static const uint8_t kinds[] = {CONTEXT_TOOL, CONTEXT_INSPECT,
	    CONTEXT_TEST, CONTEXT_COMPILE, CONTEXT_GRANTS, CONTEXT_MODULE,
	    CONTEXT_KEYS, CONTEXT_TELEMETRY};
	int last = limit_of_context(CTX_NETWORK_RATE);
	struct ipc_seal_context msg = {.listener = LISTENER_ADMIND};
	struct contexts *c = contexts_new();
	struct buf m, plain, out;
	uint8_t key[KEY_LEN];
	struct err err;
	struct tlv f;
	uint64_t v;

	assert_int_not_equal(last, -1);
	begin_material(&m);
	tlv_puts(&m, CTX_NAME, "draft");
	tlv_put_u64(&m, CTX_NETWORK_RATE, limit_info((enum limit)last)->max);
	assert_int_equal(
	    build(&m, CONTEXT_MODULE, LISTENER_ADMIND, &plain), FAILURE_NONE);
	assert_int_equal(tlv_find(plain.p, plain.len, CTX_NETWORK_RATE, &f), 1);
	assert_int_equal(tlv_u64(&f, &v), 0);
	assert_int_equal(v, limit_info((enum limit)last)->max);
	buf_free(&plain);
	buf_free(&m);
	contexts_key(c, &msg.epoch, key);
	buf_init(&out, IPC_BLOB_MAX);
	for (unsigned tag = CTX_TAG_MAX + 1; tag <= UINT8_MAX; tag++)
		for (size_t k = 0; k < sizeof(kinds); k++) {
			begin_material(&m);
			tlv_puts(&m, CTX_NAME, "draft");
			tlv_put_u64(&m, (uint8_t)tag, 1);
			msg.kind = kinds[k];
			msg.material = ipc_bytes(m.p, m.len);
			if (contexts_seal(c, &keys, &msg, &out, &err) == 0 ||
			    err.failure != FAILURE_INVALID_REQUEST)
				fail_msg("tag %u, kind %u", tag, kinds[k]);
			buf_free(&m);
		}
	buf_free(&out);
}

/* Keys differ by epoch and by request; a full table drops the oldest. */
static void
epochs(void **state)
{
	struct contexts *c = contexts_new();
	struct ipc_seal_context msg;
	uint8_t key[KEY_LEN], first[KEY_LEN];
	struct ipc_id epoch = {{0}};
	struct buf m, out;
	struct err err;

	begin_material(&m);
	tlv_puts(&m, CTX_NAME, "draft");
	tlv_puts(&m, CTX_CODE, "pass");
	memset(&msg, 0, sizeof(msg));
	msg.kind = CONTEXT_TEST;
	msg.listener = LISTENER_ADMIND;
	msg.material = ipc_bytes(m.p, m.len);
	buf_init(&out, IPC_BLOB_MAX);
	assert_int_equal(contexts_seal(c, &keys, &msg, &out, &err), -1);
	assert_int_equal(err.failure, FAILURE_SANDBOX_UNAVAILABLE);
	contexts_key(c, &epoch, first);
	contexts_key(c, &epoch, key);
	assert_memory_not_equal(first, key, KEY_LEN);
	for (uint64_t i = 1; i < 5; i++) {
		assert_int_equal(contexts_seal(c, &keys, &msg, &out, &err), 0);
		assert_int_equal(get_be64(out.p + 5), i);
	}
	for (uint8_t i = 1; i < 8; i++) {
		epoch.b[0] = i;
		contexts_key(c, &epoch, key);
	}
	assert_int_equal(contexts_seal(c, &keys, &msg, &out, &err), 0);
	epoch.b[0] = 8;
	contexts_key(c, &epoch, key);
	assert_int_equal(contexts_seal(c, &keys, &msg, &out, &err), -1);
	buf_free(&m);
	buf_free(&out);
}

static int
set_up(void **state)
{
	memset(&keys, 1, KEY_LEN);
	memset(&keys, 2, KEY_LEN);
	memset(request.b, 7, sizeof(request.b));
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(seal_says),
	    cmocka_unit_test(seal_refuses),
	    cmocka_unit_test(lines),
	    cmocka_unit_test(tool_context),
	    cmocka_unit_test(plain_context),
	    cmocka_unit_test(tags),
	    cmocka_unit_test(epochs),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
