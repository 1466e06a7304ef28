/* Tests that each message of the web process needs a fresh proof, or says why
 * not. */
#include "fresh.h"
#include "ipc_info.h"
#include "unit.h"

enum { TTL = 1 << 30, NOW = 1000000, UNIX = 1700000000 };

/*
 * Every request that the web process may send. A message that seals something,
 * or has something stored that outlives the login, needs a proof, or a reason
 * why it needs none. Whoever adds a message decides here.
 */
static const struct {
	enum ipc_type type;
	enum fresh_need need;
	const char *reason; /* of an exception */
} decided[] = {
    {IPC_APPROVE, FRESH_ALWAYS, NULL},
    {IPC_POLICY_SET, FRESH_ALWAYS, NULL},
    {IPC_ACCESS_SET, FRESH_ALWAYS, NULL},
    {IPC_ADMIN_CHANGE, FRESH_ALWAYS, NULL},
    {IPC_PASSKEY_REGISTER, FRESH_ALWAYS, NULL},
    {IPC_PASSKEY_REMOVE, FRESH_ALWAYS, NULL},
    {IPC_SECRET_SET, FRESH_BY_ISSUER,
	"a value reaches only what an approval names, which needs a proof"},
    {IPC_REJECT, FRESH_NEVER, "it takes away, and seals nothing"},
    {IPC_LOGOUT, FRESH_NEVER, "it takes away"},
    {IPC_LOGIN_END, FRESH_NEVER, "it takes away"},
    {IPC_LOGIN, FRESH_NEVER, "it brings the password"},
    {IPC_PASSWORD, FRESH_NEVER, "it brings the password"},
    {IPC_PROVE, FRESH_NEVER, "it brings the password"},
    {IPC_PASSKEY_ASSERT, FRESH_NEVER, "it brings the passkey"},
    {IPC_PASSKEY_CHALLENGE, FRESH_NEVER, "it gives nothing away"},
    {IPC_PASSKEYS_GET, FRESH_NEVER, "it reads"},
    {IPC_SIGNIN_REDEEM, FRESH_NEVER, "it makes a login, unproven"},
    {IPC_WHOAMI, FRESH_NEVER, "it reads"},
    {IPC_LOGINS_GET, FRESH_NEVER, "it reads"},
    {IPC_POLICY_GET, FRESH_NEVER, "it reads"},
    {IPC_SEAL_VERIFY, FRESH_NEVER, "it reads"},
};

/* Requests to admind. The vault does not see them, and a hostile admind can do
 * all of this by itself, so a proof at the vault would prove nothing. */
static const struct {
	enum ipc_type type;
	const char *reason;
} admind_alone[] = {
    {IPC_ADMIN_QUERY, "it reads"},
    {IPC_APPROVAL_GET, "it reads"},
    {IPC_ACTIVITY_FOLLOW, "it reads"},
    {IPC_METRICS_GET, "it reads"},
    {IPC_EXPORT, "it reads; the seal says only that these bytes left here"},
    {IPC_ADMIN_ACTION, "it changes what admind itself may change"},
    {IPC_IMPORT, "it makes drafts, which need an approval"},
    {IPC_OPENAPI_IMPORT, "it makes drafts, which need an approval"},
    {IPC_SOURCE_RUN, "it makes drafts, which need an approval"},
    {IPC_OAUTH_CALLBACK, "it ends what SOURCE_RUN began"},
    {IPC_SIGNIN_LIST, "it reads"},
    {IPC_SIGNIN_BEGIN, "it reads"},
    {IPC_SIGNIN_BACK, "it ends in a login, unproven"},
    {IPC_ACCESS_REFRESH, "it has keys fetched again"},
    {IPC_NOTIFY_TEST, "it sends a fixed sentence to a target of the document"},
    {IPC_SCRIPT_KEY_CREATE, "admind makes scripts' keys by itself"},
    {IPC_SCRIPT_KEY_CHECK, "it reads"},
    {IPC_PERSON_CALL, "it makes drafts, and calls what was approved"},
    {IPC_TOKEN_CREATE, "admind makes API tokens by itself"},
    {IPC_TOKEN_REVOKE, "it takes away"},
};

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void
all_are_decided(void **state)
{
	const struct ipc_info *row;
	size_t n, known, seen = 0;

	(void)state;
	row = ipc_table(&n);
	for (size_t i = 0; i < n; i++, row++) {
		if (row->kind != IPC_KIND_REQ ||
		    (row->senders & IPC_ROLE_WEB) == 0 ||
		    row->senders == IPC_ROLE_ANY)
			continue;
		known = 0;
		for (size_t k = 0; k < N(decided); k++)
			known += decided[k].type == row->type &&
			    (row->receivers & IPC_ROLE_VAULT) != 0;
		for (size_t k = 0; k < N(admind_alone); k++)
			known += admind_alone[k].type == row->type &&
			    row->receivers == IPC_ROLE_ADMIND;
		if (known != 1)
			fail_msg("%s: decide in this file and in fresh.c "
				 "whether it needs a fresh proof",
			    row->name);
		seen++;
	}
	assert_int_equal(seen, N(decided) + N(admind_alone));
}

static void
each_as_decided(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	const struct session *by[2];
	char token[SESSIONS_TEXT + 1];
	const uint64_t stale = NOW + SESSIONS_PROOF_MS + 1;
	struct err err;

	(void)state;
	by[0] = sessions_add(s, "admin", "administrator", SESSION_BY_PASSWORD,
	    NULL, NOW, UNIX, token);
	by[1] = sessions_add(s, "ann@work", "administrator", SESSION_BY_ISSUER,
	    NULL, NOW, UNIX, token);
	for (size_t i = 0; i < N(decided); i++) {
		enum ipc_type t = decided[i].type;
		enum fresh_need need = decided[i].need;

		assert_int_equal(fresh_need(t), need);
		assert_true(
		    (need == FRESH_ALWAYS) == (decided[i].reason == NULL));
		assert_int_equal(fresh_check(by[0], t, stale - 1, &err), 0);
		for (int k = 0; k < 2; k++) {
			bool refused = need == FRESH_ALWAYS ||
			    (need == FRESH_BY_ISSUER && k == 1);

			memset(&err, 0, sizeof(err));
			assert_int_equal(
			    fresh_check(by[k], t, stale, &err), -refused);
			assert_int_equal(err.failure,
			    refused ? FAILURE_PROOF_REQUIRED : FAILURE_NONE);
		}
	}
	/* An unlisted message needs a proof. */
	assert_int_equal(fresh_need(IPC_TYPE_MAX), FRESH_ALWAYS);
	/* After a proof each may do everything, a moment ago it was refused. */
	for (int k = 0; k < 2; k++) {
		assert_int_equal(
		    fresh_check(by[k], IPC_APPROVE, stale, &err), -1);
		sessions_prove(s, by[k], stale);
		for (size_t i = 0; i < N(decided); i++)
			assert_int_equal(fresh_check(by[k], decided[i].type,
					     stale + SESSIONS_PROOF_MS, &err),
			    0);
	}
	sessions_free(s);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_are_decided),
	    cmocka_unit_test(each_as_decided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
