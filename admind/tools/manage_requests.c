/*
 * Management tools that ask for a review and show its state. None of them
 * decides: a decision takes a person at the admin panel or at mcpboxctl, and
 * the vault's seal.
 */
#include <string.h>

#include "approvals.h"
#include "ids.h"
#include "inner.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"

/* The most requests of each kind that are shown. */
enum { PENDING_SHOWN = 50 };

/* ---- mcpbox_request_publish ---- */

static const struct db_stmt request_publish = {"manage_request_publish",
    "SELECT $1::uuid, r.version_no, r.exposed_name, r.automatic"
    " FROM mcpbox.request_publish($1::uuid, $2::uuid, $3::uuid, $4::text,"
    "  $5::text) r",
    DB_SURE};

static const struct db_stmt request_publish_seen = {
    "manage_request_publish_seen",
    "SELECT $1::uuid, r.version_no, r.exposed_name, r.automatic"
    " FROM mcpbox.request_publish_seen($1::uuid, $2::uuid, $3::uuid, $4::text,"
    "  $5::text, $6::bytea) r",
    DB_SURE};

static void
request_publish_answer(struct job *j, bool approved)
{
	jsonw_kv_str(
	    &j->json, "status", approved ? "approved" : "pending_review");
	jsonw_kv_str(&j->json, "message",
	    approved ? "Approved automatically, by the administrator's policy: "
		       "it can be called now."
		     : "An administrator must approve this version before it "
		       "can be called; mcpbox_get_tool_status tells how it "
		       "stands.");
	if (approved)
		job_done_changed(j);
	else
		job_done(j);
}

static void
request_publish_rows(struct job *j, const struct pg_result *rows)
{
	struct ipc_id request = db_id(rows, 0, 0), tool;

	if (job_uuid(j, MF_TOOL_ID, &tool) == -1)
		return;
	jsonw_kv_bool(&j->json, "success", true);
	json_kv_id(&j->json, "tool_id", &tool);
	json_kv_bytes(&j->json, "name", db_bytes(rows, 0, 2));
	json_kv_id(&j->json, "request_id", &request);
	jsonw_kv_int(&j->json, "version", db_int(rows, 0, 1));
	if (db_bool(rows, 0, 3))
		policies_approve(j, &request, request_publish_answer);
	else
		request_publish_answer(j, false);
}

void
manage_request_publish(struct job *j)
{
	const struct ipc_hash *seen = inner_seen(j);
	struct ipc_bytes notes = ipc_str("");
	struct ipc_id request, version, tool;
	struct db_params p;

	if (job_uuid(j, MF_TOOL_ID, &tool) == -1)
		return;
	(void)job_field(j, MF_NOTES, &notes);
	uuid_v7(&request);
	uuid_v7(&version); /* used if a rejected version is requested again */
	db_params_init(&p);
	db_p_id(&p, &request);
	db_p_id(&p, &version);
	db_p_id(&p, &tool);
	db_p_text(&p, notes);
	db_p_str(&p, j->principal);
	if (seen != NULL)
		db_p_hash(&p, seen);
	job_query(j, seen != NULL ? &request_publish_seen : &request_publish,
	    &p, request_publish_rows);
}

/* ---- mcpbox_get_tool_status ---- */

