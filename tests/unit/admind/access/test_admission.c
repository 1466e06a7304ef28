/*
 * Tokens that are bound to one request, on the way through judging.c and
 * identities.c: one request is admitted, and all others are refused; the ticket
 * that takes the token's place; sessions, their ends, and how many there are.
 */
#include "access_rig.h"
#include "bound.h"

enum { R = 70 };

#define URL "https://mcp.example.org/mcp"

static unsigned dispatched;
static unsigned tokens; /* that were made; each has its own jti */
static char ticket[BOUND_TICKET_LEN + 1]; /* the last */

static int
handle(struct link *l, struct ipc_frame *frame)
{
	dispatched++;
	return auth_message(l, frame);
}

static int
start(void **unused)
{
	rig_start(&(struct said_document){
	    .listeners = LOCALLY | REMOTELY, .bound = true});
	a->dispatch = handle;
	dispatched = 0;
	/* Tokens of before the start are refused. */
	passes(LEEWAY_S + 1);
	return 0;
}

/* A request whose token is bound to it. */
static struct said_claims
said(void)
{
	static char id[8][16];
	char *mine = id[tokens++ % 8];

	snprintf(mine, sizeof(id[0]), "jti-%u", tokens);
	return (struct said_claims){.email = "ann@example.org",
	    .client = "app",
	    .exp_us = wall_us / S * S + 60 * S,
	    .iat_us = wall_us / S * S,
	    .method = "POST",
	    .url = URL,
	    .body = "{}",
	    .id = mine,
	    .session_exp_us = UINT64_C(1800003600) * S};
}

/* A gateway asks about a token that came with a request. */
static bool
asks_for(struct link *l, uint64_t request, const char *token,
    const char *method, const char *target, const char *body)
{
	struct ipc_authenticate m = {.credential = ipc_str(token),
	    .method = ipc_str(method),
	    .target = ipc_str(target)};

	sha256(body, strlen(body), &m.body);
	return judging_takes(l, fake_frame(IPC_AUTHENTICATE, request, &m));
}

static bool
asks(struct link *l, uint64_t request, const char *token)
{
	return asks_for(l, request, token, "POST", "/mcp", "{}");
}

static void
check_finds(const struct said_claims *c)
{
	struct ipc_check_ok ok = {0};
	struct ipc_check_jwt q;
	struct buf b;

	(void)fake_took(f.check, IPC_CHECK_JWT, &q);
	buf_init(&b, IPC_FRAME_MAX);
	say_claims(&b, c);
	ok.fields = ipc_bytes(b.p, b.len);
	fake_answers(f.check, IPC_CHECK_OK, &ok);
	buf_free(&b);
}

/* Takes the answer to an admitted request. */
static void
is_admitted(struct ipc_peer *peer, uint64_t request)
{
	struct ipc_identity m;

	assert_int_equal(fake_took(peer, IPC_IDENTITY, &m), request);
	assert_true(ipc_streq(m.principal, ANN));
	assert_int_equal(m.cache_ms, 0);
	assert_int_equal(m.ticket.n, BOUND_TICKET_LEN);
	memcpy(ticket, m.ticket.p, m.ticket.n);
	ticket[m.ticket.n] = '\0';
}

static void
is_refused(struct ipc_peer *peer, uint64_t request, enum failure failure,
    const char *words)
{
	struct ipc_refused m;

	assert_int_equal(fake_took(peer, IPC_REFUSED, &m), request);
	assert_string_equal(
	    failure_info(m.failure)->name, failure_info(failure)->name);
	if (m.message.n < strlen(words) ||
	    memcmp(m.message.p, words, strlen(words)) != 0)
		fail_msg("%.*s", (int)m.message.n, (const char *)m.message.p);
}

/* One request of ann's at the tunnel, with a token of its own. */
static void
comes_in(const struct said_claims *c)
{
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_finds(c);
	is_admitted(f.tunnel, R);
}

static enum failure
by_ticket(enum listener listener, const char *text, struct auth *who)
{
	struct err err = {0};

	return auth_principal(a, listener, VIA_TICKET, ipc_str(text),
		   ipc_str(""), who, &err) == 0
	    ? FAILURE_NONE
	    : err.failure;
}

#define USED "the token was used already"

/* ---- one request ---- */

