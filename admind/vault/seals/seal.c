#include <string.h>

#include "ids.h"
#include "seal.h"
#include "tlv.h"
#include "version.h"
#include "version_gate.h"

/* Checks that a content has the fields that name one tool; without them there
 * is nothing to approve. (version_check checks order and form, but not
 * completeness.) */
static int
complete(const uint8_t *fields, size_t n, struct err *err)
{
	static const uint8_t needed[] = {VERSION_SERVER_ID, VERSION_TOOL_ID,
	    VERSION_SERVER_NAME, VERSION_NAME, VERSION_EXPOSED_NAME,
	    VERSION_KIND};
	struct tlv f;

	for (size_t i = 0; i < sizeof(needed); i++)
		if (tlv_find(fields, n, needed[i], &f) != 1)
			return err_set(err, FAILURE_INVALID_PARAMS,
			    "version: %s is missing",
			    version_field(needed[i], NULL));
	return 0;
}

/*
 * The ids and the secrets' names are taken from the pre-image itself, not from
 * a peer's statement about it. version_check made sure that each field is there
 * once, in order and in its right form, so two readers can't see two meanings
 * in the same bytes. version_gate made sure that the lines of the version's
 * code are those that a reviewer reads. Versions that admind stored earlier are
 * checked as well.
 */
int
seal_make(const struct keys *k, const struct ipc_id *request,
    const uint8_t *preimage, size_t n, const struct seal_by *by,
    struct buf *out, struct ipc_hash *hash, struct err *err)
{
	const uint8_t *fields;
	struct tlv_reader r;
	struct ipc_hash h;
	struct tlv f;
	size_t nfields;
	struct buf w;
	int rc;

	if (version_check(preimage, n, &fields, &nfields, err) == -1 ||
	    complete(fields, nfields, err) == -1 ||
	    version_gate(fields, nfields, err) == -1)
		return -1;
	sha256(preimage, n, &h);
	buf_init(&w, SEAL_MAX);
	macs_open(k, &w);
	tlv_put(&w, SEAL_REQUEST, request->b, sizeof(request->b));
	tlv_open(&r, fields, nfields);
	while ((rc = tlv_next(&r, &f)) == 1) {
		if (f.tag == VERSION_SERVER_ID)
			tlv_put(&w, SEAL_SERVER_ID, f.p, f.n);
		else if (f.tag == VERSION_TOOL_ID)
			tlv_put(&w, SEAL_TOOL_ID, f.p, f.n);
	}
	tlv_put(&w, SEAL_VERSION_HASH, h.b, sizeof(h.b));
	tlv_open(&r, fields, nfields);
	while (rc != -1 && (rc = tlv_next(&r, &f)) == 1)
		if (f.tag == VERSION_SECRET)
			tlv_put(&w, SEAL_SECRET, f.p, f.n);
	tlv_put(&w, SEAL_APPROVER, by->approver.p, by->approver.n);
	tlv_put_u64(&w, SEAL_TIME_US, by->time_us);
	if (by->first.n > 0)
		tlv_put(&w, SEAL_FIRST, by->first.p, by->first.n);
	if (by->policy != 0)
		tlv_put_u64(&w, SEAL_POLICY, by->policy);
	if (rc == -1 || macs_close(k, MACS_VERSION, &w, err) == -1) {
		buf_free(&w);
		return err_set(
		    err, FAILURE_TOO_LARGE, "too many names for one approval");
	}
	buf_free(out);
	*out = w;
	*hash = h;
	return 0;
}

/*
 * The seal comes from admind, which may be hostile. admind may bring no seal, a
 * seal of its own making (the MAC fails), or a seal of another version (the
 * hash inside differs from the hash that is computed here over the bytes that
 * will run). It may also bring the old seal of a version that was revoked
 * since. That seal passes, because admind enforces revocation. So the worst
 * that admind can run is content that a human approved once.
 */
int
seal_check(const struct keys *k, const uint8_t *seal, size_t n,
    const uint8_t *preimage, size_t preimage_len, const uint8_t **fields,
    size_t *nfields, struct ipc_hash *hash, struct err *err)
{
	struct ipc_hash h;
	const uint8_t *body;
	size_t nbody;
	struct tlv f;

	if (macs_check(k, MACS_VERSION, seal, n, &body, &nbody, err) == -1)
		return err_wrap(err, "approval");
	sha256(preimage, preimage_len, &h);
	if (tlv_find(body, nbody, SEAL_VERSION_HASH, &f) != 1 ||
	    f.n != sizeof(h.b) || !ct_equal(f.p, h.b, sizeof(h.b)))
		return err_set(err, FAILURE_NOT_APPROVED,
		    "the approval seal is another version's");
	*fields = body;
	*nfields = nbody;
	*hash = h;
	return 0;
}

bool
seal_names_secret(const uint8_t *fields, size_t n, struct ipc_bytes name)
{
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, fields, n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == SEAL_SECRET && f.n == name.n &&
		    memcmp(f.p, name.p, name.n) == 0)
			return true;
	return false;
}
