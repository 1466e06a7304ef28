/* admind with the room of access as main starts it, and a document of two
 * issuers. Included once. */
#ifndef ACCESS_RIG_H
#define ACCESS_RIG_H

#include "access.h"
#include "access_said.h"
#include "activity.h"
#include "auth.h"
#include "credential_hash.h"
#include "crypto.h"
#include "fake_admind.h"
#include "identities.h"
#include "ids.h"
#include "tokens.h"

enum { SERIAL = 1000 };
#define S UINT64_C(1000000) /* one second in us */

static const struct said_claims ann = {.email = "ann@example.org"};
static char who_is[PRINCIPAL_MAX + 1]; /* the last owner */
static char learn_said[1024];          /* the text of the last refusal */

#define ANN "oidc:pocket:ann"
#define T1  "a.b.c1"
#define T2  "a.b.c2"

static struct fake f;
static struct admind *a;
static uint64_t wall_us, boot_ms; /* the test's clocks */

uint64_t __wrap_now_us(void);
uint64_t __wrap_now_boot_ms(void);

uint64_t
__wrap_now_us(void)
{
	return wall_us;
}

uint64_t
__wrap_now_boot_ms(void)
{
	return boot_ms;
}

/* The contents of a document. */
struct said_document {
	const char *key;    /* of pocket; NULL: "KEY" */
	const char *scopes; /* of the set family; NULL: tools:call */
	const char *email;  /* of the rule for family; NULL: ann@example.org */
	unsigned listeners; /* of pocket; 0: the tunnel */
	uint64_t max_age_s;
	uint64_t rate;      /* of the set family; 0: none */
	const char *family; /* the set's name; NULL: family */
	bool narrows, empty;
	bool bound;   /* pocket binds its tokens to a request */
	bool fetched; /* the keys of pocket */
	/* The pattern of the endpoint home, beside which there is `away`; NULL:
	 * there are no endpoints. */
	const char *home;
};

