/*
 * admind's part in policies of review: it stores the policy that the vault
 * sealed, gives it back to the vault, and asks for automatic approvals. admind
 * can't make a policy, because the vault accepts only policies with its own
 * seal (docs/decisions/0038).
 *
 * Two administrators can change the policy at the same moment. The vault says
 * which row it judged, by the row's serial, and the database stores over this
 * row alone.
 */
#include <stdlib.h>
#include <string.h>

#include "approvals.h"
#include "audit.h"
#include "ids.h"
#include "log.h"
#include "review.h"

static const struct db_stmt load = {"policies_load",
    "SELECT seal, serial FROM mcpbox.approval_policies"
    " ORDER BY serial DESC LIMIT 1",
    DB_FAST};
static const struct db_stmt store = {"policies_store",
    "SELECT mcpbox.policy_store($1::int8, $2::text, $3::text, $4::text,"
    " $5::text, $6::timestamptz, $7::bytea, $8::int8)",
    DB_SURE};

static void
loaded(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct ipc_policy_sealed m = {0};
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	if (db_nrows(rows) == 1) {
		m.seal = db_bytes(rows, 0, 0);
		m.serial = (uint64_t)db_int(rows, 0, 1);
	}
	op_answer(op, IPC_POLICY_SEALED, &m);
}

static int
policy_load(struct link *l, struct ipc_frame *f)
{
	struct ipc_policy_load m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op != NULL)
		db_query(op->a->db, &load, NULL, loaded, op);
	return 0;
}

static int
policy_store(struct link *l, struct ipc_frame *f)
{
	struct ipc_policy_store m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	db_params_init(&p);
	db_p_i64(&p, (int64_t)m.serial);
	db_p_str(&p, review_mode_name(m.tool));
	db_p_str(&p, review_mode_name(m.module));
	db_p_str(&p, review_mode_name(m.network));
	db_p_text(&p, m.actor);
	db_p_time_us(&p, m.until_us);
	db_p_bytes(&p, m.seal.p, m.seal.n);
	db_p_i64(&p, (int64_t)m.over);
	db_query(op->a->db, &store, &p, audit_db_ok, op);
	return 0;
}

int
policies_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_POLICY_LOAD ? policy_load(l, f)
					  : policy_store(l, f);
}

/* ---- automatic approvals ---- */

struct automatic {
	struct job *j;
	void (*next)(struct job *, bool);
};

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct automatic a = *(struct automatic *)arg;
	struct err err;

	free(arg);
	if (f != NULL && f->type == IPC_OK) {
		a.next(a.j, true);
		return;
	}
	/* The policy does not cover this request (secrets, a local host, an
	 * ended policy). Not an error: a person decides. */
	answer_err(f, gone, &err);
	log_event(LOG_LV_INFO, "not_automatic", "%s", err.text);
	a.next(a.j, false);
}

void
policies_approve(struct job *j, const struct ipc_id *request,
    void (*next)(struct job *, bool))
{
	struct ipc_approve_auto m = {.approval = *request};
	struct automatic *a = calloc(1, sizeof(*a));
	struct err err;

	if (a == NULL) {
		next(j, false);
		return;
	}
	a->j = j;
	a->next = next;
	if (ask(j->a->vault, IPC_APPROVE_AUTO, &m, answered, a, &err) == -1) {
		free(a);
		next(j, false);
	}
}
