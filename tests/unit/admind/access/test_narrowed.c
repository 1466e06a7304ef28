/*
 * Rights at endpoints (docs/decisions/0102): whom they keep in memory, the
 * names of their sets, and work that another document ends.
 */
#include "access_rig.h"
#include "job.h"
#include "narrow.h"

#define BECOMES(...) becomes(&(struct said_document){__VA_ARGS__})

static const char *const endpoints[] = {"home", "away"};

static int
start(void **unused)
{
	rig_start(&(struct said_document){.home = "a__*"});
	return 0;
}

static struct token *
at(const char *endpoint, uint8_t via, const char *token)
{
	struct auth who;
	struct err err;

	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, via, ipc_str(token),
			     ipc_str(endpoint), &who, &err),
	    0);
	assert_non_null(who.token->endpoint);
	return who.token;
}

/* ---- people ---- */

/* A guest of the issuer door comes to both endpoints. Returns his rights at the
 * last one. */
static struct token *
guest(const char *sub)
{
	struct said_claims c = {.issuer = "door", .sub = sub};
	struct token *t = NULL;
	char token[32];

	snprintf(token, sizeof(token), "g.u.%s", sub);
	assert_int_equal(learn(token, &c, who_is), FAILURE_NONE);
	for (int i = 0; i < 2; i++)
		t = at(endpoints[i], VIA_ASSERTION, token);
	return t;
}

static struct person *
person(const char *principal)
{
	return people_person(&a->identities->people, principal);
}

/* Other tokens push out all of this person's. His use is stored. */
static void
pushed_out(const char *principal)
{
	people_forget_all(&a->identities->people, person(principal));
	identities_seen_store(a);
	fake_end_all();
}

static void
endpoints_keep_no_one(void **unused)
{
	struct token *t;

	(void)guest("eve");
	t = token_ref(guest("bob"));
	pushed_out("oidc:door:eve");
	pushed_out("oidc:door:bob");
	identities_tick(a);
	assert_null(person("oidc:door:eve"));
	/* Work that came by an endpoint is work. */
	assert_non_null(person("oidc:door:bob"));
	assert_ptr_equal(person("oidc:door:bob")->share, t->share);
	token_unref(t);
	identities_tick(a);
	assert_null(person("oidc:door:bob"));
}

/* A remembered person keeps rights and names at the endpoint. */
static void
who_is_remembered_stays(void **unused)
{
	struct ipc_bytes set;
	struct token *t;

	(void)guest("eve");
	pushed_out("oidc:door:eve");
	t = guest("bob");
	identities_tick(a);
	assert_ptr_equal(at("away", VIA_ASSERTION, "g.u.bob"), t);
	set = ipc_str(t->set[LISTENER_TUNNEL]);
	assert_ptr_equal(auth_of_set(a, LISTENER_TUNNEL, set), t);
}

/* Before the tick, too: an issuer's part that is full has room at once. */
static void
full_part_has_room(void **unused)
{
	struct said_claims late = {.issuer = "door", .sub = "late"};
	struct person *x;

	(void)guest("eve");
	pushed_out("oidc:door:eve");
	flood(0, PEOPLE_MAX / 2 - 1);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (strcmp(x->principal, "oidc:door:eve") != 0)
			x->share->refs++;
	assert_int_equal(learn("l.a.te", &late, who_is), FAILURE_NONE);
	assert_null(person("oidc:door:eve"));
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (strcmp(x->principal, who_is) != 0)
			x->share->refs--;
}

/* ---- names of sets ---- */

/* remote_tool_editing changes. */
static void
editing(bool may)
{
	tokens_load(a, NULL, NULL);
	fake_db_row("nnnnnnnnnbn", may);
	fake_db_answer("tokens_read");
}

static void
sets_are_named_again(void **unused)
{
	struct said_claims guest_of_door = {.issuer = "door", .sub = "eve"};
	char names[3][TOKEN_SET_LEN + 1];
	struct token *t;

	assert_int_equal(
	    learn("g.u.eve", &guest_of_door, who_is), FAILURE_NONE);
	for (int i = 0; i < 3; i++) {
		editing(i == 1);
		t = at("home", VIA_ASSERTION, "g.u.eve");
		memcpy(names[i], t->set[LISTENER_TUNNEL], sizeof(names[i]));
		assert_ptr_equal(
		    auth_of_set(a, LISTENER_TUNNEL, ipc_str(names[i])), t);
	}
	assert_string_not_equal(names[0], names[1]);
	assert_string_equal(names[0], names[2]);
}

/* ---- another document ---- */

static void
becomes(const struct said_document *d)
{
	static uint64_t serial = SERIAL;

	document_load(a, NULL, NULL);
	document_holds(d, ++serial);
	no_runs();
}

static void
begin(struct job *j, const char *endpoint)
{
	memset(j, 0, sizeof(*j));
	snprintf(j->principal, sizeof(j->principal), "%s", ANN);
	j->token = token_ref(at(endpoint, VIA_AUTHORIZATION, T1));
	TAILQ_INSERT_TAIL(&a->jobs, j, entry);
}

static void
end(struct job *j)
{
	TAILQ_REMOVE(&a->jobs, j, entry);
	token_unref(j->token);
}

/* A document that takes nothing is in between: the job's endpoint is an object
 * of the first, and the loss is one of the second. */
static void
job_of_an_older_document(void **unused)
{
	struct job home, away;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	begin(&home, "home");
	begin(&away, "away");
	BECOMES(.home = "*");
	assert_false(home.revoked);
	BECOMES(.home = "b__*");
	assert_true(home.revoked);
	assert_int_equal(home.revoked_why, FAILURE_KILLED);
	assert_false(away.revoked);
	BECOMES(0);
	assert_true(away.revoked);
	end(&home);
	end(&away);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(endpoints_keep_no_one),
	    TEST(who_is_remembered_stays),
	    TEST(full_part_has_room),
	    TEST(sets_are_named_again),
	    TEST(job_of_an_older_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
