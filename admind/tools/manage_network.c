/*
 * mcpbox_request_network_access: asks an administrator to let the tools of a
 * server reach a host. No management tool decides.
 */
#include <string.h>

#include "approvals.h"
#include "ids.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"

enum { TOOLS_MAX = 64 };

/* Returns the host in its canonical spelling, the server and the tools. */
static const struct db_stmt request_network = {"manage_request_network",
    "SELECT $1::uuid, r.host, r.server, r.tools,"
    " mcpbox.review_mode('network') = 'automatic', r.port, r.proto, r.asked,"
    " r.undeclared FROM mcpbox.request_network($1::uuid, $2::uuid, NULL, "
    "$3::uuid[],"
    " $4::text, $5::int4, $6::text, $7::text, false) r",
    DB_SURE};

/* Columns of request_network. */
enum {
	C_REQUEST,
	C_HOST,
	C_SERVER,
	C_TOOLS,
	C_AUTOMATIC,
	C_PORT,
	C_PROTO,
	C_ASKED,
	C_UNDECLARED
};

/* Adds the decision and its message to the answer, and sends it. */
static void
answer(struct job *j, bool approved)
{
	jsonw_kv_str(&j->json, "status", approved ? "approved" : "pending");
	jsonw_kv_str(&j->json, "message",
	    approved
		? "Granted automatically, by the administrator's policy. A "
		  "tool reaches it only if its own version names it in "
		  "`requires`, too."
		: "An administrator decides; mcpbox_get_tool_status tells how "
		  "it stands. A tool reaches it only if its own version names "
		  "it in `requires`, too.");
	job_done(j);
}

/* Names the tools that would not reach the host even if it were granted, and
 * the next step. */
static void
put_undeclared(struct jsonw *w, const struct pg_result *rows)
{
	struct ipc_bytes asked = db_bytes(rows, 0, C_ASKED);
	struct ipc_bytes names = db_bytes(rows, 0, C_UNDECLARED);
	struct buf b;

	jsonw_kv_bool(w, "declared", names.n == 0);
	if (names.n == 0)
		return;
	buf_init(&b, IPC_FRAME_MAX);
	buf_putf(&b,
	    "Add \"%.*s\" to `requires` of %.*s with mcpbox_update_tool, and "
	    "publish that version: the newest one does not name it.",
	    (int)asked.n, (const char *)asked.p, (int)names.n,
	    (const char *)names.p);
	if (!b.failed)
		json_kv_bytes(w, "next_step", ipc_bytes(b.p, b.len));
	buf_free(&b);
}

static void
requested(struct job *j, const struct pg_result *rows)
{
	struct ipc_id request = db_id(rows, 0, C_REQUEST);
	struct ipc_bytes tools = db_bytes(rows, 0, C_TOOLS);
	struct jsonw *w = &j->json;

	jsonw_kv_bool(w, "success", true);
	json_kv_id(w, "request_id", &request);
	json_kv_bytes(w, "host", db_bytes(rows, 0, C_HOST));
	jsonw_name(w, "port");
	if (db_int(rows, 0, C_PORT) == 0)
		jsonw_null(w);
	else
		jsonw_int(w, db_int(rows, 0, C_PORT));
	json_kv_bytes(w, "protocol", db_bytes(rows, 0, C_PROTO));
	json_kv_bytes(w, "requires", db_bytes(rows, 0, C_ASKED));
	json_kv_bytes(w, "server_name", db_bytes(rows, 0, C_SERVER));
	jsonw_kv_raw(w, "tools", tools.p, tools.n);
	put_undeclared(w, rows);
	if (db_bool(rows, 0, C_AUTOMATIC))
		policies_approve(j, &request, answer);
	else
		answer(j, false);
}

/* Adds the uuids of tool_id or tool_ids to out, each once. 0, or -1 with the
 * job failed. */
static int
take_tools(struct job *j, struct db_array *out)
{
	struct tlv_reader r;
	struct ipc_bytes one;
	struct ipc_id id;
	unsigned n = 0;
	struct tlv f;

	if (job_field(j, MF_TOOL_ID, &one) == 1) {
		if (job_uuid(j, MF_TOOL_ID, &id) == -1)
			return -1;
		db_a_bytes(out, id.b, sizeof(id.b));
		n++;
	}
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &f) == 1) {
		if (f.tag != MF_TOOL_IDS || f.n == 0)
			continue;
		if (n == 0 || job_field(j, MF_TOOL_ID, &one) == 0) {
			if (uuid_parse((const char *)f.p, f.n, &id) == -1) {
				job_fail(j, FAILURE_INVALID_ARGUMENTS,
				    "tool_ids: a tool's id is a uuid");
				return -1;
			}
			db_a_bytes(out, id.b, sizeof(id.b));
			n++;
			continue;
		}
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "give tool_id or tool_ids, not both");
		return -1;
	}
	if (n > 0 && n <= TOOLS_MAX)
		return 0;
	job_fail(j, FAILURE_INVALID_ARGUMENTS,
	    "give tool_id, or tool_ids of 1 to %d tools of one server",
	    TOOLS_MAX);
	return -1;
}

void
manage_request_network(struct job *j)
{
	struct ipc_bytes host = ipc_str(""), why = ipc_str("");
	struct ipc_id request, subject;
	struct db_array tools;
	struct db_params p;

	db_array_init(&tools, DB_UUID, 8192);
	if (take_tools(j, &tools) == -1) {
		db_array_free(&tools);
		return;
	}
	(void)job_field(j, MF_HOST, &host); /* the schema requires both */
	(void)job_field(j, MF_JUSTIFICATION, &why);
	uuid_v7(&request);
	uuid_v7(&subject);
	db_params_init(&p);
	db_p_id(&p, &request);
	db_p_id(&p, &subject);
	db_p_array(&p, &tools);
	db_p_text(&p, host);
	db_p_i32(&p, (int32_t)job_number(j, MF_PORT, 0));
	db_p_text(&p, why);
	db_p_str(&p, j->principal);
	job_query(j, &request_network, &p, requested);
	db_array_free(&tools);
}
