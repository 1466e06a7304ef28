/* log.h: hostile text can neither add a line nor drive a terminal. */
#include "unit.h"

#include <unistd.h>

#include "log.h"

static char captured[65536];

/* Runs one log call with stderr in a pipe; returns what came out. */
#define CAPTURE(call)                                             \
	do {                                                      \
		int fds[2], saved;                                \
		ssize_t n;                                        \
		assert_int_equal(pipe(fds), 0);                   \
		assert_true((saved = dup(2)) >= 0);               \
		assert_int_equal(dup2(fds[1], 2), 2);             \
		call;                                             \
		dup2(saved, 2);                                   \
		close(saved);                                     \
		close(fds[1]);                                    \
		n = read(fds[0], captured, sizeof(captured) - 1); \
		captured[n > 0 ? n : 0] = '\0';                   \
		close(fds[0]);                                    \
	} while (0)

static const char hostile[] = "a\nb\r\x1b[31m\"\\\x7f\xff\xc2\x9b\xe2\x80\xae"
			      "\xe2\x80\xa8\xc3\xa4\t.";

static void
text(void **state)
{
	(void)state;
	log_init("unit", LOG_TEXT, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_WARN, "hostile", "x=%s", hostile));
	assert_string_equal(captured,
	    "<4>unit: hostile: x=a\\x0ab\\x0d\\x1b[31m\"\\\\\\x7f\\xff"
	    "\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x80\\xa8\xc3\xa4\\x09.\n");
}

static void
json(void **state)
{
	(void)state;
	unsetenv("JOURNAL_STREAM");
	log_init("unit", LOG_JSON, LOG_LV_INFO);
	CAPTURE(
	    log_call(LOG_LV_ERR, "hostile", "id\"1", "p\n", "x=%s", hostile));
	assert_int_equal(captured[0], '{');
	assert_non_null(
	    strstr(captured, ",\"level\":\"error\",\"proc\":\"unit\""));
	assert_non_null(strstr(captured,
	    "\"msg\":\"x=a\\\\x0ab\\\\x0d\\\\x1b[31m\\\"\\\\\\\\\\\\x7f\\\\xff"
	    "\\\\xc2\\\\x9b\\\\xe2\\\\x80\\\\xae\\\\xe2\\\\x80\\\\xa8\xc3\xa4"
	    "\\\\x09.\""));
	assert_non_null(strstr(captured,
	    ",\"execution_id\":\"id\\\"1\",\"principal\":\"p\\\\x0a\"}\n"));
	assert_ptr_equal(
	    strchr(captured, '\n'), captured + strlen(captured) - 1);
	setenv("JOURNAL_STREAM", "8:1", 1);
	log_init("unit", LOG_JSON, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_INFO, "e", "m"));
	assert_memory_equal(captured, "<6>{\"ts\":\"20", 12);
	unsetenv("JOURNAL_STREAM");
}

static void
levels(void **state)
{
	(void)state;
	log_init("unit", LOG_TEXT, LOG_LV_WARN);
	CAPTURE(log_event(LOG_LV_INFO, "e", "m"));
	assert_string_equal(captured, "");
	CAPTURE(log_event(LOG_LV_ERR, "e", "m"));
	assert_string_equal(captured, "<3>unit: e: m\n");
}

/* Too long a message is cut; it stays one line, and no byte past it is
 * read or written. */
static void
length(void **state)
{
	char *big = malloc(100001);

	(void)state;
	assert_non_null(big);
	memset(big, '\\', 100000);
	big[100000] = '\0';
	log_init("unit", LOG_JSON, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_INFO, "e", "%s", big));
	assert_true(strlen(captured) < 20000);
	assert_memory_equal(captured + strlen(captured) - 3, "\"}\n", 3);
	memset(big, '\n', 100000);
	log_init("unit", LOG_TEXT, LOG_LV_INFO);
	CAPTURE(log_event(LOG_LV_INFO, "e", "%s", big));
	assert_ptr_equal(
	    strchr(captured, '\n'), captured + strlen(captured) - 1);
	free(big);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(text),
	    cmocka_unit_test(json),
	    cmocka_unit_test(levels),
	    cmocka_unit_test(length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
