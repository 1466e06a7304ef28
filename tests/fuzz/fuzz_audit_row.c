/*
 * Rows of the audit chain as admind brings them to mcpboxctl audit verify
 * (bytes of a hostile admind): what is taken is wholly inside what came, and
 * the hash is that of the bytes between.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit_row.h"
#include "crypto.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
inside(struct ipc_bytes part, const uint8_t *from, const uint8_t *to)
{
	if (part.p < from || part.p > to || part.n > (size_t)(to - part.p))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	enum { BEHIND = 8 + 32 + 32 + 4 }; /* the row's bytes */
	struct ipc_bytes rest = ipc_bytes(data, n);
	const uint8_t *begin = data;
	struct audit_row r;
	struct ipc_hash h;
	size_t len;

	while (audit_row_next(&rest, &r) == 1) {
		len = (size_t)(rest.p - begin) - BEHIND - 1 -
		    (r.anchored ? 64 : 0);
		inside(r.actor, begin, rest.p);
		inside(r.action, begin, rest.p);
		inside(r.subject, begin, rest.p);
		inside(r.detail, begin, rest.p);
		sha256_2(begin + 8, 32, begin + BEHIND, len, &h);
		if (memcmp(h.b, r.computed.b, sizeof(h.b)) != 0)
			abort();
		begin = rest.p;
	}
	return 0;
}