static const struct db_stmt tool_status = {"manage_tool_status",
    "SELECT t.id, t.name, v.exposed_name, s.name, s.status, t.enabled,"
    "  v.state, v.version_no, v.hash, v.created_by,"
    "  (SELECT w.version_no FROM mcpbox.tool_versions w"
    "   WHERE w.id = t.serving_version),"
    "  r.requested_at, r.notes, r.decided_at, r.decided_by, r.reason, r.id,"
    "  (SELECT coalesce(json_agg(json_build_object('id', a.id,"
    "   'module_name', m.name, 'version', nullif(m.version, ''),"
    "   'status', a.state, 'rejection_reason', CASE a.state"
    "   WHEN 'rejected' THEN a.reason END, 'fetching', CASE a.state"
    "   WHEN 'pending' THEN mcpbox.module_fetch_json(m.name, m.version) END,"
    "   'created_at', to_char(a.requested_at AT TIME ZONE 'UTC',"
    "   'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')) ORDER BY a.id DESC), '[]')::text"
    "   FROM (SELECT * FROM mcpbox.approval_requests b"
    "    WHERE b.tool_id = t.id AND b.kind = 'module'"
    "    AND b.state <> 'superseded'"
    "    ORDER BY b.id DESC LIMIT 50) a"
    "   JOIN mcpbox.module_requests m ON m.id = a.subject),"
    "  (SELECT coalesce(json_agg(g.name || '==' || g.version"
    "   ORDER BY g.name, g.version), '[]')::text"
    "   FROM mcpbox.tool_modules g JOIN mcpbox.modules m"
    "   USING (name, version, digest) WHERE g.tool_id = t.id"
    "   AND g.revoked_at IS NULL AND m.state = 'available'),"
    "  (SELECT coalesce(json_agg(json_build_object('id', a.id, 'host', n.host,"
    "   'port', nullif(n.port, 0), 'status', CASE WHEN g.revoked_at IS NOT"
    "   NULL THEN 'revoked' ELSE a.state END, 'rejection_reason', CASE a.state"
    "   WHEN 'rejected' THEN a.reason END, 'created_at',"
    "   to_char(a.requested_at AT TIME ZONE 'UTC',"
    "   'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')) ORDER BY a.id DESC), '[]')::text"
    "   FROM (SELECT * FROM mcpbox.network_requests x"
    "    WHERE t.id = ANY (x.tool_ids) OR (x.server_id = t.server_id"
    "    AND x.tool_ids = '{}') ORDER BY x.id DESC LIMIT 50) n"
    "   JOIN mcpbox.approval_requests a ON a.subject = n.id"
    "    AND a.kind = 'network' AND a.state <> 'superseded'"
    "   LEFT JOIN mcpbox.network_grants g ON g.request_id = a.id),"
    "  mcpbox.server_hosts(s.id)::text,"
    "  coalesce(mcpbox.grant_missing(s.id, t.id, v.modules, v.requires), ''),"
    "  CASE WHEN s.status <> 'running' OR NOT t.enabled THEN"
    "  mcpbox.call_stopped(s.id, t.id) END, mcpbox.quarantine_words(t.id)"
    " FROM mcpbox.tools t JOIN mcpbox.servers s ON s.id = t.server_id"
    " JOIN LATERAL (SELECT * FROM mcpbox.tool_versions y"
    "  WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true"
    " LEFT JOIN LATERAL (SELECT * FROM mcpbox.approval_requests a"
    "  WHERE a.kind = 'tool' AND a.subject = v.id"
    "  ORDER BY a.requested_at DESC LIMIT 1) r ON true"
    " WHERE t.id = $1::uuid AND t.deleted_at IS NULL",
    DB_FAST};

/* Writes a text if `have`, else null. */
static void
kv_maybe(struct jsonw *w, const char *name, bool have, struct ipc_bytes value)
{
	if (have) {
		json_kv_bytes(w, name, value);
	} else {
		jsonw_name(w, name);
		jsonw_null(w);
	}
}

