/*
 * People with signed tokens (identities.c, people.c), with a fake database:
 * their rights, their ends, and for how long a token is remembered.
 */
#include "access_rig.h"

/* ---- let in ---- */

static void
rights_of_the_set(void **unused)
{
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_string_equal(who_is, ANN);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_string_equal(who.principal, ANN);
	assert_string_equal(who.token->principal, ANN);
	assert_int_equal(who.token->permit.scopes, PERMIT_CALL | PERMIT_READ);
	assert_string_equal(who.token->permit.allow, "*");
	assert_string_equal(who.token->permit.deny, "secret__*");
	assert_true(who.expires_us == wall_us + 3600 * S);
	/* Gateways ask for lists by the name of the set. */
	assert_int_equal(
	    strlen(who.token->set[LISTENER_TUNNEL]), TOKEN_SET_LEN);
	assert_ptr_equal(identities_of_set(a, LISTENER_TUNNEL,
			     ipc_str(who.token->set[LISTENER_TUNNEL])),
	    who.token);
	assert_null(identities_of_set(
	    a, LISTENER_LOCAL, ipc_str(who.token->set[LISTENER_LOCAL])));
	assert_null(identities_of_set(a, LISTENER_TUNNEL, ipc_str("")));
}

static void
no_rule_no_entrance(void **unused)
{
	struct said_claims bob = {.sub = "bob", .email = "bob@example.org"};
	struct auth who;

	assert_int_equal(learn(T1, &bob, who_is), FAILURE_FORBIDDEN);
	assert_string_equal(who_is, "oidc:pocket:bob");
	assert_int_equal(comes(T1, &who), FAILURE_BUSY); /* not remembered */
	assert_true(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str(T1)));
}

static void
header_and_listener_are_the_issuers(void **unused)
{
	struct said_claims guest = {.issuer = "door", .sub = "guest"};
	struct auth who;
	struct err err;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	/* the token of one header in the other: it was never judged there */
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str(T1), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_BUSY);
	/* no issuer serves the local listener */
	assert_int_equal(auth_principal(a, LISTENER_LOCAL, VIA_AUTHORIZATION,
			     ipc_str(T1), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_UNAUTHENTICATED);
	assert_false(identities_unknown(
	    a, LISTENER_LOCAL, VIA_AUTHORIZATION, ipc_str(T1)));
	/* anything that came as an assertion is one, an API token's form, too
	 */
	assert_int_equal(auth_principal(a, LISTENER_LOCAL, VIA_ASSERTION,
			     ipc_str(""), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_UNAUTHENTICATED);
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str("mbt_x"), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_BUSY);
	assert_int_equal(learn(T2, &guest, who_is), FAILURE_NONE);
	assert_string_equal(who_is, "oidc:door:guest");
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str(T2), ipc_str(""), &who, &err),
	    0);
}

static void
form_of_a_signed_token(void **unused)
{
	static const struct {
		const char *text;
		bool is;
	} rows[] = {{"a.b.c", true}, {"eyJ_-09.AZaz.x", true}, {"", false},
	    {"a.b", false}, {"a.b.", false}, {".b.c", false}, {"a..c", false},
	    {"a.b.c.d", false}, {"a.b.c.d.e", false}, {"a.b.c=", false},
	    {"a.b.c ", false}, {"mbt_abc", false}, {"..", false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
		    auth_is_signed(VIA_AUTHORIZATION, ipc_str(rows[i].text)),
		    rows[i].is);
		assert_true(
		    auth_is_signed(VIA_ASSERTION, ipc_str(rows[i].text)));
	}
}

/* On the local listener a client without a token is `local`; one with anything
 * that has the form of a signed token never is. */
