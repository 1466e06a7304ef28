/* Bodies: what of a runner's JSON passes, and what an end means. */
#include <signal.h>

#include "json_scan.h"
#include "result.h"
#include "tlv.h"
#include "unit.h"

static struct redact *none, *some;

static int
setup(void **state)
{
	struct buf t;

	buf_init(&t, 1000);
	tlv_puts(&t, 1, "A");
	tlv_puts(&t, 2, "hunter2hunter2");
	tlv_puts(&t, 1, "B");
	tlv_puts(&t, 2, "8765432187");
	/* What a result is made of. */
	tlv_puts(&t, 1, "C");
	tlv_puts(&t, 2, "structuredContent");
	tlv_puts(&t, 1, "D");
	tlv_puts(&t, 2, "resource_link");
	some = redact_new(t.p, t.len);
	none = redact_new(NULL, 0);
	buf_free(&t);
	return some == NULL || none == NULL;
}

static int
teardown(void **state)
{
	redact_free(some);
	redact_free(none);
	return 0;
}

static void
take_as(unsigned method, struct redact *r, const char *in, bool is_error,
    enum failure f, const char *want)
{
	struct err e = {0};
	struct buf b;
	int rc;

	buf_init(&b, 2000);
	assert_int_equal(json_scan((const uint8_t *)in, strlen(in), NULL), 0);
	rc = result_take(ipc_str(in), method, is_error, r, &b, &e);
	if (f != FAILURE_NONE) {
		assert_int_equal(rc, -1);
		assert_int_equal(e.failure, f);
		if (strstr(e.text, want) == NULL)
			fail_msg("%s lacks %s", e.text, want);
	} else {
		if (rc != 0)
			fail_msg("%s", e.text);
		buf_putc(&b, '\0');
		assert_string_equal((char *)b.p, want);
	}
	buf_free(&b);
}

static void
take_with(struct redact *r, const char *in, bool is_error, enum failure f,
    const char *want)
{
	take_as(CALL_TOOL, r, in, is_error, f, want);
}

static void
take(const char *in, bool is_error, const char *want)
{
	take_with(none, in, is_error,
	    want == NULL ? FAILURE_KILLED : FAILURE_NONE,
	    want == NULL ? "no content" : want);
}

#define TEXT "{\"type\":\"text\",\"text\":\"x\"}"

static void
test_take(void **state)
{
	take("{\"content\":[" TEXT "]}", false,
	    "{\"content\":[" TEXT "],\"isError\":false}");
	take("{ \"content\" : [ " TEXT " , " TEXT " ] }", true,
	    "{\"content\":[" TEXT "," TEXT "],\"isError\":true}");
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
	take_with(none, "{\"content\":[],\"structuredContent\":[]}", false,
	    FAILURE_EXCEPTION, "structuredContent is no object");
	take_with(none, "{\"content\":[],\"isError\":1}", false,
	    FAILURE_EXCEPTION, "isError is no boolean");
}

/* One block; want is the block as it passes, or what the refusal says. */
static void
block(const char *in, bool passes, const char *want)
{
	char all[1000], out[1000];

	(void)snprintf(all, sizeof(all), "{\"content\":[" TEXT ",%s]}", in);
	(void)snprintf(out, sizeof(out),
	    "{\"content\":[" TEXT ",%s],\"isError\":false}", want);
	take_with(none, all, false, passes ? FAILURE_NONE : FAILURE_EXCEPTION,
	    passes ? out : want);
}

#define ACCEPT(json) block(json, true, json)

