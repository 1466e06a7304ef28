/*
 * The pre-image of one call as its readers meet it (bytes of a hostile admind):
 * what is taken has one form only, so writing it again gives the same bytes;
 * what is shown of it is one JSON object in ASCII.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "callreq.h"
#include "json_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct callreq r;
	struct buf b;

	if (callreq_read(data, n, &r, NULL) == -1)
		return 0;
	buf_init(&b, CALLREQ_MAX);
	if (callreq_write(&r, &b, NULL) == -1 || b.len != n ||
	    memcmp(b.p, data, n) != 0)
		abort();
	buf_free(&b);
	buf_init(&b, 8 * CALLREQ_MAX);
	if (callreq_json(data, n, &b, NULL) == 0) {
		if (!json_grammar_valid(b.p, b.len) || b.p[0] != '{')
			abort();
		for (size_t i = 0; i < b.len; i++)
			if (b.p[i] >= 0x80)
				abort();
	}
	buf_free(&b);
	return 0;
}
