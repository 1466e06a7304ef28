#include <string.h>
#include <strings.h>

#include "access_form.h"
#include "access_issuer.h"
#include "access_key.h"
#include "access_source.h"
#include "bounds.h"
#include "bytes.h"
#include "ipc_values.h"
#include "jwt_key.h"
#include "tlv.h"

enum {
	LEEWAY_MAX_S = 300, /* clocks that differ by more are wrong */
	LEEWAY_S = 60,
	/* The same for a bound issuer. After a start its people wait so long,
	 * because a token of before could have been used (decision 0098). */
	LEEWAY_BOUND_S = 5,
	AGE_MIN_S = 60,     /* less than the leeway would refuse each token */
	AGE_MAX_S = 86400,  /* as long as a token may live */
	TYPES_MAX = 8,      /* two are usual */
	ALGORITHMS_MAX = 5, /* two names of EdDSA */
	LISTENERS_MAX = 2,
	/* Keys that are not there yet may be of each. */
	ALL_ALGORITHMS =
	    1 << JWT_RS256 | 1 << JWT_PS256 | 1 << JWT_ES256 | 1 << JWT_EDDSA,
	/* Bytes of a record: 16 keys, 64 clients, 8 audiences. */
	RECORD_MAX = 64 * 1024
};

static const struct access_member members[] = {{"name", true}, {"issuer", true},
    {"audiences", false}, {"algorithms", false}, {"header", false},
    {"listeners", false}, {"leeway_seconds", false}, {"max_age_seconds", false},
    {"types", false}, {"email", false}, {"clients", false}, {"scopes", false},
    {"id_tokens", false}, {"bound", false}, {"jwks", false},
    {"jwks_url", false}, {"discovery", false}, {"key_hosts", false},
    {"sign_in", false}, {NULL, false}};

static const char *
form_algorithm(const uint8_t *p, size_t n)
{
	return jwt_algorithm(ipc_bytes(p, n)) != 0
	    ? NULL
	    : "must be RS256, PS256, ES256 or EdDSA";
}

static const char *
form_listener(const uint8_t *p, size_t n)
{
	struct ipc_bytes s = ipc_bytes(p, n);

	return ipc_streq(s, "local") || ipc_streq(s, "tunnel")
	    ? NULL
	    : "must be \"local\" or \"tunnel\"";
}

/* Tells whether a text is the address of this endpoint, resource/NAME, one
 * slash at the end apart. */
static bool
is_address(const struct doc_node *text, const struct doc_node *resource,
    const struct doc_node *name)
{
	uint32_t n = text->len;

	if (n > 0 && text->str[n - 1] == '/')
		n--;
	return n == resource->len + 1 + name->len &&
	    memcmp(text->str, resource->str, resource->len) == 0 &&
	    text->str[resource->len] == '/' &&
	    memcmp(text->str + resource->len + 1, name->str, name->len) == 0;
}

/*
 * Reports audiences that are an endpoint's address. A token with an audience of
 * its issuer is good everywhere, and one for an endpoint must be good there
 * alone (jwt_claims.c).
 */
static void
no_endpoint(struct access_doc *a, const struct access_at *at,
    const struct access_at *resource, const struct access_at *endpoints)
{
	const struct doc_node *name;
	struct access_at one;

	if (resource->v == NULL || resource->v->kind != DOC_STRING ||
	    endpoints->v == NULL || endpoints->v->kind != DOC_ARRAY)
		return;
	for (uint32_t i = 0; i < at->v->count; i++) {
		one = access_entry(a, at, i);
		for (uint32_t k = 0; k < endpoints->v->count; k++) {
			name = doc_get(
			    a->d, doc_kid(a->d, endpoints->v, k), "name");
			if (name != NULL && name->kind == DOC_STRING &&
			    is_address(one.v, resource->v, name))
				access_fault(a, &one,
				    "leave it out: tokens for an endpoint are "
				    "known by its address");
		}
	}
}

static void
audiences(struct access_doc *a, const struct access_at *at,
    const struct access_at *resource, const struct access_at *endpoints,
    struct buf *record)
{
	static const struct access_list list = {1, ACCESS_AUDIENCES_MAX,
	    access_form_audience,
	    "must have an entry: leave it out for the resource alone"};

	if (at->v == NULL) {
		if (resource->v != NULL && resource->v->kind == DOC_STRING)
			tlv_put(record, ISSUER_AUDIENCE, resource->v->str,
			    resource->v->len);
	} else if (access_texts(a, at, &list)) {
		access_put_texts(a, at, record, ISSUER_AUDIENCE);
		no_endpoint(a, at, resource, endpoints);
	}
}

/* Puts the algorithms. fit: mask of those that a key has. */
static void
algorithms(struct access_doc *a, const struct access_at *at, unsigned fit,
    struct buf *record)
{
	static const struct access_list list = {1, ALGORITHMS_MAX,
	    form_algorithm,
	    "must have an entry: leave it out for all that fit a key"};
	unsigned mask = fit;

	if (at->v != NULL) {
		if (!access_texts(a, at, &list))
			return;
		mask = 0;
		for (uint32_t i = 0; i < at->v->count; i++) {
			struct access_at one = access_entry(a, at, i);
			unsigned bit = 1u
			    << jwt_algorithm(ipc_bytes(one.v->str, one.v->len));

			/* Keys that are wrong were reported already. */
			if (fit != 0 && (fit & bit) == 0)
				access_fault(
				    a, &one, "fits no key of this issuer");
			mask |= bit;
		}
	}
	for (unsigned i = JWT_RS256; i <= JWT_EDDSA; i++)
		if ((mask & 1u << i) != 0)
			access_put_u8(record, ISSUER_ALGORITHM, i);
}

