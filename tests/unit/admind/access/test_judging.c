/*
 * Frames that wait for the check of their token (judging.c): asked about once,
 * dispatched or refused, bounded for each listener, freed with their link.
 */
#include "access_rig.h"

enum { R = 70 };

static unsigned dispatched;
static uint64_t last_request;
static enum ipc_type last_type;
static char last_principal[PRINCIPAL_MAX + 1];

/* In the place of links.c: the handlers' first step. */
static int
handle(struct link *l, struct ipc_frame *frame)
{
	struct ipc_authenticate m;
	struct auth who;
	struct err err;

	dispatched++;
	last_request = frame->request;
	last_type = frame->type;
	last_principal[0] = '\0';
	if (frame->type == IPC_AUTHENTICATE &&
	    ipc_decode(frame, &m, &err) == 0 &&
	    auth_principal(l->a, l->listener, m.via, m.credential, ipc_str(""),
		&who, &err) == 0)
		memcpy(last_principal, who.principal, sizeof(last_principal));
	return 0;
}

static int
start(void **unused)
{
	rig_start(&(struct said_document){.listeners = LOCALLY | REMOTELY});
	a->dispatch = handle;
	dispatched = 0;
	return 0;
}

static bool
asks(struct link *l, uint64_t request, const char *token)
{
	struct ipc_authenticate m = {.credential = ipc_str(token)};

	return judging_takes(l, fake_frame(IPC_AUTHENTICATE, request, &m));
}

static void
check_is_asked(const char *token, enum listener listener)
{
	struct ipc_check_jwt q;
	struct tlv_reader r;
	struct tlv t;

	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	assert_int_equal(q.listener, listener);
	assert_int_equal(q.via, VIA_AUTHORIZATION);
	assert_true(q.now_us == wall_us);
	assert_int_equal(q.token_len, strlen(token));
	assert_memory_equal(q.token_issuers.p, token, strlen(token));
	/* pocket alone: door has the other header */
	tlv_open(&r, q.token_issuers.p + q.token_len,
	    q.token_issuers.n - q.token_len);
	assert_int_equal(tlv_next(&r, &t), 1);
	assert_int_equal(t.tag, ACCESS_ISSUER);
	assert_int_equal(tlv_next(&r, &t), 0);
}

static void
check_finds_good(const struct said_claims *said)
{
	struct said_claims c = *said;
	struct ipc_check_ok ok = {0};
	struct buf b;

	c.exp_us = wall_us + 3600 * S;
	buf_init(&b, IPC_FRAME_MAX);
	say_claims(&b, &c);
	ok.fields = ipc_bytes(b.p, b.len);
	fake_answers(f.check, IPC_CHECK_OK, &ok);
	buf_free(&b);
}

static void
check_finds_bad(enum failure failure, const char *summary)
{
	struct ipc_check_errors bad = {.failure = (uint16_t)failure,
	    .summary = ipc_str(summary),
	    .json = ipc_str("[]")};

	fake_answers(f.check, IPC_CHECK_ERRORS, &bad);
}

static void
is_refused(struct ipc_peer *peer, uint64_t request, enum failure failure,
    const char *words)
{
	struct ipc_refused m;

	assert_int_equal(fake_took(peer, IPC_REFUSED, &m), request);
	assert_string_equal(
	    failure_info(m.failure)->name, failure_info(failure)->name);
	if (!ipc_streq(m.message, words))
		fail_msg("%.*s", (int)m.message.n, (const char *)m.message.p);
}

/* A clock that went back makes no token good that was over. */
static void
judged_by_the_latest_time(void **unused)
{
	uint64_t late;
	struct ipc_check_jwt q;

	passes(200);
	identities_tick(a);
	late = wall_us;
	wall_us -= 5000 * S;
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	assert_true(q.now_us == late);
}

/* ---- the way ---- */

static void
waits_then_dispatched(void **unused)
{
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	assert_int_equal(judging_count(a), 1);
	assert_int_equal(dispatched, 0);
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	assert_int_equal(judging_count(a), 0);
	assert_int_equal(dispatched, 1);
	assert_int_equal(last_request, R);
	assert_string_equal(last_principal, "oidc:pocket:ann");
	/* it is remembered now, on the other listener of its issuer, too */
	assert_false(asks(f.tunnelled, R, "a.b.c"));
	assert_false(asks(f.gateway, R, "a.b.c"));
	/* and asked about again when the verdict is old */
	passes(300);
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 2);
}

