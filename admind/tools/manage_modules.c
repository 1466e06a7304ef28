/*
 * mcpbox_request_module: asks an administrator to let one tool import a
 * package. No management tool decides.
 */
#include <stdio.h>
#include <string.h>

#include "approvals.h"
#include "ids.h"
#include "installs.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "stdlib_names.h"
#include "step.h"

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
		       "how it stands, and in `fetching` whether there is an "
		       "index that has it. Once granted, name the module in "
		       "`modules` of mcpbox_update_tool.");
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
	/* If policy permits, the request is approved without a person. If the
	 * module is in no store yet, this approval follows once the module is
	 * stored. In all other cases a person decides. */
	if (db_bool(rows, 0, 2))
		policies_approve(j, &request, answer);
	else
		answer(j, false);
}

/*
 * Returns the module of Python's standard library that a request names, or
 * NULL. Only the name before a dot or == counts. A package of an index with
 * such a name could not be imported, since the interpreter finds its own module
 * first.
 */
static const char *
of_python(struct ipc_bytes name, bool *submodule)
{
	size_t n = 0;

	while (n < name.n && name.p[n] != '.' && name.p[n] != '=')
		n++;
	*submodule = n < name.n && name.p[n] == '.';
	for (size_t i = 0; i < stdlib_count; i++)
		if (strlen(stdlib_names[i]) == n &&
		    strncasecmp((const char *)name.p, stdlib_names[i], n) == 0)
			return stdlib_names[i];
	return NULL;
}

/* Answers that the module needs no request, since Python has it already. */
static void
answer_of_python(struct job *j, const char *module, bool submodule)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
	    "%s is part of Python: write `import %s`, nothing has to be "
	    "granted.%s",
	    module, module,
	    submodule ? " Its submodules come with it; a package of the index "
			"is asked for by its name with dashes."
		      : "");
	jsonw_kv_bool(&j->json, "success", true);
	jsonw_kv_str(&j->json, "module_name", module);
	jsonw_kv_str(&j->json, "status", "part_of_python");
	jsonw_kv_str(&j->json, "message", text);
	job_done(j);
}

void
manage_request_module(struct job *j)
{
	const char *module;
	bool submodule;
	struct ipc_bytes name = ipc_str(""), why = ipc_str("");
	struct ipc_id request, subject, tool;
	struct db_params p;

	if (job_uuid(j, MF_TOOL_ID, &tool) == -1)
		return;
	(void)job_field(j, MF_MODULE_NAME, &name); /* the schema requires both
						    */
	(void)job_field(j, MF_JUSTIFICATION, &why);
	if ((module = of_python(name, &submodule)) != NULL) {
		answer_of_python(j, module, submodule);
		return;
	}
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
