/*
 * Questions about servers, tools, modules and limits (adminq.h).
 */
#include "limit.h"
#include "adminq.h"

#define SERVER_JSON                                                            \
	"json_build_object('id', s.id, 'name', s.name,"                        \
	" 'description', s.description, 'status', s.status,"                   \
	" 'expose', s.expose, 'created_at', " ADMINQ_TIME(                     \
	    "s.created_at") ","                                                \
			    " 'created_by', s.created_by, "                    \
			    "'updated_at', " ADMINQ_TIME(                      \
				"s.updated_at") ","                            \
						" 'tool_count', (SELECT "      \
						"count(*) FROM mcpbox.tools x" \
						" WHERE x.server_id = s.id"    \
						" AND x.object = 'tool'"       \
						" AND x.deleted_at IS NULL"    \
						"))::text"
#define TOOL_JSON                                                              \
	"json_build_object('id', t.id, 'server_id', t.server_id,"              \
	" 'server', s.name, 'name', t.name, 'enabled', t.enabled,"             \
	" 'object', t.object, 'uri', n.uri,"                                   \
	" 'exposed_name', n.exposed_name, 'description', n.description,"       \
	" 'kind', n.kind, 'approval_status', n.state,"                         \
	" 'version', n.version_no, 'version_id', n.id,"                        \
	" 'hash', encode(n.hash, 'hex'),"                                      \
	" 'serving_version', c.version_no, 'serving_version_id', c.id,"        \
	" 'callable', c.id IS NOT NULL AND t.enabled AND s.status = "          \
	"'running',"                                                           \
	" 'created_at', " ADMINQ_TIME(                                         \
	    "t.created_at") ", 'created_by', t.created_by,"                    \
			    " 'updated_at', " ADMINQ_TIME(                     \
				"t.updated_at") ","                            \
						" 'deleted_at', " ADMINQ_TIME( \
						    "t.deleted_at") ")::text"
#define TOOL_FROM                                                           \
	" FROM mcpbox.tools t JOIN mcpbox.servers s ON s.id = t.server_id"  \
	" JOIN LATERAL (SELECT * FROM mcpbox.tool_versions v"               \
	" WHERE v.tool_id = t.id ORDER BY v.version_no DESC LIMIT 1) n ON " \
	"true"                                                              \
	" LEFT JOIN mcpbox.tool_versions c ON c.id = t.serving_version"

/* What a version sets itself. */
#define LIMIT_PAIR(SYMBOL, name, unit, min, max, context, version, reason) \
	"'" name "', n." name
#define LIMIT_PAIR_MORE(                                    \
    SYMBOL, name, unit, min, max, context, version, reason) \
	", '" name "', n." name

/* clang-format off */
static const struct question_form servers[] = {
    {0, {Q_TAKE(STATE)},
	{"adminq_servers",
	    "SELECT " SERVER_JSON ", s.name FROM mcpbox.servers s"
	    " WHERE ($1::text = '' OR s.status = $1::text)"
	    " AND s.name > $2::text ORDER BY s.name LIMIT $3::int8",
	    DB_FAST}},
    {0}};

static const struct question_form server[] = {
    {0, {0},
	{"adminq_server",
	    "SELECT " SERVER_JSON " FROM mcpbox.servers s"
	    " WHERE s.id = $1::uuid",
	    DB_FAST}},
    {0}};

/* A deleted one is shown only where deleted ones are asked for. */
#define TOOL_STATE(n)                                                  \
	" AND CASE WHEN t.deleted_at IS NOT NULL THEN $" n "::text ="  \
	" 'deleted' ELSE $" n "::text IN ('', n.state) END"
