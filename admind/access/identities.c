/*
 * The owner of a signed token.
 *
 * admind-check says which claims a token has. Here the rules of the document
 * turn the claims into rights, and the verdict is remembered, so the next
 * request of the same token asks no other process. A verdict is good for
 * FRESH_MS; then the token is checked again. It never outlives the token: the
 * end is kept as a time of the wall clock and as one since boot, and the
 * earlier counts. So a wall clock that is set back makes no verdict live
 * longer. Nor is a token accepted again that was over: tokens are judged by
 * identities_now(), which does not go back.
 *
 * A remembered verdict does not say that its owner may come in now. A withdrawn
 * person, and one whose issuer serves another listener, is refused all the
 * same.
 *
 * The verdict on a token that is bound to one request is not remembered, since
 * no second request may have it (decision 0098). In its place a ticket is
 * remembered, which the requests of one session share. A ticket is good only
 * with VIA_TICKET, and no header gives that: only a gateway that got it in an
 * IDENTITY can show it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "bound.h"
#include "credential_hash.h"
#include "ended.h"
#include "identities.h"
#include "ids.h"
#include "log.h"
#include "replay.h"
#include "tokens.h"

enum {
	FRESH_MS = 5 * 60 * 1000, /* decision 0090 */
	SEEN_TICKS = 5,
	CLOCK_TICKS = 60, /* a warning a minute is enough */
	STALE = 0         /* fresh_boot_ms: perhaps by a key that is gone */
};