static void
test_blocks_pass_with_their_members(void **state)
{
	ACCEPT("{\"type\":\"text\",\"text\":\"a\\n\\u0041\",\"annotations\":{"
	       "\"audience\":[\"user\",\"assistant\"],\"priority\":0.5,"
	       "\"lastModified\":\"2025-01-12T15:00:58Z\"}}");
	ACCEPT("{\"type\":\"image\",\"data\":\"QUJD\",\"mimeType\":\"a/b\"}");
	ACCEPT("{\"type\":\"audio\",\"data\":\"QUI=\",\"mimeType\":\"a/b\"}");
	ACCEPT("{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"a/b\"}");
	ACCEPT("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\","
	       "\"mimeType\":\"a/b\",\"text\":\"t\"}}");
	ACCEPT("{\"type\":\"resource\",\"resource\":{\"uri\":\"x-1+.:b\","
	       "\"blob\":\"QQ==\"},\"annotations\":{}}");
	ACCEPT("{\"type\":\"resource_link\",\"uri\":\"https://h/\xc3\xa9?a=b\","
	       "\"name\":\"n\",\"title\":\"t\",\"description\":\"d\","
	       "\"mimeType\":\"a/b\",\"size\":12}");
	/* Others' members stay behind, in whatever order. */
	block("{\"text\":\"t\",\"_meta\":{\"a\":[1]},\"x\":[{}],\"type\":"
	      "\"text\",\"annotations\":{\"y\":{},\"priority\":1}}",
	    true,
	    "{\"type\":\"text\",\"text\":\"t\",\"annotations\":{\"priority\":"
	    "1}}");
}

static void
test_blocks_of_another_form_are_refused(void **state)
{
	block("1", false, "content[1] is no block");
	block("[]", false, "content[1] is no block");
	block("{}", false, "content[1] is no block");
	block("{\"type\":1}", false, "no block");
	block("{\"type\":\"video\"}", false, "no block");
	block("{\"type\":\"\"}", false, "no block");
	block("{\"type\":\"text\"}", false, "of type text: text is missing");
	block("{\"type\":\"text\",\"text\":null}", false, "text is no string");
	block("{\"type\":\"text\",\"text\":{}}", false, "text is no string");
	block("{\"type\":\"image\",\"mimeType\":\"a/b\"}", false,
	    "of type image: data is missing");
	block("{\"type\":\"image\",\"data\":\"QUJD\"}", false,
	    "mimeType is missing");
	block("{\"type\":\"image\",\"data\":\"QUJ\",\"mimeType\":\"a/b\"}",
	    false, "data is no base64");
	block("{\"type\":\"image\",\"data\":\"QU-_\",\"mimeType\":\"a/b\"}",
	    false, "data is no base64");
	block("{\"type\":\"image\",\"data\":\"Q===\",\"mimeType\":\"a/b\"}",
	    false, "data is no base64");
	block("{\"type\":\"image\",\"data\":\"QQ==QQ==\",\"mimeType\":\"a/b\"}",
	    false, "data is no base64");
	block("{\"type\":\"image\",\"data\":\"QU\\n=\",\"mimeType\":\"a/b\"}",
	    false, "data is no base64");
	block("{\"type\":\"image\",\"data\":7,\"mimeType\":\"a/b\"}", false,
	    "data is no base64");
	block("{\"type\":\"resource\"}", false, "resource is missing");
	block("{\"type\":\"resource\",\"resource\":[]}", false, "no object");
	block("{\"type\":\"resource\",\"resource\":{\"text\":\"t\"}}", false,
	    "uri is missing");
	block("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\"}}", false,
	    "must have text or blob");
	block("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":"
	      "\"\",\"blob\":\"\"}}",
	    false, "must have text or blob");
	block("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":"
	      "\"?\"}}",
	    false, "blob is no base64");
	block("{\"type\":\"resource_link\",\"uri\":\"a:b\"}", false,
	    "name is missing");
	block("{\"type\":\"resource_link\",\"uri\":\"/etc\",\"name\":\"n\"}",
	    false, "uri is no URI");
	block("{\"type\":\"resource_link\",\"uri\":\"\",\"name\":\"n\"}", false,
	    "uri is no URI");
	block("{\"type\":\"resource_link\",\"uri\":\"a:b c\",\"name\":\"n\"}",
	    false, "uri is no URI");
	block("{\"type\":\"resource_link\",\"uri\":\"a:\\n\",\"name\":\"n\"}",
	    false, "uri is no URI");
	block("{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"n\","
	      "\"size\":-1}",
	    false, "size is no size");
	block("{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"n\","
	      "\"size\":1.5}",
	    false, "size is no size");
	block("{\"type\":\"text\",\"text\":\"\",\"annotations\":[]}", false,
	    "annotations is no object");
	block("{\"type\":\"text\",\"text\":\"\",\"annotations\":{\"audience\":"
	      "[\"root\"]}}",
	    false, "annotations.audience");
	block("{\"type\":\"text\",\"text\":\"\",\"annotations\":{\"audience\":"
	      "\"user\"}}",
	    false, "annotations.audience");
	block("{\"type\":\"text\",\"text\":\"\",\"annotations\":{\"priority\":"
	      "1.1}}",
	    false, "annotations.priority");
	block("{\"type\":\"text\",\"text\":\"\",\"annotations\":{\"priority\":"
	      "true}}",
	    false, "annotations.priority");
	block("{\"type\":\"text\",\"text\":\"\",\"annotations\":{"
	      "\"lastModified\":1}}",
	    false, "annotations.lastModified");
}

