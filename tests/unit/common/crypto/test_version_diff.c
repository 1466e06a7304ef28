/* version_diff.h: what a version changes, and what it would gain. */
#include "unit.h"

#include "crypto.h"
#include "ids.h"
#include "json_grammar.h"
#include "tlv.h"
#include "version.h"
#include "version_diff.h"

struct made {
	const char *description, *code, *exposed;
	const char *secrets[3], *modules[2], *hosts[2];
	uint64_t confirm, cpu_ms, files;
	uint8_t tool;
};

static void
make(const struct made *m, struct buf *b)
{
	uint8_t server[16] = {1}, tool[16] = {m->tool};

	buf_init(b, 1 << 16);
	version_begin(b);
	tlv_put_u64(b, VERSION_FORMAT, 1);
	tlv_put(b, VERSION_SERVER_ID, server, 16);
	tlv_put(b, VERSION_TOOL_ID, tool, 16);
	tlv_puts(b, VERSION_SERVER_NAME, "demo");
	tlv_puts(b, VERSION_NAME, "greet");
	tlv_puts(b, VERSION_EXPOSED_NAME,
	    m->exposed != NULL ? m->exposed : "demo__greet");
	if (m->description != NULL)
		tlv_puts(b, VERSION_DESCRIPTION, m->description);
	tlv_puts(b, VERSION_KIND, "python");
	tlv_puts(b, VERSION_CODE, m->code);
	for (int i = 0; i < 2 && m->modules[i] != NULL; i++)
		tlv_puts(b, VERSION_MODULE, m->modules[i]);
	for (int i = 0; i < 3 && m->secrets[i] != NULL; i++)
		tlv_puts(b, VERSION_SECRET, m->secrets[i]);
	for (int i = 0; i < 2 && m->hosts[i] != NULL; i++)
		tlv_puts(b, VERSION_REQUIRE, m->hosts[i]);
	tlv_put_u64(b, VERSION_CONFIRM, m->confirm);
	if (m->cpu_ms != 0)
		tlv_put_u64(b, VERSION_CPU_MS, m->cpu_ms);
	if (m->files != 0)
		tlv_put_u64(b, VERSION_FILES, m->files);
	assert_false(b->failed);
}

/* The JSON, without its base. */
static void
shows(const struct made *a, const struct made *b, const char *want)
{
	char hex[HEX32_LEN + 1], *p;
	struct buf pa, pb, out;
	struct ipc_hash hash;
	struct err e;

	buf_init(&pa, 1);
	if (a != NULL)
		make(a, &pa);
	make(b, &pb);
	buf_init(&out, 1 << 20);
	assert_int_equal(version_diff_json(a != NULL ? pa.p : NULL, pa.len,
			     pb.p, pb.len, &out, &e),
	    0);
	assert_true(json_grammar_valid(out.p, out.len));
	buf_put_u8(&out, 0);
	p = (char *)out.p;
	if (a != NULL) {
		sha256(pa.p, pa.len, &hash);
		hex_encode(hash.b, sizeof(hash.b), hex);
		assert_memory_equal(p + 9, hex, HEX32_LEN);
		p += 10 + HEX32_LEN;
	} else {
		assert_memory_equal(p, "{\"base\":null", 12);
		p += 12;
	}
	assert_string_equal(p, want);
	buf_free(&pa);
	buf_free(&pb);
	buf_free(&out);
}

#define NO_GAIN                                                  \
	"\"gains\":{\"secrets\":[],\"modules\":[],\"hosts\":[]," \
	"\"client_capabilities\":[],\"limits\":[],\"other\":[]}}"

static void
differences(void **state)
{
	const struct made one = {.code = "a\nb\n", .description = "One."};
	struct made two = one;

	shows(&one, &two, ",\"fields\":[],\"diff\":[]," NO_GAIN);
	two.description = "Two \xe2\x80\xae.";
	shows(&one, &two,
	    ",\"fields\":[{\"field\":\"description\",\"before\":\"One.\","
	    "\"after\":\"Two \\u202e.\"}],\"diff\":[]," NO_GAIN);
	two.description = NULL;
	shows(&one, &two,
	    ",\"fields\":[{\"field\":\"description\",\"before\":\"One.\","
	    "\"after\":null}],\"diff\":[]," NO_GAIN);
	two = one;
	two.code = "a\nc\n";
	shows(&one, &two,
	    ",\"fields\":[],\"diff\":[{\"field\":\"code\",\"unified\":"
	    "\"@@ -1,2 +1,2 @@\\n a\\n-b\\n+c\\n\"}]," NO_GAIN);
}

