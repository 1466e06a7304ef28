/*
 * Security argument. All bytes are a browser's, and so a stranger's. Whatever
 * they are, reading them touches nothing but a struct of fixed size: each
 * length is compared with the bytes that are left, and nothing may follow the
 * end. The data are worth nothing before a signature covers them, and a
 * registration's are believed on the word of a person just proven. So an
 * attestation statement would add the maker's word about the device, which no
 * rule of ours asks for; it is not even parsed.
 */
#include <string.h>

#include "authdata.h"
#include "cbor.h"

/* Bits of the flags (section 6.1). Bits 1 and 5 are reserved and mean nothing
 * to us. */
enum {
	FLAG_UP = 0x01,
	FLAG_UV = 0x04,
	FLAG_BE = 0x08,
	FLAG_BS = 0x10,
	FLAG_AT = 0x40,
	FLAG_ED = 0x80,
	FIXED = 32 + 1 + 4
};

static int
bad(struct err *err, const char *why)
{
	return err_set(err, FAILURE_INVALID_PARAMS,
	    "the authenticator data are not well formed: %s", why);
}

/* Reads AAGUID, u16 length, the credential's id and its key, and takes them off
 * b (section 6.5.1). The AAGUID names a kind of device and is not kept. */
static int
credential(struct ipc_bytes *b, struct authdata *d, struct err *err)
{
	size_t n;

	if (b->n < AUTHDATA_AAGUID + 2)
		return bad(err, "the credential is cut off");
	n = (size_t)b->p[AUTHDATA_AAGUID] << 8 | b->p[AUTHDATA_AAGUID + 1];
	*b =
	    ipc_bytes(b->p + AUTHDATA_AAGUID + 2, b->n - (AUTHDATA_AAGUID + 2));
	if (n == 0 || n > AUTHDATA_ID_MAX || n > b->n)
		return bad(err, "a credential id has 1 to 1023 bytes");
	d->id = ipc_bytes(b->p, n);
	*b = ipc_bytes(b->p + n, b->n - n);
	return authkey_read(b, &d->key, err);
}

int
authdata_read(
    struct ipc_bytes b, bool registers, struct authdata *out, struct err *err)
{
	struct authdata d = {0};
	uint64_t pairs;
	struct cbor c;
	unsigned flags;

	if (b.n < FIXED || b.n > AUTHDATA_MAX)
		return bad(err, "they have 37 to 4096 bytes");
	memcpy(d.rp_id.b, b.p, sizeof(d.rp_id.b));
	flags = b.p[32];
	for (int i = 0; i < 4; i++)
		d.sign_count = d.sign_count << 8 | b.p[33 + i];
	b = ipc_bytes(b.p + FIXED, b.n - FIXED);
	d.user_present = (flags & FLAG_UP) != 0;
	d.user_verified = (flags & FLAG_UV) != 0;
	d.backup_eligible = (flags & FLAG_BE) != 0;
	d.backed_up = (flags & FLAG_BS) != 0;
	if (d.backed_up && !d.backup_eligible)
		return bad(err, "backed up, but not eligible for it");
	if (((flags & FLAG_AT) != 0) != registers)
		return bad(err,
		    registers ? "there is no credential in them"
			      : "there is a credential in them");
	if (registers && credential(&b, &d, err) == -1)
		return -1;
	if ((flags & FLAG_ED) != 0) {
		cbor_open(&c, b);
		if (cbor_map(&c, &pairs) == -1)
			return bad(err, "the extensions are no map");
		cbor_open(&c, b);
		if (cbor_skip(&c) == -1)
			return bad(err, "the extensions are malformed");
		b = ipc_bytes(c.p, cbor_left(&c));
	}
	if (b.n != 0)
		return bad(err, "something follows them");
	*out = d;
	return 0;
}

int
authdata_attested(struct ipc_bytes b, struct authdata *out, struct err *err)
{
	static const char *const names[] = {"fmt", "attStmt", "authData"};
	struct ipc_bytes name, format, data = {0};
	unsigned seen = 0, i;
	uint64_t pairs;
	struct cbor c;

	cbor_open(&c, b);
	if (b.n > AUTHDATA_ATTESTATION_MAX || cbor_map(&c, &pairs) == -1 ||
	    pairs != 3)
		goto bad;
	while (pairs-- > 0) {
		if (cbor_text(&c, &name) == -1)
			goto bad;
		for (i = 0; i < 3 && !ipc_streq(name, names[i]);)
			i++;
		if (i == 3 || (seen & 1u << i) != 0)
			goto bad;
		seen |= 1u << i;
		if ((i == 0          ? cbor_text(&c, &format)
			    : i == 1 ? cbor_skip(&c)
				     : cbor_blob(&c, &data)) == -1)
			goto bad;
	}
	if (cbor_left(&c) == 0)
		return authdata_read(data, true, out, err);
bad:
	return err_set(err, FAILURE_INVALID_PARAMS,
	    "the attestation object is not the map of fmt, attStmt and "
	    "authData that WebAuthn defines");
}