/* Secrets go; what a result is made of stays, even if a secret is equal. */
static void
test_secrets_in_results(void **state)
{
	take_with(some,
	    "{\"content\":[{\"type\":\"resource_link\",\"uri\":"
	    "\"https://h/?k=hunter2hunter2\",\"name\":\"resource_link\","
	    "\"size\":8765432187,\"description\":\"structuredContent\"}],"
	    "\"structuredContent\":{\"hunter2hunter2\":8765432187}}",
	    false, FAILURE_NONE,
	    "{\"content\":[{\"type\":\"resource_link\",\"uri\":"
	    "\"https://h/?k=[secret]\",\"name\":\"[secret]\","
	    "\"description\":\"[secret]\"}],"
	    "\"structuredContent\":{\"[secret]\":null},\"isError\":false}");
	/* aHVudGVyMmh1bnRlcjI= is hunter2hunter2. */
	take_with(some,
	    "{\"content\":[{\"type\":\"image\",\"data\":"
	    "\"aHVudGVyMmh1bnRlcjI=\",\"mimeType\":\"a/b\"}," TEXT "]}",
	    false, FAILURE_NONE,
	    "{\"content\":[{\"type\":\"text\",\"text\":"
	    "\"[data withheld: it contains a secret of the call]\"}," TEXT
	    "],\"isError\":false}");
	take_with(some,
	    "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":"
	    "\"a:b\",\"blob\":\"aHVudGVyMmh1bnRlcjI=\"}}]}",
	    false, FAILURE_NONE,
	    "{\"content\":[{\"type\":\"text\",\"text\":"
	    "\"[data withheld: it contains a secret of the call]\"}],"
	    "\"isError\":false}");
	/* Base64 and hexadecimal digits of it, as the client decodes it. */
	take_with(some,
	    "{\"content\":[{\"type\":\"audio\",\"data\":"
	    "\"YUhWdWRHVnlNbWgxYm5SbGNqST0=\",\"mimeType\":\"a/b\"},"
	    "{\"type\":\"image\",\"data\":"
	    "\"QUI2ODc1NmU3NDY1NzIzMjY4NzU2ZTc0NjU3MjMyQw==\","
	    "\"mimeType\":\"a/b\"}]}",
	    false, FAILURE_NONE,
	    "{\"content\":[{\"type\":\"text\",\"text\":"
	    "\"[data withheld: it contains a secret of the call]\"},"
	    "{\"type\":\"text\",\"text\":"
	    "\"[data withheld: it contains a secret of the call]\"}],"
	    "\"isError\":false}");
	take_with(some,
	    "{\"content\":[],\"structuredContent\":{\"hunter2hunter2\":1,"
	    "\"<hunter2hunter2\":2,\"8765432187\":3}}",
	    false, FAILURE_EXCEPTION, "two of them are equal");
}

/* A body of another form than tools have; f NONE: it passes as want. */
static void
prompt(const char *in, enum failure f, const char *want)
{
	take_as(CALL_PROMPT, some, in, false, f, want);
}

