#include "grants.h"

#include <string.h>

#include "ids.h"
#include "tlv.h"

static void
put_by(struct buf *w, const struct seal_by *by)
{
	tlv_put(w, GRANTS_APPROVER, by->approver.p, by->approver.n);
	if (by->first.n > 0)
		tlv_put(w, GRANTS_FIRST, by->first.p, by->first.n);
	if (by->policy != 0)
		tlv_put_u64(w, GRANTS_POLICY, by->policy);
	tlv_put_u64(w, GRANTS_TIME_US, by->time_us);
}

static void
put_text(struct buf *w, uint8_t tag, struct ipc_bytes text)
{
	tlv_put(w, tag, text.p, text.n);
}

/*
 * The sealed fields are taken from the pre-image whose hash the person was
 * shown. Every program reads it with grantreq_read(), which is strict. The
 * request's id is among the sealed fields, so an approval of one request can't
 * be used for another request of the same content (for example when the grant
 * was asked for again after a refusal).
 */
int
grants_seal(const struct keys *k, const struct ipc_id *request,
    struct ipc_bytes preimage, const struct seal_by *by, struct buf *out,
    struct ipc_hash *hash, struct err *err)
{
	struct grantreq g;
	struct ipc_hash h;
	struct buf w;

	if (grantreq_read(preimage.p, preimage.n, &g, err) == -1)
		return -1;
	if (memcmp(g.request.b, request->b, sizeof(request->b)) != 0)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "the content is of another request");
	if (g.kind == GRANT_MODULE && !g.recorded)
		return err_set(err, FAILURE_MISSING_GRANT,
		    "the module is in no store: `mcpboxctl modules installs` "
		    "tells why, `mcpboxctl modules add` records one by hand");
	sha256(preimage.p, preimage.n, &h);
	buf_init(&w, MACS_MAX);
	macs_open(k, &w);
	tlv_put(&w, GRANTS_REQUEST, request->b, sizeof(request->b));
	tlv_put(&w, GRANTS_HASH, h.b, sizeof(h.b));
	tlv_put_u64(&w, GRANTS_KIND, g.kind);
	tlv_put(&w, GRANTS_SERVER_ID, g.server.b, sizeof(g.server.b));
	if (g.kind == GRANT_MODULE) {
		tlv_put(&w, GRANTS_TOOL_ID, g.tool.b, sizeof(g.tool.b));
		put_text(&w, GRANTS_NAME, g.name);
		put_text(&w, GRANTS_VERSION, g.version);
		tlv_put(&w, GRANTS_DIGEST, g.digest.b, sizeof(g.digest.b));
	} else {
		put_text(&w, GRANTS_PROTO, g.proto);
		put_text(&w, GRANTS_HOST, g.host);
		tlv_put_u64(&w, GRANTS_PORT, g.port);
	}
	put_by(&w, by);
	if (macs_close(k, MACS_GRANT, &w, err) == -1) {
		buf_free(&w);
		return -1;
	}
	buf_free(out);
	*out = w;
	*hash = h;
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

int
grants_check(const struct keys *k, struct ipc_bytes seal,
    struct ipc_bytes preimage, const uint8_t **fields, size_t *n,
    struct err *err)
{
	struct ipc_hash h;
	const uint8_t *f;
	size_t nf;

	if (macs_check(k, MACS_GRANT, seal.p, seal.n, &f, &nf, err) == -1)
		return -1;
	sha256(preimage.p, preimage.n, &h);
	if (!says(f, nf, GRANTS_HASH, h.b, sizeof(h.b)))
		return err_set(
		    err, FAILURE_NOT_APPROVED, "the seal is another grant's");
	*fields = f;
	*n = nf;
	return 0;
}

int
grants_first_seal(const struct keys *k, const struct ipc_id *request,
    const struct ipc_hash *hash, struct ipc_bytes approver, uint64_t time_us,
    struct buf *out, struct err *err)
{
	struct buf w;

	buf_init(&w, MACS_MAX);
	macs_open(k, &w);
	tlv_put(&w, GRANTS_REQUEST, request->b, sizeof(request->b));
	tlv_put(&w, GRANTS_HASH, hash->b, sizeof(hash->b));
	put_text(&w, GRANTS_APPROVER, approver);
	tlv_put_u64(&w, GRANTS_TIME_US, time_us);
	if (macs_close(k, MACS_FIRST, &w, err) == -1) {
		buf_free(&w);
		return -1;
	}
	buf_free(out);
	*out = w;
	return 0;
}

/*
 * The first approval comes from admind. It may be of admind's own making (the
 * MAC fails), of another purpose (another label), or of another request. It may
 * also approve an earlier content that this request superseded (another id and
 * another hash).
 */
int
grants_first_check(const struct keys *k, struct ipc_bytes first,
    const struct ipc_id *request, const struct ipc_hash *hash,
    struct ipc_bytes *approver, struct err *err)
{
	const uint8_t *fields;
	struct tlv f;
	size_t n;

	if (macs_check(k, MACS_FIRST, first.p, first.n, &fields, &n, err) == -1)
		return -1;
	if (!says(fields, n, GRANTS_REQUEST, request->b, sizeof(request->b)) ||
	    !says(fields, n, GRANTS_HASH, hash->b, sizeof(hash->b)) ||
	    tlv_find(fields, n, GRANTS_APPROVER, &f) != 1 || f.n == 0)
		return err_set(err, FAILURE_NOT_APPROVED,
		    "the first approval is of another request");
	*approver = ipc_bytes(f.p, f.n);
	return 0;
}