static void
admitted_once(void **unused)
{
	struct said_claims c = said();
	struct auth who;

	comes_in(&c);
	assert_int_equal(dispatched, 0);
	assert_int_equal(by_ticket(LISTENER_TUNNEL, ticket, &who), 0);
	assert_string_equal(who.principal, ANN);
	assert_true(who.expires_us == c.session_exp_us);
	/* The token itself is not remembered: it is judged again, and was
	 * used. */
	assert_true(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str("a.b.c")));
	for (int i = 1; i < 4; i++) {
		assert_true(asks(f.tunnelled, R + (uint64_t)i, "a.b.c"));
		check_finds(&c);
		is_refused(
		    f.tunnel, R + (uint64_t)i, FAILURE_UNAUTHENTICATED, USED);
	}
	/* nor at the other listener, through another gateway */
	assert_true(asks(f.gateway, R, "a.b.c"));
	check_finds(&c);
	is_refused(f.local, R, FAILURE_UNAUTHENTICATED, USED);
	assert_int_equal(a->metrics->auth_failed, 4);
}

/* Two at once wait for one check: exactly one is admitted. */
static void
two_at_once(void **unused)
{
	struct said_claims c = said();

	assert_true(asks(f.tunnelled, R, "a.b.c"));
	assert_true(asks(f.tunnelled, R + 1, "a.b.c"));
	assert_true(asks(f.gateway, R + 2, "a.b.c"));
	check_finds(&c);
	is_admitted(f.tunnel, R);
	is_refused(f.tunnel, R + 1, FAILURE_UNAUTHENTICATED, USED);
	check_finds(&c);
	is_refused(f.local, R + 2, FAILURE_UNAUTHENTICATED, USED);
	assert_int_equal(judging_count(a), 0);
}

/* The same jti in another token, as an issuer with a fault makes it. */
static void
same_id_in_another_token(void **unused)
{
	struct said_claims c = said();

	comes_in(&c);
	c.url = URL "?2";
	assert_true(asks_for(f.tunnelled, R, "a.b.d", "POST", "/mcp?2", "{}"));
	check_finds(&c);
	is_refused(f.tunnel, R, FAILURE_UNAUTHENTICATED, USED);
}

/* A thief's request is refused and does not use the token up. */
static void
another_request(void **unused)
{
	static const struct {
		const char *method, *target, *body, *words;
	} rows[] = {
	    {"GET", "/mcp", "{}", "the token is bound to another method"},
	    {"DELETE", "/mcp", "{}", "the token is bound to another method"},
	    {"POST", "/mcp?x", "{}", "the token is bound to another URL"},
	    {"POST", "/mcp/", "{}", "the token is bound to another URL"},
	    {"POST", "/mcp", "[]", "the token is bound to another body"},
	    {"POST", "/mcp", "", "the token is bound to another body"},
	};
	struct said_claims c = said();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(asks_for(f.tunnelled, R + i, "a.b.c",
		    rows[i].method, rows[i].target, rows[i].body));
		/* the owner's request waits for the same check */
		if (i == 0)
			assert_true(asks(f.tunnelled, 7, "a.b.c"));
		check_finds(&c);
		is_refused(
		    f.tunnel, R + i, FAILURE_UNAUTHENTICATED, rows[i].words);
		if (i == 0) {
			is_admitted(f.tunnel, 7);
			c = said();
		}
	}
	comes_in(&c);
}

/* A frame that opens no request has the ticket. A token in it is judged, and
 * refused. */
static void
later_steps_need_the_ticket(void **unused)
{
	struct ipc_authorise call = {.credential = ipc_str("a.b.c"),
	    .tool = ipc_str("s__t"),
	    .arguments = ipc_str("{}")};
	struct said_claims c = said();

	assert_true(
	    judging_takes(f.tunnelled, fake_frame(IPC_AUTHORISE, R, &call)));
	check_finds(&c);
	is_refused(f.tunnel, R, FAILURE_UNAUTHENTICATED,
	    "the token is bound to one request");
	assert_int_equal(dispatched, 0);
	comes_in(&c);
	/* A frame with a ticket goes to its handler at once. */
	call.credential = ipc_str(ticket);
	call.via = VIA_TICKET;
	assert_false(
	    judging_takes(f.tunnelled, fake_frame(IPC_AUTHORISE, R, &call)));
}

