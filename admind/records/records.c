/*
 * Takes a sandbox's list of its executions: contexts that it holds, calls, and
 * records that admind has not acknowledged. gather.c takes the records.
 */
#include <string.h>

#include "call.h"
#include "log.h"
#include "records.h"
#include "regrant.h"
#include "tasks.h"

static const struct db_stmt begin_epoch = {"records_epoch",
    "SELECT mcpbox.epoch_begin($1::uuid, $2::text, 'sandboxd')", DB_SURE};

static void
epoch_stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct admind *a = op->a;

	/* If the sandbox connected again in between, only the epoch of the new
	 * connection counts. */
	if (op->link->peer == NULL ||
	    memcmp(&op->id, &a->sandbox_epoch, sizeof(op->id)) != 0) {
		op_free(op);
		return;
	}
	if (err != NULL)
		log_event(LOG_LV_WARN, "epoch", "%s", err->text);
	a->sandbox_ready = err == NULL;
	op_free(op);
	if (a->sandbox_ready) {
		log_event(LOG_LV_INFO, "sandbox_ready", "%zu executions named",
		    a->live.count);
		sweep_run(a);
		regrant_run(a, NULL, NULL);
		task_run_resume(a);
		call_started(a);
	}
}

/* Stores the sandbox's epoch. Also called at each tick of admind's timer until
 * the epoch is stored. */
void
records_store_epoch(struct admind *a)
{
	struct ipc_peer *peer = ipc_client_peer(a->sandboxd);
	struct db_params p;
	struct op *op;

	if (peer == NULL || !a->sandbox_named || !db_is_up(a->db))
		return;
	op = op_new(ipc_peer_data(peer), 0);
	if (op == NULL)
		return;
	op->id = a->sandbox_epoch;
	db_params_init(&p);
	db_p_id(&p, &a->sandbox_epoch);
	db_p_str(&p, a->node);
	db_query(a->db, &begin_epoch, &p, epoch_stored, op);
}

void
records_sandbox_down(struct admind *a)
{
	a->sandbox_ready = a->sandbox_named = false;
}

int
records_message(struct link *l, struct ipc_frame *f)
{
	struct admind *a = l->a;
	struct ipc_epoch_begin begin;
	struct ipc_epoch_item item;
	struct ipc_epoch_end end;
	struct err err;

	switch (f->type) {
	case IPC_RECORD:
		return gather_message(l, f);
	case IPC_EPOCH_BEGIN:
		if (ipc_decode(f, &begin, &err) == -1)
			return -1;
		a->sandbox_ready = a->sandbox_named = false;
		a->sandbox_epoch = begin.epoch;
		idset_clear(&a->live);
		return 0;
	case IPC_EPOCH_ITEM:
		if (ipc_decode(f, &item, &err) == -1)
			return -1;
		/* If memory runs out for an id, no row may be swept, because
		 * the set would lack a live call. So -1 ends the connection,
		 * and the sandbox names all executions again. */
		return idset_add(&a->live, &item.execution);
	default:
		if (ipc_decode(f, &end, &err) == -1)
			return -1;
		if (end.count != a->live.count) {
			log_event(LOG_LV_WARN, "epoch",
			    "the sandbox named %zu executions and said %u",
			    a->live.count, end.count);
			return -1;
		}
		a->sandbox_named = true;
		records_store_epoch(a);
		return 0;
	}
}
