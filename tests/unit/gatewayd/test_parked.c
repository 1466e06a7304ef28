/* Request state: bound, sealed, timed, used once; how many may wait. */
#include <event2/event.h>

#include "ids.h"
#include "parked.h"
#include "unit.h"

static struct gateway gw;
static struct event_base *base;
static struct exchange ex;
static char quoted[PARKED_TEXT_LEN + 16];
static int resumed, expiries;
static void *last;

static void
on_resume(void *arg, struct exchange *x)
{
	assert_ptr_equal(x, &ex);
	resumed++;
	last = arg;
}

static void
on_expired(void *arg)
{
	expiries++;
	last = arg;
}

static const struct parked_owner owner = {on_resume, on_expired};

static void
request(const char *principal, enum mcp_method method, const char *tool,
    const char *arguments)
{
	memset(&ex, 0, sizeof(ex));
	ex.gw = &gw;
	snprintf(ex.who.principal, sizeof(ex.who.principal), "%s", principal);
	ex.m.method = method;
	snprintf(ex.m.tool, sizeof(ex.m.tool), "%s", tool);
	ex.m.arguments = ipc_str(arguments);
}

static void
usual(void)
{
	request("ann", MCP_TOOLS_CALL, "s__t", "{\"a\":1}");
}

/* Sends a state with ex's request. */
static int
bring(const char *state)
{
	struct refusal no;
	int rc;

	snprintf(quoted, sizeof(quoted), "\"%s\"", state);
	ex.m.request_state = ipc_str(quoted);
	rc = parked_resume(&ex, &no);
	if (rc < 0)
		assert_int_equal(no.failure, FAILURE_BAD_STATE);
	return rc;
}

static struct parked *
park(char state[PARKED_TEXT_LEN + 1])
{
	struct refusal no;
	struct parked *p = parked_new(&gw, &ex, &owner, &gw, &no);

	assert_non_null(p);
	assert_int_equal(
	    parked_state(p, now_us() / 1000 + 60 * 1000, state), 0);
	assert_int_equal(strlen(state), PARKED_TEXT_LEN);
	return p;
}

static int
setup(void **st)
{
	memset(&gw, 0, sizeof(gw));
	gw.listener = LISTENER_LOCAL;
	gw.has_key = true;
	memset(gw.session_key, 7, KEY_LEN);
	base = event_base_new();
	gw.parked = parked_set_new(base);
	resumed = expiries = 0;
	usual();
	return base == NULL || gw.parked == NULL ? -1 : 0;
}

static int
teardown(void **st)
{
	parked_set_free(gw.parked);
	event_base_free(base);
	return 0;
}

static void
used_once(void **st)
{
	char one[PARKED_TEXT_LEN + 1], two[PARKED_TEXT_LEN + 1];
	struct parked *p = park(one);

	assert_int_equal(bring(one), 0);
	assert_int_equal(resumed, 1);
	assert_ptr_equal(last, &gw);
	assert_int_equal(bring(one), -1);
	assert_int_equal(parked_state(p, now_us() / 1000 + 60 * 1000, two), 0);
	assert_string_not_equal(one, two);
	/* An earlier round is none, whether or not the present one waits. */
	assert_int_equal(bring(one), -1);
	assert_int_equal(bring(two), 0);
	assert_int_equal(bring(two), -1);
	assert_int_equal(resumed, 2);
}

static void
every_bit_counts(void **st)
{
	char state[PARKED_TEXT_LEN + 1], bad[PARKED_TEXT_LEN + 1];
	uint8_t b[PARKED_LEN + 3];

	park(state);
	assert_int_equal(b64url_decode(state, PARKED_TEXT_LEN, b), PARKED_LEN);
	for (unsigned bit = 0; bit < PARKED_LEN * 8; bit++) {
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		b64url_encode(b, PARKED_LEN, bad);
		assert_int_equal(bring(bad), -1);
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t n = 0; n < PARKED_TEXT_LEN; n++) {
		memcpy(bad, state, n);
		bad[n] = '\0';
		assert_int_equal(bring(bad), -1);
	}
	assert_int_equal(resumed, 0);
	assert_int_equal(bring(state), 0);
}

