/* Logins that admind granted and that no browser has fetched yet. */
#include "tickets.h"
#include "unit.h"

enum { NOW = 1000, TTL = 1 << 30 };

static struct tickets t;

static struct ticket
ticket(uint8_t number, uint8_t basis, const char *name)
{
	struct ticket x = {.until_ms = NOW + TICKETS_MS};

	memset(x.ticket.b, number, sizeof(x.ticket.b));
	memset(x.basis.b, basis, sizeof(x.basis.b));
	snprintf(x.username, sizeof(x.username), "%s", name);
	snprintf(x.role, sizeof(x.role), "viewer");
	return x;
}

static int
begin(void **state)
{
	struct ipc_hash bases[2];

	memset(&t, 0, sizeof(t));
	memset(bases[0].b, 1, sizeof(bases[0].b));
	memset(bases[1].b, 2, sizeof(bases[1].b));
	tickets_follow(&t, bases, 2);
	return 0;
}

static void
names(void **state)
{
	static const char *const good[] = {
	    "a@home", "A.b-c_9@home", "12345678901234567890123456789012@home"};
	static const char *const bad[] = {"", "@home", "home", "admin", "a@",
	    "a@homes", "a@work", "a b@home", "a@b@home", "a\nb@home",
	    "123456789012345678901234567890123@home", "\xc3\xa4@home"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(tickets_name_ok(ipc_str(good[i]), ipc_str("home")));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(tickets_name_ok(ipc_str(bad[i]), ipc_str("home")));
	assert_false(tickets_name_ok(ipc_str("a@"), ipc_str("")));
	assert_false(tickets_name_ok(ipc_str("a@Home"), ipc_str("Home")));
	assert_false(tickets_name_ok(ipc_str("a@ho me"), ipc_str("ho me")));
}

static void
once_and_not_late(void **state)
{
	struct ticket x = ticket(7, 1, "ann@home"), got;
	struct ipc_hash wrong = x.ticket;
	struct err err;

	assert_int_equal(tickets_add(&t, &x, NOW, &err), 0);
	assert_int_equal(tickets_add(&t, &x, NOW, &err), -1);
	assert_int_equal(err.failure, FAILURE_CONFLICT);
	wrong.b[31] ^= 1;
	assert_false(tickets_take(&t, &wrong, NOW, &got));
	assert_true(tickets_take(&t, &x.ticket, NOW, &got));
	assert_string_equal(got.username, "ann@home");
	assert_false(tickets_take(&t, &x.ticket, NOW, &got));
	/* An empty row does not have a hash of zeros. */
	memset(&wrong, 0, sizeof(wrong));
	assert_false(tickets_take(&t, &wrong, NOW, &got));
	assert_int_equal(tickets_add(&t, &x, NOW, &err), 0);
	assert_false(tickets_take(&t, &x.ticket, NOW + TICKETS_MS, &got));
	assert_false(tickets_take(&t, &x.ticket, NOW, &got));
}

static void
bases(void **state)
{
	struct ticket one = ticket(1, 1, "ann@home");
	struct ticket two = ticket(2, 2, "bob@work");
	struct ticket three = ticket(3, 3, "eve@gone"), got;
	struct err err;

	assert_int_equal(tickets_add(&t, &one, NOW, &err), 0);
	assert_int_equal(tickets_add(&t, &two, NOW, &err), 0);
	assert_int_equal(tickets_add(&t, &three, NOW, &err), -1);
	assert_int_equal(err.failure, FAILURE_CONFLICT);
	tickets_follow(&t, &two.basis, 1);
	assert_false(tickets_take(&t, &one.ticket, NOW, &got));
	tickets_drop(&t, "ann@home");
	tickets_drop(&t, "bob@work");
	assert_int_equal(t.drops, 2);
	assert_false(tickets_take(&t, &two.ticket, NOW, &got));
	tickets_follow(&t, NULL, 0);
	assert_int_equal(tickets_add(&t, &two, NOW, &err), -1);
}

static void
full(void **state)
{
	struct ticket x;
	struct err err;

	for (int i = 0; i < TICKETS_MAX; i++) {
		x = ticket((uint8_t)(i + 1), 1, "ann@home");
		assert_int_equal(tickets_add(&t, &x, NOW, &err), 0);
	}
	x = ticket(200, 1, "bob@home");
	assert_int_equal(tickets_add(&t, &x, NOW, &err), -1);
	assert_int_equal(err.failure, FAILURE_BUSY);
	/* Those that were not fetched make room. */
	assert_int_equal(tickets_add(&t, &x, NOW + TICKETS_MS, &err), 0);
}

/* Logins BY_ISSUER end with their basis; those of a password never do. */
static void
logins(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	char token[SESSIONS_TEXT + 1];
	const struct session *a, *b, *p;
	struct ipc_hash one, two;

	memset(&one, 1, sizeof(one));
	memset(&two, 2, sizeof(two));
	a = sessions_add(
	    s, "ann@home", "viewer", SESSION_BY_ISSUER, NULL, NOW, NOW, token);
	sessions_based(s, a, &one);
	b = sessions_add(
	    s, "bob@work", "viewer", SESSION_BY_ISSUER, NULL, NOW, NOW, token);
	sessions_based(s, b, &two);
	p = sessions_add(s, "admin", "administrator", SESSION_BY_PASSWORD, NULL,
	    NOW, NOW, token);
	assert_int_equal(sessions_by_issuer(s, NOW), 2);
	assert_int_equal(sessions_keep(s, &two, 1), 1);
	assert_false(a->live);
	assert_true(b->live && p->live);
	assert_int_equal(sessions_keep(s, NULL, 0), 1);
	assert_true(!b->live && p->live);
	sessions_free(s);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(names, begin),
	    cmocka_unit_test_setup(once_and_not_late, begin),
	    cmocka_unit_test_setup(bases, begin),
	    cmocka_unit_test_setup(full, begin),
	    cmocka_unit_test_setup(logins, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
