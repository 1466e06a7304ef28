/* What contexts say beside code: drivers, installers, hosts, grants. */
#include "depot.h"
#include "depot_conf.h"
#include "held_rig.h"
#include "tlv.h"
#include "unit.h"

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
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_int_equal(h->driver, DRIVER_CODE);
	held_free(h);
	for (int i = 0; i < 2; i++) {
		buf_clear(&more);
		tlv_puts(&more, CTX_KIND, rows[i].kind);
		assert_null(held_rig_with(
		    s, CONTEXT_TOOL, &more)); /* source, no spec */
		tlv_puts(&more, CTX_SPEC, "{}");
		assert_null(held_rig_with(s, CONTEXT_TOOL, &more)); /* both */
		tlv_puts(&more, CTX_CODE, "");
		assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
		assert_int_equal(h->runner, RUNNER_PYTHON);
		assert_int_equal(h->driver, rows[i].driver);
		assert_true(ipc_streq(h->code, "{}"));
		held_free(h);
		assert_null(held_rig_with(s, CONTEXT_MODULE, &more));
		tlv_puts(&more, CTX_EXECUTABLE, "/usr/bin/true");
		assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	}
	buf_free(&more);
}

/* A run of ours is a specification and hosts, as the vault alone makes them,
 * and no other kind runs its driver. It has at most so many secrets. */
static void
ours(struct held_set *s, uint8_t kind, const char *name, uint8_t other,
    enum runner_driver driver, unsigned secrets)
{
	const uint8_t others[] = {
	    CONTEXT_TOOL, CONTEXT_INSPECT, CONTEXT_TEST, CONTEXT_MODULE, other};
	struct buf more;
	struct held *h;

	buf_init(&more, 4096);
	assert_null(held_rig_with(s, kind, &more)); /* source */
	tlv_puts(&more, CTX_CODE, "");
	tlv_puts(&more, CTX_KIND, name);
	assert_null(held_rig_with(s, kind, &more)); /* no spec */
	tlv_puts(&more, CTX_SPEC, "{}");
	tlv_puts(&more, CTX_REQUIRE, "tcp id.example 443");
	tlv_puts(&more, CTX_GRANT, "tcp id.example 443");
	assert_non_null(h = held_rig_with(s, kind, &more));
	assert_int_equal(h->driver, driver);
	assert_true(held_connects(h));
	held_free(h);
	for (size_t i = 0; i < sizeof(others); i++)
		assert_null(held_rig_with(s, others[i], &more));
	for (unsigned i = 0; i < secrets; i++) {
		tlv_puts(&more, CTX_SECRET_NAME, "TOKEN");
		tlv_puts(&more, CTX_SECRET_VALUE, "value");
		assert_non_null(h = held_rig_with(s, kind, &more));
		held_free(h);
	}
	tlv_puts(&more, CTX_SECRET_NAME, "TOKEN");
	tlv_puts(&more, CTX_SECRET_VALUE, "value");
	assert_null(held_rig_with(s, kind, &more));
	buf_clear(&more);
	tlv_puts(&more, CTX_CODE, "");
	tlv_puts(&more, CTX_KIND, "http");
	tlv_puts(&more, CTX_SPEC, "{}");
	assert_null(held_rig_with(s, kind, &more));
	buf_free(&more);
}

static void
test_keys(void **state)
{
	ours(*state, CONTEXT_KEYS, "keys", CONTEXT_TELEMETRY, DRIVER_KEYS, 0);
}

static void
test_telemetry(void **state)
{
	ours(*state, CONTEXT_TELEMETRY, "telemetry", CONTEXT_KEYS,
	    DRIVER_TELEMETRY, 0);
}

