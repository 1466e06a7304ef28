/*
 * gatewayd whole: which catalogues and identities it keeps, if a client has
 * many permission sets, such as those of endpoints.
 */
#include "gateway_rig.h"
#include "unit.h"

enum { SETS = 64 }; /* as many as are kept */

static char set_of_ann[32];
static const char *unknown; /* a set that admind does not know now */

/* The set of ann's token annN is sN. */
static void
sets_of_ann(const struct ipc_authenticate *who, struct ipc_identity *id)
{
	if (who->credential.n < 4 || memcmp(who->credential.p, "ann", 3) != 0)
		return;
	snprintf(set_of_ann, sizeof(set_of_ann), "s%.*s",
	    (int)who->credential.n - 3, (const char *)who->credential.p + 3);
	id->permission_set = ipc_str(set_of_ann);
}

static bool
refuses(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_catalogue_get m;

	assert_int_equal(ipc_decode(f, &m, NULL), 0);
	if (unknown == NULL || !ipc_streq(m.permission_set, unknown))
		return false;
	assert_int_equal(ipc_refuse(p, f->request, FAILURE_BUSY, "no", 0), 0);
	return true;
}

static int
start(void **state)
{
	if (setup(state) < 0)
		return -1;
	authenticate_hook = sets_of_ann;
	catalogue_hook = refuses;
	unknown = NULL;
	return 0;
}

static int
stop(void **state)
{
	authenticate_hook = NULL;
	return teardown(state);
}

static int
asks(const char *credential)
{
	char fields[128];

	snprintf(fields, sizeof(fields),
	    "MCP-Protocol-Version: 2025-11-25\r\n"
	    "Authorization: Bearer %s\r\n",
	    credential);
	return post(
	    fields, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
}

/* Asks for this many more sets. */
static void
cycles(unsigned from, unsigned n)
{
	char credential[16];

	for (unsigned i = from; i < from + n; i++) {
		snprintf(credential, sizeof(credential), "ann%u", i);
		assert_int_equal(asks(credential), 200);
	}
}

/* Bob's list was the first, and he comes all the time. */
static void
test_who_asks_is_kept(void **state)
{
	(void)state;
	assert_int_equal(asks("bob"), 200);
	cycles(0, SETS - 1);
	assert_int_equal(lists, SETS);
	assert_int_equal(asks("bob"), 200);
	assert_int_equal(lists, SETS);
	cycles(SETS, SETS - 1);
	assert_int_equal(lists, 2 * SETS - 1);
	assert_int_equal(asks("bob"), 200);
	assert_int_equal(lists, 2 * SETS - 1);
	/* The catalogue that was not asked for is pushed out. */
	cycles(0, 1);
	assert_int_equal(lists, 2 * SETS);
}

/* admind does not know one set any more. Its client is asked about again, and
 * no one else. */
static void
test_unknown_set_costs_its_own(void **state)
{
	(void)state;
	assert_int_equal(asks("bob"), 200);
	unknown = "s1";
	assert_int_equal(asks("ann1"), 200);
	assert_true(has("\"failure_mode\":\"busy\""));
	assert_int_equal(authenticates, 2);
	assert_int_equal(asks("bob"), 200);
	assert_int_equal(authenticates, 2);
	unknown = NULL;
	assert_int_equal(asks("ann1"), 200);
	assert_int_equal(authenticates, 3);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
	    T(test_who_asks_is_kept),
	    T(test_unknown_set_costs_its_own),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
