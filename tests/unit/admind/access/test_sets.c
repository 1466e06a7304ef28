/*
 * Permission sets of the access document (docs/decisions/0100): the rights of
 * API tokens that name one, their change by another document, and the scopes
 * that a person's client is told to ask for.
 */
#include "access_rig.h"
#include "job.h"

#define LAPTOP       "token:laptop"
#define SECRET       "mbt_laptop"
#define READ         "tools:read"
#define BOTH         "tools:read tools:call"
#define BECOMES(...) becomes(&(struct said_document){__VA_ARGS__})

static struct ipc_hash digest;

static void
becomes(const struct said_document *d)
{
	static uint64_t serial = SERIAL;

	document_load(a, NULL, NULL);
	document_holds(d, ++serial);
}

/* The database has one token, of this set. */
static void
reads_token(const char *set)
{
	struct ipc_id id = {{9}};

	digest = hash_of(VIA_AUTHORIZATION, SECRET);
	tokens_load(a, NULL, NULL);
	fake_db_row(
	    "uhssbbssnbs", &id, &digest, "laptop", "", 0, 1, "", "", 0, set);
	fake_db_answer("tokens_read");
}

static struct job *
job_of(const char *principal)
{
	static struct job j;

	memset(&j, 0, sizeof(j));
	snprintf(j.principal, sizeof(j.principal), "%s", principal);
	TAILQ_INSERT_TAIL(&a->jobs, &j, entry);
	return &j;
}

/* ---- API tokens ---- */

static void
rights_of_the_set(void **unused)
{
	struct token_hints hints;
	struct lack lack;
	struct auth who;

	reads_token("family");
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
	assert_string_equal(who.principal, LAPTOP);
	assert_int_equal(who.token->permit.scopes, PERMIT_CALL | PERMIT_READ);
	assert_string_equal(who.token->permit.allow, "*");
	assert_string_equal(who.token->permit.deny, "secret__*");
	assert_string_equal(who.token->of.name, "family");
	assert_ptr_equal(tokens_of_set(a, LISTENER_TUNNEL,
			     ipc_str(who.token->set[LISTENER_TUNNEL])),
	    who.token);
	/* No issuer has another token for it, so it is told no scope. */
	assert_int_equal(
	    token_may_call(a, who.token, LISTENER_TUNNEL, &lack), 0);
	tokens_lack(a, who.token, LISTENER_TUNNEL, PERMIT_MANAGE, &lack);
	assert_string_equal(lack.scope, "");
	assert_string_equal(
	    lack.text, "the permission set family lacks the scope manage");
	tokens_hint(a, who.token, LISTENER_TUNNEL, &hints);
	assert_int_equal(hints.unread, 0);
	assert_string_equal(hints.call_scope, "");
}

static void
loss_ends_its_work(void **unused)
{
	struct token *before;
	struct auth who;
	struct job *j;

	reads_token("family");
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
	before = token_ref(who.token);
	j = job_of(LAPTOP);
	BECOMES(.scopes = "tools:read");
	gateways_hear(&digest, LAPTOP);
	gateways_hear_nothing();
	assert_true(j->revoked);
	assert_int_equal(fake_db_elements("ended_running", 0), 1);
	fake_db_answer("ended_running");
	no_runs();
	TAILQ_REMOVE(&a->jobs, j, entry);
	/* A job keeps the rights that it began with; the next has the new. */
	assert_int_equal(before->permit.scopes, PERMIT_CALL | PERMIT_READ);
	assert_true(before->gone);
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
	assert_int_equal(who.token->permit.scopes, PERMIT_READ);
	/* Both count against one share. */
	assert_ptr_equal(who.token->share, before->share);
	token_unref(before);
}

static void
gain_disturbs_nothing(void **unused)
{
	struct auth who;
	struct job *j;

	reads_token("family");
	j = job_of(LAPTOP);
	BECOMES(.scopes = "tools:call manage", .rate = 30);
	gateways_hear_nothing();
	assert_false(j->revoked);
	assert_int_equal(fake_db_waits("ended_running"), 0);
	no_runs();
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
	assert_int_equal(who.token->permit.scopes,
	    PERMIT_CALL | PERMIT_READ | PERMIT_MANAGE);
	assert_int_equal(who.token->of.per_minute, 30);
	/* Another rate is neither. */
	BECOMES(.scopes = "tools:call manage");
	gateways_hear_nothing();
	no_runs();
	assert_false(j->revoked);
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
	assert_int_equal(who.token->of.per_minute, 0);
	TAILQ_REMOVE(&a->jobs, j, entry);
}

/* The database refuses a document without the set. A restored one may lack
 * it: then the token has no rights, and says why. */
static void
set_that_is_missing(void **unused)
{
	struct auth who;
	struct err err;

	reads_token("family");
	BECOMES(.family = "friends");
	gateways_hear(&digest, LAPTOP);
	fake_db_answer("ended_running");
	no_runs();
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_AUTHORIZATION,
			     ipc_str(SECRET), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_FORBIDDEN);
	assert_string_equal(err.text,
	    "the access document lacks the permission set family, so this "
	    "token has no rights");
	BECOMES(.family = "family");
	no_runs();
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
	assert_int_equal(who.token->permit.scopes, PERMIT_CALL | PERMIT_READ);
}

