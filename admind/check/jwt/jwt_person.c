/*
 * Security argument.
 *
 * The principal of a person is made of the issuer's name and `sub`, so two
 * people must never have the same `sub` here, and `sub` must be readable in a
 * log. It has only the characters ! to ~. A service of Cloudflare Access has an
 * empty `sub` and a common name; "service/" is put before that name, and a
 * `sub` that begins so is refused.
 *
 * A person can often change his own e-mail address at his issuer. It counts
 * only with email_verified, or where the access document says that the issuer
 * vouches for it. It has one @, so that its domain is not a matter of opinion.
 *
 * No text of a token gets through with a control character or a NUL.
 */
#include <string.h>

#include "jwt_claims.h"
#include "permit.h"

/* Before a service's common name. */
#define SERVICE "service/"

enum { SERVICE_LEN = sizeof(SERVICE) - 1 };

static int
refuse(struct err *e, const char *sentence)
{
	return err_set(e, FAILURE_UNAUTHENTICATED, "%s", sentence);
}

/* Tells whether the text has only the characters ! to ~. */
static bool
is_graphic(const struct doc_node *v)
{
	for (size_t i = 0; i < v->len; i++)
		if (v->str[i] < '!' || v->str[i] > '~')
			return false;
	return true;
}

/* Tells whether this is a string of 1 to `max` bytes without control
 * characters. */
static bool
is_plain(const struct doc_node *v, size_t max)
{
	if (v->kind != DOC_STRING || v->len == 0 || v->len > max)
		return false;
	for (size_t i = 0; i < v->len; i++)
		if (v->str[i] < ' ' || v->str[i] == 0x7f)
			return false;
	return true;
}

static int
subject(const struct doc *d, struct buf *fields, struct err *e)
{
	const struct doc_node *v = jwt_claims_get(d, "sub"), *name;
	char sub[JWT_SUB_MAX];
	size_t n = 0;

	if (v == NULL || v->kind != DOC_STRING)
		return refuse(e, "the token has no `sub` that is a string");
	name = jwt_claims_get(d, "common_name");
	if (v->len == 0) {
		if (name == NULL || name->kind != DOC_STRING || name->len == 0)
			return refuse(e, "the token's `sub` is empty");
		v = name;
		memcpy(sub, SERVICE, SERVICE_LEN);
		n = SERVICE_LEN;
	} else if (v->len >= SERVICE_LEN &&
	    memcmp(v->str, SERVICE, SERVICE_LEN) == 0) {
		return refuse(e,
		    "the token's `sub` begins with " SERVICE
		    ", which names services");
	}
	if (v->len > JWT_SUB_MAX - n)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token's `sub` is longer than %d bytes", JWT_SUB_MAX);
	if (!is_graphic(v))
		return refuse(e,
		    "the token's `sub` must have only the characters ! to ~");
	memcpy(sub + n, v->str, v->len);
	tlv_put(fields, JWT_SUB, sub, n + v->len);
	return 0;
}

/* Puts the address if it counts and is one. Any other address is left out: the
 * token may still come in by another claim. */
static void
email(const struct doc *d, const struct jwt_issuer *is, struct buf *fields)
{
	const struct doc_node *v = jwt_claims_get(d, "email");
	const struct doc_node *sure = jwt_claims_get(d, "email_verified");
	const uint8_t *at;

	if (v == NULL || !is_plain(v, ACCESS_VALUE_MAX) || !is_graphic(v))
		return;
	if (!is->email_trusted && (sure == NULL || sure->kind != DOC_TRUE))
		return;
	at = memchr(v->str, '@', v->len);
	if (at == NULL || at == v->str || at == v->str + v->len - 1 ||
	    memchr(at + 1, '@', (size_t)(v->str + v->len - at - 1)) != NULL)
		return;
	tlv_put(fields, JWT_EMAIL, v->str, v->len);
}

static int
client(const struct doc *d, const struct jwt_issuer *is, struct buf *fields,
    struct err *e)
{
	const struct doc_node *azp = jwt_claims_get(d, "azp");
	const struct doc_node *id = jwt_claims_get(d, "client_id");
	const struct doc_node *v = azp != NULL ? azp : id;

