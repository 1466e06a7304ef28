/*
 * Changes that an administrator makes without the vault and not as an action
 * (adminact.c): limits of servers, how their tools are named, modules and their
 * grants.
 *
 * Why that is safe. No language model can reach any of them: no management tool
 * leads here, only admind-http (with a login that the vault confirms to be an
 * administrator's, after the CSRF check) and the socket that admits uid 0. A
 * taken-over admind could write the same rows anyway. Its gain is bounded
 * elsewhere: limits by common/version/limit.h in the vault and in sandboxd,
 * modules by the digests in a version's approved pre-image.
 */
#include <string.h>

#include "admin.h"
#include "audit.h"
#include "ids.h"
#include "login.h"

static const struct db_stmt set_limits = {"adminset_limits",
    "SELECT mcpbox.set_server_limits($1::uuid, $2::bytea, $3::text,"
    " $4::int8, $5::int8, $6::int8, $7::int8, $8::int8, $9::int8, $10::int8,"
    " $11::int8, $12::int8, $13::int8, $14::int8, $15::int8, $16::int8,"
    " $17::int8, $18::int8, $19::int8)",
    DB_SURE};
_Static_assert(LIMIT_COUNT == 16, "one parameter a limit, in their order");

static const struct db_stmt set_expose = {"adminset_expose",
    "SELECT mcpbox.set_server_expose($1::text, $2::text, $3::text)", DB_SURE};
static const struct db_stmt module_add = {"adminset_module_add",
    "SELECT mcpbox.add_module($1::text, $2::text, $3::bytea, $4::int8,"
    " $5::int8, $6::text)",
    DB_SURE};
static const struct db_stmt module_withdraw = {"adminset_module_withdraw",
    "SELECT mcpbox.withdraw_module($1::text, $2::text, $3::text)", DB_SURE};
static const struct db_stmt module_grant = {"adminset_module_grant",
    "SELECT mcpbox.grant_module($1::text, $2::text, $3::text, $4::text)",
    DB_SURE};
static const struct db_stmt module_revoke = {"adminset_module_revoke",
    "SELECT mcpbox.revoke_module($1::text, $2::text, $3::text, $4::text)",
    DB_SURE};

/* ---- limits ---- */

/* Reads the limits: each number within its bounds, and at most once. 0 or
 * -1. */
static int
take_limits(struct ipc_bytes list, uint64_t out[LIMIT_COUNT], struct err *err)
{
	struct tlv_reader r;
	struct tlv t;
	uint64_t v;
	int rc;

	memset(out, 0, LIMIT_COUNT * sizeof(out[0]));
	tlv_open(&r, list.p, list.n);
	while ((rc = tlv_next(&r, &t)) == 1) {
		if (t.tag == 0 || t.tag > LIMIT_COUNT || out[t.tag - 1] != 0 ||
		    tlv_u64(&t, &v) == -1)
			return err_set(err, FAILURE_INVALID_PARAMS,
			    "not a list of limits");
		if (limit_check((enum limit)(t.tag - 1), v, err) == -1) {
			err->failure = FAILURE_INVALID_PARAMS;
			return -1;
		}
		out[t.tag - 1] = v;
	}
	if (rc == -1)
		return err_set(
		    err, FAILURE_INVALID_PARAMS, "not a list of limits");
	return 0;
}

static void
limits_stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_admin_json m = {0};

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	m.json = db_bytes(rows, 0, 0);
	audit_sign(op->a);
	op_answer(op, IPC_ADMIN_JSON, &m);
}

static void
store_limits(struct op *op)
{
	uint64_t limits[LIMIT_COUNT];
	struct db_params p;

	memcpy(limits, op->buf.p, sizeof(limits));
	db_params_init(&p);
	db_p_id(&p, &op->id);
	db_p_hash(&p, &op->hash);
	db_p_str(&p, op->actor);
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (limits[i] == 0)
			db_p_null(&p);
		else
			db_p_i64(&p, (int64_t)limits[i]);
	db_query(op->a->db, &set_limits, &p, limits_stored, op);
}

static int
limits_set(struct link *l, struct ipc_frame *f)
{
	uint64_t limits[LIMIT_COUNT];
	struct ipc_limits_set m;
	struct err err;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (take_limits(m.limits, limits, &err) == -1) {
		link_refuse(l, m.request, err.failure, err.text);
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->id = m.server;
	op->hash = m.seen;
	op->least = ADMIN_ADMINISTRATOR;
	buf_put(&op->buf, limits, sizeof(limits));
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, store_limits);
	return 0;
}

/* ---- names ---- */

static void
store_expose(struct op *op)
{
	struct db_params p;

	db_params_init(&p);
	db_p_str(&p, (const char *)op->buf.p);
	db_p_str(&p, (const char *)op->buf.p + strlen((char *)op->buf.p) + 1);
	db_p_str(&p, op->actor);
	db_query(op->a->db, &set_expose, &p, op_db_ok, op);
}

/* A bare name is part of the reviewed hash (version.h), so this never changes
 * the name of an approved version. */
static int
expose_set(struct link *l, struct ipc_frame *f)
{
	struct ipc_expose_set m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	buf_put(&op->buf, m.server.p, m.server.n);
	buf_putc(&op->buf, '\0');
	buf_put(&op->buf, m.expose.p, m.expose.n);
	buf_putc(&op->buf, '\0');
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, store_expose);
	return 0;
}

/* ---- modules ---- */

enum action { RECORD = 1, WITHDRAW, GRANT, REVOKE };

static int
module_set(struct link *l, struct ipc_frame *f)
{
	const struct db_stmt *stmt;
	struct ipc_module_set m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.files > INT64_MAX || m.size > INT64_MAX || m.action < RECORD ||
	    m.action > REVOKE) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "unknown action, or too large a number");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	db_params_init(&p);
	if (m.action == GRANT || m.action == REVOKE)
		db_p_text(&p, m.tool);
	db_p_text(&p, m.name);
	db_p_text(&p, m.version);
	if (m.action == RECORD) {
		db_p_hash(&p, &m.digest);
		db_p_i64(&p, (int64_t)m.files);
		db_p_i64(&p, (int64_t)m.size);
	}
	/* the socket of uid 0 alone may send this */
	db_p_str(&p, "root");
	stmt = m.action == RECORD  ? &module_add
	    : m.action == WITHDRAW ? &module_withdraw
	    : m.action == GRANT    ? &module_grant
				   : &module_revoke;
	db_query(op->a->db, stmt, &p, op_db_ok, op);
	return 0;
}

int
adminset_message(struct link *l, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_LIMITS_SET:
		return limits_set(l, f);
	case IPC_EXPOSE_SET:
		return expose_set(l, f);
	default:
		return module_set(l, f);
	}
}
