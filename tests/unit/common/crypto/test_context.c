/*
 * Sealed contexts: what opens, and that nothing else does. The attacker is an
 * admind or gatewayd that carries a context somewhere it was not sealed for.
 */
#include "context.h"
#include "ipc.h"
#include "unit.h"

static const char plain[] = "CANARY: the plaintext of a context";
enum { PLAIN_LEN = sizeof(plain) - 1 };
static const uint8_t key[KEY_LEN] = {1, 2, 3, 4};

static struct context_binding
binding(void)
{
	struct context_binding b;

	memset(b.epoch.b, 0xe0, 16);
	memset(b.execution.b, 0x1d, 16);
	b.listener = LISTENER_LOCAL;
	b.kind = CONTEXT_TOOL;
	return b;
}

static void
seal(struct buf *out, uint64_t counter)
{
	struct context_binding b = binding();

	buf_init(out, IPC_BLOB_MAX);
	assert_int_equal(
	    context_seal(key, counter, &b, plain, PLAIN_LEN, out, NULL), 0);
}

static int
opens(const struct context_binding *b, const uint8_t *p, size_t n)
{
	struct buf out;
	struct err err;
	int rc;

	buf_init(&out, IPC_BLOB_MAX);
	rc = context_open(key, b, p, n, &out, &err);
	if (rc == 0) {
		assert_int_equal(out.len, PLAIN_LEN);
		assert_memory_equal(out.p, plain, PLAIN_LEN);
	} else {
		assert_int_equal(out.len, 0);
	}
	buf_free(&out);
	return rc;
}

static void
round_trip(void **state)
{
	struct context_binding b = binding();
	struct buf s;

	seal(&s, 0x0102030405060708);
	assert_int_equal(s.len, 1 + GCM_NONCE_LEN + PLAIN_LEN + GCM_TAG_LEN);
	assert_int_equal(s.p[0], 1);
	assert_memory_equal(s.p + 1, "\0\0\0\0\1\2\3\4\5\6\7\10", 12);
	assert_null(memmem(s.p, s.len, "CANARY", 6));
	assert_int_equal(opens(&b, s.p, s.len), 0);
	buf_free(&s);
}

static void
empty_plaintext(void **state)
{
	struct context_binding b = binding();
	struct buf s, out;

	buf_init(&s, IPC_BLOB_MAX);
	buf_init(&out, IPC_BLOB_MAX);
	assert_int_equal(context_seal(key, 1, &b, NULL, 0, &s, NULL), 0);
	assert_int_equal(context_open(key, &b, s.p, s.len, &out, NULL), 0);
	assert_int_equal(out.len, 0);
	buf_free(&s);
	buf_free(&out);
}

/* Another epoch, id, listener or kind; another key. */
static void
wrong_binding(void **state)
{
	struct context_binding b;
	uint8_t other[KEY_LEN];
	struct buf s, out;

	seal(&s, 1);
	for (int bit = 0; bit < 128; bit++) {
		b = binding();
		b.epoch.b[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(opens(&b, s.p, s.len), -1);
		b = binding();
		b.execution.b[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(opens(&b, s.p, s.len), -1);
	}
	for (unsigned v = 0; v < 256; v++) {
		b = binding();
		b.listener = (uint8_t)v;
		assert_int_equal(
		    opens(&b, s.p, s.len), v == LISTENER_LOCAL ? 0 : -1);
		b = binding();
		b.kind = (uint8_t)v;
		assert_int_equal(
		    opens(&b, s.p, s.len), v == CONTEXT_TOOL ? 0 : -1);
	}
	/* The two byte fields must not be exchangeable. */
	b = binding();
	b.listener = LISTENER_TUNNEL;
	b.kind = CONTEXT_TOOL;
	assert_int_equal(opens(&b, s.p, s.len), -1);

	memcpy(other, key, KEY_LEN);
	other[31] ^= 1;
	b = binding();
	buf_init(&out, IPC_BLOB_MAX);
	assert_int_equal(context_open(other, &b, s.p, s.len, &out, NULL), -1);
	buf_free(&out);
	buf_free(&s);
}

static void
flipped_bits(void **state)
{
	struct context_binding b = binding();
	struct buf s;

	seal(&s, 2);
	for (size_t bit = 0; bit < s.len * 8; bit++) {
		s.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(opens(&b, s.p, s.len), -1);
		s.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_int_equal(opens(&b, s.p, s.len), 0);
	buf_free(&s);
}

static void
cut_and_extended(void **state)
{
	struct context_binding b = binding();
	struct buf s;

	seal(&s, 3);
	for (size_t n = 0; n < s.len; n++)
		assert_int_equal(opens(&b, s.p, n), -1);
	buf_put_u8(&s, 0);
	assert_int_equal(opens(&b, s.p, s.len), -1);
	buf_free(&s);
}

/* The same plaintext under two counters has nothing in common but its head. */
static void
counters(void **state)
{
	struct buf a, b;

	seal(&a, 4);
	seal(&b, 5);
	assert_memory_not_equal(a.p, b.p, 1 + GCM_NONCE_LEN);
	assert_memory_not_equal(a.p + 13, b.p + 13, PLAIN_LEN);
	buf_free(&a);
	buf_free(&b);
}

static void
too_large(void **state)
{
	struct context_binding b = binding();
	struct buf out;
	struct err err;

	buf_init(&out, 40);
	buf_puts(&out, "kept");
	assert_int_equal(
	    context_seal(key, 1, &b, plain, PLAIN_LEN, &out, &err), -1);
	assert_int_equal(err.failure, FAILURE_TOO_LARGE);
	assert_int_equal(out.len, 4);
	assert_memory_equal(out.p, "kept", 4);
	buf_free(&out);
}

static void
split(void **state)
{
	uint8_t p[64] = {1};
	const uint8_t *nonce, *ct;
	size_t n;

	assert_int_equal(context_split(p, 28, &nonce, &ct, &n, NULL), -1);
	assert_int_equal(context_split(p, 29, &nonce, &ct, &n, NULL), 0);
	assert_ptr_equal(nonce, p + 1);
	assert_ptr_equal(ct, p + 13);
	assert_int_equal(n, 16);
	p[0] = 2;
	assert_int_equal(context_split(p, 64, &nonce, &ct, &n, NULL), -1);
	p[0] = 0;
	assert_int_equal(context_split(p, 64, &nonce, &ct, &n, NULL), -1);
	assert_int_equal(context_split(p, 0, &nonce, &ct, &n, NULL), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(round_trip),
	    cmocka_unit_test(empty_plaintext),
	    cmocka_unit_test(wrong_binding),
	    cmocka_unit_test(flipped_bits),
	    cmocka_unit_test(cut_and_extended),
	    cmocka_unit_test(counters),
	    cmocka_unit_test(too_large),
	    cmocka_unit_test(split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
