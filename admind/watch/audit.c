/*
 * The audit chain's anchors: the vault signs the head each minute and at each
 * approval. The signature is stored, and written to the journal.
 *
 * The database's owner could rewrite the whole chain with new hashes. But he
 * can't make the vault's signatures, and he can't remove lines of the journal
 * that were sent to another machine. `mcpboxctl audit verify` compares chain,
 * signatures and journal.
 */
#include <string.h>

#include "audit.h"
#include "audit_row.h"
#include "ids.h"
#include "log.h"

static const struct db_stmt head = {
    "audit_head", "SELECT seq, hash FROM mcpbox.audit_head", DB_FAST};
static const struct db_stmt store = {"audit_anchor",
    "SELECT mcpbox.anchor_store($1::int8, $2::bytea, $3::bytea, $4::bytea)",
    DB_SURE};

/* Reads the rows as they are hashed and the head of the chain in one statement,
 * so that they are of one state of the database. */
static const struct db_stmt read_rows = {"audit_read",
    "SELECT h.seq, h.hash, (SELECT coalesce(max(seq), 0)"
    " FROM mcpbox.audit_anchors), l.seq, l.prev, l.hash,"
    " mcpbox.audit_row(l.seq, l.at, l.actor, l.action, l.subject, l.detail),"
    " x.head, x.signature FROM mcpbox.audit_head h"
    " LEFT JOIN LATERAL (SELECT * FROM mcpbox.audit_log WHERE seq > $1::int8"
    " ORDER BY seq LIMIT $2::int8) l ON true"
    " LEFT JOIN mcpbox.audit_anchors x ON x.seq = l.seq ORDER BY l.seq",
    DB_FAST};

static const struct db_stmt keep_verdict = {"audit_verdict",
    "SELECT mcpbox.audit_verdict_store($1::int8, $2::int8, $3::int8, $4::int8,"
    " $5::int8)",
    DB_SURE};

static struct {
	uint64_t seq;
	struct ipc_hash head, signature;
	bool again; /* the head moved while the vault signed */
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

/* Writes the journal's line, but only once the anchor is in the database. So an
 * anchor that the journal names and the database lacks was removed (mcpboxctl
 * audit verify). The vault wrote a line of its own when it signed. */
static void
stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	char h[HEX32_LEN + 1], s[HEX32_LEN + 1];
	struct admind *a = arg;

	if (err != NULL) {
		log_event(LOG_LV_WARN, "audit_anchor", "%s", err->text);
	} else {
		a->anchored_seq = pending.seq;
		hex_encode(pending.head.b, 32, h);
		hex_encode(pending.signature.b, 32, s);
		log_event(LOG_LV_INFO, "audit_anchor",
		    "seq=%llu head=%s signature=%s",
		    (unsigned long long)pending.seq, h, s);
	}
	done(a);
}

static void
is_signed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct admind *a = arg;
	struct ipc_audit_signature m;
	struct db_params p;
	struct err err;

	if (f == NULL || f->type != IPC_AUDIT_SIGNATURE ||
	    ipc_decode(f, &m, &err) == -1) {
		answer_err(f, gone, &err);
		log_event(LOG_LV_WARN, "audit_anchor", "%s", err.text);
		done(a);
		return;
	}
	pending.signature = m.signature;
	db_params_init(&p);
	db_p_i64(&p, (int64_t)pending.seq);
	db_p_hash(&p, &pending.head);
	db_p_hash(&p, &m.signature);
	db_p_bytes(&p, m.key.p, m.key.n);
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

/* ---- reading the chain, for mcpboxctl audit verify ---- */

/* The most bytes of one row in the answer to AUDIT_READ. */
enum { ROW_BYTES_MAX = 32 * 1024 };

static void
put_row(struct buf *b, const struct pg_result *rows, int i)
{
	struct ipc_bytes row = db_bytes(rows, i, 6), v;
	bool anchored = !db_null(rows, i, 7);

	buf_put_u64(b, (uint64_t)db_int(rows, i, 3));
	for (int column = 4; column <= 5; column++) {
		v = db_bytes(rows, i, column);
		buf_put(b, v.p, v.n);
	}
	buf_put_u32(b, (uint32_t)row.n);
	buf_put(b, row.p, row.n);
	buf_put_u8(b, anchored);
	for (int column = 7; anchored && column <= 8; column++) {
		v = db_bytes(rows, i, column);
		buf_put(b, v.p, v.n);
	}
}

static void
got_rows(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct ipc_audit_rows m = {0};
	struct ipc_bytes hash;
	struct op *op = arg;
	struct buf b;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	hash = db_nrows(rows) > 0 ? db_bytes(rows, 0, 1) : ipc_str("");
	if (hash.n != sizeof(m.head.b)) {
		op_refuse(op, FAILURE_INTERNAL, "the audit chain has no head");
		return;
	}
	m.seq = (uint64_t)db_int(rows, 0, 0);
	memcpy(m.head.b, hash.p, hash.n);
	m.anchored = (uint64_t)db_int(rows, 0, 2);
	buf_init(&b, IPC_BLOB_MAX);
	for (int i = 0; i < db_nrows(rows) && !db_null(rows, i, 3) &&
	    b.len + ROW_BYTES_MAX < IPC_BLOB_MAX;
	    i++) {
		put_row(&b, rows, i);
		m.count++;
	}
	m.rows = ipc_bytes(b.p, b.len);
	if (b.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		op_answer(op, IPC_AUDIT_ROWS, &m);
	buf_free(&b);
}

/* AUDIT_READ comes only from the socket that admits uid 0. It only reads. An
 * administrator's login may read the chain by ADMIN_QUERY, with less detail. */
int
audit_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_audit_read m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.after > INT64_MAX || m.limit == 0 || m.limit > AUDIT_ROWS_MAX) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "not a place in the chain");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	db_params_init(&p);
	db_p_i64(&p, (int64_t)m.after);
	db_p_i64(&p, (int64_t)m.limit);
	db_query(op->a->db, &read_rows, &p, got_rows, op);
	return 0;
}

/*
 * AUDIT_VERIFIED comes only from the socket that admits uid 0. The result is
 * shown, and decides nothing. A taken-over admind, or the database's owner,
 * could write a good result without a check. So the panel shows the command
 * beside the result, and a new run answers a doubt. The chain gets no row,
 * because a check must not change the thing it checks.
 */
int
audit_verified_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_audit_verified m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.rows > INT64_MAX || m.anchors > INT64_MAX ||
	    m.anchored > INT64_MAX || m.problems > INT64_MAX ||
	    m.lines > INT64_MAX) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "not the result of mcpboxctl audit verify");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	db_params_init(&p);
	db_p_i64(&p, (int64_t)m.rows);
	db_p_i64(&p, (int64_t)m.anchors);
	db_p_i64(&p, (int64_t)m.anchored);
	db_p_i64(&p, (int64_t)m.problems);
	db_p_i64(&p, (int64_t)m.lines);
	db_query(op->a->db, &keep_verdict, &p, op_db_ok, op);
	return 0;
}

void
audit_db_ok(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err == NULL)
		audit_sign(op->a);
	op_db_ok(op, rows, err);
}
