/* Rows of the audit chain as bytes: what verify reads. */
#include "unit.h"

#include "audit_row.h"
#include "buf.h"
#include "crypto.h"

static const uint8_t head[32] = {1}, sig[32] = {2};

static void
put_text(struct buf *b, const char *s)
{
	buf_put_u32(b, (uint32_t)strlen(s));
	buf_put(b, s, strlen(s));
}

/* A row as audit_row() and admind write it; extra bytes inside, behind. */
static void
put_row(struct buf *b, uint64_t seq, uint64_t inner, const char *extra,
    bool anchored, struct ipc_hash *hash)
{
	static const uint8_t prev[32];
	struct buf row;

	buf_init(&row, 4096);
	buf_put(&row, "mcpbox audit 1", 15);
	buf_put_u64(&row, inner);
	buf_put_u64(&row, 1700000000123);
	put_text(&row, "admin");
	put_text(&row, "login");
	put_text(&row, "admin");
	put_text(&row, "{}");
	buf_put(&row, extra, strlen(extra));
	sha256_2(prev, 32, row.p, row.len, hash);
	buf_put_u64(b, seq);
	buf_put(b, prev, 32);
	buf_put(b, hash->b, 32);
	buf_put_u32(b, (uint32_t)row.len);
	buf_put(b, row.p, row.len);
	buf_put_u8(b, anchored);
	if (anchored) {
		buf_put(b, head, 32);
		buf_put(b, sig, 32);
	}
	buf_free(&row);
}

static void
read_back(void **state)
{
	struct ipc_bytes rest;
	struct audit_row r;
	struct ipc_hash h;
	struct buf b;

	(void)state;
	buf_init(&b, 65536);
	put_row(&b, 7, 7, "", true, &h);
	put_row(&b, 8, 8, "", false, &h);
	rest = ipc_bytes(b.p, b.len);
	assert_int_equal(audit_row_next(&rest, &r), 1);
	assert_int_equal(r.seq, 7);
	assert_int_equal(r.at_ms, 1700000000123);
	assert_true(ipc_streq(r.action, "login") && ipc_streq(r.detail, "{}"));
	assert_true(r.anchored);
	assert_memory_equal(r.anchor_head.b, head, 32);
	assert_memory_equal(r.anchor_signature.b, sig, 32);
	assert_memory_equal(r.computed.b, r.hash.b, 32);
	assert_int_equal(audit_row_next(&rest, &r), 1);
	assert_false(r.anchored);
	assert_int_equal(audit_row_next(&rest, &r), 0);
	/* the stored hash is not believed */
	b.p[8 + 32] ^= 1;
	rest = ipc_bytes(b.p, b.len);
	assert_int_equal(audit_row_next(&rest, &r), 1);
	assert_memory_not_equal(r.computed.b, r.hash.b, 32);
	buf_free(&b);
}

static void
malformed(void **state)
{
	struct ipc_bytes rest;
	struct audit_row r;
	struct ipc_hash h;
	struct buf b;

	(void)state;
	buf_init(&b, 65536);
	put_row(&b, 7, 7, "", true, &h);
	for (size_t n = 1; n < b.len; n++) {
		uint8_t *copy = malloc(n); /* its end is where it ends */

		assert_non_null(copy);
		memcpy(copy, b.p, n);
		rest = ipc_bytes(copy, n);
		assert_int_equal(audit_row_next(&rest, &r), -1);
		free(copy);
	}
	b.len = 0;
	put_row(&b, 7, 8, "", false, &h); /* another number inside */
	rest = ipc_bytes(b.p, b.len);
	assert_int_equal(audit_row_next(&rest, &r), -1);
	b.len = 0;
	put_row(&b, 7, 7, "x", false, &h); /* bytes that no field is made of */
	rest = ipc_bytes(b.p, b.len);
	assert_int_equal(audit_row_next(&rest, &r), -1);
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(read_back),
	    cmocka_unit_test(malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