static inline void
fields_of(const struct said_document *d, struct buf *b)
{
	const char *const family[3] = {
	    d->email != NULL ? d->email : "ann@example.org"};
	const char *const group[3] = {"staff"};
	const char *const any[3] = {NULL};
	const char *name = d->family != NULL ? d->family : "family";
	struct said_issuer p = pocket,
			   door = {.name = "door",
			       .url = "https://door.example.org",
			       .listeners = REMOTELY,
			       .via = VIA_ASSERTION};

	buf_init(b, IPC_BLOB_MAX);
	if (d->empty)
		return;
	p.key = d->key;
	p.narrows = d->narrows;
	p.bound = d->bound;
	p.fetched = d->fetched;
	p.max_age_s = d->max_age_s;
	if (d->listeners != 0)
		p.listeners = d->listeners;
	tlv_puts(b, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	say_issuer(b, &p);
	say_issuer(b, &door);
	say_rule(b, "pocket", RULE_GROUP, group, "staff");
	say_rule(b, "pocket", RULE_EMAIL, family, name);
	say_rule(b, "door", RULE_ANY, any, "staff");
	say_set_rate(b, name, d->scopes != NULL ? d->scopes : "tools:call", "*",
	    "secret__*", d->rate);
	say_set(b, "staff", "manage:edit tools:call", "*", "");
	if (d->home != NULL) {
		say_endpoint(b, "home", d->home);
		say_endpoint(b, "away", "*");
	}
}

/* The newest row; seal NULL: "SEAL". */
static inline void
answer_row(uint64_t serial, const char *document, const char *seal)
{
	struct ipc_hash h;

	sha256(document, strlen(document), &h);
	fake_db_row("ishsst", (int64_t)serial, document, &h, "root",
	    seal != NULL ? seal : "SEAL", wall_us);
	fake_db_answer("document_read");
}

/* Takes all that waits for a peer and is of no interest. */
static inline void
hear_access(struct ipc_peer *peer, struct ipc_gw_access *m)
{
	struct ipc_gw_endpoints before;

	(void)fake_took(peer, IPC_GW_ENDPOINTS, &before);
	(void)fake_took(peer, IPC_GW_ACCESS, m);
}

static inline void
vault_knows(void)
{
	struct ipc_access_check q;
	struct ipc_ok ok = {0};

	(void)fake_took(f.vault, IPC_ACCESS_CHECK, &q);
	fake_answers(f.vault, IPC_OK, &ok);
}

static inline void
check_compiles(const struct said_document *d)
{
	struct ipc_check_access q;
	struct ipc_check_ok ok = {0};
	struct buf b;

	(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
	fields_of(d, &b);
	ok.fields = ipc_bytes(b.p, b.len);
	fake_answers(f.check, IPC_CHECK_OK, &ok);
	buf_free(&b);
}

/* Puts a document into force, from the reading on. */
static inline void
document_holds(const struct said_document *d, uint64_t serial)
{
	struct ipc_gw_access m;
	bool changes = a->access->now != NULL || !d->empty;

	answer_row(serial, "{}", NULL);
	vault_knows();
	check_compiles(d);
	if (!changes)
		return;
	hear_access(f.local, &m);
	hear_access(f.tunnel, &m);
}

/* No run is open. The first time in this process it is asked first by which
 * document an earlier one judged; there was none. */
static inline void
no_runs(void)
{
	if (fake_db_waits("identities_judged") > 0)
		fake_db_answer("identities_judged");
	fake_db_answer("identities_runs");
}

/* The database came up: tokens, withdrawn identities, the document. */
static inline void
database_up(const struct said_document *d)
{
	tokens_db_up(a);
	identities_db_up(a);
	document_db_up(a);
	fake_db_row("nnnnnnnnnbn", 0);
	fake_db_answer("tokens_read");
	fake_db_answer("identities_newest");
	fake_db_answer("identities_withdrawn");
	fake_db_answer("identities_withdrawn_runs");
	if (d == NULL)
		return;
	document_holds(d, SERIAL);
	no_runs();
}

static inline void
rig_start(const struct said_document *d)
{
	struct err err;

	wall_us = UINT64_C(1800000000) * S;
	boot_ms = 1000 * 1000;
	fake_admind(&f, NULL);
	a = f.a;
	assert_int_equal(activity_start(a, &err), 0);
	assert_int_equal(document_start(a, &err), 0);
	assert_int_equal(identities_start(a, &err), 0);
	if (d != NULL)
		database_up(d);
}

static inline int
setup(void **unused)
{
	rig_start(&(struct said_document){0});
	return 0;
}

static inline int
teardown(void **unused)
{
	fake_admind_free(&f, false);
	return 0;
}

/* Lets time pass by both clocks. */
static inline void
passes(uint64_t seconds)
{
	wall_us += seconds * S;
	boot_ms += seconds * 1000;
}

static inline struct ipc_hash
hash_of(uint8_t via, const char *token)
{
	struct ipc_hash h;

	credential_hash(via, token, strlen(token), &h);
	return h;
}

/* admind-check found a token good. Returns the failure. */
static inline enum failure
learn(const char *token, const struct said_claims *said, char *principal)
{
	struct said_claims c = *said;
	struct ipc_hash h;
	struct err err = {0};
	struct buf b;
	uint8_t via = c.issuer != NULL && strcmp(c.issuer, "door") == 0
	    ? VIA_ASSERTION
	    : VIA_AUTHORIZATION;
	int rc;

	h = hash_of(via, token);
	if (c.exp_us == 0)
		c.exp_us = wall_us + 3600 * S;
	buf_init(&b, IPC_FRAME_MAX);
	say_claims(&b, &c);
	rc = identities_learn(a, LISTENER_TUNNEL, via, &h,
	    ipc_bytes(b.p, b.len), principal, &err);
	buf_free(&b);
	snprintf(learn_said, sizeof(learn_said), "%s", rc == 0 ? "" : err.text);
	return rc == 0 ? FAILURE_NONE : err.failure;
}

/* The client of a token in Authorization, at the tunnel. */
static inline enum failure
comes(const char *token, struct auth *who)
{
	struct err err = {0};

	if (auth_principal(a, LISTENER_TUNNEL, VIA_AUTHORIZATION,
		ipc_str(token), ipc_str(""), who, &err) == 0)
		return FAILURE_NONE;
	return err.failure;
}

/* The gateways hear of an end: zero hash (NULL): all of the principal's. */
static inline void
gateways_hear(const struct ipc_hash *h, const char *principal)
{
	static const struct ipc_hash every;
	struct ipc_peer *peers[] = {f.local, f.tunnel};
	struct ipc_credential_ended m;
	struct ipc_ok ok = {0};

	if (h == NULL)
		h = &every;
	for (int i = 0; i < 2; i++) {
		(void)fake_took(peers[i], IPC_CREDENTIAL_ENDED, &m);
		assert_memory_equal(&m.credential, h, sizeof(*h));
		assert_true(ipc_streq(m.principal, principal));
		fake_answers(peers[i], IPC_OK, &ok);
	}
}

static inline void
gateways_hear_nothing(void)
{
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(fake_peer_waits(f.tunnel), 0);
}

/* n people of the issuer door come, each with a token of his own. */
static inline void
flood(int from, int n)
{
	struct said_claims c = {.issuer = "door"};
	char sub[16], token[32];
	struct auth who;
	struct err err;

	for (int i = from; i < from + n; i++) {
		snprintf(sub, sizeof(sub), "g%d", i);
		snprintf(token, sizeof(token), "door.t.%d", i);
		c.sub = sub;
		assert_int_equal(learn(token, &c, who_is), FAILURE_NONE);
		assert_int_equal(
		    auth_principal(a, LISTENER_TUNNEL, VIA_ASSERTION,
			ipc_str(token), ipc_str(""), &who, &err),
		    0);
	}
}

/* Remembers n tokens of a person of the staff. */
static inline void
many(const char *sub, int from, int n)
{
	struct said_claims c = {.sub = sub, .group = {"staff"}};
	char token[32];

	for (int i = from; i < from + n; i++) {
		snprintf(token, sizeof(token), "%s.t.%d", sub, i);
		assert_int_equal(learn(token, &c, who_is), FAILURE_NONE);
	}
}

#endif
