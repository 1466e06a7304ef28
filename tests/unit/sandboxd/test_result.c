/* Bodies: what of a runner's JSON passes, and what an end means. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"
#include "result.h"

static void
take(const char *in, bool is_error, const char *want)
{
	struct buf b;
	int rc;

	buf_init(&b, 1000);
	assert_int_equal(json_scan((const uint8_t *)in, strlen(in), NULL), 0);
	rc = result_take(ipc_str(in), is_error, &b, NULL);
	if (want == NULL) {
		assert_int_equal(rc, -1);
	} else {
		assert_int_equal(rc, 0);
		buf_putc(&b, '\0');
		assert_string_equal((char *)b.p, want);
	}
	buf_free(&b);
}

static void
test_take(void **state)
{
	take("{\"content\":[1]}", false, "{\"content\":[1],\"isError\":false}");
	take("{\"content\":[1]}", true, "{\"content\":[1],\"isError\":true}");
	take("{\"isError\":true,\"content\":[]}", false,
	    "{\"content\":[],\"isError\":true}");
	/* A tool may not call its own error a success. */
	take("{\"isError\":false,\"content\":[]}", true,
	    "{\"content\":[],\"isError\":true}");
	take("{\"_meta\":{},\"id\":1,\"structuredContent\":{\"a\":2},"
	     "\"content\":[],\"resultType\":3}",
	    false,
	    "{\"content\":[],\"structuredContent\":{\"a\":2},\"isError\":"
	    "false}");
	take("[]", false, NULL);
	take("{}", false, NULL);
	take("{\"content\":{}}", false, NULL);
	take("{\"content\":[],\"structuredContent\":[]}", false, NULL);
	take("{\"content\":[],\"isError\":1}", false, NULL);
}

static void
progress(const char *in, const char *want)
{
	struct buf b;
	int rc;

	buf_init(&b, 1000);
	rc = result_progress(ipc_str(in), &b, NULL);
	if (want == NULL) {
		assert_int_equal(rc, -1);
	} else {
		assert_int_equal(rc, 0);
		buf_putc(&b, '\0');
		assert_string_equal((char *)b.p, want);
	}
	buf_free(&b);
}

static void
test_progress(void **state)
{
	progress("{\"progress\":1}", "{\"progress\":1}");
	progress("{\"progressToken\":9,\"progress\":1.5,\"total\":3,"
		 "\"message\":\"m\"}",
	    "{\"progress\":1.5,\"total\":3,\"message\":\"m\"}");
	progress("{\"progress\":1,\"total\":null,\"message\":null}",
	    "{\"progress\":1}");
	progress("{\"progress\":\"1\"}", NULL);
	progress("{\"progress\":1,\"message\":[]}", NULL);
	progress("[]", NULL);
}

static enum failure
end(unsigned code, unsigned value, uint64_t peak_kib, const char *says)
{
	struct err e;

	result_crash(code << 16 | value, peak_kib, 256 << 20, &e);
	assert_non_null(strstr(e.text, says));
	return e.failure;
}

static void
test_crash(void **state)
{
	assert_int_equal(end(CLD_EXITED, 3, 0, "status 3"), FAILURE_EXCEPTION);
	assert_int_equal(end(CLD_KILLED, SIGKILL, 250 << 10, "too much memory"),
	    FAILURE_LIMIT);
	assert_int_equal(
	    end(CLD_KILLED, SIGKILL, 20 << 10, "20 MiB of 256"), FAILURE_LIMIT);
	assert_int_equal(end(CLD_KILLED, SIGXCPU, 0, "CPU"), FAILURE_LIMIT);
	assert_int_equal(
	    end(CLD_KILLED, SIGSYS, 0, "system call"), FAILURE_EXCEPTION);
	assert_int_equal(
	    end(CLD_DUMPED, SIGSEGV, 0, "signal 11"), FAILURE_EXCEPTION);
}

static void
test_meta(void **state)
{
	static const struct ipc_id id = {{0xab}};
	struct buf b;

	buf_init(&b, 1000);
	result_meta(
	    &b, &id, 1500, ipc_bytes("a\xff\"", 3), FAILURE_TIMEOUT, "late");
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_string_equal((char *)b.p,
	    "{\"mcpbox/execution\":{\"execution_id\":"
	    "\"ab000000-0000-0000-0000-000000000000\",\"duration_ms\":2,"
	    "\"stdout\":\"a\xef\xbf\xbd\\\"\"},\"mcpbox/failure\":"
	    "{\"failure_mode\":\"timeout\",\"message\":\"late\",\"fix\":"
	    "\"Do less per call or ask for a longer limit.\"}}");
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_progress),
	    cmocka_unit_test(test_crash),
	    cmocka_unit_test(test_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
