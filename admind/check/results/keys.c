/*
 * Security argument.
 *
 * Here the keys of an issuer are read for the first time. Its server wrote
 * them, and a run that heard that server brought them. Whoever controls either
 * becomes every person of this issuer, and of no other: admind knows for which
 * issuer it asked.
 *
 * A set for everyone has keys that we can't use, so they are left out, and are
 * no faults. Each key that is taken passed the checks of a key that an
 * administrator gives (access_key.c). Sizes and numbers are bounded before
 * anything is compared.
 */
#include <string.h>

#include "access_key.h"
#include "bounds.h"
#include "keys.h"
#include "signin_fields.h"
#include "tlv.h"

enum { SENTENCE_MAX = 300 }; /* bytes of a run's own words */

int
keys_run_failed(const struct doc *d, struct err *e)
{
	const struct doc_node *content = doc_get(d, &d->node[0], "content");
	const struct doc_node *text = NULL;

	if (content != NULL && content->kind == DOC_ARRAY &&
	    content->count > 0 && doc_kid(d, content, 0)->kind == DOC_OBJECT)
		text = doc_get(d, doc_kid(d, content, 0), "text");
	if (text == NULL || text->kind != DOC_STRING)
		return err_set(e, FAILURE_UPSTREAM, "the run failed");
	return err_set(e, FAILURE_UPSTREAM, "%.*s",
	    text->len < SENTENCE_MAX ? (int)text->len : SENTENCE_MAX,
	    (const char *)text->str);
}

static int
read_set(const struct doc_node *text, struct buf *fields, struct err *e)
{
	struct access_doc a = {0};
	struct report quiet;
	struct doc d = {0};
	struct err why;
	int rc = -1;

	if (text->len > ACCESS_KEYS_BYTES_MAX) {
		err_set(e, FAILURE_TOO_LARGE,
		    "the key set has more than %d bytes",
		    ACCESS_KEYS_BYTES_MAX);
	} else if (doc_parse(&d, text->str, text->len, &why) == -1) {
		err_set(e, FAILURE_UPSTREAM, "the key set is not JSON: %s",
		    why.text);
	} else {
		report_open(&quiet, NULL);
		a = (struct access_doc){.d = &d, .r = &quiet, .fields = fields};
		rc = access_key_fetched(&a, fields, e);
	}
	doc_free(&d);
	return rc;
}

/* Reads how people sign in at this issuer. An address goes into a browser, so
 * it is https and printable ASCII that needs no escape. The run has compared
 * its host with those of the document, and admind does so again. */
static void
read_sign_in(
    struct access_doc *a, const struct access_at *said, struct buf *fields)
{
	struct access_at at = access_get(a, said, "sign_in"), url, iss, fault;
	static const char scheme[] = "https://";
	bool good;

	if (at.v == NULL || at.v->kind != DOC_OBJECT)
		return;
	url = access_get(a, &at, "url");
	iss = access_get(a, &at, "iss");
	fault = access_get(a, &at, "fault");
	good = url.v != NULL && url.v->kind == DOC_STRING &&
	    url.v->len < SIGN_IN_URL_MAX && url.v->len >= sizeof(scheme) &&
	    memcmp(url.v->str, scheme, sizeof(scheme) - 1) == 0;
	for (size_t i = 0; good && i < url.v->len; i++)
		good = url.v->str[i] > ' ' && url.v->str[i] <= '~' &&
		    strchr("\"#<>\\^`{|}", url.v->str[i]) == NULL;
	if (good) {
		tlv_put(fields, KEYS_SIGN_IN_URL, url.v->str, url.v->len);
		access_put_u8(fields, KEYS_SIGN_IN_ISS,
		    iss.v != NULL && iss.v->kind == DOC_TRUE);
	} else if (fault.v != NULL && fault.v->kind == DOC_STRING &&
	    fault.v->len > 0 && fault.v->len <= SENTENCE_MAX) {
		tlv_put(fields, KEYS_SIGN_IN_FAULT, fault.v->str, fault.v->len);
	} else {
		tlv_puts(fields, KEYS_SIGN_IN_FAULT,
		    "the issuer's metadata do not say where people sign in");
	}
}

static int
read_result(
    const struct doc *d, struct report *r, struct buf *fields, struct err *e)
{
	struct access_doc a = {.d = d, .r = r, .fields = fields};
	const struct access_at top = {.v = &d->node[0], .root = true};
	const struct doc_node *failed;
	struct access_at said, keys, age;

	if (top.v->kind != DOC_OBJECT)
		return err_set(e, FAILURE_INTERNAL, "the run said no object");
	failed = doc_get(d, top.v, "isError");
	if (failed != NULL && failed->kind == DOC_TRUE)
		return keys_run_failed(d, e);
	said = access_get(&a, &top, "structuredContent");
	if (said.v == NULL || said.v->kind != DOC_OBJECT)
		return err_set(e, FAILURE_INTERNAL, "the run said no keys");
	keys = access_get(&a, &said, "keys");
	age = access_get(&a, &said, "max_age");
	if (keys.v == NULL || keys.v->kind != DOC_STRING)
		return err_set(e, FAILURE_INTERNAL, "the run said no keys");
	tlv_put_u64(
	    fields, KEYS_MAX_AGE_S, access_number(&a, &age, UINT32_MAX, 0));
	read_sign_in(&a, &said, fields);
	return read_set(keys.v, fields, e);
}

void
check_keys(struct check *c, struct ipc_bytes result)
{
	struct doc d = {0};
	struct report r;
	struct err e;
	int rc;

	check_begin(c, &r);
	rc = doc_parse(&d, result.p, result.n, &e);
	if (rc == 0)
		rc = read_result(&d, &r, &c->fields, &e);
	check_end(c, &r, rc, FAILURE_INTERNAL, "the run's answer", &e);
	doc_free(&d);
}
