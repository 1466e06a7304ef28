/*
 * Security argument.
 *
 * This token makes an administrator, and a stranger's browser brought its code.
 * It goes the way of every signed token (jwt.c): algorithm, key, signature,
 * `iss`, times. The issuer's record is narrowed first, so that no member that
 * is meant for clients' tokens decides here: the only audience is our client_id
 * at this issuer, and `iat` is asked for. ID tokens are taken here, and here
 * alone without `id_tokens`.
 *
 * Then `nonce` must be the one of this very sign-in. So a token that the issuer
 * signed for another sign-in, or that an attacker has from his own, is refused
 * (OpenID Connect Core 3.1.3.7, number 11). `azp` must be our client if it is
 * there, and must be there if the token has several audiences (numbers 4 and
 * 5).
 */
#include "signin.h"

#include <string.h>

#include "access_fields.h"
#include "bounds.h"
#include "doc.h"
#include "ipc_values.h"
#include "jwt.h"
#include "jwt_claims.h"
#include "jwt_parts.h"
#include "keys.h"
#include "tlv.h"

enum {
	RECORD_MAX = 128 * 1024, /* 32 fetched keys; an issuer's record */
	/* Seconds since `iat`. The token was made for this exchange; the rest
	 * is for clocks. */
	AGE_MAX_S = 600
};

static int
refuse(struct err *e, const char *sentence)
{
	return err_set(e, FAILURE_UNAUTHENTICATED, "%s", sentence);
}

/* Copies the record without the members that are about clients' tokens. */
static void
narrow(struct buf *out, const struct signin_question *q)
{
	static const uint8_t kept[] = {ISSUER_NAME, ISSUER_URL,
	    ISSUER_ALGORITHM, ISSUER_LEEWAY_S, ISSUER_EMAIL, ISSUER_KEY,
	    ISSUER_KEYS_URL, ISSUER_DISCOVERY};
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, q->issuer.p, q->issuer.n);
	while (tlv_next(&r, &f) == 1)
		if (memchr(kept, f.tag, sizeof(kept)) != NULL)
			tlv_put(out, f.tag, f.p, f.n);
	tlv_put(out, ISSUER_AUDIENCE, q->client.p, q->client.n);
	tlv_put(out, ISSUER_VIA, (const uint8_t[]){VIA_AUTHORIZATION}, 1);
	tlv_put(
	    out, ISSUER_LISTENERS, (const uint8_t[]){1u << LISTENER_TUNNEL}, 1);
	tlv_put_u64(out, ISSUER_MAX_AGE_S, AGE_MAX_S);
	/* An ID token need not have a `typ`. */
	tlv_put(out, ISSUER_TYPE, "", 0);
	tlv_puts(out, ISSUER_TYPE, "jwt");
	tlv_put(out, ISSUER_SCOPES, (const uint8_t[]){0}, 1);
	tlv_put(out, ISSUER_ID_TOKENS, (const uint8_t[]){1}, 1);
	tlv_put(out, ISSUER_BOUND, (const uint8_t[]){0}, 1);
}

static bool
is_text(const struct doc_node *v, struct ipc_bytes text)
{
	return v != NULL && v->kind == DOC_STRING && text.n > 0 &&
	    v->len == text.n && memcmp(v->str, text.p, text.n) == 0;
}

/* Judges the claims that only an ID token has. */
static int
judge(const struct signin_question *q, struct ipc_bytes token, struct err *e)
{
	const struct doc_node *aud, *azp;
	struct jwt_parts parts;
	struct doc d = {0};
	int rc = -1;

	if (jwt_parts_cut(&parts, token, e) == -1)
		return -1;
	if (doc_parse(&d, parts.claims.p, parts.claims.n, e) == -1)
		goto out;
	aud = jwt_claims_get(&d, "aud");
	azp = jwt_claims_get(&d, "azp");
	if (!is_text(jwt_claims_get(&d, "nonce"), q->nonce))
		refuse(e,
		    "the token's `nonce` is not the one of this sign-in: it "
		    "was made for another one");
	else if (azp != NULL && !is_text(azp, q->client))
		refuse(e, "the token's `azp` is another client than ours");
	else if (azp == NULL && aud != NULL && aud->kind == DOC_ARRAY &&
	    aud->count > 1)
		refuse(e,
		    "the token has several audiences and no `azp` that says "
		    "for which client it was made");
	else
		rc = 0;
out:
	doc_free(&d);
	return rc;
}

/* Finds the token in the run's answer. */
static int
find_token(const struct doc *d, struct ipc_bytes *token, struct err *e)
{
	const struct doc_node *top = &d->node[0], *v;

	if (top->kind != DOC_OBJECT)
		return err_set(e, FAILURE_INTERNAL, "the run said no object");
	v = doc_get(d, top, "isError");
	if (v != NULL && v->kind == DOC_TRUE)
		return keys_run_failed(d, e);
	v = doc_get(d, top, "structuredContent");
	if (v != NULL && v->kind == DOC_OBJECT)
		v = doc_get(d, v, "id_token");
	if (v == NULL || v->kind != DOC_STRING || v->len > JWT_MAX)
		return err_set(e, FAILURE_INTERNAL, "the run said no token");
	*token = ipc_bytes(v->str, v->len);
	return 0;
}

void
check_signin(struct check *c, const struct signin_question *q)
{
	struct jwt_question jwt = {.listener = LISTENER_TUNNEL,
	    .via = VIA_AUTHORIZATION,
	    .now_us = q->now_us};
	struct buf record, issuers;
	struct doc d = {0};
	struct report r;
	struct err e;
	struct tlv f;
	int rc;

	check_begin(c, &r);
	buf_init(&record, RECORD_MAX);
	buf_init(&issuers, RECORD_MAX + 16);
	narrow(&record, q);
	tlv_put(&issuers, ACCESS_ISSUER, record.p, record.len);
	rc = doc_parse(&d, q->result.p, q->result.n, &e);
	if (rc == 0 && (record.failed || issuers.failed))
		rc = err_set(&e, FAILURE_BUSY, "out of memory");
	if (rc == 0)
		rc = find_token(&d, &jwt.token, &e);
	if (rc == 0) {
		check_end(c, &r, 0, FAILURE_UNAUTHENTICATED, "", &e);
		check_free(c);
		jwt.issuers = ipc_bytes(issuers.p, issuers.len);
		check_jwt(c, &jwt);
		if (!c->ok ||
		    tlv_find(c->fields.p, c->fields.len, JWT_NO_KEY, &f) == 1)
			goto out;
		if (judge(q, jwt.token, &e) == 0)
			goto out;
		check_free(c);
		check_begin(c, &r);
		rc = -1;
	}
	check_end(c, &r, rc, FAILURE_UNAUTHENTICATED, "the token", &e);
out:
	buf_free(&record);
	buf_free(&issuers);
	doc_free(&d);
}
