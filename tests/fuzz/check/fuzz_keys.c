/*
 * The answer of a run that fetched keys, on arbitrary bytes. A set that is
 * taken has an age and 1 to 32 keys, each of a kind that verifies, and no two
 * with the same `kid`. A refusal has a sentence.
 */
#include <stdlib.h>
#include <string.h>

#include "access_fields.h"
#include "jwt_key.h"
#include "keys.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* Checks that a key before the one at `end` has not its `kid`. */
static void
unique(struct ipc_bytes fields, const uint8_t *end, const struct tlv *kid)
{
	struct tlv_reader r;
	struct tlv f, other;

	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &f) == 1 && f.p < end)
		if (f.tag == ISSUER_KEY &&
		    tlv_find(f.p, f.n, KEY_ID, &other) == 1 &&
		    other.n == kid->n && memcmp(other.p, kid->p, kid->n) == 0)
			abort();
}

static void
taken(struct ipc_bytes fields)
{
	struct tlv f, spki, kid;
	struct tlv_reader r;
	unsigned n = 0, ages = 0;
	uint64_t age;
	int rc;

	tlv_open(&r, fields.p, fields.n);
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (f.tag == KEYS_MAX_AGE_S) {
			if (tlv_u64(&f, &age) == -1)
				abort();
			ages++;
			continue;
		}
		if (f.tag != ISSUER_KEY ||
		    tlv_find(f.p, f.n, KEY_SPKI, &spki) != 1 ||
		    jwt_key_kind(ipc_bytes(spki.p, spki.n)) == JWT_KIND_NONE)
			abort();
		if (tlv_find(f.p, f.n, KEY_ID, &kid) == 1)
			unique(fields, f.p, &kid);
		n++;
	}
	if (rc == -1 || ages != 1 || n == 0 || n > ACCESS_KEYS_FETCHED_MAX)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static bool ready; /* libcrypto, for all inputs */
	struct check c;

	if (!ready && jwt_key_ready(NULL) == -1)
		abort();
	ready = true;
	check_keys(&c, ipc_bytes(data, n));
	if (c.ok)
		taken(ipc_bytes(c.fields.p, c.fields.len));
	else if (c.summary[0] == '\0')
		abort();
	check_free(&c);
	return 0;
}