static void
test_notify(void **state)
{
	ours(*state, CONTEXT_NOTIFY, "notify", CONTEXT_TELEMETRY, DRIVER_NOTIFY,
	    1);
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
	assert_null(held_rig_with(s, CONTEXT_MODULE, &more));
	assert_int_equal(depot_configure(&conf, "", "", "", 1, NULL), 0);
	s->installer = &conf;
	assert_null(
	    held_rig_with(s, CONTEXT_MODULE, &more)); /* none is configured */
	assert_int_equal(
	    depot_configure(&conf, "https://pypi.example/simple/",
		"files.example, 10.0.0.1:8080", "http://osv.example", 99, NULL),
	    0);
	assert_non_null(h = held_rig_with(s, CONTEXT_MODULE, &more));
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
	assert_null(
	    held_rig_with(s, CONTEXT_MODULE, &none)); /* it brings code */
	for (size_t i = 0; i < sizeof(not_his) / sizeof(not_his[0]); i++) {
		buf_clear(&more);
		tlv_puts(&more, CTX_CODE, "");
		tlv_puts(&more, not_his[i].tag, not_his[i].text);
		assert_null(held_rig_with(s, CONTEXT_MODULE, &more));
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
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_false(held_connects(h));
	held_free(h);
	/* Grants alone connect to nothing. */
	tlv_puts(&more, CTX_GRANT, "tcp * 0");
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_false(held_connects(h));
	held_free(h);
	tlv_puts(&more, CTX_REQUIRE, "tcp a.example 0");
	tlv_puts(&more, CTX_REQUIRE, "udp b.example 53");
	tlv_put(&more, CTX_SERVER_ID, server, 16);
	tlv_put_u64(&more, CTX_CONNECTIONS, 3);
	assert_non_null(h = held_rig_with(s, CONTEXT_TOOL, &more));
	assert_true(held_connects(h));
	assert_true(ipc_streq(ipc_bytes(h->requires.p, h->requires.len),
	    "tcp a.example 0\nudp b.example 53\n"));
	assert_true(
	    ipc_streq(ipc_bytes(h->grants.p, h->grants.len), "tcp * 0\n"));
	assert_true(h->has_server);
	assert_memory_equal(&h->server, server, 16);
	assert_int_equal(h->limit[LIMIT_CONNECTIONS], 3);
	held_free(h);
	assert_null(held_rig_with(s, CONTEXT_TEST, &more));
	assert_null(held_rig_with(s, CONTEXT_INSPECT, &more));
	for (int i = 0; i < 3; i++) {
		buf_clear(&more);
		tlv_puts(&more, CTX_REQUIRE, bad[i]);
		assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
		buf_clear(&more);
		tlv_puts(&more, CTX_GRANT, bad[i]);
		assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	}
	buf_clear(&more);
	tlv_put(&more, CTX_SERVER_ID, server, 15);
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	/* Longer lists than a version or a server may have. */
	buf_clear(&more);
	for (int i = 0; i < 1200; i++) {
		char line[300];

		(void)snprintf(line, sizeof(line), "tcp %0250d 65535", i);
		tlv_puts(&more, CTX_GRANT, line);
	}
	assert_false(more.failed);
	assert_null(held_rig_with(s, CONTEXT_TOOL, &more));
	buf_free(&more);
}

/* A sealed list of grants for this server. */
static int
regrant(struct held_set *s, struct ipc_id of, struct ipc_id inside,
    uint8_t kind, uint8_t listener, uint64_t number, const char *host,
    struct regrant *r, struct err *e)
{
	struct context_binding b = {.epoch = held_rig_epoch,
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
	assert_int_equal(context_seal(held_rig_key, number, &b, plain.p,
			     plain.len, &sealed, NULL),
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
	held_rig_counter = 100;
	assert_int_equal(
	    held_rig_add(s, 50, LISTENER_LOCAL, CONTEXT_TOOL, &more, NULL), 0);
	h = held_find(s, &(struct ipc_id){{50}});
	assert_non_null(h);
	/* Not for this server, of another kind or door, or of another epoch's
	 * call: none of them opens. */
	assert_int_equal(
	    regrant(s, a, b, grants, inner, 102, "tcp * 0", &r, &e), -1);
	assert_int_equal(e.failure, FAILURE_FORBIDDEN);
	held_regrant_free(&r);
	assert_int_equal(
	    regrant(s, a, a, CONTEXT_TOOL, inner, 103, "tcp * 0", &r, &e), -1);
	held_regrant_free(&r);
	assert_int_equal(
	    regrant(s, a, a, grants, LISTENER_LOCAL, 104, "tcp * 0", &r, &e),
	    -1);
	held_regrant_free(&r);
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 105, "tcp a\n 0", &r, &e), -1);
	held_regrant_free(&r);
	/* As a call's context it is none. */
	assert_int_equal(
	    held_rig_add(s, 51, LISTENER_ADMIND, CONTEXT_GRANTS, NULL, &e), -1);
	held_rig_counter = 200;
	/* Another server's changes nothing. */
	assert_int_equal(
	    regrant(s, b, b, grants, inner, 201, "tcp * 0", &r, &e), 0);
	held_grant_all(s, &r);
	held_regrant_free(&r);
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
	held_regrant_free(&r);
	held_regrant_free(&old);
	/* Twice: it opens once. */
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 203, NULL, &r, &e), -1);
	assert_int_equal(e.failure, FAILURE_CONFLICT);
	held_regrant_free(&r);
	/* Under a later key numbers begin anew and are later still. */
	held_key(s, held_rig_key);
	assert_int_equal(
	    regrant(s, a, a, grants, inner, 1, "tcp c.example 0", &r, &e), 0);
	held_grant_all(s, &r);
	assert_true(ipc_streq(
	    ipc_bytes(h->grants.p, h->grants.len), "tcp c.example 0\n"));
	held_regrant_free(&r);
	buf_free(&more);
}