	if ((azp != NULL && !is_plain(azp, ACCESS_VALUE_MAX)) ||
	    (id != NULL && !is_plain(id, ACCESS_VALUE_MAX)))
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token's `azp` and `client_id` must be strings of 1 to "
		    "%d bytes",
		    ACCESS_VALUE_MAX);
	if (azp != NULL && id != NULL &&
	    (azp->len != id->len || memcmp(azp->str, id->str, id->len) != 0))
		return refuse(e,
		    "the token names two clients, one in `azp`, one in "
		    "`client_id`");
	if (jwt_issuer_has(is, ISSUER_CLIENT) &&
	    (v == NULL ||
		!jwt_issuer_lists(
		    is, ISSUER_CLIENT, ipc_bytes(v->str, v->len))))
		return refuse(e,
		    "the token was made for another client (`azp` or "
		    "`client_id`) than the access document lists");
	if (v != NULL)
		tlv_put(fields, JWT_CLIENT, v->str, v->len);
	return 0;
}

static int
groups(const struct doc *d, struct buf *fields, struct err *e)
{
	const struct doc_node *v = jwt_claims_get(d, "groups"), *one;

	if (v == NULL)
		return 0;
	if (v->kind != DOC_ARRAY)
		return refuse(
		    e, "the token's `groups` must be an array of strings");
	/* Not cut: a rule for the group that fell off would then not fit, and a
	 * later rule with other rights could. */
	if (v->count > JWT_GROUPS_MAX)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token has %u `groups`, and at most %d are read: let "
		    "its issuer send fewer",
		    v->count, JWT_GROUPS_MAX);
	for (uint32_t i = 0; i < v->count; i++) {
		one = doc_kid(d, v, i);
		if (!is_plain(one, ACCESS_VALUE_MAX))
			return err_set(e, FAILURE_UNAUTHENTICATED,
			    "the token's `groups` must be strings of 1 to %d "
			    "bytes without control characters",
			    ACCESS_VALUE_MAX);
		tlv_put(fields, JWT_GROUP, one->str, one->len);
	}
	return 0;
}

/* Returns the rights of a list of words with a space between two (RFC 6749
 * section 3.3). Words that are not ours are ignored, since issuers add their
 * own. */
static unsigned
rights(const uint8_t *p, size_t n)
{
	char word[32];
	unsigned mask = 0;
	size_t len;

	for (; n > 0; p += len, n -= len) {
		for (len = 0; len < n && p[len] != ' '; len++)
			;
		if (len > 0 && len < sizeof(word) &&
		    memchr(p, '\n', len) == NULL) {
			memcpy(word, p, len);
			word[len] = '\0';
			mask |= permit_scopes(word);
		}
		len += len < n;
	}
	return mask;
}

static int
scopes(const struct doc *d, const struct jwt_issuer *is, struct buf *fields,
    struct err *e)
{
	const struct doc_node *v = jwt_claims_get(d, "scope"), *one;
	unsigned mask = 0;
	uint8_t u;

	if (!is->scopes)
		return 0;
	if (v == NULL)
		v = jwt_claims_get(d, "scp");
	if (v != NULL && v->kind == DOC_STRING)
		mask = rights(v->str, v->len);
	else if (v != NULL && v->kind != DOC_ARRAY)
		return refuse(e,
		    "the token's `scope` or `scp` must be a string or an array "
		    "of strings");
	for (uint32_t i = 0; v != NULL && i < v->count; i++) {
		one = doc_kid(d, v, i);
		if (one->kind != DOC_STRING)
			return refuse(e,
			    "the token's `scope` or `scp` must be a string or "
			    "an array of strings");
		mask |= rights(one->str, one->len);
	}
	u = (uint8_t)mask;
	tlv_put(fields, JWT_SCOPES, &u, 1);
	return 0;
}

int
jwt_person_read(const struct doc *d, const struct jwt_issuer *is,
    struct buf *fields, struct err *e)
{
	if (subject(d, fields, e) == -1)
		return -1;
	email(d, is, fields);
	return client(d, is, fields, e) == -1 || groups(d, fields, e) == -1
	    ? -1
	    : scopes(d, is, fields, e);
}
