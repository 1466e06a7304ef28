/*
 * Security argument.
 *
 * Any stranger at the tunnel can send a token, and gets a sentence. The order
 * is: the token's form and header; the issuer by `iss`, which is not yet
 * believed and only chooses whose keys are tried; the key; the signature; and
 * only then the other claims. `iss` is a claim of the signed text and was
 * compared with the issuer whose key verified it, so no issuer speaks for
 * another.
 *
 * The header is the attacker's until the end. It can name one key of that
 * issuer by `kid`, and one algorithm that the issuer and that key have. It can
 * bring no key (jwk) and name no place to get one (jku, x5u). A header
 * parameter that must be understood (crit) is refused, so nothing that changes
 * the meaning of the rest is passed over. Certificates (x5c) are not looked at.
 *
 * A header and an issuer belong together: Cloudflare Access puts its header
 * into each request, so a token of a person's browser must not count where an
 * Authorization field is asked for, nor the other way round.
 *
 * All the work is bounded: 8 KiB of token, 16 issuers with 32 keys, one
 * signature.
 */
#include <string.h>

#include "ipc_values.h"
#include "jwt.h"
#include "jwt_claims.h"
#include "jwt_key.h"
#include "jwt_parts.h"

enum { TYPE_MAX = 64 }; /* bytes of a `typ`; a longer one is in no list */

static int
refuse(struct err *e, const char *sentence)
{
	return err_set(e, FAILURE_UNAUTHENTICATED, "%s", sentence);
}

/* Parses one part as a JSON object. The doc is to be freed in both cases. */
static int
parse(struct doc *d, struct ipc_bytes text, const char *part, struct err *e)
{
	struct err why;

	if (doc_parse(d, text.p, text.n, &why) == -1)
		return err_set(e,
		    why.failure == FAILURE_PARSE ? FAILURE_UNAUTHENTICATED
						 : why.failure,
		    "the token's %s cannot be read as JSON: %s", part,
		    why.text);
	if (d->node[0].kind != DOC_OBJECT)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token's %s must be a JSON object", part);
	return 0;
}

/* ---- the header ---- */

/* Refuses a header that is wrong for every issuer. */
static int
header(const struct doc *d, unsigned *algorithm, struct err *e)
{
	static const char *const keys[] = {"jwk", "jku", "x5u"};
	const struct doc_node *top = &d->node[0], *v;

	if (doc_get(d, top, "crit") != NULL)
		return refuse(e,
		    "the token's header has `crit`, and no extension is "
		    "understood here");
	if (doc_get(d, top, "b64") != NULL)
		return refuse(e,
		    "the token's header has `b64`: only base64url claims are "
		    "read");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (doc_get(d, top, keys[i]) != NULL)
			return err_set(e, FAILURE_UNAUTHENTICATED,
			    "the token's header brings or names a key (`%s`): "
			    "only keys of the access document count",
			    keys[i]);
	if (doc_get(d, top, "enc") != NULL || doc_get(d, top, "cty") != NULL)
		return refuse(e,
		    "the token's header has `enc` or `cty`: a token inside a "
		    "token is not read");
	v = doc_get(d, top, "alg");
	if (v == NULL || v->kind != DOC_STRING ||
	    (*algorithm = jwt_algorithm(ipc_bytes(v->str, v->len))) == 0)
		return refuse(e,
		    "the token's `alg` must be RS256, PS256, ES256 or EdDSA");
	v = doc_get(d, top, "kid");
	if (v != NULL && v->kind != DOC_STRING)
		return refuse(e, "the token's `kid` must be a string");
	return 0;
}

/* Tells whether the header's `typ` is in the issuer's list. Case does not count
 * and "application/" is left out (RFC 7515 section 4.1.9). */
static int
type(const struct doc *d, const struct jwt_issuer *is, struct err *e)
{
	static const char prefix[] = "application/";
	static const char *const never[] = {"logout+jwt", "secevent+jwt"};
	const struct doc_node *v = doc_get(d, &d->node[0], "typ");
	char lower[TYPE_MAX + sizeof(prefix)];
	struct ipc_bytes t = ipc_bytes("", 0);

	if (v != NULL && v->kind != DOC_STRING)
		return refuse(e, "the token's `typ` must be a string");
	if (v != NULL && (v->len == 0 || v->len >= sizeof(lower)))
		return refuse(e, "the token's `typ` is empty or too long");
	for (size_t i = 0; v != NULL && i < v->len; i++)
		lower[i] = (char)(v->str[i] >= 'A' && v->str[i] <= 'Z'
			? v->str[i] | 0x20
			: v->str[i]);
	if (v != NULL)
		t = ipc_bytes(lower, v->len);
	if (t.n > sizeof(prefix) - 1 &&
	    memcmp(t.p, prefix, sizeof(prefix) - 1) == 0) {
		t.p += sizeof(prefix) - 1;
		t.n -= sizeof(prefix) - 1;
	}
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (ipc_streq(t, never[i]))
			return refuse(e,
			    "the token's `typ` says that it is a logout token "
			    "or a security event, not an access token");
	if (jwt_issuer_lists(is, ISSUER_TYPE, t))
		return 0;
	return refuse(e,
	    t.n == 0 ? "the token has no `typ`, and the access document asks "
		       "its issuer for one (types)"
		     : "the token's `typ` is not one that the access document "
		       "takes of its issuer (types)");
}

/* ---- issuer and key ---- */

/* Finds the issuer that `iss` names. It must serve the listener and the header
 * that the token came by. */
static int
find_issuer(const struct jwt_question *q, const struct doc *claims,
    struct jwt_issuer *is, struct err *e)
{
	const struct doc_node *iss = jwt_claims_get(claims, "iss");
	struct tlv_reader r;
	struct tlv f;
	int rc;

