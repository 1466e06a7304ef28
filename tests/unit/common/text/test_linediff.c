/* linediff.h: hunks as diff -u writes them. That a difference applied to the
 * one text gives the other, fuzz_linediff proves for any two. */
#include "unit.h"

#include "linediff.h"

static void
shows(const char *a, const char *b, const char *want)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	linediff(a, strlen(a), b, strlen(b), &out);
	buf_put_u8(&out, 0);
	assert_string_equal(out.p, want);
	buf_free(&out);
}

static void
hunks(void **state)
{
	shows("", "", "");
	shows("a\nb\n", "a\nb\n", "");
	shows("", "a\n", "@@ -0,0 +1 @@\n+a\n");
	shows("a\n", "", "@@ -1 +0,0 @@\n-a\n");
	shows("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
	shows(
	    "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	shows("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n9\n",
	    "@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n");
	/* two hunks, seven equal lines between them */
	shows("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
	    "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n "
	    "7\n-b\n+B\n");
	/* six: one */
	shows("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
	    "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

/* Beyond the bound the middle is replaced whole, in time and right. */
static void
far_apart(void **state)
{
	struct buf a, b, out;
	unsigned minus = 0, plus = 0;

	buf_init(&a, 1 << 20);
	buf_init(&b, 1 << 20);
	buf_init(&out, 1 << 22);
	buf_puts(&a, "head\n");
	buf_puts(&b, "head\n");
	for (int i = 0; i < 20000; i++) {
		buf_putf(&a, "a%d\n", i);
		buf_putf(&b, i % 3 == 0 ? "a%d\n" : "b%d\n", i);
	}
	linediff(a.p, a.len, b.p, b.len, &out);
	assert_false(out.failed);
	assert_memory_equal(out.p, "@@ -1,20001 +1,20001 @@\n head\n", 30);
	for (size_t i = 0; i + 1 < out.len; i++)
		if (out.p[i] == '\n') {
			minus += out.p[i + 1] == '-';
			plus += out.p[i + 1] == '+';
		}
	/* the first and last lines of the middle are equal */
	assert_true(minus > 19990 && minus == plus);
	/* what does not fit says so */
	buf_free(&out);
	buf_init(&out, 1000);
	linediff(a.p, a.len, b.p, b.len, &out);
	assert_true(out.failed);
	buf_free(&a);
	buf_free(&b);
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hunks),
	    cmocka_unit_test(far_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
