/*
 * Management tools on existing objects: deleting a tool, prompt or resource,
 * and finding tools.
 *
 * Deleting is the only way in which a model can take something away from
 * others. Everyone who may call management tools on the local listener can
 * delete, unless local_destructive is off (manage_start). A deleted object can
 * be made and requested again, and its versions and records remain.
 */
#include <string.h>

#include "endpoint.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "token.h"

/* ---- mcpbox_delete_tool, _prompt, _resource ---- */

static const struct db_stmt delete_object = {"manage_delete",
    "SELECT $1::uuid, d.object, d.exposed_name"
    " FROM mcpbox.delete_object($1::uuid, $2::text, $3::text) d",
    DB_SURE};

static void
deleted(struct job *j, const struct pg_result *rows)
{
	struct ipc_id id = db_id(rows, 0, 0);
	struct ipc_bytes object = db_bytes(rows, 0, 1);

	jsonw_kv_bool(&j->json, "success", true);
	json_kv_id(&j->json, "id", &id);
	json_kv_bytes(&j->json, "object", object);
	json_kv_bytes(&j->json, "name", db_bytes(rows, 0, 2));
	json_kv_message(j,
	    "The %.*s is deleted and its name is free. Its versions and "
	    "records are kept.",
	    (int)object.n, (const char *)object.p);
	job_done_changed(j);
}

void
manage_delete(struct job *j)
{
	struct db_params p;
	struct ipc_id id;

	if (job_object_id(j, &id) == -1)
		return;
	db_params_init(&p);
	db_p_id(&p, &id);
	db_p_str(&p, management_word(j->manage->object));
	db_p_str(&p, j->principal);
	job_query(j, &delete_object, &p, deleted);
}

/* ---- mcpbox_search_tools ---- */

enum { FOUND_DEFAULT = 10 };

/* For a token that may not see everything: takes the best 1000 tools, drops
 * those that the token may not see, and cuts the list. */
static const struct db_stmt search = {"manage_search",
    "SELECT exposed_name, title, description, server_name"
    " FROM mcpbox.search_tools($1::text, CASE WHEN $3::text IS NULL"
    " THEN $2::int8 ELSE 1000 END) WHERE mcpbox.token_permits($3::text,"
    " $4::text, exposed_name, server_name, CASE WHEN starts_with("
    "exposed_name, server_name || '__') THEN substr(exposed_name,"
    " length(server_name) + 3) ELSE exposed_name END) LIMIT $2::int8",
    DB_FAST};

static void
found(struct job *j, const struct pg_result *rows)
{
	const struct endpoint_rename *rename;
	struct ipc_bytes name, description;
	int n = 0;

	jsonw_name(&j->json, "tools");
	jsonw_arr(&j->json);
	for (int i = 0; i < db_nrows(rows); i++) {
		name = token_shown(j->token, db_bytes(rows, i, 0), &rename);
		if (name.n == 0)
			continue; /* it has no name at this endpoint */
		n++;
		description = rename != NULL && rename->description.n > 0
		    ? rename->description
		    : db_bytes(rows, i, 2);
		jsonw_obj(&j->json);
		json_kv_bytes(&j->json, "name", name);
		if (!db_null(rows, i, 1))
			json_kv_bytes(&j->json, "title", db_bytes(rows, i, 1));
		json_kv_bytes(&j->json, "description", description);
		json_kv_bytes(&j->json, "server_name", db_bytes(rows, i, 3));
		jsonw_obj_end(&j->json);
	}
	jsonw_arr_end(&j->json);
	jsonw_kv_int(&j->json, "total", n);
	job_done(j);
}

void
manage_search_tools(struct job *j)
{
	struct ipc_bytes query = ipc_str("");
	struct db_params p;

	(void)job_field(j, MF_QUERY, &query);
	db_params_init(&p);
	db_p_text(&p, query);
	db_p_i64(&p, (int64_t)job_number(j, MF_LIMIT, FOUND_DEFAULT));
	token_params(j->token, &p);
	job_query(j, &search, &p, found);
}
