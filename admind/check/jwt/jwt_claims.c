/*
 * Security argument.
 *
 * The signature is right, so the issuer wrote these claims. It also signs
 * tokens for other services, and tokens that are no access tokens. An attacker
 * holds some of those, or an old token, and wants to come in with it. So:
 *
 * - `aud` must name us. A token for another service of the issuer is refused.
 * - `exp` must be there and in the next 24 hours, and `iat` is compared where
 *   the document gives a greatest age. A lost token is worth little for long.
 * - ID tokens, logout tokens, security events, refresh tokens and the login
 *   tokens of Cloudflare Access are told by their claims and refused.
 * - `cnf` binds a token to a key of the client. We check no proof of that key,
 *   so the thief of such a token would come in: it is refused.
 * - A token of a bound issuer lives two minutes at most, and says which request
 *   it is for (jwt_bound.c).
 *
 * Numbers are read by their digits. 1e300 is a number that is too large, not
 * one that overflowed.
 */
#include <string.h>

#include "jwt_bound.h"
#include "jwt_claims.h"
#include "ipc_values.h"
#include "num.h"

enum { US = 1000 * 1000 };

/* Seconds that no clock of ours reaches (the year 33658). Larger times are cut
 * to this. */
static const uint64_t SECONDS_MAX = 1000 * 1000 * UINT64_C(1000000);

static int
refuse(struct err *e, const char *sentence)
{
	return err_set(e, FAILURE_UNAUTHENTICATED, "%s", sentence);
}

const struct doc_node *
jwt_claims_get(const struct doc *d, const char *name)
{
	const struct doc_node *v = doc_get(d, &d->node[0], name);

	return v != NULL && v->kind == DOC_NULL ? NULL : v;
}

/* Returns the value without one slash at its end. */
static struct ipc_bytes
without_slash(const uint8_t *p, size_t n)
{
	return ipc_bytes(p, n > 0 && p[n - 1] == '/' ? n - 1 : n);
}

/* Tells whether the value is an audience of the issuer. Clients and issuers
 * disagree about one slash at the end, so it does not count on either side. */
static bool
is_for_us(const struct jwt_issuer *is, const struct doc_node *v)
{
	struct ipc_bytes want = without_slash(v->str, v->len), have;
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, is->record.p, is->record.n);
	while (tlv_next(&r, &f) == 1) {
		if (f.tag != ISSUER_AUDIENCE)
			continue;
		have = without_slash(f.p, f.n);
		if (have.n > 0 && have.n == want.n &&
		    memcmp(have.p, want.p, have.n) == 0)
			return true;
	}
	return false;
}

/* Puts the endpoints whose address the value is. It is compared as an audience
 * is. 1 if there are any. */
static bool
is_for_endpoint(
    const struct jwt_issuer *is, const struct doc_node *v, struct buf *fields)
{
	struct ipc_bytes want = without_slash(v->str, v->len);
	const uint8_t *name;
	struct tlv_reader r;
	bool any = false;
	struct tlv f;

	tlv_open(&r, is->record.p, is->record.n);
	while (tlv_next(&r, &f) == 1) {
		if (f.tag != ISSUER_ENDPOINT || f.n != want.n ||
		    memcmp(f.p, want.p, f.n) != 0)
			continue;
		name = memrchr(f.p, '/', f.n);
		if (name == NULL)
			continue;
		name++;
		tlv_put(fields, JWT_ENDPOINT, name, f.n - (size_t)(name - f.p));
		any = true;
	}
	return any;
}

/* A token whose audience is an endpoint's address was consented to for this
 * endpoint. So it is good there alone, unless it names the whole, too. */
static bool
endpoints(const struct jwt_issuer *is, const struct doc *d,
    const struct doc_node *v, struct buf *fields)
{
	bool any = false;

	if (v->kind == DOC_STRING)
		return is_for_endpoint(is, v, fields);
	for (uint32_t i = 0; i < v->count; i++)
		any |= is_for_endpoint(is, doc_kid(d, v, i), fields);
	return any;
}

static int
audience(const struct doc *d, const struct jwt_issuer *is, struct buf *fields,
    struct err *e)
{
	const struct doc_node *v = jwt_claims_get(d, "aud"), *one;
	bool ours = false;

	if (v == NULL)
		return refuse(e,
		    "the token has no `aud`: its issuer must be told to make "
		    "tokens for this server");
	if (v->kind == DOC_STRING) {
		ours = is_for_us(is, v);
	} else if (v->kind == DOC_ARRAY) {
		for (uint32_t i = 0; i < v->count; i++) {
			one = doc_kid(d, v, i);
			if (one->kind != DOC_STRING)
				return refuse(e,
				    "the token's `aud` must be a string or an "
				    "array of strings");
			ours = ours || is_for_us(is, one);
		}
	} else {
		return refuse(e,
		    "the token's `aud` must be a string or an array of "
		    "strings");
	}
	return ours || endpoints(is, d, v, fields)
	    ? 0
	    : refuse(e,
		  "the token is for another server: its `aud` names "
		  "none of the "
		  "audiences of its issuer in the access document");
}

/* ---- times ---- */

/*
 * Reads a NumericDate (RFC 7519 section 2) and drops its fraction. Returns
 * false if the value is negative or not a number. The digits before the point
 * are those that the number's own exponent says.
 */
static bool
seconds(const struct doc_node *v, uint64_t *out)
{
	uint64_t s = 0;
	struct num num;
	long long whole;
	size_t i = 0;

	if (v->kind != DOC_NUMBER)
		return false;
	num = num_read(v->raw, v->rawlen);
	if (num.sign < 0)
		return false;
	whole = num.sign == 0 ? 0 : num.exp + (long long)num.n;
	for (; whole > 0 && s < SECONDS_MAX; whole--) {
		while (i < num.span && num.p[i] == '.')
			i++;
		s = s * 10 + (i < num.span ? (unsigned)(num.p[i++] - '0') : 0);
	}
	*out = s < SECONDS_MAX ? s : SECONDS_MAX;
	return true;
}

