/* The answers of admind-check to CHECK_ACCESS and CHECK_JWT, as fields. */
#ifndef ACCESS_SAID_H
#define ACCESS_SAID_H

#include <string.h>

#include "access_fields.h"
#include "buf.h"
#include "crypto.h"
#include "endpoint_fields.h"
#include "listener.h"
#include "permit.h"
#include "rules.h"
#include "tlv.h"
#include "unit.h"

enum {
	LOCALLY = 1 << LISTENER_LOCAL,
	REMOTELY = 1 << LISTENER_TUNNEL,
	LEEWAY_S = 60
};

struct said_issuer {
	const char *name, *url;
	unsigned listeners;
	uint8_t via, narrows;
	uint64_t max_age_s;
	const char *key;
	bool bound;
	bool fetched; /* its keys are; the record has no key */
};

static inline void
put_byte(struct buf *b, uint8_t tag, unsigned value)
{
	uint8_t byte = (uint8_t)value;

	tlv_put(b, tag, &byte, 1);
}

static inline void
put_record(struct buf *out, uint8_t tag, struct buf *record)
{
	tlv_put(out, tag, record->p, record->len);
	buf_free(record);
}

static inline void
say_issuer(struct buf *out, const struct said_issuer *s)
{
	struct buf b, key;

	buf_init(&b, IPC_FRAME_MAX);
	buf_init(&key, IPC_FRAME_MAX);
	tlv_puts(&b, ISSUER_NAME, s->name);
	tlv_puts(&b, ISSUER_URL, s->url);
	tlv_puts(&b, ISSUER_AUDIENCE, "https://mcp.example.org/mcp");
	put_byte(&b, ISSUER_ALGORITHM, JWT_ES256);
	put_byte(&b, ISSUER_VIA, s->via);
	put_byte(&b, ISSUER_LISTENERS, s->listeners);
	tlv_put_u64(&b, ISSUER_LEEWAY_S, LEEWAY_S);
	tlv_put_u64(&b, ISSUER_MAX_AGE_S, s->max_age_s);
	put_byte(&b, ISSUER_SCOPES, s->narrows);
	put_byte(&b, ISSUER_BOUND, s->bound);
	tlv_puts(&key, KEY_SPKI, s->key != NULL ? s->key : "KEY");
	if (s->fetched) {
		buf_free(&key);
		tlv_puts(&b, ISSUER_KEYS_URL, s->url);
		put_byte(&b, ISSUER_DISCOVERY, 1);
	} else {
		put_record(&b, ISSUER_KEY, &key);
	}
	put_record(out, ACCESS_ISSUER, &b);
}

/* values: up to three, NULL after the last. */
static inline void
say_rule(struct buf *out, const char *issuer, unsigned claim,
    const char *const values[3], const char *set)
{
	struct buf b;

	buf_init(&b, IPC_FRAME_MAX);
	tlv_puts(&b, RULE_ISSUER, issuer);
	put_byte(&b, RULE_CLAIM, claim);
	for (int i = 0; i < 3 && values[i] != NULL; i++)
		tlv_puts(&b, RULE_VALUE, values[i]);
	tlv_puts(&b, RULE_SET, set);
	put_record(out, ACCESS_RULE, &b);
}

/* scopes, allow, deny: words with a space between two. rate 0: none. */
static inline void
say_set_rate(struct buf *out, const char *name, const char *scopes,
    const char *allow, const char *deny, uint64_t rate)
{
	const char *lists[] = {scopes, allow, deny};
	struct buf b;
	size_t n;

	buf_init(&b, IPC_FRAME_MAX);
	tlv_puts(&b, SET_NAME, name);
	for (int i = 0; i < 3; i++)
		for (const char *p = lists[i]; *p != '\0';
		    p += n + (p[n] == ' ')) {
			n = strcspn(p, " ");
			tlv_put(&b, (uint8_t)(SET_SCOPE + i), p, n);
		}
	if (rate > 0)
		tlv_put_u64(&b, SET_RATE, rate);
	put_record(out, ACCESS_SET, &b);
}

static inline void
say_set(struct buf *out, const char *name, const char *scopes,
    const char *allow, const char *deny)
{
	say_set_rate(out, name, scopes, allow, deny, 0);
}

/* One that serves both listeners, and allows one pattern. */
static inline void
say_endpoint(struct buf *out, const char *name, const char *allow)
{
	struct buf b;

	buf_init(&b, IPC_FRAME_MAX);
	tlv_puts(&b, ENDPOINT_NAME, name);
	tlv_puts(&b, ENDPOINT_ALLOW, allow);
	put_byte(&b, ENDPOINT_LISTENERS, LOCALLY | REMOTELY);
	put_record(out, ACCESS_ENDPOINT, &b);
}

struct said_claims {
	const char *issuer, *sub, *email, *client, *group[3];
	unsigned scopes;
	uint64_t exp_us, iat_us;
	/* the request that it is bound to; method NULL: none */
	const char *method, *url, *body, *id;
	uint64_t session_exp_us; /* 0: not said */
};

static inline void
say_bound(struct buf *out, const struct said_claims *c)
{
	struct ipc_hash h;
	struct buf b;

	buf_init(&b, IPC_FRAME_MAX);
	tlv_puts(&b, BOUND_METHOD, c->method);
	tlv_puts(&b, BOUND_URL, c->url);
	sha256(c->body, strlen(c->body), &h);
	tlv_put(&b, BOUND_BODY, &h, sizeof(h));
	tlv_puts(&b, BOUND_ID, c->id);
	if (c->session_exp_us != 0)
		tlv_put_u64(&b, BOUND_SESSION_EXP_US, c->session_exp_us);
	put_record(out, JWT_BOUND, &b);
}

static inline void
say_claims(struct buf *out, const struct said_claims *c)
{
	tlv_puts(out, JWT_ISSUER, c->issuer != NULL ? c->issuer : "pocket");
	tlv_puts(out, JWT_SUB, c->sub != NULL ? c->sub : "ann");
	if (c->email != NULL)
		tlv_puts(out, JWT_EMAIL, c->email);
	if (c->client != NULL)
		tlv_puts(out, JWT_CLIENT, c->client);
	for (int i = 0; i < 3 && c->group[i] != NULL; i++)
		tlv_puts(out, JWT_GROUP, c->group[i]);
	if (c->scopes != 0)
		put_byte(out, JWT_SCOPES, c->scopes);
	tlv_put_u64(out, JWT_EXP_US, c->exp_us);
	if (c->iat_us != 0)
		tlv_put_u64(out, JWT_IAT_US, c->iat_us);
	if (c->method != NULL)
		say_bound(out, c);
}

static const struct said_issuer pocket = {
    .name = "pocket", .url = "https://id.example.org", .listeners = REMOTELY};

#endif
