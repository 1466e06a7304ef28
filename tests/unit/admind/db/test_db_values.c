/* What goes to PostgreSQL and comes back: parameters, text, failures. */
#include <libpq-fe.h>

#include "db_internal.h"
#include "unit.h"
#include "utf8.h"

static void
clean_is(const char *in, size_t n, size_t max, const char *want)
{
	struct buf b;

	buf_init(&b, 4096);
	db_text_clean(&b, in, n, max);
	assert_false(b.failed);
	assert_int_equal(b.len, strlen(want));
	if (b.len > 0)
		assert_memory_equal(b.p, want, b.len);
	assert_true(b.len == 0 || utf8_valid(b.p, b.len));
	buf_free(&b);
}

#define CLEAN(in, max, want) clean_is(in, sizeof(in) - 1, max, want)

static void
test_text_is_made_storable(void **unused)
{
	CLEAN("", 10, "");
	CLEAN("plain\n\t", 10, "plain\n\t");
	CLEAN("a\0b", 10, "a?b");
	CLEAN("\0", 10, "?");
	CLEAN("\xc3\xa9", 10, "\xc3\xa9");
	CLEAN("\xf0\x9f\x98\x80!", 10, "\xf0\x9f\x98\x80!");
	/* cut at a character, never inside one */
	CLEAN("ab\xc3\xa9", 3, "ab");
	CLEAN("ab\xc3\xa9", 4, "ab\xc3\xa9");
	CLEAN("\xf0\x9f\x98\x80", 3, "");
	/* broken: cut short, lone, overlong, surrogate, too large */
	CLEAN("a\xc3", 10, "a?");
	CLEAN("\x80\xff", 10, "??");
	CLEAN("\xc0\xaf", 10, "??");
	CLEAN("\xed\xa0\x80", 10, "???");
	CLEAN("\xf4\x90\x80\x80", 10, "????");
	CLEAN("\xe2\x82", 10, "??");
	/* pieces between what is broken, and the cut behind it */
	CLEAN("ab\xff"
	      "cd\0"
	      "ef",
	    20, "ab?cd?ef");
	CLEAN("\xff"
	      "ab\xff",
	    20, "?ab?");
	CLEAN("ab\xff"
	      "cd",
	    3, "ab?");
	CLEAN("ab\xff"
	      "cd",
	    2, "ab");
	CLEAN("ab\xff"
	      "c\xc3\xa9",
	    5, "ab?c");
	CLEAN("ab", 0, "");
	CLEAN("\xe2\x82"
	      "a",
	    10, "??a");
}

/* array_recv()'s form, src/backend/utils/adt/arrayfuncs.c: dimensions, has
 * nulls, type; length and lower bound; elements behind their lengths. */
static void
test_arrays(void **unused)
{
	static const uint8_t texts[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 25, 0,
	    0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 'a', 'b', 255, 255, 255, 255, 0, 0,
	    0, 0};
	static const uint8_t times[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 4, 160, 0,
	    0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255,
	    255, 255};
	struct db_array a;
	struct db_params p;

	db_params_init(&p);
	db_array_init(&a, DB_TEXT, 100);
	db_a_str(&a, "ab");
	db_a_str(&a, NULL);
	db_a_bytes(&a, NULL, 0);
	db_p_array(&p, &a);
	assert_int_equal(p.length[0], sizeof(texts));
	assert_memory_equal(p.value[0], texts, sizeof(texts));
	db_array_free(&a);

	db_array_init(&a, DB_TIME, 100);
	db_a_time_us(&a, UINT64_C(946684800000001));
	db_a_time_us(&a, 0);
	db_p_array(&p, &a);
	assert_int_equal(p.length[1], sizeof(times));
	assert_memory_equal(p.value[1], times, sizeof(times));
	db_array_free(&a);

	/* one that did not fit is no array, which the server refuses */
	db_array_init(&a, DB_INT8, 30);
	db_a_i64(&a, 1);
	db_p_array(&p, &a);
	assert_int_equal(p.length[2], 0);
	assert_non_null(p.value[2]);
	db_array_free(&a);
}

