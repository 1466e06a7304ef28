/*
 * Questions about what waits for a person, or was decided (adminq.h).
 */
#include "adminq.h"

/* clang-format off */
static const struct question_form approvals[] = {
    {0, {Q_TAKE(KIND), Q_TAKE(STATE)},
	{"adminq_approvals",
	    "SELECT json_build_object('id', a.id, 'kind', a.kind,"
	    " 'state', a.state, 'server', s.name, 'server_id', a.server_id,"
	    " 'tool', coalesce(v.name, t.name), 'tool_id', a.tool_id,"
	    " 'exposed_name', v.exposed_name, 'version', v.version_no,"
	    " 'version_id', v.id, 'module', m.name,"
	    " 'module_version', nullif(m.version, ''),"
	    " 'hash', encode(a.hash, 'hex'),"
	    " 'requested_at', " ADMINQ_TIME("a.requested_at") ","
	    " 'requested_by', a.requested_by, 'notes', a.notes,"
	    " 'decided_at', " ADMINQ_TIME("a.decided_at") ","
	    " 'decided_by', a.decided_by, 'reason', a.reason,"
	    " 'principal', c.principal, 'listener', c.listener,"
	    " 'arguments', c.arguments, 'expires_at', " ADMINQ_TIME("c.expires_at") ","
	    " 'used_at', " ADMINQ_TIME("c.used_at") ", 'execution', c.execution)::text,"
	    " a.id::text FROM mcpbox.approval_requests a"
	    " JOIN mcpbox.servers s ON s.id = a.server_id"
	    " LEFT JOIN mcpbox.tools t ON t.id = a.tool_id"
	    " LEFT JOIN mcpbox.call_requests c ON c.id = a.id"
	    " LEFT JOIN mcpbox.tool_versions v"
	    " ON v.id = coalesce(c.version_id, a.subject)"
	    " LEFT JOIN mcpbox.module_requests m ON m.id = a.subject"
	    " WHERE ($1::text = '' OR a.kind = $1::text)"
	    " AND ($2::text = '' OR a.state = $2::text)"
	    " AND a.id > CASE $3::text WHEN '' THEN"
	    " '00000000-0000-0000-0000-000000000000' ELSE $3::text END::uuid"
	    " ORDER BY a.id LIMIT $4::int8",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_approvals_questions[] = {
    {"approvals", QUESTION_LIST, ADMIN_VIEWER, approvals, NULL},
    {0},
};
