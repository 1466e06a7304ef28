/*
 * The vault's requests during a rotation of the master key: to read stored
 * values, and to replace them (decision 0039).
 *
 * The values here are ciphertext and seals, which admind holds anyway. admind
 * could bring other rows, or store other values than it was given. Then values
 * are unreadable later, but admind could cause that without a rotation, too.
 */
#include "approvals.h"
#include "audit.h"
#include "ids.h"
#include "renew.h"
#include "tlv.h"

static const struct db_stmt rows = {"renew_rows",
    "SELECT id, place, \"column\", value"
    " FROM mcpbox.renew_rows($1::text, $2::text, $3::bytea, $4::int4)",
    DB_SURE};
static const struct db_stmt store = {"renew_store",
    "SELECT mcpbox.renew_store($1::text, $2::text[], $3::bytea[],"
    " $4::bytea[])",
    DB_SURE};
static const struct db_stmt begin = {
    "renew_begin", "SELECT mcpbox.renew_begin($1::bytea, 'root')", DB_SURE};
static const struct db_stmt end = {"renew_end",
    "SELECT mcpbox.renew_end($1::bytea, $2::int4, 'root')", DB_SURE};

static void
got_rows(void *arg, const struct pg_result *r, const struct err *err)
{
	struct op *op = arg;
	struct ipc_renew_rows m = {0};
	struct ipc_bytes v;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	for (int i = 0; i < db_nrows(r) && op->buf.len < RENEW_BYTES_MAX; i++)
		for (int c = 0; c < 4; c++) {
			v = db_bytes(r, i, c);
			tlv_put(&op->buf, (uint8_t)(RENEW_ID + c), v.p, v.n);
		}
	if (op->buf.failed) {
		op_refuse(op, FAILURE_BUSY, "out of memory");
		return;
	}
	m.rows = ipc_bytes(op->buf.p, op->buf.len);
	op_answer(op, IPC_RENEW_ROWS, &m);
}

static int
get(struct link *l, struct ipc_frame *f)
{
	struct ipc_renew_get m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.limit < 1 || m.limit > RENEW_MAX) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "too many rows at once");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	db_params_init(&p);
	db_p_text(&p, m.kind);
	db_p_text(&p, m.after);
	if (m.key.n != 0)
		db_p_bytes(&p, m.key.p, m.key.n);
	else
		db_p_null(&p);
	db_p_i32(&p, (int32_t)m.limit);
	db_query(op->a->db, &rows, &p, got_rows, op);
	return 0;
}

/* Reads ID, VALUE, RENEWED of each row into three arrays. 0, or -1 if the list
 * is malformed. */
static int
take_rows(struct ipc_bytes list, struct db_array *ids, struct db_array *old,
    struct db_array *new)
{
	static const uint8_t tags[] = {RENEW_ID, RENEW_VALUE, RENEW_RENEWED};
	struct db_array *const to[] = {ids, old, new};
	struct tlv_reader r;
	struct tlv t;
	unsigned n = 0;
	int rc;

	tlv_open(&r, list.p, list.n);
	while ((rc = tlv_next(&r, &t)) == 1) {
		if (t.tag != tags[n % 3] || n / 3 == RENEW_MAX ||
		    (t.tag == RENEW_ID && !utf8_valid(t.p, t.n)))
			return -1;
		db_a_bytes(to[n % 3], t.p, t.n);
		n++;
	}
	return rc == -1 || n % 3 != 0 ? -1 : 0;
}

static int
put(struct link *l, struct ipc_frame *f)
{
	struct db_array ids, old, new;
	struct ipc_renew_store m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	db_array_init(&ids, DB_TEXT, IPC_BLOB_MAX);
	db_array_init(&old, DB_BYTEA, IPC_BLOB_MAX);
	db_array_init(&new, DB_BYTEA, IPC_BLOB_MAX);
	if (take_rows(m.rows, &ids, &old, &new) == -1) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "not a list of renewed values");
	} else if ((op = op_new(l, m.request)) != NULL) {
		db_params_init(&p);
		db_p_text(&p, m.kind);
		db_p_array(&p, &ids);
		db_p_array(&p, &old);
		db_p_array(&p, &new);
		db_query(op->a->db, &store, &p, op_db_ok, op);
	}
	db_array_free(&ids);
	db_array_free(&old);
	db_array_free(&new);
	return 0;
}

/* Takes the database's answer. The serving versions that this process remembers
 * have seals of the older key, so they are forgotten here. Other nodes forget
 * theirs on NOTIFY. */
static void
noted(void *arg, const struct pg_result *r, const struct err *err)
{
	struct op *op = arg;

	if (err == NULL) {
		serving_clear(&op->a->serving);
		audit_sign(op->a);
	}
	op_db_ok(op, r, err);
}

static int
phase(struct link *l, struct ipc_frame *f)
{
	struct ipc_renew_phase m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	db_params_init(&p);
	db_p_bytes(&p, m.key.p, m.key.n);
	if (m.end == 1)
		db_p_i32(
		    &p, m.leave > INT32_MAX ? INT32_MAX : (int32_t)m.leave);
	db_query(op->a->db, m.end == 1 ? &end : &begin, &p, noted, op);
	return 0;
}

int
renew_message(struct link *l, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_RENEW_GET:
		return get(l, f);
	case IPC_RENEW_STORE:
		return put(l, f);
	default:
		return phase(l, f);
	}
}
