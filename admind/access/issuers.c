/* Finds issuers. See rules.h. */
#include <string.h>

#include "rules.h"
#include "tlv.h"

const struct issuer *
issuers_named(const struct compiled *c, struct ipc_bytes name)
{
	for (unsigned i = 0; c != NULL && i < c->nissuers; i++)
		if (c->issuer[i].name.n == name.n &&
		    memcmp(c->issuer[i].name.p, name.p, name.n) == 0)
			return &c->issuer[i];
	return NULL;
}

static bool
serves(const struct issuer *s, unsigned listener, uint8_t via)
{
	return (s->listeners & 1u << listener) != 0 && s->via == via;
}

bool
issuers_serve(const struct compiled *c, unsigned listener, uint8_t via)
{
	for (unsigned i = 0; c != NULL && i < c->nissuers; i++)
		if (serves(&c->issuer[i], listener, via))
			return true;
	return false;
}

bool
issuers_at(const struct compiled *c, unsigned listener)
{
	return issuers_serve(c, listener, VIA_AUTHORIZATION) ||
	    issuers_serve(c, listener, VIA_ASSERTION);
}

bool
issuers_bind(const struct compiled *c, unsigned listener)
{
	for (unsigned i = 0; c != NULL && i < c->nissuers; i++)
		if (c->issuer[i].bound &&
		    (c->issuer[i].listeners & 1u << listener) != 0)
			return true;
	return false;
}

void
issuers_put(
    const struct compiled *c, unsigned listener, uint8_t via, struct buf *out)
{
	for (unsigned i = 0; c != NULL && i < c->nissuers; i++)
		if (serves(&c->issuer[i], listener, via))
			tlv_put(out, ACCESS_ISSUER, c->issuer[i].record.p,
			    c->issuer[i].record.n);
}

/* Adds without going over the largest number. */
static uint64_t
plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t
issuers_until(const struct issuer *s, const struct claims *c, uint64_t now_us)
{
	uint64_t until = c->exp_us, oldest;

	if (until <= now_us)
		until = plus(until, s->leeway_us);
	if (s->max_age_us > 0) {
		oldest = plus(c->iat_us, s->max_age_us);
		if (oldest <= now_us)
			oldest = plus(oldest, s->leeway_us);
		if (oldest < until)
			until = oldest;
	}
	return until;
}
