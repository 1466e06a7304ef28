/*
 * ACCESS_SET and ACCESS_CHECK.
 *
 * The access document decides which strangers become users, so it is set by an
 * administrator's login that we know and whose proof is fresh (fresh.h), or by
 * uid 0. admind may not send ACCESS_SET. A taken-over admind gains nothing by
 * ACCESS_CHECK: it learns only whether a seal that it holds is ours. Rows that
 * somebody wrote into the database, and rows of an old backup, open no door
 * either. An honest admind uses no document without our seal, and no document
 * older than the newest that we saw. A restart of the vault forgets the newest
 * one.
 *
 * We do not parse the document. admind has admind-check parse it before it
 * commits, and answers us with the errors.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "bounds.h"
#include "ids.h"
#include "log.h"
#include "requests.h"

struct access_op {
	struct vault *v;
	struct vault_ref ref;
	struct buf document;
	struct ipc_hash hash, seen;
	char actor[ACCESS_ACTOR_MAX + 1];
	struct access made;
};

static void
op_free(struct access_op *op)
{
	op->v->ops--;
	buf_free(&op->document);
	free(op);
}

static void
refuse(struct access_op *op, enum failure failure, const char *message)
{
	callers_refuse(op->v, op->ref, failure, message);
	op_free(op);
}

/* Takes admind's answer. A document that was not committed does not hold, and
 * the one before goes on to hold. */
static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct access_op *op = arg;
	const struct access *a = &op->made;
	struct ipc_access_state s = {0};

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	}
	access_take(a, now_us(), &op->v->access);
	log_event(LOG_LV_INFO, "access_set", "%s: %zu bytes", a->actor,
	    op->document.len);
	s.serial = a->serial;
	s.actor = ipc_str(a->actor);
	s.document = a->document;
	callers_answer(op->v, op->ref, IPC_ACCESS_STATE, &s);
	op_free(op);
}

static void
store(struct access_op *op, const struct ipc_access_sealed *over)
{
	struct ipc_access_store m = {0};
	struct buf seal;
	struct err err;

	buf_init(&seal, ACCESS_SEAL_MAX);
	if (access_make(op->v->keys, &op->v->access, over->serial, &op->hash,
		ipc_str(op->actor), now_us(), &seal, &op->made, &err) == -1) {
		buf_free(&seal);
		refuse(op, err.failure, err.text);
		return;
	}
	m.serial = op->made.serial;
	m.actor = ipc_str(op->actor);
	m.seal = ipc_bytes(seal.p, seal.len);
	m.over = over->document;
	m.document = ipc_bytes(op->document.p, op->document.len);
	if (callers_ask(op->v, IPC_ACCESS_STORE, &m, on_stored, op) == -1)
		refuse(op, FAILURE_BUSY, "admind is not connected");
	buf_free(&seal);
}

static bool
same(const struct ipc_hash *a, const struct ipc_hash *b)
{
	return ct_equal(a->b, b->b, sizeof(a->b));
}

/*
 * Compares the document that the administrator saw with the stored row. People
 * are shown this row, so a change that was made from it is accepted, even if it
 * has no seal of ours or is older than the newest document that we know. Such a
 * row opens no door, and the new document replaces it. Otherwise the row would
 * lock administrators out. A change that was made from the newest document that
 * we know is accepted, too.
 *
 * An attacker that writes rows gains nothing by it, and a hostile admind gains
 * nothing either. The comparison only saves an administrator from undoing
 * another's change. We seal the bytes that the administrator sent, and no part
 * of the row. Their serial is above that of the newest document that we know,
 * so no older one holds again. A row's serial only raises it, by a day at most
 * (serials_next()).
 *
 * Two changes can be here at the same time, each made from the same row. The
 * database stores the one that comes first, and refuses the other, because
 * another row is there then (access_store() in SQL).
 */
static void
on_loaded(void *arg, struct ipc_frame *f, enum failure gone)
{
	static const struct ipc_hash none;
	struct access_op *op = arg;
	struct access was = {0};
	struct ipc_access_sealed s;
	struct err err;

	if (f == NULL || f->type != IPC_ACCESS_SEALED ||
	    ipc_decode(f, &s, NULL) == -1) {
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	}
	if (access_read(op->v->keys, s.seal, &was, &err) == -1 &&
	    err.failure == FAILURE_BUSY) {
		refuse(op, err.failure, err.text);
		return;
	}
	access_take(&was, now_us(), &op->v->access);
	if (same(&op->seen, &s.document) ||
	    (!same(&op->seen, &none) &&
		same(&op->seen, &op->v->access.document)))
		store(op, &s);
	else if (same(&op->seen, &none))
		refuse(op, FAILURE_HASH_REQUIRED,
		    "there is an access document: name the hash of what was "
		    "read");
	else
		refuse(op, FAILURE_HASH_MISMATCH,
		    "the access document was changed meanwhile: read it again");
}

static int
set(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_access_load load = {0};
	struct ipc_access_set m;
	struct access_op *op;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (!callers_room(port) || (op = calloc(1, sizeof(*op))) == NULL) {
		callers_refuse(port->v, callers_ref(port, peer, m.request),
		    FAILURE_BUSY, "too many requests at once");
		return 0;
	}
	port->v->ops++;
	op->v = port->v;
	op->ref = callers_ref(port, peer, m.request);
	buf_init(&op->document, ACCESS_DOCUMENT_MAX);
	if (policies_who(port, m.token, f->type, "the access document",
		op->actor, &err) == -1) {
		policies_refused(port, op->actor, "access_refused",
		    "access document", err.failure);
		refuse(op, err.failure, err.text);
		return 0;
	}
	if (m.document.n == 0) {
		refuse(op, FAILURE_INVALID_PARAMS,
		    "the access document is empty: {} turns signed tokens off");
		return 0;
	}
	buf_put(&op->document, m.document.p, m.document.n);
	if (op->document.failed) {
		refuse(op, FAILURE_BUSY, "out of memory");
		return 0;
	}
	sha256(m.document.p, m.document.n, &op->hash);
	op->seen = m.seen;
	if (callers_ask(op->v, IPC_ACCESS_LOAD, &load, on_loaded, op) == -1)
		refuse(op, FAILURE_BUSY, "admind is not connected");
	return 0;
}

static int
check(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_access_check m;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (access_check(port->v->keys, m.seal, &m.document, now_us(),
		&port->v->access, &err) == -1)
		(void)ipc_refuse(peer, m.request, err.failure, err.text,
		    err.failure == FAILURE_BUSY ? 1000 : 0);
	else
		(void)ipc_answer_ok(peer, m.request);
	return 0;
}

int
access_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	return f->type == IPC_ACCESS_SET ? set(port, peer, f)
					 : check(port, peer, f);
}