/* A gateway that does not know yet of bound tokens: the token stays good. */
static void
gateway_that_tells_nothing(void **unused)
{
	struct said_claims c = said();

	assert_true(asks_for(f.tunnelled, R, "a.b.c", "", "", ""));
	check_finds(&c);
	is_refused(f.tunnel, R, FAILURE_BUSY, "the gateway did not tell");
	comes_in(&c);
}

/* ---- tickets ---- */

/* A ticket comes in no header, and no other credential is one. */
static void
a_ticket_is_a_gateways(void **unused)
{
	struct said_claims c = said();
	struct auth who;
	struct err err;
	char wrong[BOUND_TICKET_LEN + 1];

	comes_in(&c);
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_AUTHORIZATION,
			     ipc_str(ticket), ipc_str(""), &who, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_UNAUTHENTICATED);
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str(ticket), ipc_str(""), &who, &err),
	    -1);
	memcpy(wrong, ticket, sizeof(wrong));
	wrong[7] = wrong[7] == 'A' ? 'B' : 'A';
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, wrong, &who), FAILURE_UNAUTHENTICATED);
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, "", &who), FAILURE_UNAUTHENTICATED);
	assert_int_equal(by_ticket(LISTENER_LOCAL, wrong, &who),
	    FAILURE_UNAUTHENTICATED); /* never `local` */
	assert_int_equal(
	    by_ticket(LISTENER_LOCAL, "", &who), FAILURE_UNAUTHENTICATED);
	assert_int_equal(by_ticket(LISTENER_LOCAL, ticket, &who), FAILURE_NONE);
}

/* The tokens of an issuer that is not bound are remembered as ever. */
static void
other_issuers_are_as_ever(void **unused)
{
	struct said_claims guest = {.issuer = "door", .sub = "guest"};
	struct auth who;
	struct err err;

	assert_int_equal(learn(T1, &guest, who_is), FAILURE_NONE);
	assert_int_equal(auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			     ipc_str(T1), ipc_str(""), &who, &err),
	    0);
	/* its tokens are not tickets */
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, T1, &who), FAILURE_UNAUTHENTICATED);
}

/* ---- sessions ---- */

/* However many requests: one remembered credential. */
static void
one_credential_a_session(void **unused)
{
	char first[BOUND_TICKET_LEN + 1];
	struct said_claims c = said();
	struct auth who;

	comes_in(&c);
	memcpy(first, ticket, sizeof(first));
	for (int i = 0; i < 100; i++) {
		passes(1);
		c = said();
		comes_in(&c);
		assert_string_equal(ticket, first);
	}
	assert_int_equal(a->identities->people.ncredentials, 1);
	assert_int_equal(by_ticket(LISTENER_TUNNEL, first, &who), FAILURE_NONE);
	/* Another client, another address or another end is another one. */
	c = said();
	c.client = "other";
	comes_in(&c);
	assert_string_not_equal(ticket, first);
	c = said();
	c.session_exp_us += S;
	comes_in(&c);
	assert_string_not_equal(ticket, first);
	c = said();
	c.group[0] = "staff";
	comes_in(&c);
	assert_string_not_equal(ticket, first);
	assert_int_equal(a->identities->people.ncredentials, 4);
	assert_int_equal(by_ticket(LISTENER_TUNNEL, first, &who), FAILURE_NONE);
}

/* All that began by the token goes on after its time is over, and ends with the
 * session. */
static void
ends_with_the_session(void **unused)
{
	struct said_claims c = said();
	struct auth who;
	struct ipc_hash h;

	comes_in(&c);
	h = hash_of(VIA_TICKET, ticket);
	passes(130);
	identities_tick(a);
	gateways_hear_nothing();
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, ticket, &who), FAILURE_NONE);
	passes((c.session_exp_us - wall_us) / S);
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, ticket, &who), FAILURE_UNAUTHENTICATED);
	identities_tick(a);
	gateways_hear(&h, "");
	assert_int_equal(a->identities->people.ncredentials, 0);
}

/* Without session_exp it ends with the token. */
static void
session_without_an_end(void **unused)
{
	struct said_claims c = said();
	struct auth who;
	struct ipc_hash h;

	c.session_exp_us = 0;
	comes_in(&c);
	h = hash_of(VIA_TICKET, ticket);
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, ticket, &who), FAILURE_NONE);
	assert_true(who.expires_us == c.exp_us);
	passes(61);
	identities_tick(a);
	gateways_hear(&h, "");
}

