/* Finds issuers. See rules.h. */
#include <string.h>

#include "bounds.h"
#include "endpoint.h"
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

/* Returns whether an issuer's tokens are for the resource as a whole. */
static bool
is_for_resource(const struct compiled *c, const struct issuer *s)
{
	struct tlv_reader r;
	struct tlv t;

	tlv_open(&r, s->record.p, s->record.n);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == ISSUER_AUDIENCE && t.n == c->resource.n &&
		    memcmp(t.p, c->resource.p, t.n) == 0)
			return true;
	return false;
}

/* Appends the addresses of the endpoints, as further audiences. An issuer whose
 * audiences the administrator listed without the resource makes tokens for
 * these alone. */
static void
put_endpoints(const struct compiled *c, const struct issuer *s, struct buf *out)
{
	struct buf url;

	if (c->nendpoints == 0 || !is_for_resource(c, s))
		return;
	buf_init(&url, ACCESS_URL_MAX + 1 + ACCESS_NAME_MAX);
	for (unsigned i = 0; i < c->nendpoints; i++) {
		buf_clear(&url);
		buf_put(&url, c->resource.p, c->resource.n);
		buf_putc(&url, '/');
		buf_put(&url, c->endpoint[i]->name.p, c->endpoint[i]->name.n);
		tlv_put(out, ISSUER_ENDPOINT, url.p, url.len);
	}
	if (url.failed)
		out->failed = true;
	buf_free(&url);
}

void
issuers_put(const struct compiled *c, const struct keysets *keysets,
    uint64_t now_ms, unsigned listener, uint8_t via, struct buf *out)
{
	struct buf record;

	buf_init(&record, IPC_BLOB_MAX);
	for (unsigned i = 0; c != NULL && i < c->nissuers; i++) {
		const struct issuer *s = &c->issuer[i];

		if (!serves(s, listener, via))
			continue;
		buf_clear(&record);
		buf_put(&record, s->record.p, s->record.n);
		if (s->fetched)
			keysets_put(keysets, s->name, now_ms, &record);
		put_endpoints(c, s, &record);
		tlv_put(out, ACCESS_ISSUER, record.p, record.len);
	}
	if (record.failed)
		out->failed = true;
	buf_free(&record);
}

/* Appends the fields that say where an issuer's keys come from. */
static void
put_source(const struct issuer *s, struct buf *out)
{
	struct tlv_reader r;
	struct tlv t;

	tlv_open(&r, s->record.p, s->record.n);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == ISSUER_URL || t.tag == ISSUER_KEYS_URL ||
		    t.tag == ISSUER_DISCOVERY || t.tag == ISSUER_KEYS_HOST)
			tlv_put(out, t.tag, t.p, t.n);
}

void
issuers_follow(const struct compiled *c, struct keysets *keysets)
{
	struct keysets_source list[ACCESS_ISSUERS_MAX] = {0};
	struct buf source[ACCESS_ISSUERS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; c != NULL && i < c->nissuers; i++) {
		if (!c->issuer[i].fetched)
			continue;
		buf_init(&source[n], IPC_FRAME_MAX);
		put_source(&c->issuer[i], &source[n]);
		list[n].name = c->issuer[i].name;
		list[n].source = ipc_bytes(source[n].p, source[n].len);
		n++;
	}
	keysets_follow(keysets, list, n);
	for (unsigned i = 0; i < n; i++)
		buf_free(&source[i]);
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
