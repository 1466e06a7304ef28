/*
 * The bytes of a ledger's area as the next life of a process meets them: every
 * entry lies inside the area, they come one behind the other, and a record that
 * is taken out of one points into its own frame only.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* The mark of a file's head; the corpus is made with this one. */
#define MARK UINT64_C(0x0102030405060708)

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = data;
	struct ledger_scan s;
	struct ipc_record m;
	struct ipc_frame f;
	struct ipc_bytes b;
	bool lives;

	(void)ledger_begin(&s, data, n, MARK);
	while (ledger_next(&s, &b, &lives) == 1) {
		if (b.n == 0 || b.p < end || b.p + b.n > data + n)
			abort();
		end = b.p + b.n;
		if (ledger_decode(b, &f, &m) == 0 &&
		    m.stdout_result.n + m.intent.n + m.network.n > b.n)
			abort();
		ipc_frame_free(&f);
	}
	if (s.at > n && s.generation != 0 && end != data)
		abort();
	/* And the bytes as one record. */
	(void)ledger_decode(ipc_bytes(data, n), &f, &m);
	ipc_frame_free(&f);
	return 0;
}