int
jwt_claims_time(
    const struct doc *d, const char *name, uint64_t *out, struct err *e)
{
	const struct doc_node *v = doc_get(d, &d->node[0], name);

	if (v == NULL)
		return 0;
	if (!seconds(v, out))
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token's `%s` must be a number of seconds since 1970",
		    name);
	return 1;
}

static int
times(const struct doc *d, const struct jwt_issuer *is, uint64_t now_us,
    struct buf *fields, struct err *e)
{
	uint64_t exp = 0, nbf = 0, iat = 0, now = now_us / US;
	uint64_t late = now + is->leeway_s;
	int has;

	if ((has = jwt_claims_time(d, "exp", &exp, e)) == -1)
		return -1;
	if (has == 0)
		return refuse(
		    e, "the token has no `exp`, so it would never end");
	/* In us, so that a token ends at its second and not during it. */
	if ((exp + is->leeway_s) * US <= now_us)
		return refuse(e, "the token is expired: get a new one");
	if (exp > late + JWT_LIFE_MAX_S)
		return refuse(e,
		    "the token's `exp` is more than 24 hours ahead: its issuer "
		    "must give it a shorter life");
	if ((has = jwt_claims_time(d, "nbf", &nbf, e)) == -1)
		return -1;
	if (has == 1 && nbf > late)
		return refuse(e,
		    "the token does not hold yet (`nbf`): compare the clocks "
		    "of "
		    "this server and of the issuer");
	if ((has = jwt_claims_time(d, "iat", &iat, e)) == -1)
		return -1;
	if (has == 1 && iat > late)
		return refuse(e,
		    "the token is from the future (`iat`): compare the clocks "
		    "of this server and of the issuer");
	if (is->max_age_s > 0 && has == 0)
		return refuse(e,
		    "the token has no `iat`, and the access document asks for "
		    "its age");
	if (is->max_age_s > 0 && iat + is->max_age_s + is->leeway_s < now)
		return refuse(e,
		    "the token is older than the access document allows "
		    "(max_age_seconds): get a new one");
	if (is->bound && has == 0)
		return refuse(e,
		    "the token has no `iat`, and the access document asks for "
		    "tokens that are bound to one request");
	if (is->bound && (exp < iat || exp - iat > JWT_BOUND_LIFE_MAX_S))
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token lives longer than %d s, too long for one that "
		    "is bound to a request: compare `iat` and `exp`",
		    JWT_BOUND_LIFE_MAX_S);
	tlv_put_u64(fields, JWT_EXP_US, exp * US);
	if (has == 1)
		tlv_put_u64(fields, JWT_IAT_US, iat * US);
	return 0;
}

/* ---- kinds of tokens ---- */

/* Tells whether the claims are those of an ID token. No access token has these
 * claims; the texts are those of Keycloak, Pocket ID and Cognito. */
static bool
is_id_token(const struct doc *d)
{
	static const char *const claims[] = {
	    "nonce", "at_hash", "c_hash", "s_hash"};
	static const char *const texts[][2] = {
	    {"typ", "ID"}, {"type", "id-token"}, {"token_use", "id"}};
	const struct doc_node *v;

	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
		if (doc_get(d, &d->node[0], claims[i]) != NULL)
			return true;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		v = doc_get(d, &d->node[0], texts[i][0]);
		if (v != NULL && doc_is(v, texts[i][1]))
			return true;
	}
	return false;
}

/* Tells whether the claims say that this token gives no access. The texts
 * are those of Keycloak, Pocket ID and Cloudflare Access. */
static bool
is_other(const struct doc *d)
{
	static const char *const texts[][2] = {{"typ", "Refresh"},
	    {"typ", "Offline"}, {"typ", "Logout"}, {"type", "refresh-token"},
	    {"type", "org"}};
	const struct doc_node *v;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		v = doc_get(d, &d->node[0], texts[i][0]);
		if (v != NULL && doc_is(v, texts[i][1]))
			return true;
	}
	return false;
}

static int
kind(const struct doc *d, const struct jwt_issuer *is, struct err *e)
{
	const struct doc_node *top = &d->node[0];
	const struct doc_node *type = jwt_claims_get(d, "type");

	if (doc_get(d, top, "cnf") != NULL)
		return refuse(e,
		    "the token is bound to a key of its client (`cnf`), which "
		    "is not checked here: get one without");
	if (doc_get(d, top, "events") != NULL)
		return refuse(e,
		    "the token is a logout token or a security event "
		    "(`events`), not an access token");
	/* Cloudflare Access signs its login tokens with the same keys. */
	if (is_other(d) ||
	    (is->via == VIA_ASSERTION && type != NULL && !doc_is(type, "app")))
		return refuse(e,
		    "the token says that it is not an access token (`typ` or "
		    "`type`)");
	if (!is->id_tokens && is_id_token(d))
		return refuse(e,
		    "the token is an ID token: send the access token (or an "
		    "administrator sets id_tokens for this issuer)");
	return 0;
}

int
jwt_claims_judge(const struct doc *d, const struct jwt_issuer *is,
    uint64_t now_us, struct buf *fields, struct err *e)
{
	if (audience(d, is, fields, e) == -1 || kind(d, is, e) == -1 ||
	    times(d, is, now_us, fields, e) == -1)
		return -1;
	return is->bound ? jwt_bound_read(d, now_us, fields, e) : 0;
}