	memset(is, 0, sizeof(*is));
	if (iss == NULL || iss->kind != DOC_STRING)
		return refuse(e, "the token has no `iss` that is a string");
	tlv_open(&r, q->issuers.p, q->issuers.n);
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (f.tag != ACCESS_ISSUER)
			continue;
		if (jwt_issuer_read(ipc_bytes(f.p, f.n), is) == -1) {
			rc = -1;
			break;
		}
		if (is->url.n == iss->len &&
		    memcmp(is->url.p, iss->str, iss->len) == 0)
			break;
	}
	if (rc == -1)
		return err_set(e, FAILURE_INTERNAL,
		    "an issuer's record is not as it was made");
	if (rc == 0)
		return refuse(e,
		    "the token's `iss` is not an issuer of the access "
		    "document: it is compared byte by byte");
	if (q->listener >= 8 || (is->listeners & 1u << q->listener) == 0)
		return refuse(
		    e, "tokens of this issuer are not taken at this listener");
	if (is->via != q->via)
		return refuse(e,
		    is->via == VIA_ASSERTION
			? "tokens of this issuer are taken only in the header "
			  "Cf-Access-Jwt-Assertion"
			: "tokens of this issuer are taken only in the header "
			  "Authorization");
	return 0;
}

/* Tells whether a key may verify signatures of this algorithm. */
static bool
fits(const struct jwt_issuer_key *key, unsigned algorithm)
{
	return jwt_key_kind(key->spki) == jwt_algorithm_kind(algorithm) &&
	    (key->algorithm == 0 || key->algorithm == algorithm);
}

/* Finds the one key: that of the token's `kid`, else the only one that fits. A
 * token without `kid` among several keys is refused and not tried with each, so
 * that a token costs one signature. Returns 0, -1, or 1 if fetched keys have
 * none: the issuer may have another key by now. */
static int
find_key(const struct doc *d, const struct jwt_issuer *is, unsigned algorithm,
    struct jwt_issuer_key *out, struct err *e)
{
	const struct doc_node *kid = doc_get(d, &d->node[0], "kid");
	struct jwt_issuer_key key;
	struct tlv_reader r;
	unsigned found = 0;
	int rc;

	jwt_issuer_open(is, &r);
	while ((rc = jwt_issuer_next_key(&r, &key)) == 1) {
		if (kid == NULL ? !fits(&key, algorithm)
				: key.id.p == NULL || key.id.n != kid->len ||
			    memcmp(key.id.p, kid->str, kid->len) != 0)
			continue;
		*out = key;
		found++;
	}
	if (rc == -1)
		return err_set(e, FAILURE_INTERNAL,
		    "a key's record is not as it was made");
	if (found == 0 && is->fetched)
		return 1;
	if (kid != NULL && found == 0)
		return refuse(e,
		    "the token's `kid` is no key of its issuer in the access "
		    "document: are the keys there still the issuer's?");
	if (kid != NULL && !fits(out, algorithm))
		return refuse(e,
		    "the token's `alg` does not fit the key that `kid` names");
	if (found == 0)
		return refuse(e, "no key of the token's issuer fits its `alg`");
	if (found > 1)
		return refuse(e,
		    "the token names no `kid`, and several keys of its issuer "
		    "fit its `alg`");
	return 0;
}

/* Verifies the signature. Returns 0, -1, or 1 as find_key() does. */
static int
verify(const struct jwt_question *q, const struct jwt_parts *p,
    const struct doc *head, const struct doc *claims, struct jwt_issuer *is,
    struct err *e)
{
	struct jwt_issuer_key key = {0};
	unsigned algorithm = 0;
	int rc;

	if (header(head, &algorithm, e) == -1 ||
	    find_issuer(q, claims, is, e) == -1)
		return -1;
	if ((is->algorithms & 1u << algorithm) == 0)
		return refuse(e,
		    "the token's `alg` is not one that the access document "
		    "takes of its issuer (algorithms)");
	if (type(head, is, e) == -1)
		return -1;
	if ((rc = find_key(head, is, algorithm, &key, e)) != 0)
		return rc;
	rc = jwt_key_verify(algorithm, key.spki, p->text, p->signature, e);
	if (rc == 0)
		return refuse(e, "the token's signature is wrong");
	return rc == 1 ? 0 : -1;
}

void
check_jwt(struct check *c, const struct jwt_question *q)
{
	struct doc head = {0}, claims = {0};
	struct jwt_issuer is;
	struct jwt_parts p;
	struct buf times;
	struct report r;
	struct err e;
	int rc = -1, key;

	check_begin(c, &r);
	buf_init(&times, JWT_MAX);
	if (jwt_parts_cut(&p, q->token, &e) == -1 ||
	    parse(&head, p.header, "header", &e) == -1 ||
	    parse(&claims, p.claims, "claims", &e) == -1 ||
	    (key = verify(q, &p, &head, &claims, &is, &e)) == -1)
		goto out;
	if (key == 1) {
		tlv_put(&c->fields, JWT_NO_KEY, is.name.p, is.name.n);
		rc = 0;
		goto out;
	}
	if (jwt_claims_judge(&claims, &is, q->now_us, &times, &e) == -1)
		goto out;
	tlv_put(&c->fields, JWT_ISSUER, is.name.p, is.name.n);
	if (jwt_person_read(&claims, &is, &c->fields, &e) == -1)
		goto out;
	buf_put(&c->fields, times.p, times.len);
	if (times.failed)
		c->fields.failed = true;
	rc = 0;
out:
	check_end(c, &r, rc, FAILURE_UNAUTHENTICATED, "the token", &e);
	buf_free(&times);
	doc_free(&head);
	doc_free(&claims);
}