static void
never_local(void **unused)
{
	struct auth who;
	struct err err;

	assert_int_equal(auth_principal(a, LISTENER_LOCAL, VIA_AUTHORIZATION,
			     ipc_str("x.y"), ipc_str(""), &who, &err),
	    0);
	assert_string_equal(who.principal, "local");
	assert_int_equal(auth_principal(a, LISTENER_LOCAL, VIA_AUTHORIZATION,
			     ipc_str("x.y.z"), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_UNAUTHENTICATED);
	/* nor while the database is away, or the document is not known */
	fake_db_up(false);
	assert_int_equal(auth_principal(a, LISTENER_LOCAL, VIA_AUTHORIZATION,
			     ipc_str("x.y.z"), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_STORAGE_UNAVAILABLE);
	fake_db_up(true);
}

static void
scopes_narrow(void **unused)
{
	struct said_document d = {.narrows = true};
	struct said_claims c = ann;
	struct auth one, two;

	document_load(a, NULL, NULL);
	document_holds(&d, SERIAL + 1);
	no_runs();
	c.scopes = PERMIT_READ;
	assert_int_equal(learn(T1, &c, who_is), FAILURE_NONE);
	c.scopes = PERMIT_CALL;
	assert_int_equal(learn(T2, &c, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &one), FAILURE_NONE);
	assert_int_equal(comes(T2, &two), FAILURE_NONE);
	assert_int_equal(one.token->permit.scopes, PERMIT_READ);
	assert_int_equal(two.token->permit.scopes, PERMIT_READ | PERMIT_CALL);
	assert_string_not_equal(
	    one.token->set[LISTENER_TUNNEL], two.token->set[LISTENER_TUNNEL]);
	/* One principal has one share, whichever rights its tokens have. */
	assert_ptr_not_equal(one.token, two.token);
	assert_ptr_equal(one.token->share, two.token->share);
}

/* The same rights are one object, for both tokens. */
static void
same_rights_are_one(void **unused)
{
	struct auth one, two;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(learn(T2, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &one), FAILURE_NONE);
	assert_int_equal(comes(T2, &two), FAILURE_NONE);
	assert_ptr_equal(one.token, two.token);
}

/* ---- time ---- */

static void
verdict_ages(void **unused)
{
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_false(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str(T1)));
	passes(299);
	assert_false(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str(T1)));
	/* by the monotonic clock: a wall clock that is set back helps none */
	wall_us -= 1000 * S;
	boot_ms += 1000;
	assert_true(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str(T1)));
	/* nothing ends by that */
	identities_tick(a);
	gateways_hear_nothing();
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
}

