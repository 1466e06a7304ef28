/*
 * The text of a target of notifications: its parts are within it, the words
 * without the secret are its beginning, and are read again as the same target
 * without a secret, or are one that needs its secret.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
within(struct ipc_bytes whole, struct ipc_bytes part)
{
	if (part.n > 0 &&
	    (part.p < whole.p || part.n > whole.n ||
		(size_t)(part.p - whole.p) > whole.n - part.n))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ipc_bytes text = ipc_bytes(data, n);
	struct target t, again;

	if (target_read(text, &t) != NULL)
		return 0;
	within(text, t.words);
	within(text, t.url);
	within(text, t.host);
	within(text, t.server);
	within(text, t.secret);
	if (t.words.p != text.p || t.host.n == 0 || t.port == NULL ||
	    (t.server.n > 0) != (t.secret.n > 0) ||
	    memchr(text.p, '"', text.n) != NULL)
		abort();
	if (target_read(t.words, &again) == NULL) {
		if (again.kind != t.kind || again.secret.n > 0 ||
		    again.words.n != t.words.n || again.host.n != t.host.n)
			abort();
	} else if (t.kind != TARGET_WEBHOOK && t.kind != TARGET_MATRIX)
		abort();
	return 0;
}
