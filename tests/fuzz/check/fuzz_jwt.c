/*
 * Signed tokens. The first byte chooses:
 *
 * T  the rest is a token, as a stranger sends it. No input has a signature of
 * the keys, so no token may be accepted. C  the rest are claims of a token that
 * is signed right. They are judged without the signature: an accepted person
 * must have a name of the characters ! to ~, and a time that is not over. B
 * likewise, of an issuer that binds its tokens: all members that bind must have
 * their form. I the rest are an issuer's fields. Broken ones are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "access_fields.h"
#include "ids.h"
#include "ipc_values.h"
#include "jwt.h"
#include "jwt_claims.h"
#include "jwt_key.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static const uint64_t now = UINT64_C(1800000000) * 1000000;

/* Two public keys of RFCs. No input of a fuzzer signs for them. */
static const char text[] =
    "{\"resource\":\"https://mcp.example.org/mcp\",\"issuers\":[{\"name\":"
    "\"pocket\",\"issuer\":\"https://id.example.org\",\"scopes\":\"token\","
    "\"types\":[\"\",\"jwt\",\"at+jwt\"],\"jwks\":{\"keys\":[{\"kty\":\"OKP\","
    "\"crv\":\"Ed25519\",\"kid\":\"d\",\"x\":"
    "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"},{\"kty\":\"EC\",\"crv\":"
    "\"P-256\",\"kid\":\"e\",\"x\":"
    "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\",\"y\":"
    "\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}}]}";

/* The number of bytes that each member of a bound token may have. */
static void
request(struct ipc_bytes record)
{
	static const size_t max[] = {[BOUND_METHOD] = JWT_METHOD_MAX,
	    [BOUND_URL] = JWT_URL_MAX,
	    [BOUND_BODY] = 32,
	    [BOUND_ID] = JWT_ID_MAX};
	struct tlv f;
	uint64_t us;

	for (int tag = BOUND_METHOD; tag <= BOUND_ID; tag++)
		if (tlv_find(record.p, record.n, (uint8_t)tag, &f) != 1 ||
		    f.n == 0 || f.n > max[tag] ||
		    (tag == BOUND_BODY && f.n != 32))
			abort();
	switch (tlv_find(record.p, record.n, BOUND_SESSION_EXP_US, &f)) {
	case 0:
		break;
	case 1:
		if (tlv_u64(&f, &us) == -1 || us <= now)
			abort();
		break;
	default:
		abort();
	}
}

static void
person(struct ipc_bytes name)
{
	if (name.n == 0 || name.n > JWT_SUB_MAX)
		abort();
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] < '!' || name.p[i] > '~')
			abort();
}

static void
token(const struct check *doc, const uint8_t *p, size_t n)
{
	struct jwt_question q = {.listener = LISTENER_TUNNEL,
	    .now_us = now,
	    .token = ipc_bytes(p, n),
	    .issuers = ipc_bytes(doc->fields.p, doc->fields.len)};
	struct check c;

	check_jwt(&c, &q);
	if (c.ok || c.failure != FAILURE_UNAUTHENTICATED ||
	    c.summary[0] == '\0')
		abort();
	check_free(&c);
}

static void
claims(const struct check *doc, bool bound, const uint8_t *p, size_t n)
{
	struct jwt_issuer is;
	struct buf fields;
	struct tlv f;
	uint64_t us;
	struct doc d;
	struct err e;

	if (tlv_find(doc->fields.p, doc->fields.len, ACCESS_ISSUER, &f) != 1 ||
	    jwt_issuer_read(ipc_bytes(f.p, f.n), &is) == -1)
		abort();
	is.bound = bound;
	buf_init(&fields, IPC_BLOB_MAX);
	if (doc_parse(&d, p, n, &e) == 0 && d.node[0].kind == DOC_OBJECT &&
	    jwt_claims_judge(&d, &is, now, &fields, &e) == 0 &&
	    jwt_person_read(&d, &is, &fields, &e) == 0) {
		if (tlv_find(fields.p, fields.len, JWT_SUB, &f) != 1)
			abort();
		person(ipc_bytes(f.p, f.n));
		if (tlv_find(fields.p, fields.len, JWT_EXP_US, &f) != 1 ||
		    tlv_u64(&f, &us) == -1 || us + is.leeway_s * 1000000 <= now)
			abort();
		if (tlv_find(fields.p, fields.len, JWT_BOUND, &f) != bound)
			abort();
		if (bound)
			request(ipc_bytes(f.p, f.n));
	}
	doc_free(&d);
	buf_free(&fields);
}

static void
issuer(const uint8_t *p, size_t n)
{
	struct jwt_question q = {.listener = LISTENER_TUNNEL, .now_us = now};
	struct check c;

	q.token =
	    ipc_str("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2EifQ.AAAA");
	q.issuers = ipc_bytes(p, n);
	check_jwt(&c, &q);
	if (c.ok)
		abort();
	check_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct check doc; /* kept for the next input */

	if (!doc.ok) {
		if (jwt_key_ready(NULL) == -1)
			abort();
		check_access(&doc, ipc_str(text));
		if (!doc.ok)
			abort();
	}
	if (n == 0)
		return 0;
	switch (data[0]) {
	case 'T':
		token(&doc, data + 1, n - 1);
		break;
	case 'C':
		claims(&doc, false, data + 1, n - 1);
		break;
	case 'B':
		claims(&doc, true, data + 1, n - 1);
		break;
	case 'I':
		issuer(data + 1, n - 1);
		break;
	}
	return 0;
}
