/* access.h: which document holds, and which clock made it. */
#include "access.h"
#include "crypto.h"
#include "tlv.h"
#include "unit.h"

static struct keys keys, other;

#define DAY  SERIALS_AHEAD_MAX_US
#define YEAR (365 * DAY)
#define NOW  (50 * YEAR)

static struct ipc_hash
hash(char c)
{
	struct ipc_hash h;

	sha256(&c, 1, &h);
	return h;
}

/* Seals the document `c` as a successor of *newest. */
static struct access
made(const struct access *newest, char c, uint64_t now, struct buf *seal)
{
	struct ipc_hash h = hash(c);
	struct access a;
	struct err e;

	assert_int_equal(access_make(&keys, newest, 0, &h, ipc_str("anna"), now,
			     seal, &a, &e),
	    0);
	return a;
}

static int
check(const struct buf *seal, char c, uint64_t now, struct access *newest,
    struct err *e)
{
	struct ipc_hash h = hash(c);

	return access_check(
	    &keys, ipc_bytes(seal->p, seal->len), &h, now, newest, e);
}

static void
newest_holds(void **state)
{
	struct access newest = {0}, a, b;
	struct buf first, second;
	struct err e;

	buf_init(&first, ACCESS_SEAL_MAX);
	buf_init(&second, ACCESS_SEAL_MAX);
	a = made(&newest, 'a', NOW, &first);
	assert_int_equal(a.serial, NOW);
	assert_int_equal(
	    newest.serial, 0); /* making one doesn't make it hold */
	assert_int_equal(check(&first, 'a', NOW, &newest, &e), 0);
	assert_int_equal(newest.serial, NOW);
	assert_string_equal(newest.actor, "anna");
	/* a clock that was set back makes none that is older */
	b = made(&newest, 'b', NOW - DAY, &second);
	assert_int_equal(b.serial, NOW + 1);
	/* the first holds until the second is known */
	assert_int_equal(check(&first, 'a', NOW, &newest, &e), 0);
	assert_int_equal(check(&second, 'b', NOW, &newest, &e), 0);
	assert_int_equal(check(&first, 'a', NOW, &newest, &e), -1);
	assert_int_equal(e.failure, FAILURE_CONFLICT);
	assert_int_equal(check(&second, 'b', NOW, &newest, &e), 0);
	assert_int_equal(newest.serial, b.serial);
	buf_free(&first);
	buf_free(&second);
}

static void
another_s(void **state)
{
	struct access newest = {0}, a;
	struct ipc_hash h = hash('a');
	struct buf seal, foreign;
	struct err e;

	buf_init(&seal, ACCESS_SEAL_MAX);
	buf_init(&foreign, ACCESS_SEAL_MAX);
	made(&newest, 'a', NOW, &seal);
	assert_int_equal(check(&seal, 'b', NOW, &newest, &e), -1);
	assert_int_equal(e.failure, FAILURE_HASH_MISMATCH);
	for (size_t bit = 0; bit < seal.len * 8; bit++) {
		seal.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(check(&seal, 'a', NOW, &newest, &e), -1);
		assert_int_equal(e.failure, FAILURE_NOT_APPROVED);
		seal.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	for (size_t n = 0; n < seal.len; n++) {
		assert_int_equal(
		    access_read(&keys, ipc_bytes(seal.p, n), &a, &e), -1);
		assert_int_equal(e.failure, FAILURE_NOT_APPROVED);
	}
	assert_int_equal(access_make(&other, &newest, 0, &h, ipc_str("eve"),
			     NOW, &foreign, &a, &e),
	    0);
	assert_int_equal(check(&foreign, 'a', NOW, &newest, &e), -1);
	assert_int_equal(e.failure, FAILURE_NOT_APPROVED);
	/* of another purpose */
	buf_clear(&foreign);
	macs_open(&keys, &foreign);
	buf_put(&foreign, seal.p + MACS_HEAD_LEN, seal.len - MACS_OVERHEAD);
	assert_int_equal(macs_close(&keys, MACS_POLICY, &foreign, &e), 0);
	assert_int_equal(check(&foreign, 'a', NOW, &newest, &e), -1);
	assert_int_equal(newest.serial, 0);
	assert_int_equal(check(&seal, 'a', NOW, &newest, &e), 0);
	buf_free(&seal);
	buf_free(&foreign);
}

static void
bad_bodies(void **state)
{
	static const char *const missing[] = {"serial", "actor", "document",
	    "zero serial", "empty actor", "short document", "nothing"};
	struct ipc_hash h = hash('a');
	struct access a;
	struct buf w;
	struct err e;

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		buf_init(&w, ACCESS_SEAL_MAX);
		macs_open(&keys, &w);
		if (i != 0)
			tlv_put_u64(&w, ACCESS_TAG_SERIAL, i == 3 ? 0 : NOW);
		if (i != 1)
			tlv_put(&w, ACCESS_TAG_ACTOR, "anna", i == 4 ? 0 : 4);
		if (i != 2)
			tlv_put(&w, ACCESS_TAG_DOCUMENT, h.b,
			    i == 5 ? sizeof(h.b) - 1 : sizeof(h.b));
		assert_int_equal(macs_close(&keys, MACS_ACCESS, &w, &e), 0);
		/* the last row is whole: it is the control */
		assert_int_equal(
		    access_read(&keys, ipc_bytes(w.p, w.len), &a, &e),
		    i == 6 ? 0 : -1);
		buf_free(&w);
	}
}