/* Arguments that HELD brings stand behind the intent, which the vault sealed.
 */
static void
test_arguments_of_the_record(void **state)
{
	static char large[ARGUMENTS_KEPT + 1];
	struct held_set *s = *state;
	struct ipc_id id = held_rig_id(1);
	struct buf more, intent;
	struct held *h;
	struct err e;
	struct tlv t;

	buf_init(&more, 1024);
	buf_init(&intent, 1024);
	tlv_puts(&intent, INTENT_TOOL, "a__b");
	tlv_put(&more, CTX_INTENT, intent.p, intent.len);
	assert_int_equal(held_rig_add(s, 1, 1, CONTEXT_TOOL, &more, &e), 0);
	assert_int_equal(held_arguments(s, &id, ipc_bytes(NULL, 0), &e), 0);
	h = held_find(s, &id);
	assert_int_equal(h->record->intent.len, intent.len);
	assert_int_equal(
	    held_arguments(s, &id, ipc_bytes(large, ARGUMENTS_KEPT), &e), 0);
	assert_memory_equal(h->record->intent.p, intent.p, intent.len);
	assert_int_equal(tlv_find(h->record->intent.p, h->record->intent.len,
			     INTENT_ARGUMENTS, &t),
	    1);
	assert_int_equal(t.n, ARGUMENTS_KEPT);
	/* More than is kept: the call is not held. */
	assert_int_equal(
	    held_arguments(s, &id, ipc_bytes(large, sizeof(large)), &e), -1);
	assert_int_equal(e.failure, FAILURE_INTERNAL);
	assert_null(held_find(s, &id));
	assert_int_equal(
	    held_arguments(s, &id, ipc_bytes(large, sizeof(large)), &e), 0);
	buf_free(&intent);
	buf_free(&more);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) \
	cmocka_unit_test_setup_teardown(f, held_rig_setup, held_rig_teardown)
	    T(test_drivers), T(test_keys), T(test_telemetry), T(test_notify),
	    T(test_installer), T(test_installer_settings), T(test_hosts),
	    T(test_grants_change), T(test_arguments_of_the_record)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