static void
time_is_over(void **unused)
{
	struct said_claims c = ann;
	struct ipc_hash h = hash_of(VIA_AUTHORIZATION, T1);
	struct token *t;
	struct auth who;

	c.exp_us = wall_us + 100 * S;
	assert_int_equal(learn(T1, &c, who_is), FAILURE_NONE);
	assert_int_equal(learn(T2, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	t = token_ref(who.token);
	passes(99);
	identities_tick(a);
	gateways_hear_nothing();
	passes(1);
	/* before the tick, too */
	assert_int_equal(comes(T1, &who), FAILURE_UNAUTHENTICATED);
	identities_tick(a);
	/* An empty principal: its tasks and its calls under way go on. */
	gateways_hear(&h, "");
	assert_false(t->gone);
	assert_int_equal(fake_db_waits("ended_running"), 0);
	assert_int_equal(comes(T2, &who), FAILURE_NONE);
	token_unref(t);
}

static void
wall_clock_set_back_revives_nothing(void **unused)
{
	struct said_claims c = ann;
	struct auth who;

	c.exp_us = wall_us + 100 * S;
	assert_int_equal(learn(T1, &c, who_is), FAILURE_NONE);
	boot_ms += 100 * 1000;
	wall_us -= 5000 * S;
	assert_int_equal(comes(T1, &who), FAILURE_UNAUTHENTICATED);
	identities_tick(a);
	assert_int_equal(comes(T1, &who), FAILURE_BUSY);
}

/* Nor does admind-check get a time that went back, by which it would accept a
 * token that is over. */
static void
time_does_not_go_back(void **unused)
{
	uint64_t was = wall_us;

	assert_true(identities_now(a) == was);
	passes(100);
	assert_true(identities_now(a) == was + 100 * S);
	wall_us -= 5000 * S;
	assert_true(identities_now(a) == was + 100 * S);
	boot_ms += 20 * 1000; /* it goes on */
	assert_true(identities_now(a) == was + 120 * S);
	wall_us = was + 121 * S;
	assert_true(identities_now(a) == was + 121 * S);
	/* A clock that was ahead by years locks no person out when it is right
	 * again. */
	wall_us += UINT64_C(400) * 24 * 3600 * S;
	assert_true(identities_now(a) == wall_us);
	wall_us = was + 122 * S;
	boot_ms += 1000;
	assert_true(identities_now(a) == wall_us);
}

/* After a restart the newest record tells how late it was. */
static void
newest_record_is_past(void **unused)
{
	uint64_t was = wall_us;

	identities_db_up(a);
	assert_true(fake_db_waits("identities_newest") == 1);
	fake_db_row("t", was + 3000 * S);
	fake_db_answer("identities_newest");
	fake_db_answer("identities_withdrawn");
	assert_true(identities_now(a) == was + 3000 * S);
	passes(10);
	assert_true(identities_now(a) == was + 3010 * S);
	/* One that can't be does nothing. */
	latest_was(&a->identities->latest, was + UINT64_C(40) * 24 * 3600 * S);
	assert_true(identities_now(a) == was + 3010 * S);
}

static void
age_ends_it(void **unused)
{
	struct said_document d = {.max_age_s = 100};
	struct said_claims c = ann;
	struct auth who;

	document_load(a, NULL, NULL);
	document_holds(&d, SERIAL + 1);
	no_runs();
	c.iat_us = wall_us - 40 * S;
	assert_int_equal(learn(T1, &c, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_true(who.expires_us == wall_us + 60 * S);
	passes(60);
	assert_int_equal(comes(T1, &who), FAILURE_UNAUTHENTICATED);
}

/* ---- bounds ---- */

static void
sixteen_of_a_person(void **unused)
{
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	many("bob", 0, PERSON_CREDENTIALS_MAX);
	assert_int_equal(comes("bob.t.0", &who), FAILURE_NONE);
	many("bob", PERSON_CREDENTIALS_MAX, 1);
	assert_int_equal(comes("bob.t.0", &who), FAILURE_BUSY);
	assert_int_equal(comes("bob.t.1", &who), FAILURE_NONE);
	assert_int_equal(comes("bob.t.16", &who), FAILURE_NONE);
	/* it cost its own person alone, and no gateway heard */
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	identities_tick(a);
	gateways_hear_nothing();
	/* a token that is judged again is the newest one */
	many("bob", 1, 1);
	many("bob", 17, 1);
	assert_int_equal(comes("bob.t.1", &who), FAILURE_NONE);
	assert_int_equal(comes("bob.t.2", &who), FAILURE_BUSY);
}

static void
bound_of_all(void **unused)
{
	struct auth who;
	char sub[16];
	/* The document has two issuers. */
	int part = PEOPLE_CREDENTIALS_MAX / 2;
	int people = part / PERSON_CREDENTIALS_MAX;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	many("p0", 0, PERSON_CREDENTIALS_MAX - 1);
	for (int i = 1; i < people; i++) {
		snprintf(sub, sizeof(sub), "p%d", i);
		many(sub, 0, PERSON_CREDENTIALS_MAX);
	}
	assert_int_equal(a->identities->people.ncredentials, part);
	many("new", 0, 2);
	assert_int_equal(a->identities->people.ncredentials, part);
	/* the oldest token of people with most */
	assert_int_equal(comes("p1.t.0", &who), FAILURE_BUSY);
	assert_int_equal(comes("p1.t.1", &who), FAILURE_NONE);
	assert_int_equal(comes("p2.t.0", &who), FAILURE_BUSY);
	assert_int_equal(comes("p0.t.0", &who), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_int_equal(comes("new.t.0", &who), FAILURE_NONE);
}

/* An issuer that was taken over names people without end. It takes nothing of
 * another issuer's part, and its own stays bounded. */
static void
flood_of_people(void **unused)
{
	struct people *p = &a->identities->people;
	int part = PEOPLE_MAX / 2;
	struct auth who;
	struct err err;

	many("bob", 0, 1);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	flood(0, 2 * part);
	/* People without tokens stayed for their notes, until the part was
	 * full: then the notes were stored. */
	assert_true(people_part(p, "oidc:door:x")->npeople <= (unsigned)part);
	assert_int_equal(people_part(p, "oidc:door:x")->ncredentials,
	    PEOPLE_CREDENTIALS_MAX / 2);
	assert_true(fake_db_sent("identities_seen") > 0);
	/* The same to one that was here before. */
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_int_equal(comes("bob.t.0", &who), FAILURE_NONE);
	assert_int_equal(learn(T2, &ann, who_is), FAILURE_NONE);
	/* It pushed out its own people, the longest unused first. */
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str("door.t.0"), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_BUSY);
	fake_end_all();
	identities_seen_store(a);
	identities_tick(a);
	assert_int_equal(
	    people_part(p, "oidc:door:x")->npeople, PEOPLE_CREDENTIALS_MAX / 2);
}

/* Among people with the same number of tokens the last use counts. */
static void
who_comes_is_kept(void **unused)
{
	int part = PEOPLE_CREDENTIALS_MAX / 2;
	struct auth who;
	struct err err;

	flood(0, part);
	/* g0 comes once more, and g1 does not. */
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str("door.t.0"), ipc_str(""), &who, &err),
	    0);
	flood(part, 1);
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str("door.t.0"), ipc_str(""), &who, &err),
	    0);
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str("door.t.1"), ipc_str(""), &who, &err),
	    -1);
}

