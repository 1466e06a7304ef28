/* Contexts are used once, by the right listener, with the right arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "depot.h"
#include "held.h"
#include "tlv.h"

static const uint8_t key[KEY_LEN] = "thirty-two bytes of a test's key";
static const struct ipc_id epoch = {"epoch epoch epoc"};
static const struct ipc_bytes args = {(const uint8_t *)"{\"a\":1}", 7};
static uint64_t counter;

static struct ipc_id
id_of(uint8_t n)
{
	struct ipc_id id = {{n}};

	return id;
}

/* A context with these extra fields (a TLV list may be appended). */
static void
seal(struct buf *out, const struct ipc_id *ep, struct ipc_id id,
    uint8_t listener, uint8_t kind, uint64_t number, const struct buf *more)
{
	struct context_binding b = {
	    .epoch = *ep, .execution = id, .listener = listener, .kind = kind};
	struct ipc_hash h;
	struct buf plain;

	buf_init(&plain, 1 << 20);
	tlv_puts(&plain, CTX_CODE, "code");
	sha256(args.p, args.n, &h);
	tlv_put(&plain, CTX_ARGS_SHA256, &h, sizeof(h));
	tlv_put_u64(&plain, CTX_TIMEOUT_MS, 1000);
	tlv_put_u64(&plain, CTX_HOLD_UNTIL_MS, 500);
	if (more != NULL)
		buf_put(&plain, more->p, more->len);
	buf_init(out, 1 << 20);
	assert_int_equal(
	    context_seal(key, number, &b, plain.p, plain.len, out, NULL), 0);
	buf_free(&plain);
}

static int
add(struct held_set *s, uint8_t n, uint8_t listener, uint8_t kind,
    const struct buf *more, struct err *e)
{
	struct ipc_id id = id_of(n);
	struct buf b;
	int rc;

	seal(&b, &epoch, id, listener, kind, ++counter, more);
	rc = held_add(s, &id, listener, ipc_bytes(b.p, b.len), 1000, e);
	buf_free(&b);
	return rc;
}

static int
setup(void **state)
{
	static struct held_set s;

	assert_int_equal(held_init(&s, 4, &epoch), 0);
	held_key(&s, key);
	*state = &s;
	return 0;
}

static int
teardown(void **state)
{
	held_clear(*state);
	return 0;
}

static void
test_used_once(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(1);
	struct held *h = NULL;

	assert_int_equal(
	    add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(held_take(s, &id, LISTENER_LOCAL, args, &h), HELD_OK);
	assert_int_equal(h->kind, CONTEXT_TOOL);
	assert_int_equal(h->timeout_ms, 1000);
	assert_true(ipc_streq(h->code, "code"));
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, args, &h), HELD_UNKNOWN);
}

static void
test_wrong_digest_burns(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(1);
	struct held *h = NULL;

	assert_int_equal(
	    add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(held_take(s, &id, LISTENER_LOCAL,
			     ipc_bytes(args.p, args.n - 1), &h),
	    HELD_WRONG_DIGEST);
	assert_non_null(h->record);
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, args, &h), HELD_UNKNOWN);
}

static void
test_wrong_listener_burns(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(1);
	struct held *h = NULL;

	assert_int_equal(
	    add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(
	    held_take(s, &id, LISTENER_TUNNEL, args, &h), HELD_WRONG_LISTENER);
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, args, &h), HELD_UNKNOWN);
}

static void
test_expires_with_a_record(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(1);
	struct held *h;

	assert_int_equal(
	    add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, NULL, NULL), 0);
	assert_null(held_expired(s, 1499));
	assert_non_null(h = held_expired(s, 1500));
	assert_memory_equal(&h->record->node.id, &id, sizeof(id));
	held_free(h);
	assert_int_equal(
	    held_take(s, &id, LISTENER_LOCAL, args, &h), HELD_UNKNOWN);
}