static void
resource(const char *in, enum failure f, const char *want)
{
	take_as(CALL_RESOURCE, some, in, false, f, want);
}

#define WITHHELD "[data withheld: it contains a secret of the call]"

static void
test_prompts(void **state)
{
	prompt("{\"description\":\"d\",\"_meta\":{},\"isError\":true,"
	       "\"messages\":[{\"content\":" TEXT ",\"role\":\"user\",\"x\":1},"
	       "{\"role\":\"assistant\",\"content\":{\"type\":\"image\","
	       "\"data\":\"QUJD\",\"mimeType\":\"a/b\"}}]}",
	    FAILURE_NONE,
	    "{\"messages\":[{\"role\":\"user\",\"content\":" TEXT
	    "},{\"role\":\"assistant\",\"content\":{\"type\":\"image\","
	    "\"data\":\"QUJD\",\"mimeType\":\"a/b\"}}],"
	    "\"description\":\"d\"}");
	prompt("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
	       "\"text\",\"text\":\"hunter2hunter2\"}},{\"role\":\"user\","
	       "\"content\":{\"type\":\"audio\",\"mimeType\":\"a/b\","
	       "\"data\":\"aHVudGVyMmh1bnRlcjI=\"}}],"
	       "\"description\":\"of hunter2hunter2\"}",
	    FAILURE_NONE,
	    "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
	    "\"text\",\"text\":\"[secret]\"}},{\"role\":\"user\","
	    "\"content\":{\"type\":\"text\",\"text\":\"" WITHHELD
	    "\"}}],\"description\":\"of [secret]\"}");
	prompt("{\"content\":[]}", FAILURE_KILLED, "no messages");
	prompt("{\"messages\":{}}", FAILURE_KILLED, "no messages");
	prompt("{\"messages\":[1]}", FAILURE_EXCEPTION,
	    "messages[0] is no object");
	prompt("{\"messages\":[{\"role\":\"user\"}]}", FAILURE_EXCEPTION,
	    "messages[0]: content is missing");
	prompt("{\"messages\":[{\"content\":" TEXT "}]}", FAILURE_EXCEPTION,
	    "role is missing");
	prompt("{\"messages\":[{\"role\":\"system\",\"content\":" TEXT "}]}",
	    FAILURE_EXCEPTION, "role is neither user nor assistant");
	prompt("{\"messages\":[{\"role\":\"user\",\"content\":[" TEXT "]}]}",
	    FAILURE_EXCEPTION, "messages[0] is no block");
	prompt("{\"messages\":[],\"description\":1}", FAILURE_EXCEPTION,
	    "description is no string");
	/* An error is a text, whatever was asked for. */
	take_as(CALL_PROMPT, none, "{\"content\":[" TEXT "]}", true,
	    FAILURE_NONE, "{\"content\":[" TEXT "],\"isError\":true}");
}

/* With an output schema structured content may be anything; without, an
 * object. */
static void
test_structured(void **state)
{
	static const char *const values[] = {
	    "[1]", "\"x\"", "-1.5", "0", "true", "false", "null", "{}"};
	char in[200], out[200];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		(void)snprintf(in, sizeof(in),
		    "{\"structuredContent\":%s,\"content\":[]}", values[i]);
		(void)snprintf(out, sizeof(out),
		    "{\"content\":[],\"structuredContent\":%s,\"isError\":"
		    "false}",
		    values[i]);
		take_as(CALL_STRUCTURED, none, in, false, FAILURE_NONE, out);
		if (values[i][0] != '{')
			take_with(none, in, false, FAILURE_EXCEPTION,
			    "structuredContent is no object");
	}
	take_as(CALL_STRUCTURED, some,
	    "{\"content\":[],\"structuredContent\":\"hunter2hunter2\"}", false,
	    FAILURE_NONE,
	    "{\"content\":[],\"structuredContent\":\"[secret]\",\"isError\":"
	    "false}");
}

