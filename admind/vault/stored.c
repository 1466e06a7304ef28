#include <string.h>

#include "ids.h"
#include "keys.h"
#include "stored.h"

enum {
	FORMAT = 1,
	HEAD_LEN = 1 + 1 + GCM_NONCE_LEN,
	AAD_MAX = 512 /* table and two names, each far below */
};

static int
make_aad(const struct stored_place *at, struct buf *aad, struct err *err)
{
	buf_init(aad, AAD_MAX);
	buf_put(aad, at->table, strlen(at->table) + 1);
	buf_put(aad, at->row.p, at->row.n);
	buf_put_u8(aad, 0);
	buf_put(aad, at->column.p, at->column.n);
	if (!aad->failed)
		return 0;
	buf_free(aad);
	return err_set(err, FAILURE_TOO_LARGE, "name of a value is too long");
}

int
stored_seal(const uint8_t key[KEY_LEN], const struct stored_place *at,
    const void *plain, size_t n, struct buf *out, struct err *err)
{
	uint8_t nonce[GCM_NONCE_LEN];
	struct buf aad, w;
	int rc = -1;

	if (make_aad(at, &aad, err) == -1)
		return -1;
	buf_init(&w, out->max);
	random_bytes(nonce, sizeof(nonce));
	buf_put_u8(&w, FORMAT);
	buf_put_u8(&w, KEYS_ID);
	buf_put(&w, nonce, sizeof(nonce));
	buf_reserve(&w, n + GCM_TAG_LEN);
	if (w.failed) {
		err_set(err, FAILURE_TOO_LARGE, "value is too large");
		goto out;
	}
	if (gcm_seal(key, nonce, aad.p, aad.len, plain, n, w.p + w.len, err) ==
	    -1)
		goto out;
	w.len += n + GCM_TAG_LEN;
	buf_free(out);
	*out = w;
	rc = 0;
out:
	if (rc == -1)
		buf_free(&w);
	buf_free(&aad);
	return rc;
}

int
stored_open(const uint8_t key[KEY_LEN], const struct stored_place *at,
    const uint8_t *p, size_t n, struct buf *out, struct err *err)
{
	struct buf aad, w;
	int rc = -1;

	if (n < STORED_OVERHEAD || p[0] != FORMAT || p[1] != KEYS_ID)
		return err_set(
		    err, FAILURE_FORBIDDEN, "stored value has an unknown form");
	if (make_aad(at, &aad, err) == -1)
		return -1;
	buf_init(&w, out->max);
	buf_reserve(&w, n - HEAD_LEN);
	if (w.failed) {
		err_set(err, FAILURE_TOO_LARGE, "stored value is too large");
		goto out;
	}
	if (gcm_open(key, p + 2, aad.p, aad.len, p + HEAD_LEN, n - HEAD_LEN,
		w.p, err) == -1) {
		err_wrap(err, "stored value");
		goto out;
	}
	w.len = n - STORED_OVERHEAD;
	buf_free(out);
	*out = w;
	rc = 0;
out:
	if (rc == -1)
		buf_free(&w);
	buf_free(&aad);
	return rc;
}
