/*
 * RESULT_CHECK: sandboxd asks whether a tool's result has the form that its
 * output schema promises. admind parses neither schema nor result. Both go
 * unchanged to admind-check, and its verdict goes back to sandboxd.
 *
 * sandboxd may ask about any schema and any value, and learns only what it
 * could have computed itself. But it could use up the time of admind-check,
 * which also checks the arguments of all calls. So only a few requests are
 * passed on at once. A further one is answered `busy`, and sandboxd asks again.
 */
#include <stdlib.h>
#include <string.h>

#include "records.h"

enum {
	/* For each of two sandboxes: a result that is being checked, and the
	 * next result. */
	RESULTS_MAX = 4
};

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;
	struct ipc_check_errors m;
	struct ipc_result_errors bad = {0};
	struct err err;

	op->a->nresults--;
	if (f != NULL && f->type == IPC_CHECK_OK) {
		op_ok(op);
		return;
	}
	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &m, &err) == 0) {
		/* The schema is at fault, so the value was not judged. */
		if (m.failure == FAILURE_INTERNAL) {
			op_refuse(op, FAILURE_INTERNAL,
			    "the output schema cannot be used");
			return;
		}
		bad.summary = m.summary;
		bad.json = m.json;
		op_answer(op, IPC_RESULT_ERRORS, &bad);
		return;
	}
	answer_err(f, gone, &err);
	/* admind-check did not answer. The cause of that will pass, so sandboxd
	 * may ask again. */
	op_refuse(op, FAILURE_BUSY, err.text);
}

int
results_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_result_check m;
	struct ipc_check_arguments ask_for = {.output = 1};
	struct admind *a = l->a;
	struct op *op;
	struct err err;

	if (ipc_decode(f, &m, &err) == -1 || m.schema_len > m.schema_value.n ||
	    m.schema_len > SCHEMA_MAX)
		return -1;
	if (a->nresults >= RESULTS_MAX) {
		link_refuse(l, m.request, FAILURE_BUSY,
		    "results are being checked already");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	ask_for.schema_len = m.schema_len;
	ask_for.schema_arguments = m.schema_value;
	if (ask(a->check, IPC_CHECK_ARGUMENTS, &ask_for, checked, op, &err) ==
	    -1) {
		op_refuse_err(op, &err);
		return 0;
	}
	a->nresults++;
	return 0;
}