int
identities_start(struct admind *a, struct err *err)
{
	struct identities *x = calloc(1, sizeof(*x));

	if (x == NULL || people_init(&x->people) == -1 ||
	    table_init(&x->withdrawn, PEOPLE_CREDENTIALS_MAX) == -1 ||
	    (x->used = replay_new(now_us())) == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	random_bytes(x->ticket_key, sizeof(x->ticket_key));
	a->identities = x;
	return 0;
}

/* ---- time ---- */

uint64_t
identities_now(struct admind *a)
{
	return a->identities == NULL ? now_us()
				     : latest_now(&a->identities->latest);
}

/* ---- finding ---- */

/* Checks that the document and the withdrawn identities are known now. 0, or -1
 * with err. */
static int
ready(struct admind *a, struct err *err)
{
	if (document_ready(a, err) == -1)
		return -1;
	if (a->identities == NULL || !a->identities->ready)
		return err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
	if (a->access->now != NULL && !a->identities->judged)
		return err_set(err, FAILURE_BUSY,
		    "what earlier clients left running is being judged");
	return 0;
}

static bool
over(struct admind *a, const struct credential *c)
{
	return c->until_us <= identities_now(a) ||
	    c->until_boot_ms <= now_boot_ms();
}

bool
identities_unknown(struct admind *a, enum listener listener, uint8_t via,
    struct ipc_bytes credential)
{
	const struct credential *c;
	struct ipc_hash h;
	struct err err;

	if (ready(a, &err) == -1 || credential.n == 0 ||
	    credential.n > JWT_MAX ||
	    !issuers_serve(a->access->now, listener, via))
		return false;
	credential_hash(via, credential.p, credential.n, &h);
	c = people_credential(&a->identities->people, &h);
	return c == NULL || over(a, c) || c->fresh_boot_ms <= now_boot_ms();
}

bool
identities_known(struct admind *a, uint8_t via, struct ipc_bytes credential)
{
	const struct credential *c;
	struct ipc_hash h;

	if (a->identities == NULL)
		return false;
	credential_hash(via, credential.p, credential.n, &h);
	c = people_credential(&a->identities->people, &h);
	return c != NULL && !over(a, c) && c->fresh_boot_ms != STALE;
}

/* Returns the issuer of remembered claims, if it serves this listener. A ticket
 * is of an issuer that binds, whose tokens may come in either header. */
static const struct issuer *
issuer_of(const struct admind *a, const struct claims *claims,
    enum listener listener, uint8_t via)
{
	const struct issuer *s = issuers_named(a->access->now, claims->issuer);

	return s != NULL && (via == VIA_TICKET ? s->bound : s->via == via) &&
		(s->listeners & 1u << listener) != 0
	    ? s
	    : NULL;
}

static int
no_issuer(uint8_t via, struct err *err)
{
	return err_set(err, FAILURE_UNAUTHENTICATED,
	    via == VIA_ASSERTION
		? "no issuer of this listener has the header "
		  "Cf-Access-Jwt-Assertion"
		: "this listener accepts no signed token: use an API token");
}

static int
is_withdrawn(struct err *err)
{
	return err_set(
	    err, FAILURE_FORBIDDEN, "an administrator withdrew this identity");
}

/* Checks that a token may be shown at this endpoint (empty: the whole). Its
 * owner may have consented to an endpoint alone, so the whole is refused. */
static int
is_for(const struct claims *c, struct ipc_bytes endpoint, struct err *err)
{
	if (c->nendpoints == 0)
		return 0;
	for (unsigned i = 0; i < c->nendpoints; i++)
		if (c->endpoint[i].n == endpoint.n &&
		    memcmp(c->endpoint[i].p, endpoint.p, endpoint.n) == 0)
			return 0;
	return err_set(err, FAILURE_UNAUTHENTICATED,
	    "the token is for the endpoint %.*s alone (`aud`)",
	    (int)c->endpoint[0].n, (const char *)c->endpoint[0].p);
}

struct token *
identities_find(struct admind *a, enum listener listener, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint,
    uint64_t *expires_us, struct err *err)
{
	struct credential *c;
	struct claims claims;
	struct ipc_hash h;

	if (ready(a, err) == -1)
		return NULL;
	if (via != VIA_TICKET &&
	    !issuers_serve(a->access->now, listener, via)) {
		no_issuer(via, err);
		return NULL;
	}
	if (credential.n > JWT_MAX) {
		err_set(err, FAILURE_UNAUTHENTICATED,
		    "a signed token has at most %d bytes", JWT_MAX);
		return NULL;
	}
	credential_hash(via, credential.p, credential.n, &h);
	c = people_credential(&a->identities->people, &h);
	if (credential.n == 0) {
		err_set(err, FAILURE_UNAUTHENTICATED, "the token is empty");
		return NULL;
	}
	if (c == NULL && via == VIA_TICKET) {
		/* It was pushed out, or this process is another one. The
		 * client's next request has a new token. */
		err_set(err, FAILURE_UNAUTHENTICATED,
		    "the session of this token is over");
		return NULL;
	}
	if (c == NULL) {
		/* judging.c asks first. This token was pushed out since. */
		err_set(err, FAILURE_BUSY, "the token must be checked again");
		return NULL;
	}
	if (over(a, c)) {
		err_set(
		    err, FAILURE_UNAUTHENTICATED, "the token's time is over");
		return NULL;
	}
	if (claims_read(&claims, ipc_bytes(c->claims.p, c->claims.len), err) ==
	    -1)
		return NULL;
	if (issuer_of(a, &claims, listener, via) == NULL) {
		no_issuer(via, err);
		return NULL;
	}
	if (is_for(&claims, endpoint, err) == -1)
		return NULL;
	if (identities_withdrawn(a, c->person->principal)) {
		is_withdrawn(err);
		return NULL;
	}
	c->person->used_us = now_us();
	c->person->used_by = listener;
	people_came(c->person);
	*expires_us = c->until_us;
	return c->rights->token;
}

struct token *
identities_of_set(
    struct admind *a, enum listener listener, struct ipc_bytes set)
{
	struct person *x;
	struct rights *r;
	struct err err;

	if ((listener != LISTENER_LOCAL && listener != LISTENER_TUNNEL) ||
	    ready(a, &err) == -1)
		return NULL;
	LIST_FOREACH(x, &a->identities->people.all, entry)
		LIST_FOREACH(r, &x->rights, entry)
			if ((r->token->listeners & 1u << listener) != 0 &&
			    r->credentials > 0 &&
			    ipc_streq(set, r->token->set[listener]))
				return r->token;
	return NULL;
}

void
identities_renamed(struct admind *a)
{
	struct person *x;
	struct rights *r;

	if (a->identities == NULL)
		return;
	LIST_FOREACH(x, &a->identities->people.all, entry)
		LIST_FOREACH(r, &x->rights, entry)
			tokens_name_set(a, r->token);
}

/* ---- verdicts ---- */

static void
name_person(char *principal, const struct issuer *s, const struct claims *c)
{
	snprintf(principal, PRINCIPAL_MAX + 1, "oidc:%.*s:%.*s", (int)s->name.n,
	    (const char *)s->name.p, (int)c->sub.n, (const char *)c->sub.p);
}

/* Copies a short text of the document or of the claims. */
static void
keep(char *out, size_t size, struct ipc_bytes text)
{
	size_t n = text.n < size ? text.n : 0;

	memcpy(out, n > 0 ? (const char *)text.p : "", n);
	out[n] = '\0';
}

static void
set_times(struct admind *a, struct credential *c, uint64_t until_us)
{
	uint64_t now = identities_now(a), boot = now_boot_ms();
	uint64_t left = until_us > now ? (until_us - now) / 1000 : 0;

	c->until_us = until_us;
	c->until_boot_ms = boot + left;
	c->fresh_boot_ms = boot + FRESH_MS;
}

/*
 * Finds or makes a person. An issuer's people without tokens stay for moments
 * only, until their last use is stored. If they fill the issuer's part, they
 * are stored and freed now, so no note is lost. If the part is full even then,
 * its people have work under way. Then a new person of this issuer is told to
 * come again; people of other issuers have parts of their own.
 */
static struct person *
make_person(struct admind *a, const char *principal, struct err *err)
{
	struct people *all = &a->identities->people;
	struct person *x = people_make(all, principal);

	if (x == NULL && people_full(all, principal)) {
		identities_seen_store(a);
		identities_tidy(a);
		x = people_make(all, principal);
	}
	if (x == NULL)
		err_set(err, FAILURE_BUSY,
		    people_full(all, principal)
			? "too many people of this issuer are served now"
			: "out of memory");
	return x;
}

struct rights *
identities_rights(struct admind *a, struct person *x, const struct issuer *s,
    const struct access_set *set, const struct claims *claims)
{
	struct token_of of = {.scopes = s->narrows ? set->scopes : 0,
	    .per_minute = set->per_minute};
	struct rights *r;
	bool made;

	keep(of.name, sizeof(of.name), set->name);
	r = people_rights(x, rules_scopes(s, set, claims), set->allow,
	    set->deny, s->listeners, &of, &made);
	if (r != NULL && made)
		tokens_name_set(a, r->token);
	return r;
}

static int
remember(struct admind *a, const struct issuer *s, const struct access_set *set,
    const struct claims *claims, const struct ipc_hash *h,
    struct ipc_bytes fields, const char *principal, struct err *err)
{
	struct people *all = &a->identities->people;
	struct person *x = make_person(a, principal, err);
	struct credential *c = NULL;
	struct rights *r;

	if (x == NULL)
		return -1;
	r = identities_rights(a, x, s, set, claims);
	if (r != NULL)
		c = people_remember(all, x, r, h, fields);
	if (c == NULL)
		return err_set(err, FAILURE_BUSY, "out of memory");
	set_times(a, c, issuers_until(s, claims, identities_now(a)));
	keep(x->issuer, sizeof(x->issuer), s->name);
	keep(x->set, sizeof(x->set), set->name);
	keep(x->email, sizeof(x->email), claims->email);
	return 0;
}

/* Returns whether all rows that the issuer of this principal may have are of
 * withdrawn people. A withdrawal is never forgotten, so another person's row
 * finds no room. */
static bool
is_full(struct admind *a, const char *principal)
{
	const struct part *part =
	    people_part(&a->identities->people, principal);

	return part != NULL && part->withdrawn >= IDENTITIES_ISSUER_MAX;
}

int
identities_learn(struct admind *a, enum listener listener, uint8_t via,
    const struct ipc_hash *h, struct ipc_bytes fields, char *principal,
    struct err *err)
{
	const struct access_set *set;
	const struct issuer *s;
	struct claims claims;

	principal[0] = '\0';
	if (ready(a, err) == -1 || claims_read(&claims, fields, err) == -1)
		return -1;
	s = issuer_of(a, &claims, listener, via);
	if (s == NULL)
		return no_issuer(via, err);
	name_person(principal, s, &claims);
	if (identities_withdrawn(a, principal))
		return is_withdrawn(err);
	if (is_full(a, principal))
		return err_set(err, FAILURE_FORBIDDEN,
		    "%d people of this issuer are withdrawn, which is the "
		    "limit: an administrator takes them out of the rules, then "
		    "restores them",
		    IDENTITIES_ISSUER_MAX);
	set = rules_set(a->access->now, &claims);
	if (set == NULL)
		return err_set(err, FAILURE_FORBIDDEN,
		    "no rule of the access document fits this identity");
	if (s->bound)
		return 0;
	return remember(a, s, set, &claims, h, fields, principal, err);
}

/* ---- tokens that are bound to one request ---- */

bool
identities_bound(struct admind *a, struct ipc_bytes fields)
{
	const struct issuer *s;
	struct claims claims;
	struct err err;

	if (claims_read(&claims, fields, &err) == -1)
		return false;
	s = issuers_named(a->access->now, claims.issuer);
	return s != NULL && s->bound;
}

/* Uses the token up. 0, or -1 with err. */
static int
use(struct admind *a, const struct issuer *s, const struct claims *c,
    const struct bound *b, struct err *err)
{
	struct replay_token t = {.issuer = s->name,
	    .id = b->id,
	    .iat_us = c->iat_us,
	    .leeway_us = s->leeway_us,
	    .until_us = c->exp_us + s->leeway_us};

	switch (replay_use(a->identities->used, &t, identities_now(a))) {
	case REPLAY_NEW:
		return 0;
	case REPLAY_USED:
		return err_set(err, FAILURE_UNAUTHENTICATED,
		    "the token was used already: each request needs its own "
		    "(`jti`)");
	case REPLAY_PAST:
		return err_set(err, FAILURE_UNAUTHENTICATED,
		    "the token is expired: get a new one");
	case REPLAY_EARLY:
		/* Not UNAUTHENTICATED: its client did nothing wrong. */
		return err_set(err, FAILURE_BUSY,
		    "the token was made before this server started: send the "
		    "request again with a new token");
	default:
		return err_set(err, FAILURE_BUSY,
		    "too many requests of this issuer's people in a minute");
	}
}

/* Returns when a session ends that this token brings. */
static uint64_t
session_end(struct admind *a, const struct issuer *s, const struct claims *c,
    const struct bound *b)
{
	uint64_t now = identities_now(a);
	uint64_t last = now + (uint64_t)BOUND_SESSION_MAX_S * 1000 * 1000;
	uint64_t end = b->session_exp_us;

	if (end == 0)
		end = c->exp_us > now ? c->exp_us : c->exp_us + s->leeway_us;
	return end < last ? end : last;
}

/*
 * The rules and the withdrawal were judged a moment ago (identities_learn).
 * Comparing comes before using: a thief of the token can't use it up for
 * its owner by a request that it does not fit.
 */
int
identities_admit(struct admind *a, struct ipc_bytes fields,
    const struct bound_request *rq, struct ipc_bytes endpoint, char *ticket,
    struct err *err)
{
	const struct compiled *d = a->access->now;
	const struct access_set *set;
	const struct issuer *s;
	char principal[PRINCIPAL_MAX + 1];
	struct credential *c;
	struct claims claims;
	struct ipc_hash h;
	struct bound b;
	struct buf session, all;
	int rc = -1;

	buf_init(&session, IPC_FRAME_MAX);
	buf_init(&all, IPC_FRAME_MAX);
	if (claims_read(&claims, fields, err) == -1 ||
	    is_for(&claims, endpoint, err) == -1 ||
	    bound_read(&b, claims.bound, err) == -1)
		goto out;
	buf_put(&all, fields.p, fields.n);
	if (endpoint.n > 0 && claims.nendpoints == 0)
		tlv_put(&all, JWT_ENDPOINT, endpoint.p, endpoint.n);
	if (all.failed) {
		err_set(err, FAILURE_BUSY, "out of memory");
		goto out;
	}
	s = issuers_named(d, claims.issuer);
	set = rules_set(d, &claims);
	if (s == NULL || set == NULL) {
		err_set(err, FAILURE_BUSY, "the token must be checked again");
		goto out;
	}
	if (bound_compare(&b, d->resource, rq, err) == -1 ||
	    use(a, s, &claims, &b, err) == -1)
		goto out;
	if (bound_session(ipc_bytes(all.p, all.len),
		b.session_exp_us != 0 ? b.session_exp_us : claims.exp_us,
		&session) == -1) {
		err_set(err, FAILURE_BUSY, "out of memory");
		goto out;
	}
	bound_ticket(a->identities->ticket_key,
	    ipc_bytes(session.p, session.len), ticket);
	credential_hash(VIA_TICKET, ticket, strlen(ticket), &h);
	name_person(principal, s, &claims);
	if (people_credential(&a->identities->people, &h) == NULL &&
	    remember(a, s, set, &claims, &h, ipc_bytes(session.p, session.len),
		principal, err) == -1)
		goto out;
	c = people_credential(&a->identities->people, &h);
	set_times(a, c, session_end(a, s, &claims, &b));
	c->fresh_boot_ms = c->until_boot_ms; /* nothing checks a ticket again */
	rc = 0;
out:
	buf_free(&session);
	buf_free(&all);
	return rc;
}

/* Forgets a token whose time is over. Its streams and waiting calls end; its
 * calls under way, and its tasks, belong to the principal and go on. */
static void
end_time(struct admind *a, struct credential *c)
{
	struct ipc_hash h = c->hash;

	people_forget(&a->identities->people, c);
	ended_tell(a, &h, "", NULL, NULL);
}

void
identities_refused(struct admind *a, enum listener listener, uint8_t via,
    const struct ipc_hash *h)
{
	struct credential *c = people_credential(&a->identities->people, h);
	struct claims claims;
	struct err err;

	if (c != NULL &&
	    (claims_read(
		 &claims, ipc_bytes(c->claims.p, c->claims.len), &err) == -1 ||
		issuer_of(a, &claims, listener, via) != NULL))
		end_time(a, c);
}

void
identities_stale(struct admind *a, const char *issuer)
{
	struct credential *c;
	struct person *x;

	if (a->identities == NULL)
		return;
	LIST_FOREACH(x, &a->identities->people.all, entry)
		if (strcmp(x->issuer, issuer) == 0)
			TAILQ_FOREACH(c, &x->credentials, entry)
				c->fresh_boot_ms = STALE;
}

/* ---- once a second ---- */

void
identities_tick(struct admind *a)
{
	struct credential *c, *after;
	struct person *x;

	if (a->identities == NULL)
		return;
	replay_tick(a->identities->used, identities_now(a));
	if (a->ticks % CLOCK_TICKS == 0)
		latest_look(&a->identities->latest);
	LIST_FOREACH(x, &a->identities->people.all, entry)
		for (c = TAILQ_FIRST(&x->credentials); c != NULL; c = after) {
			after = TAILQ_NEXT(c, entry);
			if (over(a, c))
				end_time(a, c);
		}
	if (a->ticks % SEEN_TICKS == 0 && db_is_up(a->db))
		identities_seen_store(a);
	identities_tidy(a);
}
