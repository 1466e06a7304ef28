/*
 * What sandboxd does to a runner's JSON: members taken, secrets replaced.
 * Input: u8 n, n bytes of a secret's value, then the text. Properties: the
 * secret is gone; nothing grows; what was JSON stays JSON; without a secret
 * nothing changes; bodies are valid or refused. A text that needs more work
 * than REDACT_WORK is refused, too: its buffer fails, and nobody reads it
 * (buf.h).
 */
#include <stdlib.h>
#include <string.h>

#include "json_scan.h"
#include "json_grammar.h"
#include "redact.h"
#include "result.h"
#include "tlv.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* Any bytes: each secret is gone, nothing grows, what has none is unchanged. */
static void
bytes(struct redact *r, struct ipc_bytes text, struct ipc_bytes secret)
{
	struct buf out;
	int any;

	buf_init(&out, text.n + 1);
	any = redact_bytes(r, text, &out);
	if (out.failed) {
		if (any != 1 || out.len != 0)
			abort();
		goto out;
	}
	if (out.len > text.n ||
	    (!any &&
		(out.len != text.n ||
		    (text.n > 0 && memcmp(out.p, text.p, text.n) != 0))))
		abort();
	/* The mark can be part of a secret that is made of it. */
	if (secret.n >= REDACT_MIN && out.len > 0 &&
	    memchr(secret.p, '[', secret.n) == NULL &&
	    memchr(secret.p, ']', secret.n) == NULL &&
	    memmem(out.p, out.len, secret.p, secret.n) != NULL)
		abort();
	if (text.n > 0 && redact_cut(r, text, text.n / 2) > text.n)
		abort();
out:
	buf_free(&out);
}

static void
replace(struct redact *r, struct ipc_bytes text, bool may_change)
{
	struct buf out;
	int any;

	buf_init(&out, text.n + 1);
	any = redact_json(r, text, &out);
	if (any && !may_change)
		abort();
	if (out.failed
		? any != 1
		: out.len > text.n || !json_grammar_valid(out.p, out.len) ||
		    (!any &&
			(out.len != text.n ||
			    memcmp(out.p, text.p, text.n) != 0)))
		abort();
	buf_free(&out);
}

/* The runner's result, log and progress: valid JSON or refused. */
static void
pass_on(struct redact *r, struct ipc_bytes text)
{
	struct buf body;

	buf_init(&body, 2 * text.n + 256);
	if (result_take(text, CALL_TOOL, false, r, &body, NULL) == 0 &&
	    !body.failed && json_scan(body.p, body.len, NULL) == -1)
		abort();
	buf_clear(&body);
	if (result_progress(text, r, &body, NULL) == 0 && !body.failed &&
	    json_scan(body.p, body.len, NULL) == -1)
		abort();
	buf_clear(&body);
	/* One level deeper than it came. */
	if (result_log(1, ipc_str("n"), text, r, &body) == 0 && !body.failed &&
	    !json_grammar_valid(body.p, body.len))
		abort();
	buf_free(&body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct redact *with, *without;
	struct ipc_bytes text;
	struct buf tlv;
	size_t k;

	if (n == 0 || (k = data[0]) + 1 > n)
		return 0;
	text = ipc_bytes(data + 1 + k, n - 1 - k);
	buf_init(&tlv, 1024);
	tlv_put(&tlv, 2, data + 1, k);
	with = redact_new(tlv.p, tlv.len);
	without = redact_new(NULL, 0);
	if (with == NULL || without == NULL)
		abort();
	bytes(with, text, ipc_bytes(data + 1, k));
	if (json_scan(text.p, text.n, NULL) == 0) {
		replace(with, text, k >= REDACT_MIN);
		replace(without, text, false);
		pass_on(with, text);
		pass_on(without, text);
	}
	buf_free(&tlv);
	redact_free(with);
	redact_free(without);
	return 0;
}
