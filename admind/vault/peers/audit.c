#include <string.h>

#include "anchors.h"
#include "audit_row.h"
#include "log.h"
#include "vault.h"

/* Takes admind's answer for an event that no caller waits for. A failure must
 * at least be in our own log. */
static void
written(void *arg, struct ipc_frame *f, enum failure gone)
{
	if (f == NULL || f->type != IPC_OK)
		log_event(LOG_LV_WARN, "audit_lost",
		    "admind did not write an audit event");
}

/*
 * Each event also goes to our own log: a hostile admind can leave a row out of
 * its table, but not a line out of this process's journal.
 */
int
audit_event(struct vault *v, const char *actor, const char *action,
    const char *subject, const char *detail, ipc_answer_cb *cb, void *arg)
{
	struct ipc_audit_event e = {.actor = ipc_str(actor),
	    .action = ipc_str(action),
	    .subject = ipc_str(subject),
	    .detail = ipc_str(detail)};

	log_event(LOG_LV_INFO, action, "%s: %s %s", actor, subject, detail);
	if (callers_ask(
		v, IPC_AUDIT_EVENT, &e, cb != NULL ? cb : written, arg) == 0)
		return 0;
	log_event(LOG_LV_WARN, "audit_lost",
	    "admind is not there to write an audit event");
	return -1;
}

/*
 * Tells which signatures of the audit chain's heads are ours. uid 0 asks, to
 * prove the chain (mcpboxctl audit verify). The answer would be useless to
 * others: they could only learn whether a guess of 256 bits is right. The
 * answer also has the newest head, which an old backup or a chain that was cut
 * short lacks.
 */
static int
audit_check(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	enum { EACH = AUDIT_ANCHOR_LEN };
	uint8_t valid[AUDIT_CHECK_MAX];
	struct ipc_audit_checked answer;
	struct ipc_audit_check m;
	struct ipc_hash head, sig;
	size_t n;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	n = m.anchors.n / EACH;
	if (m.anchors.n % EACH != 0 || n > AUDIT_CHECK_MAX) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "not a list of anchors", 0);
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = m.anchors.p + i * EACH;
		uint64_t seq = 0;

		for (int k = 0; k < 8; k++)
			seq = seq << 8 | p[k];
		memcpy(head.b, p + 8, sizeof(head.b));
		memcpy(sig.b, p + 40, sizeof(sig.b));
		valid[i] =
		    anchors_check(port->v->keys, seq, &head, &sig) != NULL;
	}
	memset(&answer, 0, sizeof(answer));
	answer.valid = ipc_bytes(valid, n);
	answer.seq = port->v->audit_seq;
	answer.head = port->v->audit_head;
	(void)ipc_answer(peer, m.request, IPC_AUDIT_CHECKED, &answer);
	return 0;
}

int
audit_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	return f->type == IPC_AUDIT_CHECK ? audit_check(port, peer, f) : -1;
}