/* While the document can't be read, the rights are not known. Nothing ends. */
static void
document_is_away(void **unused)
{
	struct auth who;

	reads_token("family");
	document_db_up(a);
	assert_int_equal(comes(SECRET, &who), FAILURE_STORAGE_UNAVAILABLE);
	gateways_hear_nothing();
	answer_row(SERIAL, "{}", NULL);
	assert_int_equal(comes(SECRET, &who), FAILURE_NONE);
}

/* ---- people ---- */

static void
narrowed(const char *token, unsigned scopes, struct auth *who)
{
	struct said_claims c = ann;

	c.scopes = scopes;
	assert_int_equal(learn(token, &c, who_is), FAILURE_NONE);
	assert_int_equal(comes(token, who), FAILURE_NONE);
}

static void
more_scopes_help(void **unused)
{
	const unsigned others = 1u << MCP_LIST_PROMPTS |
	    1u << MCP_LIST_RESOURCES | 1u << MCP_LIST_TEMPLATES;
	struct token_hints hints;
	struct lack lack;
	struct auth who;

	BECOMES(.narrows = true, .scopes = "tools:call manage");
	no_runs();
	/* All scopes at once: those that it has, too. */
	narrowed(T1, PERMIT_READ | PERMIT_MANAGE, &who);
	assert_int_equal(
	    token_may_call(a, who.token, LISTENER_TUNNEL, &lack), -1);
	assert_string_equal(lack.scope, "tools:read tools:call manage");
	assert_string_equal(lack.text,
	    "this token lacks the scope tools:call, which its permission set "
	    "family has");
	tokens_hint(a, who.token, LISTENER_TUNNEL, &hints);
	assert_int_equal(hints.unread, 0);
	assert_string_equal(hints.read_scope, "");
	assert_string_equal(hints.call_scope, lack.scope);
	/* A set without the scope: no other token helps. */
	tokens_lack(a, who.token, LISTENER_TUNNEL, PERMIT_EDIT, &lack);
	assert_string_equal(lack.scope, "");
	assert_string_equal(
	    lack.text, "the permission set family lacks the scope manage:edit");
	/* A token that may nothing, and one that may only manage. */
	narrowed(T2, 0, &who);
	tokens_hint(a, who.token, LISTENER_TUNNEL, &hints);
	assert_int_equal(hints.unread, others | 1u << MCP_LIST_TOOLS);
	assert_string_equal(hints.read_scope, READ);
	assert_string_equal(hints.call_scope, "tools:call");
	narrowed("a.b.c3", PERMIT_MANAGE, &who);
	tokens_hint(a, who.token, LISTENER_TUNNEL, &hints);
	assert_int_equal(hints.unread, others);
	assert_string_equal(hints.read_scope, "tools:read manage");
}

/* It does not help to ask for manage:edit if the tunnel takes it from
 * everyone. */
static void
listener_takes_a_scope(void **unused)
{
	struct lack lack;
	struct auth who;

	BECOMES(.narrows = true, .scopes = "tools:call manage:edit");
	no_runs();
	narrowed(T1, PERMIT_READ | PERMIT_CALL, &who);
	tokens_lack(a, who.token, LISTENER_TUNNEL, PERMIT_EDIT, &lack);
	assert_string_equal(lack.scope, "");
	tokens_lack(a, who.token, LISTENER_LOCAL, PERMIT_EDIT, &lack);
	assert_string_equal(lack.scope, BOTH " manage:edit");
}

/* The name and the rate of a set change without an end. */
static void
notes_of_the_set(void **unused)
{
	struct lack lack;
	struct auth who;

	BECOMES(.narrows = true, .rate = 60);
	no_runs();
	narrowed(T1, PERMIT_READ, &who);
	assert_int_equal(who.token->of.per_minute, 60);
	BECOMES(.narrows = true, .rate = 30, .scopes = "tools:call manage");
	gateways_hear_nothing();
	no_runs();
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_int_equal(who.token->of.per_minute, 30);
	tokens_lack(a, who.token, LISTENER_TUNNEL, PERMIT_MANAGE, &lack);
	assert_string_equal(lack.scope, "tools:read manage");
	BECOMES(.narrows = true);
	gateways_hear_nothing();
	no_runs();
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_int_equal(who.token->of.per_minute, 0);
	tokens_lack(a, who.token, LISTENER_TUNNEL, PERMIT_MANAGE, &lack);
	assert_string_equal(lack.scope, "");
}

/* An issuer whose tokens' scopes do not count has no other token. */
static void
rules_alone_decide(void **unused)
{
	struct token_hints hints;
	struct lack lack;
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	tokens_lack(a, who.token, LISTENER_TUNNEL, PERMIT_MANAGE, &lack);
	assert_string_equal(lack.scope, "");
	assert_string_equal(
	    lack.text, "the permission set family lacks the scope manage");
	tokens_hint(a, who.token, LISTENER_TUNNEL, &hints);
	assert_int_equal(hints.unread, 0);
	/* nor has `local` */
	tokens_hint(a, NULL, LISTENER_LOCAL, &hints);
	assert_int_equal(hints.unread, 0);
	assert_int_equal(token_may_call(a, NULL, LISTENER_LOCAL, &lack), 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(rights_of_the_set),
	    TEST(loss_ends_its_work),
	    TEST(gain_disturbs_nothing),
	    TEST(set_that_is_missing),
	    TEST(document_is_away),
	    TEST(more_scopes_help),
	    TEST(listener_takes_a_scope),
	    TEST(notes_of_the_set),
	    TEST(rules_alone_decide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
