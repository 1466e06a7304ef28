/*
 * What sandboxd does to a runner's JSON: members taken, secrets replaced.
 * Input: u8 n, n bytes of a secret's value, then the text. Properties: what
 * was JSON stays JSON and grows by nothing but isError; without a secret
 * nothing changes.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_grammar.h"
#include "redact.h"
#include "result.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
replace(const struct redact *r, struct ipc_bytes text, bool may_change)
{
	struct buf out;
	int any;

	buf_init(&out, text.n + 1);
	any = redact_json(r, text, &out);
	if (out.failed || out.len > text.n ||
	    !json_grammar_valid(out.p, out.len) || (any && !may_change) ||
	    (!any && (out.len != text.n || memcmp(out.p, text.p, text.n) != 0)))
		abort();
	buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct redact *with, *without;
	struct ipc_bytes text;
	struct buf tlv, body;
	size_t k;

	if (n == 0 || (k = data[0]) + 1 > n)
		return 0;
	text = ipc_bytes(data + 1 + k, n - 1 - k);
	if (json_scan(text.p, text.n, NULL) == -1)
		return 0;
	buf_init(&tlv, 1024);
	tlv_put(&tlv, 2, data + 1, k);
	with = redact_new(tlv.p, tlv.len);
	without = redact_new(NULL, 0);
	if (with == NULL || without == NULL)
		abort();
	replace(with, text, k >= REDACT_MIN);
	replace(without, text, false);
	buf_init(&body, text.n + 64);
	if (result_take(text, false, &body, NULL) == 0 &&
	    (body.failed || json_scan(body.p, body.len, NULL) == -1))
		abort();
	buf_clear(&body);
	if (result_progress(text, &body, NULL) == 0 &&
	    (body.failed || json_scan(body.p, body.len, NULL) == -1))
		abort();
	buf_free(&body);
	buf_free(&tlv);
	redact_free(with);
	redact_free(without);
	return 0;
}
