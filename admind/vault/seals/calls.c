#include <string.h>

#include "calls.h"
#include "ids.h"
#include "macs.h"
#include "tlv.h"

struct used {
	struct ipc_hash hash;
	uint64_t until_ms; /* CLOCK_BOOTTIME */
};

struct calls {
	struct ipc_id life;
	size_t n;
	struct used used[CALLS_USED_MAX];
};

struct calls *
calls_new(void)
{
	struct calls *c = keys_memory(sizeof(*c), NULL);

	if (c != NULL)
		id_random(&c->life);
	return c;
}

/*
 * The sealed fields are taken from the pre-image whose hash the person was
 * shown. The request's id is among them, so an approval of one request can't be
 * used for another request of the same content.
 */
int
calls_seal(const struct calls *c, const struct keys *k,
    const struct ipc_id *request, struct ipc_bytes preimage,
    struct ipc_bytes approver, const struct calls_time *now, struct buf *out,
    struct ipc_hash *hash, struct err *err)
{
	const uint64_t now_ms = now->unix_us / 1000;
	struct ipc_hash args;
	struct callreq r;
	struct buf w;

	if (callreq_read(preimage.p, preimage.n, &r, err) == -1)
		return -1;
	if (memcmp(r.request.b, request->b, sizeof(request->b)) != 0)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "the content is of another request");
	if (r.expires_ms <= now_ms)
		return err_set(
		    err, FAILURE_ALREADY_DECIDED, "the request has expired");
	if (r.expires_ms - now_ms > CALLREQ_LIFE_MAX_MS)
		return err_set(err, FAILURE_TOO_LARGE,
		    "a call's approval is good for a day at most");
	sha256(preimage.p, preimage.n, hash);
	sha256(r.arguments.p, r.arguments.n, &args);
	buf_init(&w, CALLS_SEAL_MAX);
	macs_open(k, &w);
	tlv_put(&w, CALLS_REQUEST, request->b, sizeof(request->b));
	tlv_put(&w, CALLS_HASH, hash->b, sizeof(hash->b));
	tlv_put(&w, CALLS_VERSION, r.version.b, sizeof(r.version.b));
	tlv_put(&w, CALLS_TOOL, r.tool.p, r.tool.n);
	tlv_put(&w, CALLS_PRINCIPAL, r.principal.p, r.principal.n);
	tlv_put_u64(&w, CALLS_LISTENER, r.listener);
	tlv_put(&w, CALLS_ARGS, args.b, sizeof(args.b));
	tlv_put_u64(&w, CALLS_EXPIRES_MS, r.expires_ms);
	tlv_put(&w, CALLS_APPROVER, approver.p, approver.n);
	tlv_put_u64(&w, CALLS_TIME_US, now->unix_us);
	tlv_put(&w, CALLS_LIFE, c->life.b, sizeof(c->life.b));
	tlv_put_u64(&w, CALLS_UNTIL_MS, now->boot_ms + (r.expires_ms - now_ms));
	if (macs_close(k, MACS_CALL, &w, err) == -1) {
		buf_free(&w);
		return err_set(err, FAILURE_BUSY, "out of memory");
	}
	buf_free(out);
	*out = w;
	return 0;
}

/* Returns whether the list has a field of this tag with this value. */
static bool
says(const uint8_t *fields, size_t n, uint8_t tag, const void *p, size_t len)
{
	struct tlv f;

	return tlv_find(fields, n, tag, &f) == 1 && f.n == len &&
	    ct_equal(f.p, p, len);
}

static bool
was_used(const struct calls *c, const struct ipc_hash *hash)
{
	for (size_t i = 0; i < c->n; i++)
		if (ct_equal(c->used[i].hash.b, hash->b, sizeof(hash->b)))
			return true;
	return false;
}

/*
 * The seal comes from admind, which may be hostile. admind may bring a seal of
 * its own making, a seal of a version (another label), of another call or of
 * another principal's same call, or a used or an expired seal. It may also wait
 * until the wall clock is set back.
 */
int
calls_check(struct calls *c, const struct keys *k, struct ipc_bytes seal,
    const struct calls_run *run, const struct calls_time *now,
    struct ipc_hash *hash, uint64_t *until_ms, struct err *err)
{
	uint64_t listener, expires_ms;
	const uint8_t *fields;
	struct tlv f;
	size_t n;

	if (seal.n == 0 || seal.n > CALLS_SEAL_MAX)
		return err_set(err, FAILURE_NOT_CONFIRMED,
		    "nobody has confirmed this call");
	if (macs_check(k, MACS_CALL, seal.p, seal.n, &fields, &n, err) == -1) {
		if (err != NULL && err->failure == FAILURE_NOT_APPROVED)
			err->failure = FAILURE_NOT_CONFIRMED;
		return err_wrap(err, "confirmation");
	}
	if (!says(fields, n, CALLS_VERSION, run->version.b,
		sizeof(run->version.b)) ||
	    !says(fields, n, CALLS_TOOL, run->tool.p, run->tool.n) ||
	    !says(fields, n, CALLS_PRINCIPAL, run->principal.p,
		run->principal.n) ||
	    !says(fields, n, CALLS_ARGS, run->args_sha256.p,
		run->args_sha256.n) ||
	    tlv_find(fields, n, CALLS_LISTENER, &f) != 1 ||
	    tlv_u64(&f, &listener) == -1 || listener != run->listener)
		return err_set(err, FAILURE_NOT_CONFIRMED,
		    "the confirmation is of another call");
	if (tlv_find(fields, n, CALLS_EXPIRES_MS, &f) != 1 ||
	    tlv_u64(&f, &expires_ms) == -1 ||
	    expires_ms <= now->unix_us / 1000 ||
	    tlv_find(fields, n, CALLS_UNTIL_MS, &f) != 1 ||
	    tlv_u64(&f, until_ms) == -1 || *until_ms <= now->boot_ms)
		return err_set(
		    err, FAILURE_NOT_CONFIRMED, "the confirmation has expired");
	if (!says(fields, n, CALLS_LIFE, c->life.b, sizeof(c->life.b)))
		return err_set(err, FAILURE_NOT_CONFIRMED,
		    "the confirmation is from before the vault's restart; the "
		    "call must be confirmed anew");
	if (tlv_find(fields, n, CALLS_HASH, &f) != 1 || f.n != sizeof(hash->b))
		return err_set(err, FAILURE_NOT_CONFIRMED,
		    "the confirmation names no call");
	memcpy(hash->b, f.p, sizeof(hash->b));
	if (was_used(c, hash))
		return err_set(err, FAILURE_NOT_CONFIRMED,
		    "the confirmation was used already");
	return 0;
}

int
calls_use(struct calls *c, const struct ipc_hash *hash, uint64_t until_ms,
    const struct calls_time *now, struct err *err)
{
	for (size_t i = 0; i < c->n;)
		if (c->used[i].until_ms <= now->boot_ms)
			c->used[i] = c->used[--c->n];
		else
			i++;
	if (c->n == CALLS_USED_MAX)
		return err_set(err, FAILURE_BUSY,
		    "too many confirmations were used of late");
	c->used[c->n].hash = *hash;
	c->used[c->n++].until_ms = until_ms;
	return 0;
}