static void
tool_status_rows(struct job *j, const struct pg_result *rows)
{
	struct jsonw *w = &j->json;
	bool serving, approved, rejected, running;
	struct ipc_bytes state;
	struct ipc_id id;

	if (db_nrows(rows) == 0) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no tool has this id: see mcpbox_list_tools");
		return;
	}
	state = db_bytes(rows, 0, 6);
	running = ipc_streq(db_bytes(rows, 0, 4), "running");
	serving = !db_null(rows, 0, 10);
	approved = ipc_streq(state, "approved") || ipc_streq(state, "revoked");
	rejected = ipc_streq(state, "rejected");
	id = db_id(rows, 0, 0);
	json_kv_id(w, "tool_id", &id);
	json_kv_bytes(w, "name", db_bytes(rows, 0, 1));
	json_kv_bytes(w, "exposed_name", db_bytes(rows, 0, 2));
	json_kv_bytes(w, "server_name", db_bytes(rows, 0, 3));
	json_kv_bytes(w, "server_status", db_bytes(rows, 0, 4));
	jsonw_kv_bool(w, "enabled", db_bool(rows, 0, 5));
	json_kv_bytes(w, "approval_status", state);
	jsonw_kv_int(w, "version", db_int(rows, 0, 7));
	json_kv_hex(w, "version_hash", db_bytes(rows, 0, 8));
	jsonw_name(w, "serving_version");
	if (serving)
		jsonw_int(w, db_int(rows, 0, 10));
	else
		jsonw_null(w);
	jsonw_kv_bool(w, "callable", running && serving && db_bool(rows, 0, 5));
	json_kv_bytes(w, "created_by", db_bytes(rows, 0, 9));
	if (db_null(rows, 0, 16)) {
		kv_maybe(w, "request_id", false, state);
	} else {
		id = db_id(rows, 0, 16);
		json_kv_id(w, "request_id", &id);
	}
	json_kv_time(w, "approval_requested_at", db_time_us(rows, 0, 11));
	json_kv_time(w, "approved_at", approved ? db_time_us(rows, 0, 13) : 0);
	kv_maybe(w, "approved_by", approved, db_bytes(rows, 0, 14));
	kv_maybe(w, "rejection_reason", rejected, db_bytes(rows, 0, 15));
	kv_maybe(
	    w, "publish_notes", !db_null(rows, 0, 12), db_bytes(rows, 0, 12));
	state = db_bytes(rows, 0, 17);
	jsonw_kv_raw(w, "module_requests", state.p, state.n);
	state = db_bytes(rows, 0, 18);
	jsonw_kv_raw(w, "modules_granted", state.p, state.n);
	state = db_bytes(rows, 0, 19);
	jsonw_kv_raw(w, "network_access_requests", state.p, state.n);
	state = db_bytes(rows, 0, 20);
	jsonw_kv_raw(w, "hosts_granted", state.p, state.n);
	state = db_bytes(rows, 0, 21);
	kv_maybe(w, "missing_grant", state.n > 0, state);
	kv_maybe(w, "stopped", !db_null(rows, 0, 22), db_bytes(rows, 0, 22));
	kv_maybe(
	    w, "quarantined", !db_null(rows, 0, 23), db_bytes(rows, 0, 23));
	job_done(j);
}

void
manage_get_tool_status(struct job *j)
{
	struct db_params p;
	struct ipc_id tool;

	if (job_uuid(j, MF_TOOL_ID, &tool) == -1)
		return;
	db_params_init(&p);
	db_p_id(&p, &tool);
	job_query(j, &tool_status, &p, tool_status_rows);
}

/* ---- mcpbox_list_pending_requests ---- */

/* Returns the oldest requests, a limited number of each kind. Each row also has
 * the number of all requests of its kind. */