static void
test_resources(void **state)
{
	resource("{\"contents\":[{\"text\":\"a\",\"_meta\":{},\"x\":1},"
		 "{\"blob\":\"QQ==\",\"mimeType\":\"a/b\",\"uri\":\"c:d\"}],"
		 "\"ttlMs\":1}",
	    FAILURE_NONE,
	    "{\"contents\":[{\"text\":\"a\"},{\"uri\":\"c:d\","
	    "\"mimeType\":\"a/b\",\"blob\":\"QQ==\"}]}");
	resource("{\"contents\":[{\"text\":\"<hunter2hunter2>\"},{\"blob\":"
		 "\"aHVudGVyMmh1bnRlcjI=\",\"mimeType\":\"a/b\","
		 "\"uri\":\"c:d\"}]}",
	    FAILURE_NONE,
	    "{\"contents\":[{\"text\":\"<[secret]>\"},{\"uri\":\"c:d\","
	    "\"mimeType\":\"text/plain\",\"text\":\"" WITHHELD "\"}]}");
	resource("{\"messages\":[]}", FAILURE_KILLED, "no contents");
	resource("{\"contents\":[{}]}", FAILURE_EXCEPTION,
	    "contents[0] must have text or blob, not both");
	resource("{\"contents\":[{\"text\":\"\",\"blob\":\"\"}]}",
	    FAILURE_EXCEPTION, "not both");
	resource("{\"contents\":[{\"blob\":\"?\"}]}", FAILURE_EXCEPTION,
	    "contents[0]: blob is no base64");
	resource("{\"contents\":[{\"text\":\"\",\"uri\":\"/a\"}]}",
	    FAILURE_EXCEPTION, "uri is no URI");
}

static void
progress(const char *in, const char *want)
{
	struct buf b;
	int rc;

	buf_init(&b, 1000);
	rc = result_progress(ipc_str(in), none, &b, NULL);
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
end_cpu(unsigned code, unsigned value, uint64_t cpu_us, uint64_t peak_kib,
    uint32_t oom, const char *says)
{
	static const uint64_t limit[LIMIT_COUNT] = {
	    [LIMIT_MEMORY_BYTES] = 256 << 20,
	    [LIMIT_CPU_MS] = 2000,
	    [LIMIT_FILE_BYTES] = 4096,
	};
	struct err e;

	result_crash(code << 16 | value, cpu_us, peak_kib, oom, limit, &e);
	if (strstr(e.text, says) == NULL)
		fail_msg("%s lacks %s", e.text, says);
	return e.failure;
}

static enum failure
end(unsigned code, unsigned value, uint64_t peak_kib, uint32_t oom,
    const char *says)
{
	return end_cpu(code, value, 0, peak_kib, oom, says);
}

#define MEMORY "the limit memory_bytes is 268435456 bytes"

/* The limit and its value, and nothing that was not met. */
static void
test_crash(void **state)
{
	assert_int_equal(
	    end(CLD_EXITED, 3, 0, 0, "status 3"), FAILURE_EXCEPTION);
	assert_int_equal(
	    end(CLD_KILLED, SIGKILL, 250 << 10, 0, MEMORY), FAILURE_LIMIT);
	assert_int_equal(
	    end(CLD_KILLED, SIGKILL, 20 << 10, 1, MEMORY), FAILURE_LIMIT);
	/* A child was killed, and the tool gave up. */
	assert_int_equal(
	    end(CLD_EXITED, 1, 20 << 10, 1, MEMORY), FAILURE_LIMIT);
	assert_int_equal(end(CLD_KILLED, SIGKILL, 20 << 10, 0, "was 20 MiB"),
	    FAILURE_KILLED);
	assert_int_equal(
	    end_cpu(CLD_KILLED, SIGKILL, 900000, 20 << 10, 0, "used 900 ms"),
	    FAILURE_KILLED);
	assert_int_equal(end_cpu(CLD_KILLED, SIGKILL, 1100000, 0, 0,
			     "the limit cpu_ms is 2000 ms"),
	    FAILURE_LIMIT);
	assert_int_equal(
	    end_cpu(CLD_KILLED, SIGKILL, 900000, 250 << 10, 0, MEMORY),
	    FAILURE_LIMIT);
	assert_int_equal(
	    end(CLD_KILLED, SIGXCPU, 0, 0, "the limit cpu_ms is 2000 ms"),
	    FAILURE_LIMIT);
	assert_int_equal(end(CLD_KILLED, SIGXFSZ, 0, 0,
			     "the limit file_bytes is 4096 bytes"),
	    FAILURE_LIMIT);
	assert_int_equal(
	    end(CLD_KILLED, SIGSYS, 0, 0, "system call"), FAILURE_EXCEPTION);
	assert_int_equal(
	    end(CLD_DUMPED, SIGSEGV, 0, 0, "signal 11"), FAILURE_EXCEPTION);
}

static void
test_meta(void **state)
{
	static const struct ipc_id id = {{0xab}};
	struct result_dropped dropped = {0};
	struct buf b;

	buf_init(&b, 1000);
	result_meta(&b, &id, 1500, ipc_bytes("a\xff\"", 3), &dropped,
	    FAILURE_TIMEOUT, "late", ipc_str("{}"));
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_string_equal((char *)b.p,
	    "{\"mcpbox/execution\":{\"execution_id\":"
	    "\"ab000000-0000-0000-0000-000000000000\",\"duration_ms\":2,"
	    "\"stdout\":\"a\xef\xbf\xbd\\\"\"},\"mcpbox/failure\":"
	    "{\"failure_mode\":\"timeout\",\"message\":\"late\",\"fix\":"
	    "\"Do less per call or ask for a longer limit.\"}}");
	buf_clear(&b);
	dropped.progress_reports = 3;
	dropped.log_lines = 12;
	result_meta(&b, &id, 0, ipc_str(""), &dropped, FAILURE_NONE, NULL,
	    ipc_str("{}"));
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p,
	    "\"log_lines_dropped\":12,\"progress_reports_dropped\":3}"));
	buf_free(&b);
}

