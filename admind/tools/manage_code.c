/*
 * mcpbox_validate_code: inspects code in the same way as the code of a draft,
 * but makes no draft. Broken code is an answer here, not a failure. This file
 * also answers those calls of mcpbox_call_tool that gatewayd can't make.
 */
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "tlv.h"

/* PostgreSQL takes the schema apart, since this process reads no JSON. */
static const struct db_stmt parameters = {
    "manage_validated", "SELECT mcpbox.manage_validated($1::bytea)", DB_FAST};

static void
shown(struct job *j, const struct pg_result *rows)
{
	job_out(j, db_bytes(rows, 0, 0));
	job_done(j);
}

static void
inspected(struct job *j, struct ipc_bytes fields)
{
	struct db_params p;
	struct tlv schema;

	if (tlv_find(fields.p, fields.n, INSPECT_INPUT_SCHEMA, &schema) != 1) {
		job_fail(j, FAILURE_INTERNAL, "malformed inspection");
		return;
	}
	db_params_init(&p);
	db_p_bytes(&p, schema.p, schema.n);
	job_query(j, &parameters, &p, shown);
}

/* Answers that the code is broken. has_main is false, since main() can't be
 * found without a syntax tree. */
static void
broken(struct job *j, const char *why)
{
	jsonw_kv_bool(&j->json, "valid", false);
	jsonw_kv_bool(&j->json, "has_main", false);
	jsonw_kv_str(&j->json, "error", why);
	jsonw_name(&j->json, "parameters");
	jsonw_arr(&j->json);
	jsonw_arr_end(&j->json);
	job_done(j);
}

void
manage_validate_code(struct job *j)
{
	struct subject what = {.broken = broken};
	uint64_t max = (uint64_t)conf_int(j->a->proc.conf, "code_bytes");

	(void)job_field(j, MF_CANDIDATE, &what.code); /* required */
	if (what.code.n > max)
		job_fail(j, FAILURE_LIMIT,
		    "code has %zu bytes; the limit code_bytes is %llu",
		    what.code.n, (unsigned long long)max);
	else
		job_inspect(j, &what, "validate_code", inspected);
}

/* gatewayd calls the named tool itself (mcp_params.c). Only calls that gatewayd
 * can't make come here. */
void
manage_call_tool(struct job *j)
{
	job_fail(j, FAILURE_INVALID_ARGUMENTS,
	    "name must be that of an approved tool; mcpbox_ tools are called "
	    "by their own names");
}
