/* Decides by the rules of a document. See rules.h. */
#include <string.h>

#include "endpoint.h"
#include "rules.h"
#include "tlv.h"

static bool
same(struct ipc_bytes a, struct ipc_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static uint8_t
lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* Compares without regard to the case of ASCII letters. Other letters are
 * compared as bytes, so a rule never fits more people than its author meant. */
static bool
same_text(struct ipc_bytes a, struct ipc_bytes b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

/* Returns the part after the last @, or nothing. */
static struct ipc_bytes
domain(struct ipc_bytes email)
{
	for (size_t i = email.n; i > 0; i--)
		if (email.p[i - 1] == '@')
			return ipc_bytes(email.p + i, email.n - i);
	return ipc_bytes(NULL, 0);
}

static bool
value_fits(
    enum rule_claim claim, struct ipc_bytes value, const struct claims *c)
{
	switch (claim) {
	case RULE_SUB:
		return same(value, c->sub);
	case RULE_EMAIL:
		return same_text(value, c->email);
	case RULE_EMAIL_DOMAIN:
		return same_text(value, domain(c->email));
	case RULE_CLIENT:
		return same(value, c->client);
	case RULE_GROUP:
		for (unsigned i = 0; i < c->ngroups; i++)
			if (same(value, c->group[i]))
				return true;
		return false;
	default:
		return false;
	}
}

/* No value is empty (compiled.c), so none equals a claim that is missing. */
bool
rules_fit(const struct rule *rule, const struct claims *c)
{
	struct tlv_reader r;
	struct tlv t;

	if (!same(rule->issuer->name, c->issuer))
		return false;
	if (rule->claim == RULE_ANY)
		return true;
	tlv_open(&r, rule->record.p, rule->record.n);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == RULE_VALUE &&
		    value_fits(rule->claim, ipc_bytes(t.p, t.n), c))
			return true;
	return false;
}

const struct access_set *
rules_set(const struct compiled *d, const struct claims *c)
{
	for (unsigned i = 0; d != NULL && i < d->nrules; i++)
		if (rules_fit(&d->rule[i], c))
			return d->rule[i].set;
	return NULL;
}

const struct access_set *
rules_set_named(const struct compiled *d, struct ipc_bytes name)
{
	for (unsigned i = 0; d != NULL && i < d->nsets; i++)
		if (same(d->set[i].name, name))
			return &d->set[i];
	return NULL;
}

struct endpoint *
rules_endpoint(
    const struct compiled *d, struct ipc_bytes name, unsigned listener)
{
	for (unsigned i = 0; d != NULL && i < d->nendpoints; i++)
		if (same(d->endpoint[i]->name, name) &&
		    (d->endpoint[i]->listeners & 1u << listener) != 0)
			return d->endpoint[i];
	return NULL;
}

unsigned
rules_scopes(const struct issuer *s, const struct access_set *set,
    const struct claims *c)
{
	return s->narrows ? set->scopes & c->scopes : set->scopes;
}

/* Returns the next rule of this issuer from *at on, or NULL. */
static const struct rule *
next_of(const struct compiled *d, struct ipc_bytes issuer, unsigned *at)
{
	while (*at < d->nrules) {
		const struct rule *r = &d->rule[(*at)++];

		if (same(r->issuer->name, issuer))
			return r;
	}
	return NULL;
}

static bool
same_rights(const struct access_set *a, const struct access_set *b)
{
	return same(a->name, b->name) && a->scopes == b->scopes &&
	    strcmp(a->allow, b->allow) == 0 && strcmp(a->deny, b->deny) == 0;
}

bool
rules_same(
    const struct compiled *a, const struct compiled *b, struct ipc_bytes issuer)
{
	const struct issuer *x = issuers_named(a, issuer);
	const struct issuer *y = issuers_named(b, issuer);
	const struct rule *r, *q;
	unsigned i = 0, k = 0;

	if (x == NULL || y == NULL || !same(x->record, y->record))
		return false;
	do {
		r = next_of(a, issuer, &i);
		q = next_of(b, issuer, &k);
		if (r == NULL || q == NULL)
			return r == q;
	} while (same(r->record, q->record) && same_rights(r->set, q->set));
	return false;
}