/* Beside a result, not beside an error; at a character's end. */
static void
test_meta_is_cut(void **state)
{
	static char text[RESULT_PRINTED_MAX + 2];
	static const struct ipc_id id = {{0xab}};
	struct result_dropped dropped = {0};
	struct buf b;

	memset(text, 'x', sizeof(text));
	buf_init(&b, 2 * sizeof(text));
	result_meta(&b, &id, 0, ipc_bytes(text, RESULT_PRINTED_MAX), &dropped,
	    FAILURE_NONE, NULL, ipc_str("{}"));
	buf_putc(&b, '\0');
	assert_null(strstr((char *)b.p, "mcpbox_get_tool_logs"));
	buf_clear(&b);
	memcpy(text + RESULT_PRINTED_MAX - 1, "\xe2\x82\xac", 3);
	result_meta(&b, &id, 0, ipc_bytes(text, sizeof(text)), &dropped,
	    FAILURE_NONE, NULL, ipc_str("{}"));
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p,
	    "x\\n[8191 of 8194 bytes. All are in the record "
	    "ab000000-0000-0000-0000-000000000000: mcpbox_get_tool_logs"));
	buf_clear(&b);
	result_meta(&b, &id, 0, ipc_bytes(text, sizeof(text)), &dropped,
	    FAILURE_EXCEPTION, "no", ipc_str("{}"));
	buf_putc(&b, '\0');
	assert_null(strstr((char *)b.p, "mcpbox_get_tool_logs"));
	assert_non_null(strstr((char *)b.p, "x\xe2\x82\xac\""));
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_blocks_pass_with_their_members),
	    cmocka_unit_test(test_blocks_of_another_form_are_refused),
	    cmocka_unit_test(test_secrets_in_results),
	    cmocka_unit_test(test_prompts),
	    cmocka_unit_test(test_structured),
	    cmocka_unit_test(test_resources),
	    cmocka_unit_test(test_progress),
	    cmocka_unit_test(test_crash),
	    cmocka_unit_test(test_meta),
	    cmocka_unit_test(test_meta_is_cut),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