static void
test_hold_and_timeout_are_bounded(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(1);
	struct buf more;
	struct held *h;

	buf_init(&more, 100);
	tlv_put_u64(&more, CTX_HOLD_UNTIL_MS, UINT64_MAX);
	assert_int_equal(
	    add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	/* By its own listener only. */
	assert_null(held_remove(s, &id, LISTENER_TUNNEL));
	assert_null(held_remove(s, &id, LISTENER_ADMIND));
	assert_non_null(h = held_remove(s, &id, LISTENER_LOCAL));
	assert_int_equal(h->expires_ms, 1000 + HELD_HOLD_MAX_MS);
	held_free(h);
	buf_clear(&more);
	tlv_put_u64(&more, CTX_TIMEOUT_MS, HELD_TIMEOUT_MAX_MS + 1);
	assert_int_equal(
	    add(s, 1, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), -1);
	buf_free(&more);
}

static void
test_set_is_bounded(void **state)
{
	struct held_set *s = *state;
	struct err e;

	for (uint8_t i = 1; i <= 4; i++)
		assert_int_equal(add(s, i, 1, CONTEXT_TOOL, NULL, NULL), 0);
	assert_int_equal(add(s, 5, 1, CONTEXT_TOOL, NULL, &e), -1);
	assert_int_equal(e.failure, FAILURE_BUSY);
	held_free(held_expired(s, 5000));
	assert_int_equal(add(s, 5, 1, CONTEXT_TOOL, NULL, &e), 0);
	assert_int_equal(add(s, 5, 1, CONTEXT_TOOL, NULL, &e), -1);
}

/* A context opens once, also after it was used and forgotten. */
static void
test_replay(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(9);
	struct held *h;
	struct buf b;

	seal(&b, &epoch, id, LISTENER_LOCAL, CONTEXT_TOOL, 77, NULL);
	assert_int_equal(
	    held_add(s, &id, LISTENER_LOCAL, ipc_bytes(b.p, b.len), 0, NULL),
	    0);
	assert_int_equal(held_take(s, &id, LISTENER_LOCAL, args, &h), HELD_OK);
	held_free(h);
	assert_int_equal(
	    held_add(s, &id, LISTENER_LOCAL, ipc_bytes(b.p, b.len), 0, NULL),
	    -1);
	buf_free(&b);
}

static void
test_foreign_contexts(void **state)
{
	static const struct ipc_id other = {"another life's e"};
	struct held_set *s = *state;
	struct ipc_id id = id_of(9), id2 = id_of(10);
	struct buf b;

	/* Another epoch, another id, another listener than was sealed. */
	seal(&b, &other, id, LISTENER_LOCAL, CONTEXT_TOOL, ++counter, NULL);
	assert_int_equal(
	    held_add(s, &id, 1, ipc_bytes(b.p, b.len), 0, NULL), -1);
	buf_free(&b);
	seal(&b, &epoch, id, LISTENER_LOCAL, CONTEXT_TOOL, ++counter, NULL);
	assert_int_equal(
	    held_add(s, &id2, 1, ipc_bytes(b.p, b.len), 0, NULL), -1);
	assert_int_equal(
	    held_add(s, &id, 2, ipc_bytes(b.p, b.len), 0, NULL), -1);
	for (size_t cut = 0; cut < b.len; cut += 7)
		assert_int_equal(
		    held_add(s, &id, 1, ipc_bytes(b.p, cut), 0, NULL), -1);
	/* None of the attempts used it up: it was never opened. */
	assert_int_equal(
	    held_add(s, &id, 1, ipc_bytes(b.p, b.len), 0, NULL), 0);
	buf_free(&b);
}

static void
test_secrets_need_a_tool(void **state)
{
	struct held_set *s = *state;
	struct ipc_id id = id_of(3);
	struct held *h;
	struct buf more;
	struct tlv t;

	buf_init(&more, 100);
	tlv_puts(&more, CTX_SECRET_NAME, "TOKEN");
	tlv_puts(&more, CTX_SECRET_VALUE, "CANARY");
	assert_int_equal(
	    add(s, 1, LISTENER_ADMIND, CONTEXT_INSPECT, &more, NULL), -1);
	assert_int_equal(
	    add(s, 2, LISTENER_ADMIND, CONTEXT_TEST, &more, NULL), -1);
	assert_int_equal(
	    add(s, 3, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	assert_non_null(h = held_remove(s, &id, 0));
	assert_int_equal(tlv_find(h->secrets.p, h->secrets.len, 2, &t), 1);
	assert_memory_equal(t.p, "CANARY", 6);
	held_free(h);
	buf_free(&more);
}

/* A context with these fields and no code of its own; NULL if refused. */
static struct held *
with(struct held_set *s, uint8_t kind, const struct buf *more)
{
	static uint8_t n = 100;

	n++;
	if (add(s, n, LISTENER_ADMIND, kind, more, NULL) != 0)
		return NULL;
	return held_remove(s, &(struct ipc_id){{n}}, 0);
}

static void
test_limits(void **state)
{
	static const uint8_t tags[] = {CTX_MEMORY, CTX_PROCESSES, CTX_TMP,
	    CTX_RESULT, CTX_CPU_MS, CTX_FILES, CTX_FILE_BYTES, CTX_STDOUT,
	    CTX_LOG_RATE, CTX_PROGRESS_RATE};
	struct held_set *s = *state;
	uint64_t dflt[LIMIT_COUNT] = {0};
	struct buf more;
	struct held *h;

	buf_init(&more, 100);
	for (size_t i = 0; i < sizeof(tags); i++)
		dflt[limit_of_context(tags[i])] = 50 + i;
	dflt[LIMIT_FILE_BYTES] = 5000; /* more than /tmp's */
	held_defaults(s, dflt);
	assert_non_null(h = with(s, CONTEXT_TOOL, NULL));
	for (size_t i = 0; i < sizeof(tags); i++) {
		int l = limit_of_context(tags[i]);

		assert_int_equal(h->limit[l], dflt[l]);
	}
	assert_int_equal(h->limit[LIMIT_TIMEOUT_MS], 1000);
	held_free(h);
	for (size_t i = 0; i < sizeof(tags); i++) {
		int l = limit_of_context(tags[i]);

		/* An approved version's own, up or down, within the bounds. */
		buf_clear(&more);
		tlv_put_u64(&more, tags[i], 77);
		assert_non_null(h = with(s, CONTEXT_TOOL, &more));
		assert_int_equal(h->limit[l], 77);
		held_free(h);
		buf_clear(&more);
		tlv_put_u64(&more, tags[i], UINT64_MAX);
		assert_non_null(h = with(s, CONTEXT_TOOL, &more));
		assert_int_equal(h->limit[l], limit_info((enum limit)l)->max);
		held_free(h);
		/* What has no approval has not more than the default. */
		for (int kind = CONTEXT_INSPECT; kind <= CONTEXT_TEST; kind++) {
			assert_non_null(h = with(s, (uint8_t)kind, &more));
			assert_int_equal(h->limit[l], dflt[l]);
			held_free(h);
		}
	}
	/* A larger /tmp may be one file, unless that is limited too. */
	buf_clear(&more);
	tlv_put_u64(&more, CTX_TMP, 1 << 20);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->limit[LIMIT_FILE_BYTES], 1 << 20);
	held_free(h);
	tlv_put_u64(&more, CTX_FILE_BYTES, 4096);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->limit[LIMIT_FILE_BYTES], 4096);
	held_free(h);
	buf_free(&more);
}

static void
test_modules(void **state)
{
	struct held_set *s = *state;
	uint8_t digest[32] = {0};
	struct buf more;
	struct held *h;

	buf_init(&more, 1 << 16);
	for (unsigned i = 0; i < MODULES_PER_CALL_MAX; i++) {
		digest[31] = (uint8_t)i;
		tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	}
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->modules.len, MODULES_PER_CALL_MAX * 32);
	assert_int_equal(h->modules.p[63], 1);
	held_free(h);
	/* One too many; one twice; out of order; of another length. */
	digest[31] = 200;
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	assert_null(with(s, CONTEXT_TOOL, &more));
	buf_clear(&more);
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	assert_null(with(s, CONTEXT_TOOL, &more));
	buf_clear(&more);
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	digest[31] = 100;
	tlv_put(&more, CTX_MODULE, digest, sizeof(digest));
	assert_null(with(s, CONTEXT_TOOL, &more));
	buf_clear(&more);
	tlv_put(&more, CTX_MODULE, digest, 31);
	assert_null(with(s, CONTEXT_TOOL, &more));
	buf_free(&more);
}

