#include <string.h>

#include "ids.h"
#include "macs.h"

enum { FORMAT_FIRST = 1, FORMAT = 2 };

static const char *const labels[MACS_COUNT] = {
#define M(name, label) [MACS_##name] = label,
    MACS_PURPOSES(M)
#undef M
};

static int
mac(const struct keys *k, enum macs_purpose purpose, const uint8_t *p, size_t n,
    struct ipc_hash *out)
{
	const char *label = labels[purpose];
	struct buf b;
	int rc = -1;

	buf_init(&b, strlen(label) + 1 + MACS_MAX);
	buf_put(&b, label, strlen(label) + 1);
	buf_put(&b, p, n);
	if (!b.failed) {
		hmac_sha256(k->approvals, b.p, b.len, out);
		rc = 0;
	}
	buf_free(&b);
	return rc;
}

void
macs_open(const struct keys *k, struct buf *w)
{
	buf_put_u8(w, FORMAT);
	buf_put(w, k->id, sizeof(k->id));
}

int
macs_close(const struct keys *k, enum macs_purpose purpose, struct buf *w,
    struct err *err)
{
	struct ipc_hash m;

	if (!w->failed && mac(k, purpose, w->p, w->len, &m) == 0)
		buf_put(w, m.b, sizeof(m.b));
	else
		w->failed = true;
	return w->failed
	    ? err_set(err, FAILURE_TOO_LARGE, "too much for one approval")
	    : 0;
}

/* Returns whether the MAC is right under this one key: 1, 0, or -1 without
 * memory. */
static int
holds(const struct keys *k, enum macs_purpose purpose, const uint8_t *seal,
    size_t n)
{
	struct ipc_hash m;

	if (mac(k, purpose, seal, n - MACS_LEN, &m) == -1)
		return -1;
	return ct_equal(m.b, seal + n - MACS_LEN, MACS_LEN);
}

/* A seal of FORMAT_FIRST names no key, so every valid key is tried. */
int
macs_check(const struct keys *k, enum macs_purpose purpose, const uint8_t *seal,
    size_t n, const uint8_t **body, size_t *nbody, struct err *err)
{
	size_t head = n > 0 && seal[0] == FORMAT ? MACS_HEAD_LEN : 1;
	int rc = 0;

	if (n < head + MACS_LEN || n > MACS_MAX ||
	    (seal[0] != FORMAT && seal[0] != FORMAT_FIRST))
		return err_set(
		    err, FAILURE_NOT_APPROVED, "there is no seal of ours");
	if (seal[0] == FORMAT) {
		k = keys_find(k, seal + 1);
		rc = k != NULL ? holds(k, purpose, seal, n) : 0;
	} else {
		for (; k != NULL && rc == 0; k = k->also)
			rc = holds(k, purpose, seal, n);
	}
	if (rc == -1)
		return err_set(err, FAILURE_BUSY, "out of memory");
	if (rc == 0)
		return err_set(
		    err, FAILURE_NOT_APPROVED, "the seal does not verify");
	*body = seal + head;
	*nbody = n - head - MACS_LEN;
	return 0;
}

int
macs_renew(const struct keys *k, enum macs_purpose purpose, const uint8_t *seal,
    size_t n, struct buf *out, struct err *err)
{
	const uint8_t *body = NULL;
	size_t nbody = 0;
	struct buf w;

	if (macs_check(k, purpose, seal, n, &body, &nbody, err) == -1)
		return -1;
	buf_init(&w, MACS_MAX);
	macs_open(k, &w);
	buf_put(&w, body, nbody);
	if (macs_close(k, purpose, &w, err) == -1) {
		buf_free(&w);
		return -1;
	}
	buf_free(out);
	*out = w;
	return 0;
}