static void
listeners(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	static const struct access_list list = {1, LISTENERS_MAX, form_listener,
	    "must have an entry: leave it out for the tunnel alone"};
	unsigned mask = 0;

	if (at->v == NULL)
		mask = 1u << LISTENER_TUNNEL;
	else if (access_texts(a, at, &list))
		for (uint32_t i = 0; i < at->v->count; i++)
			mask |= 1u << (doc_is(doc_kid(a->d, at->v, i), "local")
					? LISTENER_LOCAL
					: LISTENER_TUNNEL);
	access_put_u8(record, ISSUER_LISTENERS, mask);
}

/* Puts a `typ` in lower case and without "application/". */
static void
put_type(struct buf *record, const uint8_t *p, size_t n)
{
	static const char prefix[] = "application/";
	struct buf lower;

	if (n >= sizeof(prefix) - 1 &&
	    strncasecmp((const char *)p, prefix, sizeof(prefix) - 1) == 0) {
		p += sizeof(prefix) - 1;
		n -= sizeof(prefix) - 1;
	}
	buf_init(&lower, ACCESS_VALUE_MAX);
	for (size_t i = 0; i < n; i++)
		buf_putc(
		    &lower, p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 0x20 : p[i]);
	if (lower.failed)
		record->failed = true;
	tlv_put(record, ISSUER_TYPE, lower.p, lower.len);
	buf_free(&lower);
}

static void
types(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	static const struct access_list list = {1, TYPES_MAX, access_form_type,
	    "must have an entry: leave it out for at+jwt and jwt, or give "
	    "\"\" for tokens without `typ`"};

	if (at->v == NULL) {
		tlv_puts(record, ISSUER_TYPE, "at+jwt");
		tlv_puts(record, ISSUER_TYPE, "jwt");
	} else if (access_texts(a, at, &list)) {
		for (uint32_t i = 0; i < at->v->count; i++) {
			const struct doc_node *v = doc_kid(a->d, at->v, i);

			put_type(record, v->str, v->len);
		}
	}
}

static void
clients(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	static const struct access_list list = {1, ACCESS_CLIENTS_MAX,
	    access_form_value,
	    "must have an entry: leave it out for any client"};

	if (at->v != NULL && access_texts(a, at, &list))
		access_put_texts(a, at, record, ISSUER_CLIENT);
}

static uint64_t
max_age(struct access_doc *a, const struct access_at *at)
{
	uint64_t s = access_number(a, at, AGE_MAX_S, 0);

	if (s > 0 && s < AGE_MIN_S)
		access_fault(
		    a, at, "must be 0 (not asked) or 60 to 86400 seconds");
	return s;
}

void
access_issuer_read(struct access_doc *a, const struct access_at *issuer,
    const struct access_at *resource, const struct access_at *endpoints)
{
	static const char *const headers[] = {
	    "authorization", "cf-access-jwt-assertion", NULL};
	static const char *const emails[] = {"verified", "trusted", NULL};
	static const char *const scopes[] = {"rules", "token", NULL};
	struct access_at at, source;
	struct buf record, keys;
	unsigned fit;
	bool bound;

	if (!access_object(a, issuer, members))
		return;
	buf_init(&record, RECORD_MAX);
	buf_init(&keys, RECORD_MAX);
	at = access_get(a, issuer, "name");
	if (access_text(a, &at, access_form_name))
		tlv_put(&record, ISSUER_NAME, at.v->str, at.v->len);
	at = access_get(a, issuer, "issuer");
	if (access_text(a, &at, access_form_issuer))
		tlv_put(&record, ISSUER_URL, at.v->str, at.v->len);
	at = access_get(a, issuer, "audiences");
	audiences(a, &at, resource, endpoints, &record);
	source = access_get(a, issuer, "jwks");
	fit = access_key_set(a, &source, &keys);
	at = access_get(a, issuer, "algorithms");
	if (access_source_read(a, issuer, &record))
		fit = at.v == NULL ? ALL_ALGORITHMS : 0;
	algorithms(a, &at, fit, &record);
	at = access_get(a, issuer, "header");
	access_put_u8(&record, ISSUER_VIA,
	    access_word(a, &at, headers, VIA_AUTHORIZATION));
	at = access_get(a, issuer, "listeners");
	listeners(a, &at, &record);
	at = access_get(a, issuer, "bound");
	bound = access_bool(a, &at);
	at = access_get(a, issuer, "leeway_seconds");
	tlv_put_u64(&record, ISSUER_LEEWAY_S,
	    access_number(
		a, &at, LEEWAY_MAX_S, bound ? LEEWAY_BOUND_S : LEEWAY_S));
	at = access_get(a, issuer, "max_age_seconds");
	tlv_put_u64(&record, ISSUER_MAX_AGE_S, max_age(a, &at));
	at = access_get(a, issuer, "types");
	types(a, &at, &record);
	at = access_get(a, issuer, "email");
	access_put_u8(&record, ISSUER_EMAIL, access_word(a, &at, emails, 0));
	at = access_get(a, issuer, "clients");
	clients(a, &at, &record);
	at = access_get(a, issuer, "scopes");
	access_put_u8(&record, ISSUER_SCOPES, access_word(a, &at, scopes, 0));
	at = access_get(a, issuer, "id_tokens");
	access_put_u8(&record, ISSUER_ID_TOKENS, access_bool(a, &at));
	access_put_u8(&record, ISSUER_BOUND, bound);
	buf_put(&record, keys.p, keys.len);
	if (keys.failed)
		record.failed = true;
	buf_free(&keys);
	access_put_record(a, ACCESS_ISSUER, &record);
}
