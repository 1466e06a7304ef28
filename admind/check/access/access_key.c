/*
 * Security argument.
 *
 * These keys decide whose signatures count. An administrator pastes them from
 * his issuer, and may paste too much: a private key, an HMAC secret, a key for
 * encryption. Each of these is refused with its place, so that it does not end
 * in a database. Each key is written again from its numbers (jwt_key.c), so no
 * other bytes of the document reach libcrypto's parsers. Certificates and their
 * thumbprints (x5c, x5t) mean nothing here and are left out.
 */
#include <string.h>

#include "access_form.h"
#include "access_key.h"
#include "bounds.h"
#include "ids.h"
#include "jwt_key.h"
#include "tlv.h"

enum {
	NUMBER_MAX = JWT_RSA_BITS_MAX / 8 + 1, /* bytes; perhaps a zero first */
	RECORD_MAX = JWT_SPKI_MAX + 512 /* bytes: key, kid, their heads */
};

/* A number of a key. */
struct number {
	uint8_t bytes[NUMBER_MAX];
	size_t n;
};

static struct ipc_bytes
number(const struct number *v)
{
	return ipc_bytes(v->bytes, v->n);
}

/* Reads a member that is base64url. Returns false if it is not, which is
 * reported. */
static bool
get_number(struct access_doc *a, const struct access_at *key, const char *name,
    struct number *out)
{
	struct access_at at = access_get(a, key, name);
	long n;

	if (at.v == NULL || at.v->kind != DOC_STRING) {
		report_add(
		    a->r, &key->path, "must have \"%s\", a string", name);
		return false;
	}
	if (at.v->len > (sizeof(out->bytes) * 4 + 2) / 3) {
		access_fault(a, &at, "is longer than that of a 4096-bit key");
		return false;
	}
	n = b64url_decode((const char *)at.v->str, at.v->len, out->bytes);
	if (n <= 0) {
		access_fault(a, &at, "must be base64url without padding");
		return false;
	}
	out->n = (size_t)n;
	return true;
}

/* Reads two members, the second also if the first is wrong, so that both faults
 * are told. */
static bool
get_two(struct access_doc *a, const struct access_at *key, const char *first,
    struct number *x, const char *second, struct number *y)
{
	bool good = get_number(a, key, first, x);

	return get_number(a, key, second, y) && good;
}

/* Reports members that no public key has. */
static bool
is_public(struct access_doc *a, const struct access_at *key)
{
	static const char *const secret[] = {
	    "d", "p", "q", "dp", "dq", "qi", "oth", "k"};
	bool good = true;

	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
		struct access_at at = access_get(a, key, secret[i]);

		if (at.v == NULL)
			continue;
		access_fault(a, &at,
		    "is private: give the public key alone, and replace this "
		    "key at its issuer, since it was shown");
		good = false;
	}
	return good;
}

/* Checks `use` and `key_ops` (RFC 7517 sections 4.2 and 4.3). */
static void
purpose(struct access_doc *a, const struct access_at *key)
{
	struct access_at use = access_get(a, key, "use");
	struct access_at ops = access_get(a, key, "key_ops");
	bool verify = false;

	if (use.v != NULL && doc_is(use.v, "enc"))
		access_fault(a, &use,
		    "is \"enc\": a key for encryption signs no tokens, leave "
		    "it out");
	else if (use.v != NULL && !doc_is(use.v, "sig"))
		access_fault(a, &use, "must be \"sig\" or absent");
	if (ops.v == NULL)
		return;
	for (uint32_t i = 0; ops.v->kind == DOC_ARRAY && i < ops.v->count; i++)
		verify = verify || doc_is(doc_kid(a->d, ops.v, i), "verify");
	if (!verify)
		access_fault(a, &ops, "must be an array with \"verify\"");
}

static enum jwt_kind
rsa(struct access_doc *a, const struct access_at *key, struct buf *spki)
{
	struct number n, e;
	const char *fault;

	if (!get_two(a, key, "n", &n, "e", &e))
		return JWT_KIND_NONE;
	if ((fault = jwt_key_rsa(spki, number(&n), number(&e))) == NULL)
		return JWT_KIND_RSA;
	access_fault(a, key, fault);
	return JWT_KIND_NONE;
}