/* What a call asked for, and what its result is checked against. */
static void
test_forms(void **state)
{
	struct held_set *s = *state;
	struct buf more;
	struct held *h;

	buf_init(&more, 4096);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->method, CALL_TOOL);
	assert_int_equal(h->output_schema.n, 0);
	held_free(h);
	tlv_put_u64(&more, CTX_METHOD, CALL_RESOURCE);
	tlv_puts(&more, CTX_OUTPUT_SCHEMA, "{}");
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->method, CALL_RESOURCE);
	assert_int_equal(h->output_schema.n, 2);
	held_free(h);
	buf_clear(&more);
	tlv_put_u64(&more, CTX_METHOD, CALL_RESOURCE + 1);
	assert_null(with(s, CONTEXT_TOOL, &more));
	buf_free(&more);
}

/* A task outlives its RUN's connection, so it is admind's alone: marked so, a
 * gateway's call is a call like any other. */
static void
test_tasks(void **state)
{
	struct held_set *s = *state;
	struct buf more;
	struct held *h;

	buf_init(&more, 100);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_false(h->task);
	held_free(h);
	tlv_put_u64(&more, CTX_TASK, 1);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_true(h->task);
	held_free(h);
	assert_int_equal(
	    add(s, 99, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	assert_non_null(h = held_remove(s, &(struct ipc_id){{99}}, 0));
	assert_false(h->task);
	held_free(h);
	buf_free(&more);
}

/* Source has none of a command's fields, and only TOOL has a version. */
static void
test_kinds(void **state)
{
	struct held_set *s = *state;
	uint8_t digest[32] = {7};
	struct buf more;
	struct held *h;

	buf_init(&more, 4096);
	tlv_put(&more, CTX_VERSION_HASH, digest, sizeof(digest));
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->runner, RUNNER_PYTHON);
	assert_true(h->has_version);
	assert_memory_equal(&h->version, digest, sizeof(digest));
	held_free(h);
	assert_non_null(h = with(s, CONTEXT_TEST, &more));
	assert_false(h->has_version);
	held_free(h);
	for (int i = 0; i < 4; i++) {
		static const uint8_t tag[] = {
		    CTX_SPEC, CTX_EXECUTABLE, CTX_EXECUTABLE_DIGEST, CTX_KIND};

		buf_clear(&more);
		tlv_put(&more, tag[i], digest, sizeof(digest));
		assert_null(with(s, CONTEXT_TOOL, &more));
	}
	/* A command, but with source beside its spec (seal() gives it). */
	buf_clear(&more);
	tlv_puts(&more, CTX_KIND, "command");
	tlv_puts(&more, CTX_SPEC, "{}");
	tlv_puts(&more, CTX_EXECUTABLE, "/usr/bin/true");
	tlv_put(&more, CTX_EXECUTABLE_DIGEST, digest, sizeof(digest));
	assert_null(with(s, CONTEXT_TOOL, &more));
	tlv_puts(&more, CTX_CODE, ""); /* the later one counts */
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->runner, RUNNER_COMMAND);
	assert_true(ipc_streq(h->code, "{}"));
	assert_true(ipc_streq(h->executable, "/usr/bin/true"));
	held_free(h);
	/* Without a digest: only to find it out. */
	buf_clear(&more);
	tlv_puts(&more, CTX_KIND, "command");
	tlv_puts(&more, CTX_SPEC, "{}");
	tlv_puts(&more, CTX_EXECUTABLE, "/usr/bin/true");
	tlv_puts(&more, CTX_CODE, "");
	assert_null(with(s, CONTEXT_TOOL, &more));
	assert_null(with(s, CONTEXT_TEST, &more));
	assert_non_null(h = with(s, CONTEXT_INSPECT, &more));
	held_free(h);
	buf_free(&more);
}