/* People of one issuer that all have work: only a new one of this issuer is
 * told to come again. */
static void
part_full_of_work(void **unused)
{
	struct said_claims guest = {.issuer = "door", .sub = "late"};
	struct person *x;

	flood(0, PEOPLE_MAX / 2);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		x->share->refs++;
	assert_int_equal(learn("l.a.te", &guest, who_is), FAILURE_BUSY);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (strcmp(x->principal, ANN) != 0)
			x->share->refs--;
	assert_int_equal(learn("l.a.te", &guest, who_is), FAILURE_NONE);
}

/* A withdrawal is never forgotten. So an issuer whose rows are all of withdrawn
 * people has no room for another, and the answer names the fix. */
static void
all_are_withdrawn(void **unused)
{
	struct said_claims guest = {.issuer = "door", .sub = "guest"};
	struct part *part =
	    people_part(&a->identities->people, "oidc:door:guest");

	part->withdrawn = IDENTITIES_ISSUER_MAX - 1;
	assert_int_equal(learn("g.u.est", &guest, who_is), FAILURE_NONE);
	document_notified(a, "withdrawn oidc:door:eve");
	assert_int_equal(learn("g.u.est", &guest, who_is), FAILURE_FORBIDDEN);
	assert_non_null(strstr(learn_said, "16384 people of this issuer"));
	assert_non_null(strstr(learn_said, "takes them out of the rules"));
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	document_notified(a, "restored oidc:door:eve");
	assert_int_equal(learn("g.u.est", &guest, who_is), FAILURE_NONE);
}

/* A share outlives the tokens: a person with work in hand gets no second. */
static void
share_stays_with_work(void **unused)
{
	struct auth who;
	struct token *t;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	t = token_ref(who.token);
	t->share->jobs = 7;
	passes(3600);
	wall_us += 3600 * S;
	identities_tick(a);
	identities_seen_store(a);
	identities_tick(a);
	fake_end_all();
	assert_int_equal(comes(T1, &who), FAILURE_BUSY);
	assert_int_equal(learn(T2, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T2, &who), FAILURE_NONE);
	assert_ptr_equal(who.token->share, t->share);
	t->share->jobs = 0;
	token_unref(t);
}

/* ---- notes ---- */

static void
uses_are_noted(void **unused)
{
	struct auth who;

	identities_seen_store(a);
	assert_int_equal(fake_db_waits("identities_seen"), 0);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	many("bob", 0, 1);
	assert_int_equal(comes("bob.t.0", &who), FAILURE_NONE);
	for (a->ticks = 1; a->ticks <= 5; a->ticks++)
		identities_tick(a);
	assert_int_equal(fake_db_sent("identities_seen"), 1);
	for (int i = 0; i < 7; i++)
		assert_int_equal(fake_db_elements("identities_seen", i), 2);
	fake_db_row("n");
	fake_db_answer("identities_seen");
	for (; a->ticks <= 10; a->ticks++)
		identities_tick(a);
	assert_int_equal(fake_db_sent("identities_seen"), 1);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(rights_of_the_set),
	    TEST(no_rule_no_entrance),
	    TEST(header_and_listener_are_the_issuers),
	    TEST(form_of_a_signed_token),
	    TEST(never_local),
	    TEST(scopes_narrow),
	    TEST(same_rights_are_one),
	    TEST(verdict_ages),
	    TEST(time_is_over),
	    TEST(wall_clock_set_back_revives_nothing),
	    TEST(time_does_not_go_back),
	    TEST(newest_record_is_past),
	    TEST(age_ends_it),
	    TEST(sixteen_of_a_person),
	    TEST(bound_of_all),
	    TEST(flood_of_people),
	    TEST(who_comes_is_kept),
	    TEST(part_full_of_work),
	    TEST(all_are_withdrawn),
	    TEST(share_stays_with_work),
	    TEST(uses_are_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
