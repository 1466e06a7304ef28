/*
 * Compares an input_schema that the author gave in addition to python_code with
 * the signature of main(). A call that only one of the two accepts would fail
 * each time. PostgreSQL makes the comparison, since this process reads no JSON.
 */
#include "draft.h"
#include "management_tools.h"
#include "step.h"
#include "tlv.h"
#include "versions.h"

static const struct db_stmt compare = {"manage_contradiction",
    "SELECT mcpbox.schema_contradiction($1::bytea, $2::bytea)", DB_FAST};

static void
compared(struct job *j, const struct pg_result *rows)
{
	struct draft *d = j->data;
	struct ipc_bytes says = db_bytes(rows, 0, 0);

	if (db_nrows(rows) == 1 && db_null(rows, 0, 0))
		d->agreed(j, ipc_bytes(d->inspected.p, d->inspected.len));
	else
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "input_schema contradicts main: %.*s. Leave it out, then "
		    "main's signature is the schema; or mend one of the two",
		    (int)says.n, (const char *)says.p);
}

void
manage_signature(struct job *j, struct ipc_bytes inspected,
    void (*next)(struct job *, struct ipc_bytes))
{
	struct draft *d = j->data;
	struct ipc_bytes given;
	struct db_params p;
	struct tlv main;

	if (job_field(j, MF_INPUT_SCHEMA, &given) == 0 ||
	    draft_kind(d, ipc_bytes(j->fields.p, j->fields.len)) !=
		DRAFT_PYTHON ||
	    tlv_find(inspected.p, inspected.n, INSPECT_INPUT_SCHEMA, &main) !=
		1) {
		next(j, inspected);
		return;
	}
	buf_clear(&d->inspected);
	buf_put(&d->inspected, inspected.p, inspected.n);
	if (d->inspected.failed) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	d->agreed = next;
	db_params_init(&p);
	db_p_bytes(&p, given.p, given.n);
	db_p_bytes(&p, main.p, main.n);
	job_query(j, &compare, &p, compared);
}
