#include <string.h>

#include "ids.h"
#include "stored.h"

enum {
	FORMAT_FIRST = 1,
	FORMAT = 2,
	FIRST_HEAD_LEN = 1 + 1,
	HEAD_LEN = 1 + KEY_ID_LEN,
	AAD_MAX = 512 /* for the table and two names */
};

/* The tables' names in the AAD. These are the names that the tables first had,
 * so that values stored then still open. */
static const char *const tables[] = {
    [STORED_SECRETS] = "server_secrets",
    [STORED_VERIFIERS] = "administrators",
    [STORED_PASSKEYS] = "admin_passkeys",
};

static const uint8_t *
sub_key(const struct keys *k, enum stored_table table)
{
	return table == STORED_SECRETS ? k->secrets : k->verifiers;
}

static int
make_aad(const struct stored_place *at, struct buf *aad, struct err *err)
{
	buf_init(aad, AAD_MAX);
	buf_put(aad, tables[at->table], strlen(tables[at->table]) + 1);
	buf_put(aad, at->row.p, at->row.n);
	buf_put_u8(aad, 0);
	buf_put(aad, at->column.p, at->column.n);
	if (!aad->failed)
		return 0;
	buf_free(aad);
	return err_set(err, FAILURE_TOO_LARGE, "name of a value is too long");
}

int
stored_seal(const struct keys *k, const struct stored_place *at,
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
	buf_put(&w, k->id, sizeof(k->id));
	buf_put(&w, nonce, sizeof(nonce));
	buf_reserve(&w, n + GCM_TAG_LEN);
	if (w.failed) {
		err_set(err, FAILURE_TOO_LARGE, "value is too large");
		goto out;
	}
	if (gcm_seal(sub_key(k, at->table), nonce, aad.p, aad.len, plain, n,
		w.p + w.len, err) == -1)
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

/* Opens nonce, ciphertext and tag with one key. */
static int
open_by(const struct keys *k, const struct stored_place *at,
    const struct buf *aad, const uint8_t *p, size_t n, struct buf *w,
    struct err *err)
{
	if (gcm_open(sub_key(k, at->table), p, aad->p, aad->len,
		p + GCM_NONCE_LEN, n - GCM_NONCE_LEN, w->p, err) == -1)
		return -1;
	w->len = n - GCM_NONCE_LEN - GCM_TAG_LEN;
	return 0;
}

/* A value of FORMAT_FIRST names no key, so every valid key is tried. The key
 * whose GCM tag fits is the right one. */
int
stored_open(const struct keys *k, const struct stored_place *at,
    const uint8_t *p, size_t n, struct buf *out, struct err *err)
{
	bool first = n > FIRST_HEAD_LEN && p[0] == FORMAT_FIRST && p[1] == 1;
	size_t head = first ? FIRST_HEAD_LEN : HEAD_LEN;
	struct buf aad, w;
	int rc = -1;

	if (n < head + GCM_NONCE_LEN + GCM_TAG_LEN ||
	    (!first && p[0] != FORMAT))
		return err_set(
		    err, FAILURE_FORBIDDEN, "stored value has an unknown form");
	if (!first && (k = keys_find(k, p + 1)) == NULL)
		return err_set(err, FAILURE_FORBIDDEN,
		    "stored value is of a master key that is not here");
	if (make_aad(at, &aad, err) == -1)
		return -1;
	/* n still counts the tag, so the buffer may be longer than out->max by
	 * the tag. gcm_open writes the plaintext only. */
	buf_init(&w, out->max + GCM_TAG_LEN);
	buf_reserve(&w, n - head - GCM_NONCE_LEN);
	if (w.failed) {
		err_set(err, FAILURE_TOO_LARGE, "stored value is too large");
		goto out;
	}
	do
		rc = open_by(k, at, &aad, p + head, n - head, &w, err);
	while (rc == -1 && first && (k = k->also) != NULL);
	if (rc == -1) {
		err_wrap(err, "stored value");
		goto out;
	}
	w.max = out->max;
	buf_free(out);
	*out = w;
out:
	if (rc == -1)
		buf_free(&w);
	buf_free(&aad);
	return rc;
}
