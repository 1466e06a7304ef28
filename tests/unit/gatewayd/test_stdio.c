/* The halves of mcpbox-stdio that do no I/O: lines and event streams. */
#include "line.h"
#include "sse.h"
#include "unit.h"

#define META                                                                \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-" \
	"28\"}"

static const char bad_version[] =
    "{\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"io."
    "modelcontextprotocol/protocolVersion\":7}}}";

static int
read_line(const char *s, struct line *l, struct err *e)
{
	return line_read((const uint8_t *)s, strlen(s), l, e);
}

static void
lines_are_told_apart(void **state)
{
	static const struct {
		const char *text, *method, *version, *name;
		enum line_kind kind;
		bool modern;
	} rows[] = {
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "ping", "",
		"", LINE_REQUEST, false},
	    {"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", "n", "", "",
		LINE_NOTIFICATION, false},
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "", "", "",
		LINE_RESPONSE, false},
	    {" [{}]", "", "", "", LINE_ARRAY, false},
	    {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\","
	     "" META "}}",
		"tools/call", "2026-07-28", "a", LINE_REQUEST, true},
	    {"{\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"t\","
	     "\"name\":\"no\"," META "}}",
		"tasks/get", "2026-07-28", "t", LINE_REQUEST, true},
	    {"{\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":"
	     "\"x:\\u00e4\"," META "}}",
		"resources/read", "2026-07-28",
		"=?base64?eDrDpA==?=", LINE_REQUEST, true},
	    /* A legacy call has no Mcp-Name. */
	    {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}",
		"tools/call", "", "", LINE_REQUEST, false},
	};
	struct line l;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_line(rows[i].text, &l, &e), 0);
		assert_int_equal(l.kind, rows[i].kind);
		assert_int_equal(l.modern, rows[i].modern);
		assert_string_equal(l.method, rows[i].method);
		assert_string_equal(l.version, rows[i].version);
		assert_string_equal(l.name, rows[i].name);
	}
}

static void
what_is_no_message_is_refused(void **state)
{
	static const char *const rows[] = {"", "{", "7", "\"x\"", "{} {}",
	    "{\"a\":1,\"a\":2}", "{\"id\":1,\"method\":7}",
	    "{\"id\":1,\"method\":\"a\\u0000b\"}", bad_version};
	struct line l;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (read_line(rows[i], &l, &e) == 0)
			fail_msg("accepted: %s", rows[i]);
}

static void
headers_carry_any_text(void **state)
{
	char out[64], long_text[200];

	(void)state;
	assert_int_equal(line_header("plain text", out, sizeof(out)), 0);
	assert_string_equal(out, "plain text");
	assert_int_equal(line_header(" x", out, sizeof(out)), 0);
	assert_string_equal(out, "=?base64?IHg=?=");
	assert_int_equal(line_header("a\nb", out, sizeof(out)), 0);
	assert_string_equal(out, "=?base64?YQpi?=");
	/* Text that looks encoded must be, or it would be decoded. */
	assert_int_equal(line_header("=?base64?eA==?=", out, sizeof(out)), 0);
	assert_string_equal(out, "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
	assert_int_equal(line_header("", out, sizeof(out)), 0);
	assert_string_equal(out,
	    "=?base64?"
	    "?=");
	memset(long_text, 'a', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	assert_int_equal(line_header(long_text, out, sizeof(out)), -1);
	long_text[0] = ' ';
	assert_int_equal(line_header(long_text, out, sizeof(out)), -1);
}

static void
a_text_becomes_one_line(void **state)
{
	uint8_t text[] = "{\r\n\"a\":\n1}";

	(void)state;
	line_flatten(text, sizeof(text) - 1);
	assert_string_equal((char *)text, "{  \"a\": 1}");
}

static void
collect(void *arg, const void *data, size_t n)
{
	struct buf *b = arg;

	buf_put(b, data, n);
	buf_putc(b, '|');
}

/* The same events however the bytes are cut. */
static void
events_are_the_same_at_every_cut(void **state)
{
	static const char text[] =
	    "\r\n: comment\nretry: 250\nid: 7\ndata: one\ndata:two\n\n"
	    "event: x\rdata\r\rid\ndata: {\r\ndata:  3}\r\n\r\nid: a\n\n"
	    "data: unfinished";
	size_t len = sizeof(text) - 1;
	struct buf got;
	struct sse s;

	(void)state;
	for (size_t cut = 0; cut <= len; cut++) {
		sse_init(&s, 1000);
		buf_init(&got, 1000);
		assert_int_equal(sse_feed(&s, text, cut, collect, &got), 0);
		assert_int_equal(
		    sse_feed(&s, text + cut, len - cut, collect, &got), 0);
		buf_putc(&got, '\0');
		assert_string_equal((char *)got.p, "one\ntwo|{\n 3}|");
		assert_string_equal(s.id, "a");
		assert_int_equal(s.retry_ms, 250);
		buf_free(&got);
		sse_free(&s);
	}
}

static void
lines_and_events_have_a_limit(void **state)
{
	char line[101];
	struct buf got;
	struct sse s;
	int rc = 0, i;

	(void)state;
	memset(line, 'x', sizeof(line));
	buf_init(&got, 1000);
	sse_init(&s, 100);
	assert_int_equal(sse_feed(&s, line, 100, collect, &got), 0);
	assert_int_equal(sse_feed(&s, line, 1, collect, &got), -1);
	sse_free(&s);
	sse_init(&s, 100);
	for (i = 0; rc == 0 && i < 200; i++)
		rc = sse_feed(&s, "data: 1\n", 8, collect, &got);
	assert_in_range(i, 40, 60);
	sse_free(&s);
	buf_free(&got);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_are_told_apart),
	    cmocka_unit_test(what_is_no_message_is_refused),
	    cmocka_unit_test(headers_carry_any_text),
	    cmocka_unit_test(a_text_becomes_one_line),
	    cmocka_unit_test(events_are_the_same_at_every_cut),
	    cmocka_unit_test(lines_and_events_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