static void
bound_to_the_request(void **st)
{
	char state[PARKED_TEXT_LEN + 1];

	park(state);
	request("bob", MCP_TOOLS_CALL, "s__t", "{\"a\":1}");
	assert_int_equal(bring(state), -1);
	request("ann", MCP_PROMPTS_GET, "s__t", "{\"a\":1}");
	assert_int_equal(bring(state), -1);
	request("ann", MCP_TOOLS_CALL, "s__u", "{\"a\":1}");
	assert_int_equal(bring(state), -1);
	request("ann", MCP_TOOLS_CALL, "s__t", "{\"a\":2}");
	assert_int_equal(bring(state), -1);
	/* What ends one part and begins the next can't be moved. */
	request("anns__t", MCP_TOOLS_CALL, "", "{\"a\":1}");
	assert_int_equal(bring(state), -1);
	usual();
	ex.m.uri = ipc_str("\"x:y\"");
	assert_int_equal(bring(state), -1);
	usual();
	gw.listener = LISTENER_TUNNEL;
	assert_int_equal(bring(state), -1);
	gw.listener = LISTENER_LOCAL;
	gw.session_key[0] ^= 1;
	assert_int_equal(bring(state), -1);
	gw.session_key[0] ^= 1;
	assert_int_equal(resumed, 0);
	assert_int_equal(bring(state), 0);
}

static void
no_key(void **st)
{
	char state[PARKED_TEXT_LEN + 1];
	struct refusal no;

	park(state);
	gw.has_key = false;
	assert_int_equal(bring(state), -1);
	assert_null(parked_new(&gw, &ex, &owner, NULL, &no));
	assert_int_equal(no.failure, FAILURE_VAULT_UNAVAILABLE);
}

static void
expires(void **st)
{
	char state[PARKED_TEXT_LEN + 1];
	struct refusal no;
	struct parked *p = parked_new(&gw, &ex, &owner, &gw, &no);

	assert_int_equal(parked_state(p, now_us() / 1000 + 20, state), 0);
	event_base_dispatch(base); /* ends when no timer is left */
	assert_int_equal(expiries, 1);
	assert_ptr_equal(last, &gw);
	assert_int_equal(bring(state), -1);

	/* Not between resume and the next state. */
	p = parked_new(&gw, &ex, &owner, &gw, &no);
	assert_int_equal(parked_state(p, now_us() / 1000 + 200, state), 0);
	assert_int_equal(bring(state), 0);
	event_base_dispatch(base);
	assert_int_equal(expiries, 1);
	/* A time that is over already. */
	assert_int_equal(parked_state(p, 1, state), 0);
	assert_int_equal(bring(state), -1);
	event_base_dispatch(base);
	assert_int_equal(expiries, 2);
}

/* It ends with the credential of its last request, whose end no other process
 * may know. */
static void
ends_with_its_credential(void **st)
{
	char state[PARKED_TEXT_LEN + 1];
	struct refusal no;
	struct parked *p;

	ex.who.until_ms = now_boot_ms() + 20;
	p = parked_new(&gw, &ex, &owner, &gw, &no);
	assert_int_equal(
	    parked_state(p, now_us() / 1000 + 60 * 1000, state), 0);
	event_base_dispatch(base);
	assert_int_equal(expiries, 1);
	assert_int_equal(bring(state), -1);
	/* Its client came back with a fresh one. */
	ex.who.until_ms = now_boot_ms() + 60 * 1000;
	p = parked_new(&gw, &ex, &owner, &gw, &no);
	assert_int_equal(
	    parked_state(p, now_us() / 1000 + 60 * 1000, state), 0);
	ex.who.until_ms = now_boot_ms() + 20;
	assert_int_equal(bring(state), 0);
	assert_int_equal(
	    parked_state(p, now_us() / 1000 + 60 * 1000, state), 0);
	event_base_dispatch(base);
	assert_int_equal(expiries, 2);
	ex.who.until_ms = 0;
}

static void
bounded(void **st)
{
	char name[32], state[PARKED_TEXT_LEN + 1];
	struct refusal no;
	struct parked *p = NULL;
	unsigned i;

	for (i = 0; i < PARKED_PRINCIPAL_MAX; i++)
		assert_non_null(p = parked_new(&gw, &ex, &owner, NULL, &no));
	assert_null(parked_new(&gw, &ex, &owner, NULL, &no));
	assert_int_equal(no.failure, FAILURE_BUSY);
	for (; i < PARKED_MAX; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		request(name, MCP_TOOLS_CALL, "s__t", "{}");
		assert_non_null(parked_new(&gw, &ex, &owner, NULL, &no));
	}
	request("other", MCP_TOOLS_CALL, "s__t", "{}");
	assert_null(parked_new(&gw, &ex, &owner, NULL, &no));
	parked_free(p);
	park(state);
	assert_int_equal(bring(state), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(used_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(every_bit_counts, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		bound_to_the_request, setup, teardown),
	    cmocka_unit_test_setup_teardown(no_key, setup, teardown),
	    cmocka_unit_test_setup_teardown(expires, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		ends_with_its_credential, setup, teardown),
	    cmocka_unit_test_setup_teardown(bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