/* What a driver of ours reads is a specification and nothing else, never
 * source, and a module's fetch is our code alone. */
static void
test_drivers(void **state)
{
	static const struct {
		const char *kind;
		enum runner_driver driver;
	} rows[] = {{"http", DRIVER_HTTP}, {"mcp", DRIVER_MCP}};
	struct held_set *s = *state;
	struct buf more;
	struct held *h;

	buf_init(&more, 4096);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->driver, DRIVER_CODE);
	held_free(h);
	for (int i = 0; i < 2; i++) {
		buf_clear(&more);
		tlv_puts(&more, CTX_KIND, rows[i].kind);
		assert_null(with(s, CONTEXT_TOOL, &more)); /* source, no spec */
		tlv_puts(&more, CTX_SPEC, "{}");
		assert_null(with(s, CONTEXT_TOOL, &more)); /* both */
		tlv_puts(&more, CTX_CODE, "");
		assert_non_null(h = with(s, CONTEXT_TOOL, &more));
		assert_int_equal(h->runner, RUNNER_PYTHON);
		assert_int_equal(h->driver, rows[i].driver);
		assert_true(ipc_streq(h->code, "{}"));
		held_free(h);
		assert_null(with(s, CONTEXT_MODULE, &more));
		tlv_puts(&more, CTX_EXECUTABLE, "/usr/bin/true");
		assert_null(with(s, CONTEXT_TOOL, &more));
	}
	buf_free(&more);
}

