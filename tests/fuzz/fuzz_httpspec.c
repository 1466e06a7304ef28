/*
 * Specifications of kind http, and OpenAPI documents, as admind-check reads
 * them. What it takes must hold together: what follows from a specification is
 * a schema of the subset, and an operation that was made is one that would be
 * taken by hand.
 */
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "ipc.h"
#include "management_tools.h"
#include "specs.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct ipc_bytes
must(const struct check *c, uint8_t tag)
{
	struct tlv t;

	if (tlv_find(c->fields.p, c->fields.len, tag, &t) != 1)
		abort();
	return ipc_bytes(t.p, t.n);
}

static void
spec(struct ipc_bytes text, unsigned confirm)
{
	struct check c, again;

	check_http(&c, confirm, text);
	if (c.ok) {
		check_schema(&again, must(&c, INSPECT_INPUT_SCHEMA));
		if (!again.ok || must(&c, INSPECT_REQUIRE).n == 0)
			abort();
		check_free(&again);
	}
	check_free(&c);
}

static void
document(struct ipc_bytes text)
{
	struct ipc_check_openapi m = {
	    .document_len = (uint32_t)text.n, .document_operations = text};
	struct check c, again;
	struct tlv_reader r;
	struct tlv f;

	check_openapi(&c, &m);
	if (c.ok) {
		tlv_open(&r, c.fields.p, c.fields.len);
		while (tlv_next(&r, &f) == 1) {
			if (f.tag != OPENAPI_SPEC)
				continue;
			check_http(&again, 0, ipc_bytes(f.p, f.n));
			if (!again.ok)
				abort();
			check_free(&again);
		}
	}
	check_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0)
		return 0;
	if (data[0] >= '0' && data[0] <= '2')
		spec(ipc_bytes(data + 1, n - 1), (unsigned)(data[0] - '0'));
	else
		document(ipc_bytes(data + 1, n - 1));
	return 0;
}
