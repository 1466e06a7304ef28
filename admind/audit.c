/*
 * The audit chain's anchors: the head is signed by the vault each minute and
 * at each approval, stored, and written to the journal.
 *
 * The database's owner could rewrite the whole chain with new hashes; it can't
 * make the vault's signatures, and it can't take lines out of the journal that
 * were sent on. `mcpboxctl audit verify` compares all three.
 */
#include <string.h>

#include "admind.h"
#include "ids.h"
#include "log.h"

static const struct db_stmt head = {
    "audit_head", "SELECT seq, hash FROM mcpbox.audit_head", DB_FAST};
static const struct db_stmt store = {"audit_anchor",
    "SELECT mcpbox.anchor_store($1::int8, $2::bytea, $3::bytea)", DB_SURE};

static struct {
	uint64_t seq;
	struct ipc_hash head;
	bool again; /* the head moved while one was being signed */
} pending;

static void
done(struct admind *a)
{
	a->signing = false;
	if (pending.again) {
		pending.again = false;
		audit_sign(a);
	}
}

static void
stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;

	if (err != NULL)
		log_event(LOG_LV_WARN, "audit_anchor", "%s", err->text);
	else
		a->anchored_seq = pending.seq;
	done(a);
}

static void
is_signed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct admind *a = arg;
	struct ipc_audit_signature m;
	char h[HEX32_LEN + 1], s[HEX32_LEN + 1];
	struct db_params p;
	struct err err;

	if (f == NULL || f->type != IPC_AUDIT_SIGNATURE ||
	    ipc_decode(f, &m, &err) == -1) {
		answer_err(f, gone, &err);
		log_event(LOG_LV_WARN, "audit_anchor", "%s", err.text);
		done(a);
		return;
	}
	hex_encode(pending.head.b, 32, h);
	hex_encode(m.signature.b, 32, s);
	log_event(LOG_LV_INFO, "audit_anchor", "seq=%llu head=%s signature=%s",
	    (unsigned long long)pending.seq, h, s);
	db_params_init(&p);
	db_p_i64(&p, (int64_t)pending.seq);
	db_p_hash(&p, &pending.head);
	db_p_hash(&p, &m.signature);
	db_query(a->db, &store, &p, stored, a);
}

static void
got_head(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct ipc_audit_sign m;
	struct ipc_bytes hash;
	struct err e;

	if (err != NULL || db_nrows(rows) != 1) {
		done(a);
		return;
	}
	pending.seq = (uint64_t)db_int(rows, 0, 0);
	hash = db_bytes(rows, 0, 1);
	if (pending.seq == a->anchored_seq || hash.n != 32) {
		done(a);
		return;
	}
	memcpy(pending.head.b, hash.p, 32);
	m.seq = pending.seq;
	m.head = pending.head;
	if (ask(a->vault, IPC_AUDIT_SIGN, &m, is_signed, a, &e) == -1)
		done(a);
}

void
audit_sign(struct admind *a)
{
	if (a->signing) {
		pending.again = true;
		return;
	}
	a->signing = true;
	db_query(a->db, &head, NULL, got_head, a);
}
