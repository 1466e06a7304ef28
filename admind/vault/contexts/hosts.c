#include "hosts.h"

#include <string.h>

#include "bounds.h"
#include "context.h"
#include "grantreq.h"
#include "grants.h"
#include "netgrant.h"
#include "tlv.h"
#include "version.h"

int
hosts_take(const struct tlv *f, bool *open, size_t *n, struct err *err)
{
	if (f->tag != CTX_GRANT_SEAL && f->tag != CTX_GRANT_PREIMAGE) {
		if (*open)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "context material: a grant's seal and its content "
			    "must follow each other");
		return 0;
	}
	if (*open != (f->tag == CTX_GRANT_PREIMAGE))
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "context material: a grant's seal and its content must "
		    "follow each other");
	*open = f->tag == CTX_GRANT_SEAL;
	if (*open && ++*n > NET_GRANTS_MAX)
		return err_set(err, FAILURE_LIMIT,
		    "context material: more than %d network grants",
		    NET_GRANTS_MAX);
	return 1;
}

/*
 * Adds one grant. admind chooses the grants that it brings and may be hostile.
 * A grant is added only if
 *   - it bears our seal of grants over just these bytes. A seal of a version or
 *     of a call does not pass. A person was shown the bytes, or an automatic
 *     policy of a person covered them (decision 0038).
 *   - it grants network access to this server. A grant of another server is
 *     refused.
 * So admind can leave grants out, and can bring a grant that was revoked since
 * (decision 0037). It can do nothing else. Above all it can't add a host that
 * no person approved for this server.
 */
static int
put_grant(struct buf *out, const struct keys *k, struct ipc_bytes seal,
    struct ipc_bytes preimage, const struct ipc_id *server, struct err *err)
{
	const uint8_t *fields;
	struct grantreq g;
	struct buf line;
	size_t n;

	if (grants_check(k, seal, preimage, &fields, &n, err) == -1 ||
	    grantreq_read(preimage.p, preimage.n, &g, err) == -1)
		return -1;
	if (g.kind != GRANT_NETWORK ||
	    memcmp(g.server.b, server->b, sizeof(server->b)) != 0)
		return err_set(err, FAILURE_FORBIDDEN,
		    "a grant is not of this server's network access");
	buf_init(&line, NETGRANT_LINE_MAX + 1);
	buf_putf(&line, "%.*s %.*s %u", (int)g.proto.n, (const char *)g.proto.p,
	    (int)g.host.n, (const char *)g.host.p, (unsigned)g.port);
	if (line.failed)
		out->failed = true;
	else
		tlv_put(out, CTX_GRANT, line.p, line.len);
	buf_free(&line);
	return 0;
}

static int
put_grants(struct buf *out, const struct keys *k, struct ipc_bytes material,
    const struct ipc_id *server, struct err *err)
{
	struct ipc_bytes seal = ipc_bytes(NULL, 0);
	struct tlv_reader r;
	struct tlv f;

	tlv_put(out, CTX_SERVER_ID, server->b, sizeof(server->b));
	tlv_open(&r, material.p, material.n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == CTX_GRANT_SEAL)
			seal = ipc_bytes(f.p, f.n);
		else if (f.tag == CTX_GRANT_PREIMAGE &&
		    put_grant(out, k, seal, ipc_bytes(f.p, f.n), server, err) ==
			-1)
			return -1;
	return 0;
}

int
hosts_put(struct buf *out, const struct keys *k, struct ipc_bytes material,
    const uint8_t *fields, size_t nfields, struct err *err)
{
	struct ipc_id server;
	struct tlv_reader r;
	struct buf line;
	bool any = false;
	struct tlv f;
	int rc = 0;

	buf_init(&line, NETGRANT_LINE_MAX + 1);
	tlv_open(&r, fields, nfields);
	while (rc == 0 && tlv_next(&r, &f) == 1) {
		if (f.tag != VERSION_REQUIRE)
			continue;
		any = true;
		buf_clear(&line);
		rc = grantreq_need(ipc_bytes(f.p, f.n), &line, err);
		tlv_put(out, CTX_REQUIRE, line.p, line.len);
		out->failed |= line.failed;
	}
	buf_free(&line);
	if (rc == -1 || !any)
		return rc;
	if (tlv_find(fields, nfields, VERSION_SERVER_ID, &f) != 1 ||
	    f.n != sizeof(server.b))
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the version names no server");
	memcpy(server.b, f.p, f.n);
	return put_grants(out, k, material, &server, err);
}

int
hosts_grants(struct buf *out, const struct keys *k, struct ipc_bytes material,
    const struct ipc_id *server, struct err *err)
{
	return put_grants(out, k, material, server, err);
}