/* What an installer does and where it may connect is the configuration's;
 * nothing of a context adds to it. */
static void
test_installer(void **state)
{
	static const struct {
		uint8_t tag;
		const char *text;
	} not_his[] = {{CTX_CODE, "code"}, {CTX_SPEC, "{}"}, {CTX_KIND, "http"},
	    {CTX_KIND, "command"}, {CTX_EXECUTABLE, "/usr/bin/true"},
	    {CTX_REQUIRE, "tcp a.example 0"}, {CTX_GRANT, "tcp a.example 0"},
	    {CTX_MODULE, "thirty-two bytes of some digest."}};
	struct held_set *s = *state;
	struct depot_conf conf = {.timeout_ms = 700};
	struct buf more, none;
	struct held *h;

	buf_init(&more, 4096);
	buf_init(&none, 16);
	tlv_puts(&more, CTX_CODE, "");
	assert_null(with(s, CONTEXT_MODULE, &more));
	assert_int_equal(depot_configure(&conf, "", "", "", 1, NULL), 0);
	s->installer = &conf;
	assert_null(with(s, CONTEXT_MODULE, &more)); /* none is configured */
	assert_int_equal(
	    depot_configure(&conf, "https://pypi.example/simple/",
		"files.example, 10.0.0.1:8080", "http://osv.example", 99, NULL),
	    0);
	assert_non_null(h = with(s, CONTEXT_MODULE, &more));
	assert_int_equal(h->driver, DRIVER_MODULE);
	assert_false(h->has_version);
	assert_int_equal(h->timeout_ms, 700);
	assert_true(ipc_streq(h->code,
	    "{\"index\":\"https://pypi.example/simple/\","
	    "\"advisories\":\"http://osv.example\",\"wheel_bytes\":99}"));
	assert_true(ipc_streq(ipc_bytes(h->requires.p, h->requires.len),
	    "tcp pypi.example 443\ntcp files.example 443\n"
	    "tcp 10.0.0.1 8080\ntcp osv.example 80\n"));
	assert_true(h->grants.len == h->requires.len &&
	    memcmp(h->grants.p, h->requires.p, h->grants.len) == 0);
	held_free(h);
	assert_null(with(s, CONTEXT_MODULE, &none)); /* it brings code */
	for (size_t i = 0; i < sizeof(not_his) / sizeof(not_his[0]); i++) {
		buf_clear(&more);
		tlv_puts(&more, CTX_CODE, "");
		tlv_puts(&more, not_his[i].tag, not_his[i].text);
		assert_null(with(s, CONTEXT_MODULE, &more));
	}
	s->installer = NULL;
	buf_free(&conf.spec);
	buf_free(&conf.hosts);
	buf_free(&more);
	buf_free(&none);
}

static void
test_installer_settings(void **state)
{
	static const char *const bad[] = {"ftp://a/", "pypi.example", "http://",
	    "https://a.example:0/", "https://a.example:99999/", "http://[::1/",
	    "http://a b/", "http://u@a.example/", "http://a.example:x/",
	    "http://a.example:/", "https://127.1/", "http://[::1]x/"};
	static const struct {
		const char *url, *line;
	} good[] = {{"http://PyPI.example", "tcp pypi.example 80\n"},
	    {"http://127.0.0.1:3141/root/+simple/", "tcp 127.0.0.1 3141\n"},
	    {"https://[2001:db8::1]:8443/simple", "tcp 2001:db8::1 8443\n"}};
	struct depot_conf c = {.timeout_ms = 1};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
		    depot_configure(&c, bad[i], "", "", 1, NULL), -1);
		buf_free(&c.spec);
		buf_free(&c.hosts);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(
		    depot_configure(&c, good[i].url, "", "", 1, NULL), 0);
		assert_true(
		    ipc_streq(ipc_bytes(c.hosts.p, c.hosts.len), good[i].line));
		buf_free(&c.spec);
		buf_free(&c.hosts);
	}
}

/* What is declared and granted; only approved code and the fetch of a module
 * have any. */
