/*
 * The access document on arbitrary bytes. The fields of a document that is
 * taken can be trusted: each record has its name, each rule its set, each key
 * its kind, and a token can be judged by them. A verdict that is not good has a
 * sentence and a list.
 */
#include <stdlib.h>

#include "access.h"
#include "access_fields.h"
#include "ipc_values.h"
#include "json_scan.h"
#include "jwt.h"
#include "jwt_issuer.h"
#include "jwt_key.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
keys(const struct jwt_issuer *is)
{
	struct jwt_issuer_key key;
	struct tlv_reader r;
	int rc, n = 0;

	jwt_issuer_open(is, &r);
	while ((rc = jwt_issuer_next_key(&r, &key)) == 1) {
		if (jwt_key_kind(key.spki) == JWT_KIND_NONE)
			abort();
		n++;
	}
	if (rc == -1 || (n == 0) != is->fetched || n > ACCESS_KEYS_MAX)
		abort();
}

static void
record(const struct tlv *f)
{
	struct jwt_issuer is;
	struct tlv found;

	switch (f->tag) {
	case ACCESS_RESOURCE:
		return;
	case ACCESS_ISSUER:
		if (jwt_issuer_read(ipc_bytes(f->p, f->n), &is) == -1)
			abort();
		keys(&is);
		return;
	case ACCESS_RULE:
		if (tlv_find(f->p, f->n, RULE_ISSUER, &found) != 1 ||
		    tlv_find(f->p, f->n, RULE_CLAIM, &found) != 1 ||
		    tlv_find(f->p, f->n, RULE_SET, &found) != 1)
			abort();
		return;
	case ACCESS_SET:
		if (tlv_find(f->p, f->n, SET_NAME, &found) != 1 ||
		    tlv_find(f->p, f->n, SET_SCOPE, &found) != 1)
			abort();
		return;
	default:
		abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static bool ready; /* libcrypto, for all inputs */
	struct jwt_question q = {.listener = LISTENER_TUNNEL};
	struct tlv_reader r;
	struct check c, j;
	struct tlv f;
	int rc;

	if (!ready && jwt_key_ready(NULL) == -1)
		abort();
	ready = true;
	check_access(&c, ipc_bytes(data, n));
	if (c.ok) {
		tlv_open(&r, c.fields.p, c.fields.len);
		while ((rc = tlv_next(&r, &f)) == 1)
			record(&f);
		if (rc == -1)
			abort();
		/* {"alg":"ES256"} . {"iss":"https://a"} . 0 */
		q.token = ipc_str(
		    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2EifQ.AAAA");
		q.issuers = ipc_bytes(c.fields.p, c.fields.len);
		check_jwt(&j, &q);
		if (j.ok || j.failure != FAILURE_UNAUTHENTICATED)
			abort();
		check_free(&j);
	} else if (c.summary[0] == '\0' ||
	    json_scan(c.errors.p, c.errors.len, NULL) == -1) {
		abort();
	}
	check_free(&c);
	return 0;
}
