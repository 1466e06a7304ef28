/*
 * Security argument.
 *
 * The claims are those of a right signature. Here they are only taken apart:
 * admind knows the request and compares. A token that lacks one is refused. A
 * digest has one spelling: base64url with spare bits is refused.
 *
 * Method and URL are texts without control characters and spaces, since
 * requests have none. `jti` may be any text: it is only digested.
 */
#include <string.h>

#include "access_fields.h"
#include "ids.h"
#include "jwt_bound.h"
#include "jwt_claims.h"
#include "tlv.h"

enum {
	US = 1000 * 1000,
	DIGEST_LEN = 32, /* SHA-256 */
	DIGEST_TEXT = 43 /* in base64url without padding */
};

/* Returns a claim that is a text of 1 to max bytes of ! to ~, or NULL with
 * err. */
static const struct doc_node *
graphic(const struct doc *d, const char *name, size_t max, struct err *e)
{
	const struct doc_node *v = jwt_claims_get(d, name);
	bool good =
	    v != NULL && v->kind == DOC_STRING && v->len > 0 && v->len <= max;

	for (size_t i = 0; good && i < v->len; i++)
		good = v->str[i] >= '!' && v->str[i] <= '~';
	if (good)
		return v;
	err_set(e, FAILURE_UNAUTHENTICATED,
	    "the token is to be bound to one request, so its `%s` must be a "
	    "string of 1 to %zu characters ! to ~",
	    name, max);
	return NULL;
}

static int
body(const struct doc *d, struct buf *record, struct err *e)
{
	const struct doc_node *v = graphic(d, "bsha256", DIGEST_TEXT, e);
	uint8_t digest[DIGEST_TEXT];

	if (v == NULL)
		return -1;
	if (v->len != DIGEST_TEXT ||
	    b64url_decode((const char *)v->str, v->len, digest) != DIGEST_LEN)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token's `bsha256` must be a SHA-256 in base64url "
		    "without padding");
	tlv_put(record, BOUND_BODY, digest, DIGEST_LEN);
	return 0;
}

static int
id(const struct doc *d, struct buf *record, struct err *e)
{
	const struct doc_node *v = jwt_claims_get(d, "jti");

	if (v == NULL || v->kind != DOC_STRING || v->len == 0 ||
	    v->len > JWT_ID_MAX)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token is to be bound to one request, so its `jti` "
		    "must be a string of 1 to %d bytes",
		    JWT_ID_MAX);
	tlv_put(record, BOUND_ID, v->str, v->len);
	return 0;
}

static int
put(const struct doc *d, uint64_t now_us, struct buf *record, struct err *e)
{
	const struct doc_node *method, *url;
	uint64_t end = 0;
	int has;

	if ((method = graphic(d, "htm", JWT_METHOD_MAX, e)) == NULL ||
	    (url = graphic(d, "htu", JWT_URL_MAX, e)) == NULL)
		return -1;
	tlv_put(record, BOUND_METHOD, method->str, method->len);
	tlv_put(record, BOUND_URL, url->str, url->len);
	if (body(d, record, e) == -1 || id(d, record, e) == -1 ||
	    (has = jwt_claims_time(d, "session_exp", &end, e)) == -1)
		return -1;
	if (has == 1 && end * US <= now_us)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the person's session at the token's issuer is over "
		    "(`session_exp`): sign in again");
	if (has == 1)
		tlv_put_u64(record, BOUND_SESSION_EXP_US, end * US);
	return 0;
}

int
jwt_bound_read(
    const struct doc *d, uint64_t now_us, struct buf *fields, struct err *e)
{
	struct buf record;
	int rc;

	buf_init(&record, JWT_MAX);
	rc = put(d, now_us, &record, e);
	if (rc == 0) {
		tlv_put(fields, JWT_BOUND, record.p, record.len);
		if (record.failed)
			fields->failed = true;
	}
	buf_free(&record);
	return rc;
}