/* A session of a month ends a day after its last request. */
static void
session_of_a_month(void **unused)
{
	const uint64_t day = BOUND_SESSION_MAX_S;
	struct said_claims c = said();
	uint64_t month = wall_us + 30 * day * S;
	struct auth who;
	struct ipc_hash h;

	c.session_exp_us = month;
	comes_in(&c);
	h = hash_of(VIA_TICKET, ticket);
	assert_int_equal(by_ticket(LISTENER_TUNNEL, ticket, &who), 0);
	assert_true(who.expires_us == wall_us + day * S);
	passes(day / 2);
	identities_tick(a);
	c = said();
	c.session_exp_us = month;
	comes_in(&c);
	passes(day * 3 / 4);
	identities_tick(a);
	gateways_hear_nothing();
	assert_int_equal(by_ticket(LISTENER_TUNNEL, ticket, &who), 0);
	passes(day / 4);
	identities_tick(a);
	gateways_hear(&h, "");
}

static void
withdrawal_ends_the_session(void **unused)
{
	struct said_claims c = said();
	struct auth who;

	comes_in(&c);
	document_notified(a, "withdrawn " ANN);
	gateways_hear(NULL, ANN);
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, ticket, &who), FAILURE_UNAUTHENTICATED);
	c = said();
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_finds(&c);
	is_refused(f.tunnel, R, FAILURE_FORBIDDEN, "an administrator withdrew");
}

/* An issuer that is bound no more, by another document: its sessions end. */
static void
another_document(void **unused)
{
	struct said_document d = {.listeners = LOCALLY | REMOTELY};
	struct said_claims c = said();
	struct auth who;

	comes_in(&c);
	document_load(a, NULL, NULL);
	document_holds(&d, SERIAL + 1);
	gateways_hear(NULL, ANN);
	assert_int_equal(
	    by_ticket(LISTENER_TUNNEL, ticket, &who), FAILURE_UNAUTHENTICATED);
}

/* ---- starts and bounds ---- */

static void
used_before_the_start(void **unused)
{
	struct said_claims c = said();

	c.iat_us = UINT64_C(1800000000) * S; /* when this process started */
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_finds(&c);
	is_refused(f.tunnel, R, FAILURE_BUSY,
	    "the token was made before this server started");
	c.iat_us += LEEWAY_S * S;
	comes_in(&c);
}

/* A gateway is told whether it must digest bodies. */
static void
gateways_are_told(void **unused)
{
	struct said_document d = {.listeners = REMOTELY};
	struct ipc_gw_access m;

	document_load(a, NULL, NULL);
	answer_row(SERIAL + 1, "{}", NULL);
	vault_knows();
	check_compiles(&d);
	hear_access(f.tunnel, &m);
	assert_int_equal(m.bound, 0);
	hear_access(f.local, &m);
	no_runs();
	d.bound = true;
	document_load(a, NULL, NULL);
	answer_row(SERIAL + 2, "{}", NULL);
	vault_knows();
	check_compiles(&d);
	hear_access(f.tunnel, &m);
	assert_int_equal(m.bound, 1);
	hear_access(f.local, &m);
	assert_int_equal(m.bound, 0); /* pocket does not serve it */
	no_runs();
}

/* A faulty or taken-over admind-check: a bound issuer's token without the
 * request that it is for. */
static void
claims_without_a_request(void **unused)
{
	struct said_claims c = said();

	c.method = NULL;
	assert_true(asks(f.tunnelled, R, "a.b.c"));
	check_finds(&c);
	is_refused(f.tunnel, R, FAILURE_INTERNAL,
	    "admind-check answered with a malformed bound token");
	assert_int_equal(a->identities->people.ncredentials, 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(admitted_once),
	    TEST(two_at_once),
	    TEST(same_id_in_another_token),
	    TEST(another_request),
	    TEST(later_steps_need_the_ticket),
	    TEST(gateway_that_tells_nothing),
	    TEST(a_ticket_is_a_gateways),
	    TEST(other_issuers_are_as_ever),
	    TEST(one_credential_a_session),
	    TEST(ends_with_the_session),
	    TEST(session_without_an_end),
	    TEST(session_of_a_month),
	    TEST(withdrawal_ends_the_session),
	    TEST(another_document),
	    TEST(used_before_the_start),
	    TEST(gateways_are_told),
	    TEST(claims_without_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