static const struct db_stmt pending = {"manage_pending",
    "SELECT k.kind, k.n, r.id, r.tool_id, t.name, s.name, r.requested_at,"
    "  v.version_no, v.exposed_name, r.requested_by, m.name,"
    "  nullif(m.version, ''), n.host, nullif(n.port, 0),"
    "  (SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM mcpbox.tools x"
    "   WHERE x.id = ANY (n.tool_ids))"
    " FROM (SELECT kind, count(*) AS n FROM mcpbox.approval_requests"
    "  WHERE state = 'pending' GROUP BY kind) k"
    " JOIN LATERAL (SELECT * FROM mcpbox.approval_requests a"
    "  WHERE a.state = 'pending' AND a.kind = k.kind"
    "  ORDER BY a.requested_at, a.id LIMIT $1::int8) r ON true"
    " JOIN mcpbox.servers s ON s.id = r.server_id"
    /* OFFSET 0 makes PostgreSQL look up each row of the page instead of
     * scanning the table */
    " LEFT JOIN LATERAL (SELECT x.name FROM mcpbox.tools x"
    "  WHERE x.id = r.tool_id OFFSET 0) t ON true"
    " LEFT JOIN LATERAL (SELECT x.version_no, x.exposed_name"
    "  FROM mcpbox.tool_versions x WHERE x.id = r.subject OFFSET 0) v ON true"
    " LEFT JOIN mcpbox.module_requests m ON m.id = r.subject"
    " LEFT JOIN mcpbox.network_requests n ON n.id = r.subject"
    " ORDER BY k.kind, r.requested_at, r.id",
    DB_FAST};

/* Writes the requests of one kind as an array. Returns the number of all
 * requests of the kind. */
static int64_t
pending_kind(struct jsonw *w, const char *name, const char *kind,
    const struct pg_result *rows)
{
	bool of_tool = strcmp(kind, "tool") == 0;
	int64_t total = 0;
	struct ipc_id id;

	jsonw_name(w, name);
	jsonw_arr(w);
	for (int i = 0; i < db_nrows(rows); i++) {
		if (!ipc_streq(db_bytes(rows, i, 0), kind))
			continue;
		total = db_int(rows, i, 1);
		jsonw_obj(w);
		id = db_id(rows, i, 3);
		if (!db_null(rows, i, 3))
			json_kv_id(w, of_tool ? "id" : "tool_id", &id);
		id = db_id(rows, i, 2);
		json_kv_id(w, of_tool ? "request_id" : "id", &id);
		if (!db_null(rows, i, 4))
			json_kv_bytes(w, of_tool ? "name" : "tool_name",
			    db_bytes(rows, i, 4));
		if (!db_null(rows, i, 10)) {
			json_kv_bytes(w, "module_name", db_bytes(rows, i, 10));
			kv_maybe(w, "module_version", !db_null(rows, i, 11),
			    db_bytes(rows, i, 11));
		}
		if (!db_null(rows, i, 12)) {
			json_kv_bytes(w, "host", db_bytes(rows, i, 12));
			jsonw_name(w, "port");
			if (db_null(rows, i, 13))
				jsonw_null(w);
			else
				jsonw_int(w, db_int(rows, i, 13));
			if (!db_null(rows, i, 14))
				json_kv_bytes(
				    w, "tool_name", db_bytes(rows, i, 14));
		}
		json_kv_bytes(w, "server_name", db_bytes(rows, i, 5));
		if (!db_null(rows, i, 7)) {
			json_kv_bytes(w, "exposed_name", db_bytes(rows, i, 8));
			jsonw_kv_int(w, "version", db_int(rows, i, 7));
		}
		json_kv_time(w, "requested_at", db_time_us(rows, i, 6));
		json_kv_bytes(w, "requested_by", db_bytes(rows, i, 9));
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
	return total;
}

static void
pending_rows(struct job *j, const struct pg_result *rows)
{
	struct jsonw *w = &j->json;
	int64_t tools, modules, network;

	tools = pending_kind(w, "pending_tools", "tool", rows);
	modules = pending_kind(w, "pending_module_requests", "module", rows);
	network = pending_kind(w, "pending_network_requests", "network", rows);
	jsonw_name(w, "summary");
	jsonw_obj(w);
	jsonw_kv_int(w, "tools", tools);
	jsonw_kv_int(w, "modules", modules);
	jsonw_kv_int(w, "network", network);
	jsonw_kv_int(w, "total", tools + modules + network);
	jsonw_obj_end(w);
	job_done(j);
}

void
manage_list_pending_requests(struct job *j)
{
	struct db_params p;

	db_params_init(&p);
	db_p_i64(&p, PENDING_SHOWN);
	job_query(j, &pending, &p, pending_rows);
}
