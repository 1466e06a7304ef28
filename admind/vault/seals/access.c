#include "access.h"

#include <string.h>

#include "crypto.h"
#include "ids.h"
#include "tlv.h"

static int
read_body(const uint8_t *body, size_t n, struct access *a)
{
	struct tlv f;

	memset(a, 0, sizeof(*a));
	if (tlv_find(body, n, ACCESS_TAG_SERIAL, &f) != 1 ||
	    tlv_u64(&f, &a->serial) == -1 || a->serial == 0 ||
	    tlv_find(body, n, ACCESS_TAG_DOCUMENT, &f) != 1 ||
	    f.n != sizeof(a->document.b))
		return -1;
	memcpy(a->document.b, f.p, f.n);
	if (tlv_find(body, n, ACCESS_TAG_ACTOR, &f) != 1 || f.n == 0 ||
	    f.n > ACCESS_ACTOR_MAX)
		return -1;
	memcpy(a->actor, f.p, f.n);
	return 0;
}

int
access_read(const struct keys *k, struct ipc_bytes seal, struct access *out,
    struct err *err)
{
	const uint8_t *body;
	struct access a;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (seal.n == 0 || seal.n > ACCESS_SEAL_MAX)
		return err_set(
		    err, FAILURE_NOT_APPROVED, "there is no seal of ours");
	if (macs_check(k, MACS_ACCESS, seal.p, seal.n, &body, &n, err) == -1)
		return -1;
	if (read_body(body, n, &a) == -1)
		return err_set(
		    err, FAILURE_NOT_APPROVED, "the seal does not verify");
	*out = a;
	return 0;
}

bool
access_ahead(const struct access *a, uint64_t now)
{
	return serials_ahead(a->serial, now);
}

void
access_take(const struct access *seen, uint64_t now, struct access *newest)
{
	if (access_ahead(newest, now))
		memset(newest, 0, sizeof(*newest));
	if (!access_ahead(seen, now) && seen->serial > newest->serial)
		*newest = *seen;
}

int
access_make(const struct keys *k, const struct access *newest, uint64_t stored,
    const struct ipc_hash *document, struct ipc_bytes actor, uint64_t now,
    struct buf *out, struct access *made, struct err *err)
{
	struct access a;
	struct buf w;

	memset(&a, 0, sizeof(a));
	a.serial = serials_next(
	    access_ahead(newest, now) ? 0 : newest->serial, stored, now);
	if (actor.n == 0 || actor.n > ACCESS_ACTOR_MAX)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "an access document has an author");
	memcpy(a.actor, actor.p, actor.n);
	a.document = *document;
	buf_init(&w, ACCESS_SEAL_MAX);
	macs_open(k, &w);
	tlv_put_u64(&w, ACCESS_TAG_SERIAL, a.serial);
	tlv_put(&w, ACCESS_TAG_ACTOR, actor.p, actor.n);
	tlv_put(&w, ACCESS_TAG_DOCUMENT, document->b, sizeof(document->b));
	if (macs_close(k, MACS_ACCESS, &w, err) == -1) {
		buf_free(&w);
		return -1;
	}
	buf_free(out);
	*out = w;
	*made = a;
	return 0;
}

/*
 * admind may bring a document of its own making, or one that an administrator
 * replaced. The MAC refuses the first. The remembered serial refuses the
 * second, until the vault restarts.
 */
int
access_check(const struct keys *k, struct ipc_bytes seal,
    const struct ipc_hash *document, uint64_t now, struct access *newest,
    struct err *err)
{
	struct access a;

	if (access_read(k, seal, &a, err) == -1)
		return -1;
	if (!ct_equal(a.document.b, document->b, sizeof(document->b)))
		return err_set(err, FAILURE_HASH_MISMATCH,
		    "the seal is of another access document");
	if (access_ahead(&a, now))
		return err_set(err, FAILURE_CONFLICT,
		    "the access document is dated more than a day ahead of "
		    "this machine's clock");
	access_take(&a, now, newest);
	if (a.serial != newest->serial)
		return err_set(err, FAILURE_CONFLICT,
		    "the vault knows a newer access document than this one");
	return 0;
}