static void
test_hosts(void **state)
{
	static const char server[17] = "a server's own id";
	static const char *const bad[] = {
	    "", "tcp a.example 0\ntcp b.example 0", "tcp a\x01 0"};
	struct held_set *s = *state;
	struct buf more;
	struct held *h;

	buf_init(&more, 1 << 19);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_false(held_connects(h));
	held_free(h);
	/* Grants alone connect to nothing. */
	tlv_puts(&more, CTX_GRANT, "tcp * 0");
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_false(held_connects(h));
	held_free(h);
	tlv_puts(&more, CTX_REQUIRE, "tcp a.example 0");
	tlv_puts(&more, CTX_REQUIRE, "udp b.example 53");
	tlv_put(&more, CTX_SERVER_ID, server, 16);
	tlv_put_u64(&more, CTX_CONNECTIONS, 3);
	assert_non_null(h = with(s, CONTEXT_TOOL, &more));
	assert_true(held_connects(h));
	assert_true(ipc_streq(ipc_bytes(h->requires.p, h->requires.len),
	    "tcp a.example 0\nudp b.example 53\n"));
	assert_true(
	    ipc_streq(ipc_bytes(h->grants.p, h->grants.len), "tcp * 0\n"));
	assert_true(h->has_server);
	assert_memory_equal(&h->server, server, 16);
	assert_int_equal(h->limit[LIMIT_CONNECTIONS], 3);
	held_free(h);
	assert_null(with(s, CONTEXT_TEST, &more));
	assert_null(with(s, CONTEXT_INSPECT, &more));
	for (int i = 0; i < 3; i++) {
		buf_clear(&more);
		tlv_puts(&more, CTX_REQUIRE, bad[i]);
		assert_null(with(s, CONTEXT_TOOL, &more));
		buf_clear(&more);
		tlv_puts(&more, CTX_GRANT, bad[i]);
		assert_null(with(s, CONTEXT_TOOL, &more));
	}
	buf_clear(&more);
	tlv_put(&more, CTX_SERVER_ID, server, 15);
	assert_null(with(s, CONTEXT_TOOL, &more));
	/* Longer lists than a version or a server may have. */
	buf_clear(&more);
	for (int i = 0; i < 1200; i++) {
		char line[300];

		(void)snprintf(line, sizeof(line), "tcp %0250d 65535", i);
		tlv_puts(&more, CTX_GRANT, line);
	}
	assert_false(more.failed);
	assert_null(with(s, CONTEXT_TOOL, &more));
	buf_free(&more);
}

/* A sealed list of grants for this server. */
static int
regrant(struct held_set *s, struct ipc_id of, struct ipc_id inside,
    uint8_t kind, uint8_t listener, uint64_t number, const char *host,
    struct regrant *r, struct err *e)
{
	struct context_binding b = {.epoch = epoch,
	    .execution = of,
	    .listener = listener,
	    .kind = kind};
	struct buf plain, sealed;
	int rc;

	buf_init(&plain, 4096);
	buf_init(&sealed, 4096);
	tlv_put(&plain, CTX_SERVER_ID, &inside, sizeof(inside));
	if (host != NULL)
		tlv_puts(&plain, CTX_GRANT, host);
	assert_int_equal(
	    context_seal(key, number, &b, plain.p, plain.len, &sealed, NULL),
	    0);
	rc = held_regrant(s, &of, ipc_bytes(sealed.p, sealed.len), r, e);
	buf_free(&plain);
	buf_free(&sealed);
	return rc;
}