/* Checks that a key of points is of the one curve that we take. */
static bool
is_curve(struct access_doc *a, const struct access_at *key, const char *name)
{
	struct access_at crv = access_get(a, key, "crv");

	if (crv.v != NULL && doc_is(crv.v, name))
		return true;
	if (crv.v == NULL)
		report_add(a->r, &key->path, "must have \"crv\": \"%s\"", name);
	else
		report_add(a->r, &crv.path,
		    "must be \"%s\": leave keys of other curves out", name);
	return false;
}

static enum jwt_kind
p256(struct access_doc *a, const struct access_at *key, struct buf *spki)
{
	struct number x, y;
	const char *fault;

	if (!is_curve(a, key, "P-256") || !get_two(a, key, "x", &x, "y", &y))
		return JWT_KIND_NONE;
	if ((fault = jwt_key_p256(spki, number(&x), number(&y))) == NULL)
		return JWT_KIND_P256;
	access_fault(a, key, fault);
	return JWT_KIND_NONE;
}

static enum jwt_kind
ed25519(struct access_doc *a, const struct access_at *key, struct buf *spki)
{
	const char *fault;
	struct number x;

	if (!is_curve(a, key, "Ed25519") || !get_number(a, key, "x", &x))
		return JWT_KIND_NONE;
	if ((fault = jwt_key_ed25519(spki, number(&x))) == NULL)
		return JWT_KIND_ED25519;
	access_fault(a, key, fault);
	return JWT_KIND_NONE;
}

/* Reads the numbers of a key. Returns its kind, or NONE, which is reported. */
static enum jwt_kind
material(struct access_doc *a, const struct access_at *key, struct buf *spki)
{
	struct access_at kty = access_get(a, key, "kty");

	if (kty.v == NULL) {
		access_fault(a, key, "must have \"kty\"");
		return JWT_KIND_NONE;
	}
	if (doc_is(kty.v, "oct")) {
		access_fault(a, &kty,
		    "is \"oct\", a secret that both sides share: an issuer "
		    "must sign with a key pair");
		return JWT_KIND_NONE;
	}
	if (!is_public(a, key))
		return JWT_KIND_NONE;
	if (doc_is(kty.v, "RSA"))
		return rsa(a, key, spki);
	if (doc_is(kty.v, "EC"))
		return p256(a, key, spki);
	if (doc_is(kty.v, "OKP"))
		return ed25519(a, key, spki);
	access_fault(a, &kty, "must be \"RSA\", \"EC\" or \"OKP\"");
	return JWT_KIND_NONE;
}

/* Returns the algorithm that a key names, 0 if it names none. */
static unsigned
named(struct access_doc *a, const struct access_at *key, enum jwt_kind kind)
{
	struct access_at alg = access_get(a, key, "alg");
	unsigned algorithm = 0;

	if (alg.v == NULL)
		return 0;
	if (alg.v->kind == DOC_STRING)
		algorithm = jwt_algorithm(ipc_bytes(alg.v->str, alg.v->len));
	if (algorithm == 0)
		access_fault(a, &alg,
		    "must be RS256, PS256, ES256 or EdDSA: leave keys of other "
		    "algorithms out");
	else if (kind != JWT_KIND_NONE && jwt_algorithm_kind(algorithm) != kind)
		access_fault(a, &alg, "does not fit the key's \"kty\"");
	return algorithm;
}

/* Checks one key and appends its record. Returns its algorithms. */
static unsigned
one(struct access_doc *a, const struct access_at *key, struct buf *issuer)
{
	struct access_at kid;
	unsigned algorithm, mask = 0;
	struct buf spki, record;
	enum jwt_kind kind;

	if (key->v->kind != DOC_OBJECT) {
		access_fault(a, key, "must be an object");
		return 0;
	}
	buf_init(&spki, JWT_SPKI_MAX);
	buf_init(&record, RECORD_MAX);
	purpose(a, key);
	kind = material(a, key, &spki);
	algorithm = named(a, key, kind);
	kid = access_get(a, key, "kid");
	if (access_text(a, &kid, access_form_kid))
		tlv_put(&record, KEY_ID, kid.v->str, kid.v->len);
	if (algorithm != 0)
		access_put_u8(&record, KEY_ALGORITHM, algorithm);
	tlv_put(&record, KEY_SPKI, spki.p, spki.len);
	for (unsigned i = JWT_RS256; i <= JWT_EDDSA; i++)
		if (kind != JWT_KIND_NONE && jwt_algorithm_kind(i) == kind &&
		    (algorithm == 0 || algorithm == i))
			mask |= 1u << i;
	if (spki.failed || record.failed)
		issuer->failed = true;
	tlv_put(issuer, ISSUER_KEY, record.p, record.len);
	buf_free(&spki);
	buf_free(&record);
	return mask;
}

