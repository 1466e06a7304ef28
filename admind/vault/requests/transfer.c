/*
 * Exports: the SHA-256 of an export is sealed when the export leaves, and
 * recognised when it comes back.
 *
 * admind and uid 0 may ask. Both could have content of their choice sealed,
 * since they make it. A seal conveys that these bytes were an export of this
 * instance, or that uid 0 vouched for them here (mcpboxctl, after it checked a
 * transfer key). It grants nothing else: an import makes drafts. Seals of
 * exports have a label of their own, so such a seal can't pass for an approval.
 */
#include <string.h>

#include "macs.h"
#include "requests.h"

static int
sign(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_export_seal answer;
	struct ipc_export_sign m;
	struct buf seal;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	memset(&answer, 0, sizeof(answer));
	buf_init(&seal, MACS_OVERHEAD + sizeof(m.sha256.b));
	macs_open(port->v->keys, &seal);
	buf_put(&seal, m.sha256.b, sizeof(m.sha256.b));
	if (macs_close(port->v->keys, MACS_EXPORT, &seal, &err) == -1) {
		(void)ipc_refuse(
		    peer, m.request, FAILURE_BUSY, "out of memory", 0);
	} else {
		answer.seal = ipc_bytes(seal.p, seal.len);
		(void)ipc_answer(peer, m.request, IPC_EXPORT_SEAL, &answer);
	}
	buf_free(&seal);
	return 0;
}

static int
check(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_export_check m;
	const uint8_t *body;
	struct ipc_ok ok;
	struct err err;
	size_t n;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (macs_check(port->v->keys, MACS_EXPORT, m.seal.p, m.seal.n, &body,
		&n, &err) == -1 ||
	    n != sizeof(m.sha256.b) ||
	    memcmp(body, m.sha256.b, sizeof(m.sha256.b)) != 0) {
		(void)ipc_refuse(peer, m.request, FAILURE_FORBIDDEN,
		    "this instance did not sign these bytes with a key it has "
		    "now",
		    0);
		return 0;
	}
	memset(&ok, 0, sizeof(ok));
	(void)ipc_answer(peer, m.request, IPC_OK, &ok);
	return 0;
}

int
transfer_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	return f->type == IPC_EXPORT_SIGN ? sign(port, peer, f)
					  : check(port, peer, f);
}
