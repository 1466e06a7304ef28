/*
 * NOTIFY_TEST: an administrator has a test sent to a target of notifications
 * (docs/decisions/0112).
 *
 * It is allowed for an administrator's login that the vault knows, or uid 0, as
 * with ADMIN_ACTION (adminact.c). It names a target of the document that holds,
 * and brings no address and no text. So an attacker with such a login makes a
 * phone ring with a fixed sentence, one run at a time. Each run leaves a
 * record.
 */
#include <string.h>

#include "access_fields.h"
#include "admin.h"
#include "login.h"
#include "notify_send.h"

static void
ended(void *arg, bool sent, uint64_t status, struct ipc_bytes why)
{
	struct ipc_admin_json m;
	struct op *op = arg;
	struct jsonw w;
	struct buf b;

	buf_init(&b, IPC_FRAME_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "target", op->text);
	jsonw_kv_bool(&w, "sent", sent);
	jsonw_kv_int(&w, "status", (int64_t)status);
	jsonw_name(&w, "error");
	if (sent)
		jsonw_null(&w);
	else
		jsonw_strn(&w, why.p, why.n);
	jsonw_obj_end(&w);
	m.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
	buf_free(&b);
}

static void
run(struct op *op)
{
	struct err err;

	if (notify_send_test(op->a, ipc_str(op->text), ended, op, &err) == -1)
		op_refuse_err(op, &err);
}

int
adminnotify_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_notify_test m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.target.n == 0 || m.target.n > ACCESS_NAME_MAX ||
	    memchr(m.target.p, 0, m.target.n) != NULL) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "this is no target's name");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	memcpy(op->text, m.target.p, m.target.n);
	op->text[m.target.n] = '\0';
	login_check(op, m.token, run);
	return 0;
}
