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
