/*
 * The owner of a signed token.
 *
 * admind-check says which claims a token has. Here the rules of the document
 * turn the claims into rights, and the verdict is remembered, so the next
 * request of the same token asks no other process. A verdict is good for
 * FRESH_MS; then the token is checked again. It never outlives the token: the
 * end is kept as a time of the wall clock and as one since boot, and the
 * earlier counts. So a wall clock that is set back makes no verdict live
 * longer.
 *
 * A remembered verdict does not say that its owner may come in now. A withdrawn
 * person, and one whose issuer serves another listener, is refused all the
 * same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "credential_hash.h"
#include "ended.h"
#include "identities.h"
#include "ids.h"
#include "log.h"
#include "tokens.h"

enum {
	FRESH_MS = 5 * 60 * 1000, /* decision 0090 */
	SEEN_TICKS = 5
};

int
identities_start(struct admind *a, struct err *err)
{
	struct identities *x = calloc(1, sizeof(*x));

	if (x == NULL || people_init(&x->people) == -1 ||
	    table_init(&x->withdrawn, PEOPLE_CREDENTIALS_MAX) == -1)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	a->identities = x;
	return 0;
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
	return 0;
}

static bool
over(const struct credential *c)
{
	return c->until_us <= now_us() || c->until_boot_ms <= now_boot_ms();
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
	return c == NULL || over(c) || c->fresh_boot_ms <= now_boot_ms();
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
	return c != NULL && !over(c);
}

/* Returns the issuer of remembered claims, if it serves this listener. */
static const struct issuer *
issuer_of(const struct admind *a, const struct claims *claims,
    enum listener listener, uint8_t via)
{
	const struct issuer *s = issuers_named(a->access->now, claims->issuer);

	return s != NULL && s->via == via &&
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

struct token *
identities_find(struct admind *a, enum listener listener, uint8_t via,
    struct ipc_bytes credential, uint64_t *expires_us, struct err *err)
{
	struct credential *c;
	struct claims claims;
	struct ipc_hash h;

	if (ready(a, err) == -1)
		return NULL;
	if (!issuers_serve(a->access->now, listener, via)) {
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
	if (c == NULL) {
		/* judging.c asks first. This token was pushed out since. */
		err_set(err, FAILURE_BUSY, "the token must be checked again");
		return NULL;
	}
	if (over(c)) {
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
	if (identities_withdrawn(a, c->person->principal)) {
		is_withdrawn(err);
		return NULL;
	}
	c->person->used_us = now_us();
	c->person->used_by = listener;
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

/* Copies a short text of the document or of the claims. */
static void
keep(char *out, size_t size, struct ipc_bytes text)
{
	size_t n = text.n < size ? text.n : 0;

	memcpy(out, n > 0 ? (const char *)text.p : "", n);
	out[n] = '\0';
}

static void
set_times(struct credential *c, uint64_t until_us)
{
	uint64_t now = now_us(), boot = now_boot_ms();
	uint64_t left = until_us > now ? (until_us - now) / 1000 : 0;

	c->until_us = until_us;
	c->until_boot_ms = boot + left;
	c->fresh_boot_ms = boot + FRESH_MS;
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
	struct person *x = people_make(all, principal);
	struct credential *c = NULL;
	struct rights *r = NULL;

	if (x != NULL)
		r = identities_rights(a, x, s, set, claims);
	if (r != NULL)
		c = people_remember(all, x, r, h, fields);
	if (c == NULL)
		return err_set(err, FAILURE_BUSY, "out of memory");
	set_times(c, issuers_until(s, claims, now_us()));
	keep(x->issuer, sizeof(x->issuer), s->name);
	keep(x->set, sizeof(x->set), set->name);
	keep(x->email, sizeof(x->email), claims->email);
	return 0;
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
	snprintf(principal, PRINCIPAL_MAX + 1, "oidc:%.*s:%.*s", (int)s->name.n,
	    (const char *)s->name.p, (int)claims.sub.n,
	    (const char *)claims.sub.p);
	if (identities_withdrawn(a, principal))
		return is_withdrawn(err);
	set = rules_set(a->access->now, &claims);
	if (set == NULL)
		return err_set(err, FAILURE_FORBIDDEN,
		    "no rule of the access document fits this identity");
	return remember(a, s, set, &claims, h, fields, principal, err);
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

/* ---- time ---- */

void
identities_tick(struct admind *a)
{
	struct credential *c, *after;
	struct person *x;

	if (a->identities == NULL)
		return;
	LIST_FOREACH(x, &a->identities->people.all, entry)
		for (c = TAILQ_FIRST(&x->credentials); c != NULL; c = after) {
			after = TAILQ_NEXT(c, entry);
			if (over(c))
				end_time(a, c);
		}
	if (a->ticks % SEEN_TICKS == 0 && db_is_up(a->db))
		identities_seen_store(a);
	people_tidy(&a->identities->people);
}