static const struct question_form tools[] = {
    {Q_MUST(SERVER), {Q_TAKE(SERVER), Q_TAKE(STATE)},
	{"adminq_tools_server",
	    "SELECT " TOOL_JSON ", t.id::text" TOOL_FROM
	    " WHERE t.server_id = $1::text::uuid" TOOL_STATE("2")
	    " AND t.id > CASE $3::text WHEN '' THEN"
	    " '00000000-0000-0000-0000-000000000000' ELSE $3::text END::uuid"
	    " ORDER BY t.id LIMIT $4::int8",
	    DB_FAST}},
    {0, {Q_TAKE(STATE)},
	{"adminq_tools",
	    "SELECT " TOOL_JSON ", t.id::text" TOOL_FROM
	    " WHERE t.id > CASE $2::text WHEN '' THEN"
	    " '00000000-0000-0000-0000-000000000000' ELSE $2::text END::uuid"
	    TOOL_STATE("1")
	    " ORDER BY t.id LIMIT $3::int8",
	    DB_FAST}},
    {0}};

static const struct question_form tool[] = {
    {0, {0},
	{"adminq_tool",
	    "SELECT json_build_object('tool', " TOOL_JSON "::json,"
	    " 'input_schema', convert_from(n.input_schema, 'UTF8')::json,"
	    " 'output_schema', convert_from(n.output_schema, 'UTF8')::json,"
	    " 'secrets', array_to_json(n.secrets),"
	    " 'modules', array_to_json(n.modules), 'limits',"
	    " json_strip_nulls(json_build_object(" LIMITS(LIMIT_PAIR,
		LIMIT_PAIR_MORE) ")), 'versions',"
				 " (SELECT json_agg(json_build_object('id', "
				 "v.id,"
				 " 'version', v.version_no, 'state', v.state,"
				 " 'hash', encode(v.hash, 'hex'), "
				 "'created_at', " ADMINQ_TIME(
				     "v.created_at") ", 'created_by', "
						     "v.created_by,"
						     " 'change_note', "
						     "v.change_note) ORDER BY "
						     "v.version_no DESC)"
						     " FROM (SELECT * FROM "
						     "mcpbox.tool_versions w "
						     "WHERE w.tool_id = t.id "
						     "ORDER BY w.version_no "
						     "DESC LIMIT 100) "
						     "v))::text" TOOL_FROM
						     " WHERE t.id = $1::uuid",
	    DB_FAST}},
    {0}};

static const struct question_form modules[] = {
    {0, {Q_TAKE(STATE)},
	{"adminq_modules",
	    "SELECT json_build_object('name', m.name, 'version', m.version,"
	    " 'digest', encode(m.digest, 'hex'), 'files', m.files,"
	    " 'bytes', m.bytes, 'state', m.state, 'added_at', " ADMINQ_TIME(
		"m.added_at") ","
			      " 'added_by', m.added_by, 'tools', "
			      "coalesce((SELECT"
			      " json_agg(n.exposed_name ORDER BY "
			      "n.exposed_name)"
			      " FROM mcpbox.tool_modules g JOIN "
			      "mcpbox.tool_names n USING (tool_id)"
			      " WHERE (g.name, g.version) = (m.name, m.version)"
			      " AND g.revoked_at IS NULL), '[]'))::text,"
			      " m.name || ' ' || m.version FROM mcpbox.modules "
			      "m"
			      " WHERE ($1::text = '' OR m.state = $1::text)"
			      " AND ($2::text = '' OR m.name || ' ' || "
			      "m.version > $2::text"
			      "  COLLATE \"C\")"
			      " ORDER BY m.name || ' ' || m.version COLLATE "
			      "\"C\" LIMIT $3::int8",
	    DB_FAST}},
    {0}};

/* the very bytes whose SHA-256 a change must name */
static const struct question_form limits[] = {
    {0, {0},
	{"adminq_limits",
	    "SELECT mcpbox.server_limits_json($1::text) WHERE"
	    " mcpbox.server_limits_json($1::text) IS NOT NULL",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_servers_questions[] = {
    {"servers", QUESTION_LIST, ADMIN_VIEWER, servers, NULL},
    {"server", QUESTION_OBJECT, ADMIN_VIEWER, server, NULL},
    {"tools", QUESTION_LIST, ADMIN_VIEWER, tools, NULL},
    {"tool", QUESTION_OBJECT, ADMIN_VIEWER, tool, NULL},
    {"modules", QUESTION_LIST, ADMIN_VIEWER, modules, NULL},
    {"limits", QUESTION_NAMED, ADMIN_VIEWER, limits, NULL},
    {0},
};