static void
gains(void **state)
{
	const struct made one = {.code = "x",
	    .secrets = {"A"},
	    .hosts = {"a.example.org"},
	    .confirm = 1,
	    .cpu_ms = 1000,
	    .files = 64};
	const struct made two = {.code = "x",
	    .secrets = {"A", "B"},
	    .modules = {"six 1.0 aa"},
	    .hosts = {"*.example.org"},
	    .exposed = "greet",
	    .cpu_ms = 2000,
	    .files = 32};
	const struct made less = {.code = "x", .confirm = 1};

	shows(&one, &two,
	    ",\"fields\":[{\"field\":\"exposed_name\",\"before\":"
	    "\"demo__greet\",\"after\":\"greet\"},{\"field\":\"modules\","
	    "\"before\":null,\"after\":[\"six 1.0 aa\"]},{\"field\":"
	    "\"secrets\",\"before\":[\"A\"],\"after\":[\"A\",\"B\"]},"
	    "{\"field\":\"requires\",\"before\":[\"a.example.org\"],"
	    "\"after\":[\"*.example.org\"]},{\"field\":\"confirm\",\"before\":"
	    "1,\"after\":0},{\"field\":\"cpu_ms\",\"before\":1000,\"after\":"
	    "2000},{\"field\":\"files\",\"before\":64,\"after\":32}],"
	    "\"diff\":[],\"gains\":{\"secrets\":[\"B\"],\"modules\":[\"six 1.0 "
	    "aa\"],\"hosts\":[\"*.example.org\"],\"client_capabilities\":[],"
	    "\"limits\":[{\"limit\":\"cpu_ms\",\"before\":1000,\"after\":2000}]"
	    ",\"other\":[\"no person is asked for each call any more\","
	    "\"clients see it under another name\"]}}");
	/* What is let go to the server's default may be more. */
	shows(&one, &less,
	    ",\"fields\":[{\"field\":\"secrets\",\"before\":[\"A\"],\"after\":"
	    "null},{\"field\":\"requires\",\"before\":[\"a.example.org\"],"
	    "\"after\":null},{\"field\":\"cpu_ms\",\"before\":1000,\"after\":"
	    "null},{\"field\":\"files\",\"before\":64,\"after\":null}],\"diff\""
	    ":[],\"gains\":{\"secrets\":[],\"modules\":[],\"hosts\":[],"
	    "\"client_capabilities\":[],\"limits\":[{\"limit\":\"cpu_ms\","
	    "\"before\":1000,\"after\":null},{\"limit\":\"files\",\"before\":"
	    "64,\"after\":null}],\"other\":[]}}");
}

/* Without a base all of it is new. */
static void
first(void **state)
{
	const struct made one = {.code = "x", .secrets = {"A"}};
	struct buf pre, out;
	struct err e;

	make(&one, &pre);
	buf_init(&out, 1 << 20);
	assert_int_equal(
	    version_diff_json(NULL, 0, pre.p, pre.len, &out, &e), 0);
	buf_put_u8(&out, 0);
	assert_non_null(strstr((char *)out.p,
	    "\"unified\":\"@@ -0,0 +1 @@\\n+x\\n\\\\ No newline"));
	assert_non_null(strstr((char *)out.p, "\"secrets\":[\"A\"],\"modul"));
	buf_free(&pre);
	buf_free(&out);
}

/* A base of another tool hides nothing: it is refused. */
static void
refusals(void **state)
{
	const struct made one = {.code = "x"}, other = {.code = "x", .tool = 9};
	struct buf a, b, out;
	struct err e;

	make(&one, &a);
	make(&other, &b);
	buf_init(&out, 1 << 20);
	assert_int_equal(
	    version_diff_json(a.p, a.len, b.p, b.len, &out, &e), -1);
	assert_int_equal(
	    version_diff_json(a.p, a.len - 1, a.p, a.len, &out, &e), -1);
	assert_int_equal(
	    version_diff_json(a.p, a.len, a.p, a.len - 1, &out, &e), -1);
	assert_int_equal(out.len, 0);
	buf_free(&a);
	buf_free(&b);
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(differences),
	    cmocka_unit_test(gains),
	    cmocka_unit_test(first),
	    cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