static void
test_grants_change(void **state)
{
	const uint8_t grants = CONTEXT_GRANTS, inner = LISTENER_ADMIND;
	struct held_set *s = *state;
	struct ipc_id a = {"server a        "}, b = {"server b        "};
	struct regrant r, old;
	struct buf more;
	struct held *h;
	struct err e;

	buf_init(&more, 4096);
	tlv_puts(&more, CTX_REQUIRE, "tcp a.example 0");
	tlv_puts(&more, CTX_GRANT, "tcp a.example 443");
	tlv_put(&more, CTX_SERVER_ID, &a, sizeof(a));
	counter = 100;
	assert_int_equal(
	    add(s, 50, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	h = held_find(s, &(struct ipc_id){{50}});
	assert_non_null(h);
	/* Not for this server, of another kind or door, or of another epoch's
	 * call: none of them opens. */
	assert_int_equal(
	    regrant(s, a, b, grants, inner, 102, "tcp * 0", &r, &e), -1);
	assert_int_equal(e.failure, FAILURE_FORBIDDEN);
	regrant_free(&r);
	assert_int_equal(
	    regrant(s, a, a, CONTEXT_TOOL, inner, 103, "tcp * 0", &r, &e), -1);
	regrant_free(&r);
	assert_int_equal(
	    regrant(s, a, a, grants, LISTENER_LOCAL, 104, "tcp * 0", &r, &e),
	    -1);
	regrant_free(&r);
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 105, "tcp a\n 0", &r, &e), -1);
	regrant_free(&r);
	/* As a call's context it is none. */
	assert_int_equal(
	    add(s, 51, LISTENER_ADMIND, CONTEXT_GRANTS, NULL, &e), -1);
	counter = 200;
	/* Another server's changes nothing. */
	assert_int_equal(
	    regrant(s, b, b, grants, inner, 201, "tcp * 0", &r, &e), 0);
	held_grant_all(s, &r);
	regrant_free(&r);
	assert_true(ipc_streq(
	    ipc_bytes(h->grants.p, h->grants.len), "tcp a.example 443\n"));
	/* One that was held back comes behind a newer one: too late. */
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 202, "tcp * 0", &old, &e), 0);
	assert_int_equal(regrant(s, a, a, grants, inner, 203, NULL, &r, &e), 0);
	held_grant_all(s, &r);
	assert_int_equal(h->grants.len, 0);
	held_grant_all(s, &old);
	assert_int_equal(h->grants.len, 0);
	regrant_free(&r);
	regrant_free(&old);
	/* Twice: it opens once. */
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 203, NULL, &r, &e), -1);
	assert_int_equal(e.failure, FAILURE_CONFLICT);
	regrant_free(&r);
	/* Under a later key numbers begin anew and are later still. */
	held_key(s, key);
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 1, "tcp c.example 0", &r, &e), 0);
	held_grant_all(s, &r);
	assert_true(ipc_streq(
	    ipc_bytes(h->grants.p, h->grants.len), "tcp c.example 0\n"));
	regrant_free(&r);
	buf_free(&more);
}

static void
test_no_key(void **state)
{
	struct held_set s;
	struct err e;

	assert_int_equal(held_init(&s, 4, &epoch), 0);
	assert_int_equal(add(&s, 1, 1, CONTEXT_TOOL, NULL, &e), -1);
	assert_int_equal(e.failure, FAILURE_VAULT_UNAVAILABLE);
	held_clear(&s);
}

static void
test_replay_window(void **state)
{
	static struct replay r;

	replay_reset(&r);
	assert_true(replay_fresh(&r, 0));
	replay_mark(&r, 5);
	assert_false(replay_fresh(&r, 5));
	assert_true(replay_fresh(&r, 4));
	replay_mark(&r, 4);
	assert_false(replay_fresh(&r, 4));
	replay_mark(&r, 5 + REPLAY_WINDOW - 1);
	assert_false(replay_fresh(&r, 5)); /* still inside, and used */
	assert_true(replay_fresh(&r, 6));
	replay_mark(&r, 5 + REPLAY_WINDOW);
	assert_false(replay_fresh(&r, 5)); /* behind the window */
	assert_true(replay_fresh(&r, 6));
	/* Its bit was 5's: cleared on the way, set by itself. */
	assert_false(replay_fresh(&r, 5 + REPLAY_WINDOW));
	replay_mark(&r, 1ULL << 60);
	assert_false(replay_fresh(&r, 6));
	assert_true(replay_fresh(&r, (1ULL << 60) - 1));
	/* Against a model, in an order that jumps to and fro. */
	replay_reset(&r);
	for (unsigned i = 0; i < 4000; i++) {
		uint64_t n = (uint64_t)i * 7919 % 4001;

		assert_true(replay_fresh(&r, n));
		replay_mark(&r, n);
		assert_false(replay_fresh(&r, n));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(test_used_once), T(test_wrong_digest_burns),
	    T(test_wrong_listener_burns), T(test_expires_with_a_record),
	    T(test_hold_and_timeout_are_bounded), T(test_set_is_bounded),
	    T(test_replay), T(test_foreign_contexts),
	    T(test_secrets_need_a_tool), T(test_limits), T(test_modules),
	    T(test_forms), T(test_tasks), T(test_kinds), T(test_drivers),
	    T(test_installer), T(test_installer_settings), T(test_hosts),
	    T(test_grants_change), T(test_no_key), T(test_replay_window)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