/* A clock that was years ahead: its document does not hold now, and the next
 * one has the time of now. */
static void
clock_ahead(void **state)
{
	struct access newest = {0}, far, now, later;
	struct buf ahead, seal;
	struct err e;

	buf_init(&ahead, ACCESS_SEAL_MAX);
	buf_init(&seal, ACCESS_SEAL_MAX);
	far = made(&newest, 'f', NOW + 10 * YEAR, &ahead);
	assert_int_equal(check(&ahead, 'f', NOW, &newest, &e), -1);
	assert_int_equal(e.failure, FAILURE_CONFLICT);
	assert_int_equal(newest.serial, 0);
	assert_true(access_ahead(&far, NOW));
	/* it holds as long as the clock is wrong */
	assert_int_equal(check(&ahead, 'f', NOW + 10 * YEAR, &newest, &e), 0);
	assert_int_equal(newest.serial, far.serial);
	now = made(&newest, 'n', NOW, &seal);
	assert_int_equal(now.serial, NOW);
	assert_int_equal(check(&seal, 'n', NOW, &newest, &e), 0);
	assert_int_equal(newest.serial, NOW);
	assert_int_equal(check(&ahead, 'f', NOW, &newest, &e), -1);
	assert_int_equal(check(&seal, 'n', NOW, &newest, &e), 0);
	/* a day ahead is allowed */
	newest.serial = NOW + DAY;
	assert_false(access_ahead(&newest, NOW));
	later = made(&newest, 'l', NOW, &seal);
	assert_int_equal(later.serial, NOW + DAY + 1);
	newest.serial = UINT64_MAX;
	later = made(&newest, 'l', NOW, &seal);
	assert_int_equal(later.serial, NOW);
	buf_free(&ahead);
	buf_free(&seal);
}

/* A row that the vault did not seal: the next document follows it, so that the
 * database takes it, and is still newer than all that the vault knows. */
static void
stored_serials(void **state)
{
	static const struct {
		uint64_t newest, stored, serial;
	} cases[] = {
	    {0, 0, NOW},
	    {0, NOW - 1, NOW},
	    {0, NOW, NOW + 1},
	    {0, NOW + 5, NOW + 6},
	    {NOW + 9, NOW + 5, NOW + 10},
	    {NOW + 5, NOW + 9, NOW + 10},
	    {NOW - 5, NOW - 9, NOW},
	    /* no further than the vault itself lets a document be ahead */
	    {0, NOW + DAY - 1, NOW + DAY},
	    {0, NOW + DAY, NOW},
	    {NOW + 5, NOW + DAY, NOW + 6},
	    {NOW + 5, NOW + 10 * YEAR, NOW + 6},
	    {0, INT64_MAX, NOW},
	    {0, UINT64_MAX, NOW},
	};
	struct ipc_hash h = hash('a');
	struct buf seal;
	struct access a;
	struct err e;

	buf_init(&seal, ACCESS_SEAL_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct access newest = {.serial = cases[i].newest};

		assert_int_equal(
		    serials_next(cases[i].newest, cases[i].stored, NOW),
		    cases[i].serial);
		assert_int_equal(access_make(&keys, &newest, cases[i].stored,
				     &h, ipc_str("anna"), NOW, &seal, &a, &e),
		    0);
		assert_int_equal(a.serial, cases[i].serial);
		assert_false(access_ahead(&a, NOW));
		assert_int_equal(check(&seal, 'a', NOW, &newest, &e), 0);
		assert_int_equal(newest.serial, cases[i].serial);
	}
	buf_free(&seal);
}

static void
actors(void **state)
{
	char name[ACCESS_ACTOR_MAX + 1];
	struct access newest = {0}, a;
	struct ipc_hash h = hash('a');
	struct buf seal;
	struct err e;

	memset(name, 'a', sizeof(name));
	buf_init(&seal, ACCESS_SEAL_MAX);
	assert_int_equal(
	    access_make(&keys, &newest, 0, &h, ipc_str(""), NOW, &seal, &a, &e),
	    -1);
	assert_int_equal(e.failure, FAILURE_INVALID_PARAMS);
	assert_int_equal(access_make(&keys, &newest, 0, &h,
			     ipc_bytes(name, sizeof(name)), NOW, &seal, &a, &e),
	    -1);
	assert_int_equal(seal.len, 0);
	assert_int_equal(
	    access_make(&keys, &newest, 0, &h,
		ipc_bytes(name, ACCESS_ACTOR_MAX), NOW, &seal, &a, &e),
	    0);
	assert_int_equal(
	    access_read(&keys, ipc_bytes(seal.p, seal.len), &a, &e), 0);
	assert_int_equal(strlen(a.actor), ACCESS_ACTOR_MAX);
	buf_free(&seal);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(newest_holds),
	    cmocka_unit_test(another_s),
	    cmocka_unit_test(bad_bodies),
	    cmocka_unit_test(clock_ahead),
	    cmocka_unit_test(stored_serials),
	    cmocka_unit_test(actors),
	};

	memset(&keys, 1, sizeof(keys));
	memset(&other, 2, sizeof(other));
	keys.also = NULL;
	other.also = NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
