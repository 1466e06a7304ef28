/* A token and a request (bound.h): compared, and the ticket of a session. */
#include "bound.h"
#include "bounds.h"
#include "tlv.h"
#include "unit.h"

#define RESOURCE "https://mcp.example.org/mcp"

static struct ipc_hash body;
static struct buf record;

/* Writes the record of a token. */
static void
says(const char *method, const char *url, const char *text, const char *id,
    uint64_t session_exp_us)
{
	struct ipc_hash h;

	buf_clear(&record);
	if (method != NULL)
		tlv_puts(&record, BOUND_METHOD, method);
	if (url != NULL)
		tlv_puts(&record, BOUND_URL, url);
	if (text != NULL) {
		sha256(text, strlen(text), &h);
		tlv_put(&record, BOUND_BODY, &h, sizeof(h));
	}
	if (id != NULL)
		tlv_puts(&record, BOUND_ID, id);
	if (session_exp_us != 0)
		tlv_put_u64(&record, BOUND_SESSION_EXP_US, session_exp_us);
}

static int
setup(void **unused)
{
	buf_init(&record, IPC_FRAME_MAX);
	sha256("{}", 2, &body);
	return 0;
}

static int
teardown(void **unused)
{
	buf_free(&record);
	return 0;
}

static bool
is_read(struct bound *b)
{
	struct err err;

	if (bound_read(b, ipc_bytes(record.p, record.len), &err) == 0)
		return true;
	assert_int_equal(err.failure, FAILURE_INTERNAL);
	return false;
}

static void
reads_whole_records_only(void **unused)
{
	static char longest[JWT_URL_MAX + 2];
	struct bound b;

	says("POST", RESOURCE, "{}", "a", 7);
	assert_true(is_read(&b));
	assert_true(ipc_streq(b.method, "POST"));
	assert_true(b.session_exp_us == 7);
	says("POST", RESOURCE, "{}", "a", 0);
	assert_true(is_read(&b));
	assert_true(b.session_exp_us == 0);
	says(NULL, RESOURCE, "{}", "a", 0);
	assert_false(is_read(&b));
	says("POST", NULL, "{}", "a", 0);
	assert_false(is_read(&b));
	says("POST", RESOURCE, NULL, "a", 0);
	assert_false(is_read(&b));
	says("POST", RESOURCE, "{}", NULL, 0);
	assert_false(is_read(&b));
	says("", RESOURCE, "{}", "a", 0);
	assert_false(is_read(&b));
	says("POST", RESOURCE, "{}", "a", 0);
	tlv_put(&record, BOUND_BODY, "short", 5);
	assert_false(is_read(&b));
	says("POST", RESOURCE, "{}", "a", 0);
	tlv_put_u64(&record, BOUND_SESSION_EXP_US, 0);
	assert_false(is_read(&b));
	says("POST", RESOURCE, "{}", "a", 0);
	tlv_puts(&record, BOUND_SESSION_EXP_US + 1, "x");
	assert_false(is_read(&b));
	says("POST", RESOURCE, "{}", "a", 0);
	record.len--;
	assert_false(is_read(&b));
	memset(longest, 'x', JWT_URL_MAX + 1);
	says("POST", longest, "{}", "a", 0);
	assert_false(is_read(&b));
	longest[JWT_URL_MAX] = '\0';
	says("POST", longest, "{}", "a", 0);
	assert_true(is_read(&b));
}

/* ---- compared ---- */

static enum failure
compare(const char *resource, const char *method, const char *target,
    const char *text)
{
	struct bound_request rq = {.method = ipc_str(method),
	    .target = ipc_str(target),
	    .body = &body};
	struct bound b;
	struct err err = {0};

	sha256(text, strlen(text), &body);
	assert_true(is_read(&b));
	return bound_compare(&b, ipc_str(resource), &rq, &err) == 0
	    ? FAILURE_NONE
	    : err.failure;
}

static void
its_own_request_alone(void **unused)
{
	static const char *const methods[] = {
	    "GET", "DELETE", "post", "POSTX", "POS"};
	static const char *const targets[] = {"/mcp?", "/mcp?a=1&", "/mcp?a=2",
	    "/mcp/", "/mc", "/MCP?a=1", "/mcp?a=1#", "", "//mcp?a=1",
	    "/mcp?a=1?a=1", "@evil.example/mcp?a=1"};
	static const char *const bodies[] = {"", "{} ", " {}", "[]", "{}{}"};

	says("POST", RESOURCE "?a=1", "{}", "a", 0);
	assert_int_equal(
	    compare(RESOURCE, "POST", "/mcp?a=1", "{}"), FAILURE_NONE);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		assert_int_equal(
		    compare(RESOURCE, methods[i], "/mcp?a=1", "{}"),
		    FAILURE_UNAUTHENTICATED);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		assert_int_equal(compare(RESOURCE, "POST", targets[i], "{}"),
		    FAILURE_UNAUTHENTICATED);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		assert_int_equal(
		    compare(RESOURCE, "POST", "/mcp?a=1", bodies[i]),
		    FAILURE_UNAUTHENTICATED);
	assert_int_equal(
	    compare(RESOURCE, "POST", "/mcp?a=1", "{}"), FAILURE_NONE);
}