static void
one_check_for_all_frames(void **unused)
{
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	assert_true(asks(f.tunnelled, R + 1, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	assert_true(asks(f.tunnelled, R + 2, "a.b.c"));
	assert_int_equal(fake_peer_waits(f.check), 0);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 3);
	assert_int_equal(last_request, R + 2); /* in their order */
}

static void
all_kinds_of_requests(void **unused)
{
	struct ipc_authorise call = {.credential = ipc_str("a.b.c"),
	    .tool = ipc_str("s__t"),
	    .arguments = ipc_str("{}")};
	struct ipc_task_get get = {.credential = ipc_str("a.b.c")};
	struct ipc_task_update update = {
	    .credential = ipc_str("a.b.c"), .answers = ipc_str("{}")};
	struct ipc_task_cancel cancel = {.credential = ipc_str("a.b.c")};
	struct ipc_catalogue_get lists = {.permission_set = ipc_str("a.b.c")};
	struct {
		enum ipc_type type;
		const void *m;
	} rows[] = {{IPC_AUTHORISE, &call}, {IPC_TASK_GET, &get},
	    {IPC_TASK_UPDATE, &update}, {IPC_TASK_CANCEL, &cancel}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(judging_takes(
		    f.tunnelled, fake_frame(rows[i].type, R + i, rows[i].m)));
		check_is_asked("a.b.c", LISTENER_TUNNEL);
		check_finds_good(&ann);
		assert_int_equal(last_request, R + i);
		assert_int_equal(last_type, rows[i].type);
		passes(301);
	}
	assert_false(judging_takes(
	    f.tunnelled, fake_frame(IPC_CATALOGUE_GET, R, &lists)));
	/* only gateways bring credentials of clients */
	assert_false(asks(f.sandbox, R, "a.b.c"));
	/* other credentials are the handlers' */
	assert_false(asks(f.tunnelled, R, ""));
	assert_false(asks(f.tunnelled, R, "mbt_x"));
	assert_false(asks(f.tunnelled, R, "x.y"));
}

/* ---- refused ---- */

static void
bad_token(void **unused)
{
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	assert_true(asks(f.tunnelled, R + 1, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_bad(FAILURE_INVALID_PARAMS, "the \"exp\" is over \x01\\");
	is_refused(
	    f.tunnel, R, FAILURE_UNAUTHENTICATED, "the 'exp' is over ?'");
	is_refused(
	    f.tunnel, R + 1, FAILURE_UNAUTHENTICATED, "the 'exp' is over ?'");
	assert_int_equal(dispatched, 0);
	assert_int_equal(a->metrics->auth_failed, 2);
	assert_int_equal(judging_count(a), 0);
	/* a refusal is not remembered: a rule or a clock may change */
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 1);
}

static void
person_who_may_not(void **unused)
{
	struct said_claims bob = {.sub = "bob"};

	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&bob);
	is_refused(f.tunnel, R, FAILURE_FORBIDDEN,
	    "no rule of the access document fits this identity");
	document_notified(a, "withdrawn oidc:pocket:ann");
	gateways_hear(NULL, "oidc:pocket:ann");
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	is_refused(f.tunnel, R, FAILURE_FORBIDDEN,
	    "an administrator withdrew this identity");
	assert_int_equal(dispatched, 0);
}

/* A token that was good and is refused now: its streams end. */
static void
good_no_more(void **unused)
{
	struct ipc_hash h = hash_of(VIA_AUTHORIZATION, "a.b.c");
	struct ipc_credential_ended m;
	struct ipc_ok ok = {0};

	assert_int_equal(learn("a.b.c", &ann, who_is), FAILURE_NONE);
	passes(301);
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_bad(FAILURE_UNAUTHENTICATED, "too old");
	(void)fake_took(f.tunnel, IPC_CREDENTIAL_ENDED, &m);
	assert_memory_equal(&m.credential, &h, sizeof(h));
	assert_int_equal(m.principal.n, 0);
	fake_answers(f.tunnel, IPC_OK, &ok);
	is_refused(f.tunnel, R, FAILURE_UNAUTHENTICATED, "too old");
}

/* admind-check finds no such key among the fetched ones. */
static void
check_lacks_key(void)
{
	struct ipc_check_ok ok = {0};
	struct buf b;

	buf_init(&b, IPC_FRAME_MAX);
	tlv_puts(&b, JWT_NO_KEY, "pocket");
	ok.fields = ipc_bytes(b.p, b.len);
	fake_answers(f.check, IPC_CHECK_OK, &ok);
	buf_free(&b);
}

static void
fetches(const char *key)
{
	struct keyset *s = keysets_due(&a->access->keysets, boot_ms);
	struct buf b;

	assert_non_null(s);
	buf_init(&b, IPC_FRAME_MAX);
	tlv_puts(&b, ISSUER_KEY, key);
	keysets_begin(s, boot_ms);
	(void)keysets_good(s, ipc_bytes(b.p, b.len), 3600, wall_us);
	buf_free(&b);
}

/* A key that is not there is a verdict only just after its issuer was asked.
 * Otherwise clients keep their token and come again. */
static void
unknown_key(void **unused)
{
	static const char later[] =
	    "the keys of the token's issuer must be fetched first";
	struct ipc_check_jwt q;
	struct tlv record, key;

	fake_admind_free(&f, false);
	rig_start(&(struct said_document){.fetched = true});
	a->dispatch = handle;
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	assert_int_equal(
	    tlv_find(q.token_issuers.p + q.token_len,
		q.token_issuers.n - q.token_len, ACCESS_ISSUER, &record),
	    1);
	assert_int_equal(tlv_find(record.p, record.n, ISSUER_KEY, &key), 0);
	check_lacks_key();
	is_refused(f.tunnel, R, FAILURE_ISSUER_UNAVAILABLE, later);
	fetches("KEY");
	assert_true(asks(f.tunnelled, R + 1, "a.b.c"));
	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	assert_int_equal(
	    tlv_find(q.token_issuers.p + q.token_len,
		q.token_issuers.n - q.token_len, ACCESS_ISSUER, &record),
	    1);
	assert_int_equal(tlv_find(record.p, record.n, ISSUER_KEY, &key), 1);
	assert_memory_equal(key.p, "KEY", 3);
	check_lacks_key();
	is_refused(f.tunnel, R + 1, FAILURE_UNAUTHENTICATED,
	    "the token's `kid` is no key of its issuer, whose keys were "
	    "fetched just now");
	passes(31);
	assert_null(keysets_due(&a->access->keysets, boot_ms));
	assert_true(asks(f.tunnelled, R + 2, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_lacks_key();
	is_refused(f.tunnel, R + 2, FAILURE_ISSUER_UNAVAILABLE, later);
	fetches("KEY2");
	assert_true(asks(f.tunnelled, R + 3, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 1);
	/* Remembered, until a key of the issuer is gone. */
	assert_false(asks(f.tunnelled, R + 4, "a.b.c"));
	identities_stale(a, "door");
	assert_false(asks(f.tunnelled, R + 5, "a.b.c"));
	assert_true(identities_known(a, VIA_AUTHORIZATION, ipc_str("a.b.c")));
	identities_stale(a, "pocket");
	/* A flood does not keep the old verdict alive. */
	assert_false(identities_known(a, VIA_AUTHORIZATION, ipc_str("a.b.c")));
	assert_true(asks(f.tunnelled, R + 6, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 2);
}

static void
check_is_away(void **unused)
{
	struct ipc_check_jwt q;

	fake_client_up(a->check, false);
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	is_refused(
	    f.tunnel, R, FAILURE_BUSY, "the checking process is not reachable");
	fake_client_up(a->check, true);
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	fake_goes(f.check, FAILURE_BUSY);
	is_refused(
	    f.tunnel, R, FAILURE_BUSY, "the checking process did not answer");
	/* its own trouble is not the token's fault */
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	check_finds_bad(FAILURE_INTERNAL, "out of memory");
	is_refused(f.tunnel, R, FAILURE_INTERNAL, "out of memory");
	/* nor are claims that can't be */
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	check_finds_good(&(struct said_claims){.sub = "a b"});
	is_refused(f.tunnel, R, FAILURE_INTERNAL,
	    "admind-check answered with malformed claims");
	assert_int_equal(judging_count(a), 0);
}

/* ---- another document in between ---- */

static void
asked_again_after_a_change(void **unused)
{
	struct said_document d = {
	    .listeners = LOCALLY | REMOTELY, .email = "carol@example.org"};

	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	/* The test answers a process' last question, so this one goes by hand:
	 * the document changes while the question is under way. */
	a->access->generation++;
	check_finds_good(&ann);
	assert_int_equal(dispatched, 0);
	assert_int_equal(judging_count(a), 1);
	check_is_asked("a.b.c", LISTENER_TUNNEL);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 1);
	document_load(a, NULL, NULL);
	document_holds(&d, SERIAL + 1);
	assert_true(asks(f.tunnelled, R, "a.b.c"));
}

/* ---- bounds ---- */

static void
few_checks_at_a_time(void **unused)
{
	char token[32];

	for (int i = 0; i < JUDGING_FRAMES_MAX; i++) {
		snprintf(token, sizeof(token), "a.b.%d", i);
		assert_true(asks(f.tunnelled, (uint64_t)i, token));
	}
	assert_int_equal(fake_peer_waits(f.check), JUDGING_CHECKS_MAX);
	assert_int_equal(judging_count(a), JUDGING_FRAMES_MAX);
	assert_true(asks(f.tunnelled, R, "a.b.more"));
	is_refused(
	    f.tunnel, R, FAILURE_BUSY, "too many new tokens are being checked");
	/* The other listener has a queue of its own; remembered tokens do not
	 * wait. */
	assert_true(asks(f.gateway, R, "a.b.local"));
	assert_int_equal(fake_peer_waits(f.check), JUDGING_CHECKS_MAX + 1);
	assert_int_equal(learn("a.b.known", &ann, who_is), 0);
	assert_false(asks(f.tunnelled, R, "a.b.known"));
	/* In their order: each answer lets one more through. */
	check_is_asked("a.b.0", LISTENER_TUNNEL);
	check_finds_bad(FAILURE_UNAUTHENTICATED, "no");
	is_refused(f.tunnel, 0, FAILURE_UNAUTHENTICATED, "no");
	assert_int_equal(fake_peer_waits(f.check), JUDGING_CHECKS_MAX + 1);
	assert_int_equal(judging_count(a), JUDGING_FRAMES_MAX);
	assert_true(asks(f.tunnelled, R, "a.b.more"));
	gateways_hear_nothing();
}

static void
bytes_have_a_bound(void **unused)
{
	static char arguments[ARGUMENTS_MAX];
	struct ipc_authorise m = {.credential = ipc_str("a.b.c"),
	    .tool = ipc_str("s__t"),
	    .arguments = ipc_bytes(arguments, sizeof(arguments))};
	int n = 0;

	memset(arguments, ' ', sizeof(arguments));
	while (fake_peer_waits(f.tunnel) == 0) {
		assert_true(judging_takes(
		    f.tunnelled, fake_frame(IPC_AUTHORISE, R, &m)));
		assert_true(++n <= JUDGING_BYTES_MAX / ARGUMENTS_MAX);
	}
	assert_int_equal(n, JUDGING_BYTES_MAX / ARGUMENTS_MAX);
	assert_int_equal(judging_count(a), n - 1);
	is_refused(
	    f.tunnel, R, FAILURE_BUSY, "too many new tokens are being checked");
}

/* ---- links ---- */

static void
link_that_ends(void **unused)
{
	char token[32];

	for (int i = 0; i <= JUDGING_CHECKS_MAX; i++) {
		snprintf(token, sizeof(token), "a.b.%d", i);
		assert_true(asks(f.tunnelled, R, token));
	}
	assert_true(asks(f.gateway, R, "a.b.0"));
	judging_link_gone(f.tunnelled);
	f.tunnelled->peer = NULL;
	assert_int_equal(judging_count(a), 1);
	assert_int_equal(f.tunnelled->refs, 1);
	/* verdicts that are under way come to their end */
	for (int i = 0; i < JUDGING_CHECKS_MAX; i++) {
		snprintf(token, sizeof(token), "a.b.%d", i);
		check_is_asked(token, LISTENER_TUNNEL);
		check_finds_good(&ann);
	}
	assert_int_equal(dispatched, 0);
	check_is_asked("a.b.0", LISTENER_LOCAL);
	check_finds_good(&ann);
	assert_int_equal(dispatched, 1);
	assert_int_equal(judging_count(a), 0);
	assert_int_equal(fake_peer_waits(f.check), 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(waits_then_dispatched),
	    TEST(judged_by_the_latest_time),
	    TEST(one_check_for_all_frames),
	    TEST(all_kinds_of_requests),
	    TEST(bad_token),
	    TEST(person_who_may_not),
	    TEST(good_no_more),
	    TEST(unknown_key),
	    TEST(check_is_away),
	    TEST(asked_again_after_a_change),
	    TEST(few_checks_at_a_time),
	    TEST(bytes_have_a_bound),
	    TEST(link_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
