/*
 * Security argument.
 *
 * These members decide where a run of ours connects. The vault finds each one
 * in the sealed text again, as bytes, and grants no other host
 * (admind/vault/contexts/fetch.c). So each must be there as it is, without
 * escapes. A run reaches a private address only if the document has the address
 * itself; egress judges that (decision 0097).
 */
#include <string.h>

#include "access_form.h"
#include "access_source.h"
#include "tlv.h"

void
access_source_plain(struct access_doc *a, const struct access_at *at)
{
	if (at->v != NULL && at->v->kind == DOC_STRING &&
	    at->v->rawlen != at->v->len + 2)
		access_fault(a, at, "must be written without escapes");
}

static void
hosts(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	static const struct access_list list = {1, ACCESS_KEY_HOSTS_MAX,
	    access_form_key_host,
	    "must have an entry: leave it out for the issuer's host alone"};

	if (at->v == NULL || !access_texts(a, at, &list))
		return;
	for (uint32_t i = 0; i < at->v->count; i++) {
		struct access_at one = access_entry(a, at, i);

		access_source_plain(a, &one);
	}
	access_put_texts(a, at, record, ISSUER_KEYS_HOST);
}

/* Puts the issuer's own URL as the address to ask. */
static void
discovery(struct access_doc *a, const struct access_at *issuer,
    const struct access_at *at, struct buf *record)
{
	struct access_at url = access_get(a, issuer, "issuer");
	const char *fault;

	if (at->v->kind != DOC_TRUE) {
		access_fault(a, at, "must be true, or absent");
		return;
	}
	access_source_plain(a, &url);
	/* A text of another kind was reported already. */
	if (url.v == NULL || url.v->kind != DOC_STRING)
		return;
	if ((fault = access_form_jwks_url(url.v->str, url.v->len)) != NULL) {
		report_add(a->r, &at->path,
		    "needs an `issuer` that can be asked: it %s", fault);
		return;
	}
	tlv_put(record, ISSUER_KEYS_URL, url.v->str, url.v->len);
	access_put_u8(record, ISSUER_DISCOVERY, 1);
}

bool
access_source_read(
    struct access_doc *a, const struct access_at *issuer, struct buf *record)
{
	struct access_at given = access_get(a, issuer, "jwks");
	struct access_at url = access_get(a, issuer, "jwks_url");
	struct access_at found = access_get(a, issuer, "discovery");
	struct access_at further = access_get(a, issuer, "key_hosts");
	unsigned n = (given.v != NULL) + (url.v != NULL) + (found.v != NULL);

	if (n != 1) {
		report_add(a->r, &issuer->path,
		    "must have exactly one of \"jwks\", \"jwks_url\" and "
		    "\"discovery\"");
		return false;
	}
	if (given.v != NULL) {
		if (further.v != NULL)
			access_fault(
			    a, &further, "must be absent: no keys are fetched");
		return false;
	}
	if (url.v != NULL) {
		access_source_plain(a, &url);
		if (access_text(a, &url, access_form_jwks_url))
			tlv_put(
			    record, ISSUER_KEYS_URL, url.v->str, url.v->len);
	} else {
		discovery(a, issuer, &found, record);
	}
	hosts(a, &further, record);
	return true;
}