static void
without_a_query_and_a_body(void **unused)
{
	says("GET", RESOURCE, "", "a", 0);
	assert_int_equal(compare(RESOURCE, "GET", "/mcp", ""), FAILURE_NONE);
	assert_int_equal(
	    compare(RESOURCE, "GET", "/mcp?", ""), FAILURE_UNAUTHENTICATED);
	says("DELETE", RESOURCE "?", "", "a", 0);
	assert_int_equal(
	    compare(RESOURCE, "DELETE", "/mcp?", ""), FAILURE_NONE);
	assert_int_equal(
	    compare(RESOURCE, "DELETE", "/mcp", ""), FAILURE_UNAUTHENTICATED);
}

/* The URL's host is the resource's, to the byte, and its end can't move into
 * the target. */
static void
at_our_own_resource(void **unused)
{
	says("POST", "https://mcp.example.org.evil/mcp", "{}", "a", 0);
	assert_int_equal(compare(RESOURCE, "POST", ".evil/mcp", "{}"),
	    FAILURE_UNAUTHENTICATED);
	assert_int_equal(
	    compare(RESOURCE, "POST", "/mcp", "{}"), FAILURE_UNAUTHENTICATED);
	says("POST", "http://mcp.example.org/mcp", "{}", "a", 0);
	assert_int_equal(
	    compare(RESOURCE, "POST", "/mcp", "{}"), FAILURE_UNAUTHENTICATED);
	says("POST", "/mcp", "{}", "a", 0);
	assert_int_equal(
	    compare(RESOURCE, "POST", "/mcp", "{}"), FAILURE_UNAUTHENTICATED);
	/* a resource that can't be opens nothing */
	assert_int_equal(
	    compare("", "POST", "/mcp", "{}"), FAILURE_UNAUTHENTICATED);
	assert_int_equal(
	    compare("/mcp", "POST", "/mcp", "{}"), FAILURE_UNAUTHENTICATED);
	says("POST", RESOURCE, "{}", "a", 0);
	assert_int_equal(compare(RESOURCE, "POST", "/mcp", "{}"), FAILURE_NONE);
}

/* A gateway that was not told yet that tokens are bound here. */
static void
untold(void **unused)
{
	says("POST", RESOURCE, "{}", "a", 0);
	assert_int_equal(compare(RESOURCE, "", "", ""), FAILURE_BUSY);
}

/* ---- sessions ---- */

static void
claims(struct buf *b, const char *sub, const char *client, uint64_t n)
{
	buf_init(b, IPC_FRAME_MAX);
	tlv_puts(b, JWT_ISSUER, "worker");
	tlv_puts(b, JWT_SUB, sub);
	if (client != NULL)
		tlv_puts(b, JWT_CLIENT, client);
	tlv_put_u64(b, JWT_EXP_US, n + 60);
	tlv_put_u64(b, JWT_IAT_US, n);
	tlv_put_u64(b, JWT_BOUND, n);
}

static const uint8_t mine[KEY_LEN] = {1}, other[KEY_LEN] = {2};

static void
ticket_of(const uint8_t *key, const char *sub, const char *client, uint64_t n,
    uint64_t end_us, char out[BOUND_TICKET_LEN + 1])
{
	struct buf fields, session;

	claims(&fields, sub, client, n);
	buf_init(&session, IPC_FRAME_MAX);
	assert_int_equal(
	    bound_session(ipc_bytes(fields.p, fields.len), end_us, &session),
	    0);
	bound_ticket(key, ipc_bytes(session.p, session.len), out);
	assert_int_equal(strlen(out), BOUND_TICKET_LEN);
	buf_free(&fields);
	buf_free(&session);
}

static void
one_ticket_a_session(void **unused)
{
	char a[BOUND_TICKET_LEN + 1], b[BOUND_TICKET_LEN + 1];

	ticket_of(mine, "ann", "app", 1000, 9000, a);
	ticket_of(mine, "ann", "app", 2000, 9000, b);
	assert_string_equal(a, b);
	ticket_of(mine, "bob", "app", 1000, 9000, b);
	assert_string_not_equal(a, b);
	ticket_of(mine, "ann", NULL, 1000, 9000, b);
	assert_string_not_equal(a, b);
	ticket_of(mine, "ann", "app", 1000, 9001, b);
	assert_string_not_equal(a, b);
	ticket_of(other, "ann", "app", 1000, 9000, b);
	assert_string_not_equal(a, b);
}

static void
session_has_its_end(void **unused)
{
	struct buf fields, session;
	struct tlv t;
	uint64_t us;

	claims(&fields, "ann", "app", 1000);
	buf_init(&session, IPC_FRAME_MAX);
	assert_int_equal(
	    bound_session(ipc_bytes(fields.p, fields.len), 9000, &session), 0);
	assert_int_equal(tlv_find(session.p, session.len, JWT_EXP_US, &t), 1);
	assert_int_equal(tlv_u64(&t, &us), 0);
	assert_true(us == 9000);
	assert_int_equal(tlv_find(session.p, session.len, JWT_IAT_US, &t), 0);
	assert_int_equal(tlv_find(session.p, session.len, JWT_BOUND, &t), 0);
	assert_int_equal(tlv_find(session.p, session.len, JWT_CLIENT, &t), 1);
	buf_clear(&session);
	assert_int_equal(
	    bound_session(ipc_bytes(fields.p, fields.len - 1), 9000, &session),
	    -1);
	buf_free(&fields);
	buf_free(&session);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(reads_whole_records_only),
	    TEST(its_own_request_alone),
	    TEST(without_a_query_and_a_body),
	    TEST(at_our_own_resource),
	    TEST(untold),
	    TEST(one_ticket_a_session),
	    TEST(session_has_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