/* Reports a `kid` that a key before the i-th has: a token that names it would
 * not mean one key. */
static void
unique(struct access_doc *a, const struct access_at *keys, uint32_t i)
{
	struct access_at key = access_entry(a, keys, i);
	struct access_at kid = access_get(a, &key, "kid");
	const struct doc_node *other;

	if (kid.v == NULL || kid.v->kind != DOC_STRING)
		return;
	for (uint32_t k = 0; k < i; k++) {
		other = doc_get(a->d, doc_kid(a->d, keys->v, k), "kid");
		if (other != NULL && other->kind == DOC_STRING &&
		    other->len == kid.v->len &&
		    memcmp(other->str, kid.v->str, other->len) == 0) {
			access_fault(
			    a, &kid, "is the `kid` of a key before it");
			return;
		}
	}
}

unsigned
access_key_set(
    struct access_doc *a, const struct access_at *jwks, struct buf *issuer)
{
	struct access_at keys;
	unsigned mask = 0;
	uint32_t n;

	/* A set may have members beside "keys"; they are ignored (RFC 7517
	 * section 5). */
	if (jwks->v == NULL)
		return 0;
	if (jwks->v->kind != DOC_OBJECT) {
		access_fault(a, jwks, "must be an object with \"keys\"");
		return 0;
	}
	keys = access_get(a, jwks, "keys");
	n = access_count(a, &keys, ACCESS_KEYS_MAX);
	if (keys.v == NULL)
		access_fault(a, jwks, "must have \"keys\"");
	else if (keys.v->kind == DOC_ARRAY && n == 0)
		access_fault(a, &keys, "must have a key");
	for (uint32_t i = 0; i < n; i++) {
		struct access_at key = access_entry(a, &keys, i);

		mask |= one(a, &key, issuer);
		unique(a, &keys, i);
	}
	return mask;
}

/* Tells whether a key before the i-th that was taken has the same `kid`. */
static bool
taken(const struct access_doc *a, const struct doc_node *keys, const bool *used,
    uint32_t i)
{
	const struct doc_node *kid =
	    doc_get(a->d, doc_kid(a->d, keys, i), "kid");
	const struct doc_node *other;

	for (uint32_t k = 0; kid != NULL && k < i; k++) {
		if (!used[k])
			continue;
		other = doc_get(a->d, doc_kid(a->d, keys, k), "kid");
		if (other != NULL && other->len == kid->len &&
		    memcmp(other->str, kid->str, kid->len) == 0)
			return true;
	}
	return false;
}

int
access_key_fetched(struct access_doc *a, struct buf *out, struct err *e)
{
	const struct access_at top = {.v = &a->d->node[0], .root = true};
	bool used[ACCESS_KEYS_FETCHED_MAX] = {false};
	char first[sizeof(a->r->first)] = "it has no key";
	struct access_at keys;
	unsigned n = 0;

	if (top.v->kind != DOC_OBJECT)
		return err_set(
		    e, FAILURE_UPSTREAM, "the key set is not an object");
	keys = access_get(a, &top, "keys");
	if (keys.v == NULL || keys.v->kind != DOC_ARRAY)
		return err_set(
		    e, FAILURE_UPSTREAM, "the key set has no array \"keys\"");
	if (keys.v->count > ACCESS_KEYS_FETCHED_MAX)
		return err_set(e, FAILURE_UPSTREAM,
		    "the key set has %u keys, and at most %d are read",
		    keys.v->count, ACCESS_KEYS_FETCHED_MAX);
	for (uint32_t i = 0; i < keys.v->count; i++) {
		struct access_at key = access_entry(a, &keys, i);
		struct buf record;

		report_open(a->r, NULL);
		buf_init(&record, RECORD_MAX + 16);
		(void)one(a, &key, &record);
		if (record.failed)
			out->failed = true;
		used[i] = a->r->n == 0 && !taken(a, keys.v, used, i);
		if (used[i])
			buf_put(out, record.p, record.len);
		else if (a->r->n > 0 && n == 0)
			memcpy(first, a->r->first, sizeof(first));
		n += used[i];
		buf_free(&record);
	}
	if (n == 0)
		return err_set(e, FAILURE_UPSTREAM,
		    "the key set has no key that can be used: %s", first);
	return 0;
}
