/*
 * Export and import (docs/decisions/0033). The exported or imported text is in
 * tables; questions read it and actions write it. This file has the steps that
 * need the vault. For an export the vault seals the SHA-256. Before an import
 * becomes drafts, the vault is asked whether these very bytes were sealed.
 *
 * Allowed for an administrator's login, or uid 0. An import makes drafts, and
 * no draft can be called before a reviewer approved it. So an import is safe
 * even without the seal. The seal makes sure that the content which reviewers
 * see was not altered between two installations of ours. A taken-over admind
 * could import anything, but it can write drafts anyway.
 */
#include <string.h>

#include "admin.h"
#include "audit.h"
#include "catalogue.h"
#include "ids.h"
#include "login.h"

enum { SERVERS_MAX = 1000, SEAL_MAX = 256 };

static const struct db_stmt begin = {"transfer_export",
    "SELECT mcpbox.export_begin($1::uuid, $2::text[], $3::text)", DB_SURE};
static const struct db_stmt head = {
    "transfer_head", "SELECT mcpbox.export_head($1::uuid, $2::bytea)", DB_SURE};
static const struct db_stmt digest = {
    "transfer_digest", "SELECT mcpbox.import_digest($1::uuid)", DB_SURE};
static const struct db_stmt finish = {"transfer_import",
    "SELECT mcpbox.import_finish($1::uuid, $2::bytea, $3::text)", DB_SURE};

/* Answers an export or an import with the JSON in op->buf. */
static void
answer(void *arg)
{
	struct op *op = arg;
	struct ipc_admin_json m = {.json = ipc_bytes(op->buf.p, op->buf.len)};

	op_answer(op, IPC_ADMIN_JSON, &m);
}

static void
keep(struct op *op, struct ipc_bytes json)
{
	buf_clear(&op->buf);
	buf_put(&op->buf, json.p, json.n);
}

/* ---- out ---- */

static void
got_head(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	keep(op, db_bytes(rows, 0, 0));
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		answer(op);
}

static void
sealed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;
	struct ipc_export_seal m;
	struct db_params p;
	struct err err;

	if (f == NULL || f->type != IPC_EXPORT_SEAL) {
		answer_err(f, gone, &err);
		op_refuse_err(op, &err);
		return;
	}
	if (ipc_decode(f, &m, &err) == -1 || m.seal.n > SEAL_MAX) {
		op_refuse(op, FAILURE_INTERNAL, "malformed seal");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &op->id);
	db_p_bytes(&p, m.seal.p, m.seal.n);
	db_query(op->a->db, &head, &p, got_head, op);
}

static void
begun(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct ipc_export_sign m = {0};
	struct op *op = arg;
	struct ipc_bytes hash;
	struct err e;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	hash = db_bytes(rows, 0, 0);
	if (hash.n != sizeof(m.sha256.b)) {
		op_refuse(op, FAILURE_INTERNAL, "malformed hash");
		return;
	}
	memcpy(m.sha256.b, hash.p, hash.n);
	audit_sign(op->a);
	if (ask(op->a->vault, IPC_EXPORT_SIGN, &m, sealed, op, &e) == -1)
		op_refuse_err(op, &e);
}

/* Begins an export of the servers named in op->buf. Each name ends in NUL. */
static void
export_run(struct op *op)
{
	const char *p = (const char *)op->buf.p;
	const char *end = p + op->buf.len;
	struct db_array names;
	struct db_params q;

	uuid_v7(&op->id);
	db_array_init(&names, DB_TEXT, IPC_FRAME_MAX * 2);
	for (; p < end; p += strlen(p) + 1)
		db_a_str(&names, p);
	db_params_init(&q);
	db_p_id(&q, &op->id);
	db_p_array(&q, &names);
	db_p_str(&q, op->actor);
	db_query(op->a->db, &begin, &q, begun, op);
	db_array_free(&names);
}

/* Copies names, one in each line; there may be none. 0 or -1. */
static int
take_names(struct buf *out, struct ipc_bytes lines)
{
	size_t n = 0, len;

	for (const uint8_t *p = lines.p; lines.n > 0;) {
		const uint8_t *nl = memchr(p, '\n', lines.n);

		len = nl != NULL ? (size_t)(nl - p) : lines.n;
		if (len == 0 || len > NAME_SERVER_MAX || n++ == SERVERS_MAX)
			return -1;
		buf_put(out, p, len);
		buf_putc(out, '\0');
		len += nl != NULL;
		p += len;
		lines.n -= len;
	}
	return 0;
}

static int
export_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_export m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	op->scope = SCRIPT_EXPORT;
	if (take_names(&op->buf, m.servers) == -1)
		op_refuse(op, FAILURE_INVALID_PARAMS,
		    "servers are named by 1 to 24 characters, 1000 at most");
	else if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, export_run);
	return 0;
}

/* ---- in ---- */

static void
finished(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	keep(op, db_bytes(rows, 0, 0));
	audit_sign(op->a);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY,
		    "it was done; there is no memory for the answer");
	else
		catalogue_announce(op->a, answer, op);
}

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;
	struct db_params p;
	struct err err;

	if (f == NULL || f->type != IPC_OK) {
		answer_err(f, gone, &err);
		op_refuse_err(op, &err);
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &op->id);
	db_p_hash(&p, &op->hash);
	db_p_str(&p, op->actor);
	db_query(op->a->db, &finish, &p, finished, op);
}

static void
got_digest(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct ipc_export_check m = {0};
	struct op *op = arg;
	struct ipc_bytes hash;
	struct err e;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	hash = db_bytes(rows, 0, 0);
	if (hash.n != sizeof(op->hash.b)) {
		op_refuse(op, FAILURE_INTERNAL, "malformed hash");
		return;
	}
	memcpy(op->hash.b, hash.p, hash.n);
	m.sha256 = op->hash;
	m.seal = ipc_bytes(op->buf.p, op->buf.len);
	if (ask(op->a->vault, IPC_EXPORT_CHECK, &m, checked, op, &e) == -1)
		op_refuse_err(op, &e);
}

static void
import_run(struct op *op)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &op->id);
	db_query(op->a->db, &digest, &p, got_digest, op);
}

static int
import_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_import m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.seal.n == 0 || m.seal.n > SEAL_MAX) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "this is no signature of an export");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	op->id = m.import;
	buf_put(&op->buf, m.seal.p, m.seal.n);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, import_run);
	return 0;
}

int
transfer_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_EXPORT ? export_message(l, f)
				     : import_message(l, f);
}
