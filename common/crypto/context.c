#include <string.h>

#include "context.h"
#include "bounds.h"

/*
 * The sealed form and its AAD, as context.h describes them.
 *
 * A context opens only where it should, for these reasons. Only the vault and
 * one process of sandboxd know the key; admind and gatewayd carry sealed
 * contexts but can neither read nor make a context. The AAD ties a context to
 * that process (epoch), to one execution, to the listener whose gateway may RUN
 * it and to its kind. So a context carried to another epoch, another id or
 * another listener does not open. sandboxd supplies the binding from its own
 * knowledge (its own epoch, the id and listener that HELD names), never from
 * the sealed bytes. Nonces are a counter that the vault never repeats under one
 * key.
 */
enum {
	FORMAT = 1,
	HEAD_LEN = 1 + GCM_NONCE_LEN,
	LABEL_LEN = sizeof("mcpbox context 1"), /* its NUL included */
	AAD_LEN = LABEL_LEN + 16 + 16 + 1 + 1
};

static void
make_aad(const struct context_binding *b, uint8_t aad[AAD_LEN])
{
	uint8_t *p = aad;

	memcpy(p, "mcpbox context 1", LABEL_LEN);
	p += LABEL_LEN;
	memcpy(p, b->epoch.b, 16);
	p += 16;
	memcpy(p, b->execution.b, 16);
	p += 16;
	*p++ = b->listener;
	*p = b->kind;
}

int
context_split(const uint8_t *p, size_t n, const uint8_t **nonce,
    const uint8_t **ct, size_t *ctlen, struct err *err)
{
	if (n < HEAD_LEN + GCM_TAG_LEN)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "sealed context is too short (%zu bytes)", n);
	if (n > IPC_BLOB_MAX)
		return err_set(err, FAILURE_TOO_LARGE,
		    "sealed context is too long (%zu bytes)", n);
	if (p[0] != FORMAT)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "sealed context has unknown format %u", p[0]);
	*nonce = p + 1;
	*ct = p + HEAD_LEN;
	*ctlen = n - HEAD_LEN;
	return 0;
}

int
context_seal(const uint8_t key[KEY_LEN], uint64_t counter,
    const struct context_binding *b, const void *plain, size_t n,
    struct buf *out, struct err *err)
{
	uint8_t aad[AAD_LEN], nonce[GCM_NONCE_LEN] = {0};
	struct buf w;

	for (int i = 0; i < 8; i++)
		nonce[4 + i] = (uint8_t)(counter >> (56 - 8 * i));
	make_aad(b, aad);
	/* Makes room first, then encrypts straight into it: the plaintext goes
	 * into no second buffer. */
	buf_init(&w, out->max);
	buf_put_u8(&w, FORMAT);
	buf_put(&w, nonce, sizeof(nonce));
	buf_reserve(&w, n + GCM_TAG_LEN);
	if (w.failed) {
		err_set(err, FAILURE_TOO_LARGE,
		    "context of %zu bytes is too large", n);
		goto fail;
	}
	if (gcm_seal(
		key, nonce, aad, sizeof(aad), plain, n, w.p + w.len, err) == -1)
		goto fail;
	w.len += n + GCM_TAG_LEN;
	buf_free(out);
	*out = w;
	return 0;
fail:
	buf_free(&w);
	return -1;
}

int
context_open(const uint8_t key[KEY_LEN], const struct context_binding *b,
    const uint8_t *sealed, size_t n, struct buf *out, struct err *err)
{
	const uint8_t *nonce = NULL, *ct = NULL;
	uint8_t aad[AAD_LEN];
	size_t ctlen = 0;
	struct buf w;

	if (context_split(sealed, n, &nonce, &ct, &ctlen, err) == -1)
		return -1;
	make_aad(b, aad);
	buf_init(&w, out->max);
	buf_reserve(&w, ctlen);
	if (w.failed) {
		buf_free(&w);
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	}
	if (gcm_open(key, nonce, aad, sizeof(aad), ct, ctlen, w.p, err) == -1) {
		buf_free(&w);
		return err_wrap(err, "context");
	}
	w.len = ctlen - GCM_TAG_LEN;
	buf_free(out);
	*out = w;
	return 0;
}
