/*
 * mcpbox_request_module: asks an administrator to let one tool import a
 * package. Deciding is not a management tool's.
 */
#include "admind.h"
#include "ids.h"
#include "installs.h"
#include "management_tools.h"

static const struct db_stmt request_module = {"manage_request_module",
    "SELECT $1::uuid, mcpbox.request_module($1::uuid, $2::uuid, $3::uuid,"
    " split_part($4::text, '==', 1), split_part($4::text, '==', 2),"
    " $5::text, $6::text), mcpbox.review_mode('module') = 'automatic'"
    " AND NOT mcpbox.module_doubted(split_part($4::text, '==', 1),"
    " split_part($4::text, '==', 2))",
    DB_SURE};

static void
answer(struct job *j, bool approved)
{
	jsonw_kv_str(&j->json, "status", approved ? "approved" : "pending");
	jsonw_kv_str(&j->json, "message",
	    approved ? "Granted automatically, by the administrator's policy. "
		       "Name the module in `modules` of mcpbox_update_tool."
		     : "An administrator decides; mcpbox_get_tool_status tells "
		       "how it stands and, as `problem`, why it could not be "
		       "fetched. Once granted, name the module in `modules` "
		       "of mcpbox_update_tool.");
	job_done(j);
}

static void
requested(struct job *j, const struct pg_result *rows)
{
	struct ipc_id request = db_id(rows, 0, 0);

	installs_soon();
	installs_recorded(j->a, db_bytes(rows, 0, 1), ipc_str(""));
	jsonw_kv_bool(&j->json, "success", true);
	json_kv_id(&j->json, "request_id", &request);
	json_kv_bytes(&j->json, "module_name", db_bytes(rows, 0, 1));
	/* One that is in no store yet is approved when it is, or waits for a
	 * person. */
	if (db_bool(rows, 0, 2))
		policies_approve(j, &request, answer);
	else
		answer(j, false);
}

void
manage_request_module(struct job *j)
{
	struct ipc_bytes name = ipc_str(""), why = ipc_str("");
	struct ipc_id request, subject, tool;
	struct db_params p;

	if (job_uuid(j, MF_TOOL_ID, &tool) == -1)
		return;
	(void)job_field(j, MF_MODULE_NAME, &name); /* required, as why is */
	(void)job_field(j, MF_JUSTIFICATION, &why);
	uuid_v7(&request);
	uuid_v7(&subject);
	db_params_init(&p);
	db_p_id(&p, &request);
	db_p_id(&p, &subject);
	db_p_id(&p, &tool);
	db_p_text(&p, name);
	db_p_text(&p, why);
	db_p_str(&p, j->principal);
	job_query(j, &request_module, &p, requested);
}