/* Every two-byte and many four-byte sequences come out as UTF-8. */
static void
test_any_bytes_become_utf8(void **unused)
{
	uint8_t in[8];
	struct buf b;

	buf_init(&b, 64);
	for (unsigned i = 0; i < 65536; i++) {
		in[0] = (uint8_t)(i >> 8);
		in[1] = (uint8_t)i;
		in[2] = (uint8_t)(i * 7);
		in[3] = (uint8_t)(i * 13);
		for (size_t n = 1; n <= 4; n++) {
			buf_clear(&b);
			db_text_clean(&b, in, n, 64);
			assert_true(utf8_valid(b.p, b.len));
			assert_null(memchr(b.p, 0, b.len));
		}
	}
	buf_free(&b);
}

static void
test_parameters(void **unused)
{
	struct ipc_id id = {{1, 2, 3}};
	struct db_params p;

	db_params_init(&p);
	db_p_i64(&p, -2);
	db_p_i32(&p, 258);
	db_p_bool(&p, true);
	db_p_id(&p, &id);
	db_p_str(&p, NULL);
	db_p_bytes(&p, NULL, 0);
	db_p_null(&p);
	db_p_time_us(&p, 0);
	/* 2000-01-01T00:00:00.000001Z */
	db_p_time_us(&p, UINT64_C(946684800000001));
	db_p_time_us(&p, UINT64_MAX);
	assert_int_equal(p.n, 10);
	assert_memory_equal(p.value[0], "\xff\xff\xff\xff\xff\xff\xff\xfe", 8);
	assert_int_equal(p.length[0], 8);
	assert_memory_equal(p.value[1], "\0\0\1\2", 4);
	assert_memory_equal(p.value[2], "\1", 1);
	assert_int_equal(p.length[2], 1);
	memset(&id, 9, sizeof(id)); /* a copy was taken */
	assert_memory_equal(p.value[3], "\1\2\3", 3);
	assert_null(p.value[4]);
	assert_non_null(p.value[5]); /* empty is not null */
	assert_int_equal(p.length[5], 0);
	assert_null(p.value[6]);
	assert_null(p.value[7]);
	assert_memory_equal(p.value[8], "\0\0\0\0\0\0\0\1", 8);
	/* a peer's absurd time is the year 9999, not an SQL error */
	assert_true(p.value[9][0] < 0x10 && p.value[9][0] >= 0);
}

/* Results made by libpq itself, without a server. */
static void
test_results(void **unused)
{
	PGresAttDesc cols[2] = {{.name = (char *)(uintptr_t)"a", .format = 1},
	    {.name = (char *)(uintptr_t)"b", .format = 1}};
	PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	char small[3];

	assert_non_null(r);
	assert_int_equal(PQsetResultAttrs(r, 2, cols), 1);
	PQsetvalue(r, 0, 0, (char *)(uintptr_t)"\0\0\0\0\0\0\1\0", 8);
	PQsetvalue(r, 0, 1, (char *)(uintptr_t)"abc", 3);
	PQsetvalue(r, 1, 0, NULL, -1);
	PQsetvalue(r, 1, 1, (char *)(uintptr_t)"\xff\xff", 2);
	assert_int_equal(db_nrows(r), 2);
	assert_int_equal(db_int(r, 0, 0), 256);
	assert_int_equal(db_time_us(r, 0, 0), UINT64_C(946684800000256));
	assert_int_equal(db_bytes(r, 0, 1).n, 3);
	assert_false(db_text(r, 0, 1, small, sizeof(small)));
	assert_true(db_null(r, 1, 0));
	assert_int_equal(db_int(r, 1, 0), 0);
	assert_int_equal(db_time_us(r, 1, 0), 0);
	assert_int_equal(db_int(r, 1, 1), -1);
	/* three bytes are no number and no id */
	assert_int_equal(db_int(r, 0, 1), 0);
	assert_int_equal(db_id(r, 0, 1).b[0], 0);
	PQclear(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text_is_made_storable),
	    cmocka_unit_test(test_arrays),
	    cmocka_unit_test(test_any_bytes_become_utf8),
	    cmocka_unit_test(test_parameters),
	    cmocka_unit_test(test_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
