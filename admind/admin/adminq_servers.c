/*
 * Questions about servers, tools, modules and limits (adminq.h).
 */
#include "adminq.h"
#include "manage.h"

/* clang-format off */
/* SQL functions make the objects (sql/schema/servers.sql), because If-Match is
 * compared with the very bytes that GET shows. Deleted objects are shown only
 * if asked for. */
static const struct question_form servers[] = {
    {0, {Q_TAKE(STATE), Q_TAKE(SEARCH)},
	{"adminq_servers",
	    "SELECT mcpbox.server_json(s.id), s.name FROM mcpbox.servers s"
	    " WHERE CASE $1::text WHEN 'deleted' THEN s.deleted_at IS NOT NULL"
	    " ELSE s.deleted_at IS NULL AND $1::text IN ('', s.status) END"
	    " AND strpos(s.name, lower($2::text)) > 0"
	    " AND s.name > $3::text ORDER BY s.name LIMIT $4::int8",
	    DB_FAST}},
    {0}};

static const struct question_form server[] = {
    {0, {0},
	{"adminq_server",
	    "SELECT mcpbox.server_json(mcpbox.find_server($1::text))",
	    DB_FAST}},
    {0}};

#define TOOL_FROM                                                           \
	" FROM mcpbox.tools t"                                              \
	" JOIN LATERAL (SELECT * FROM mcpbox.tool_versions v"               \
	" WHERE v.tool_id = t.id ORDER BY v.version_no DESC LIMIT 1) n ON " \
	"true"
#define TOOL_STATE(n)                                                  \
	" AND CASE WHEN t.deleted_at IS NOT NULL THEN $" n "::text ="  \
	" 'deleted' ELSE $" n "::text IN ('', n.state) END"
#define TOOL_PAGE(cursor, limit)                                      \
	" AND t.id > CASE " cursor "::text WHEN '' THEN"              \
	" '00000000-0000-0000-0000-000000000000' ELSE " cursor        \
	"::text END::uuid ORDER BY t.id LIMIT " limit "::int8"
#define TOOL_OBJECT(n) " AND $" n "::text IN ('', t.object)"
/* Words are looked for in the newest version. An older one may have them alone,
 * so they are compared twice. */
#define TOOL_WORDS(n)                                                         \
	" t.id IN (SELECT o.tool_id FROM mcpbox.tool_versions o WHERE o.words" \
	" @@ mcpbox.every_word($" n "::text)) AND n.words @@"                  \
	" mcpbox.every_word($" n "::text)"
#define TOOL_ITEM "SELECT mcpbox.tool_item(t.id)::text, t.id::text" TOOL_FROM
static const struct question_form tools[] = {
    {Q_MUST(SEARCH),
	{Q_TAKE(SEARCH), Q_TAKE(SERVER), Q_TAKE(STATE), Q_TAKE(OBJECT)},
	{"adminq_tools_search",
	    TOOL_ITEM " WHERE" TOOL_WORDS("1")
	    " AND ($2::text = '' OR t.server_id = nullif($2::text, '')::uuid)"
	    TOOL_STATE("3") TOOL_OBJECT("4") TOOL_PAGE("$5", "$6"),
	    DB_FAST}},
    {Q_MUST(SERVER), {Q_TAKE(SERVER), Q_TAKE(STATE), Q_TAKE(OBJECT)},
	{"adminq_tools_server",
	    TOOL_ITEM " WHERE t.server_id = $1::text::uuid" TOOL_STATE("2")
	    TOOL_OBJECT("3") TOOL_PAGE("$4", "$5"),
	    DB_FAST}},
    {Q_MUST(OBJECT), {Q_TAKE(OBJECT), Q_TAKE(STATE)},
	{"adminq_tools_object",
	    TOOL_ITEM " WHERE t.object = $1::text" TOOL_STATE("2")
	    TOOL_PAGE("$3", "$4"),
	    DB_FAST}},
    {0, {Q_TAKE(STATE)},
	{"adminq_tools",
	    TOOL_ITEM " WHERE true" TOOL_STATE("1") TOOL_PAGE("$2", "$3"),
	    DB_FAST}},
    {0}};

static const struct question_form tool[] = {
    {0, {0},
	{"adminq_tool",
	    "SELECT mcpbox.tool_json(mcpbox.find_tool($1::text))",
	    DB_FAST}},
    {0}};

/* The id is "tool/number". */
static const struct question_form version[] = {
    {0, {0},
	{"adminq_version",
	    "SELECT mcpbox.version_named($1::text)",
	    DB_FAST}},
    {0}};

static const struct question_form versions[] = {
    {Q_MUST(TOOL), {Q_TAKE(TOOL)},
	{"adminq_versions",
	    "SELECT json_build_object('tool_id', v.tool_id,"
	    " 'version_id', v.id, 'name', v.exposed_name, 'version',"
	    " v.version_no, 'state', v.state, 'serving', EXISTS (SELECT 1"
	    "  FROM mcpbox.tools t WHERE t.serving_version = v.id"
	    "  AND t.id = v.tool_id), 'hash', encode(v.hash, 'hex'),"
	    " 'change_note', v.change_note, 'change_source', v.change_source,"
	    " 'created_by', v.created_by,"
	    " 'created_at', " ADMINQ_TIME("v.created_at") ")::text,"
	    " v.version_no::text FROM mcpbox.tool_versions v"
	    " WHERE v.tool_id = mcpbox.find_tool($1::text)"
	    " AND v.version_no < CASE $2::text WHEN '' THEN 2147483647"
	    "  ELSE $2::text::int END"
	    " ORDER BY v.version_no DESC LIMIT $3::int8",
	    DB_FAST}},
    {0}};

/* The id is "tool/number-number". manage_diff.c makes the JSON. */
static const struct question_form diff[] = {
    {0, {0},
	{"adminq_version_diff",
	    "SELECT * FROM mcpbox.version_pair($1::text)", DB_FAST}},
    {0}};

static const struct question_form sources[] = {
    {Q_MUST(SERVER), {Q_TAKE(SERVER)},
	{"adminq_sources",
	    "SELECT mcpbox.source_json(x)::text, x.name"
	    " FROM mcpbox.external_sources x"
	    " WHERE x.server_id = $1::text::uuid"
	    " AND x.name > $2::text ORDER BY x.name LIMIT $3::int8",
	    DB_FAST}},
    {0, {0},
	{"adminq_sources_all",
	    "SELECT mcpbox.source_json(x)::text, x.id::text"
	    " FROM mcpbox.external_sources x"
	    " WHERE x.id > CASE $1::text WHEN '' THEN"
	    " '00000000-0000-0000-0000-000000000000' ELSE $1::text END::uuid"
	    " ORDER BY x.id LIMIT $2::int8",
	    DB_FAST}},
    {0}};

static const struct question_form source[] = {
    {0, {0},
	{"adminq_source",
	    "SELECT mcpbox.source_json(x)::text FROM mcpbox.external_sources x"
	    " WHERE x.id = $1::uuid",
	    DB_FAST}},
    {0}};

/* The tools that the source's server listed last, in that server's words. */
static const struct question_form source_tools[] = {
    {Q_MUST(OBJECT), {Q_TAKE(OBJECT)},
	{"adminq_source_tools",
	    "SELECT mcpbox.source_tool_json(k)::text, k.name"
	    " FROM mcpbox.source_tools k"
	    " WHERE k.source_id = $1::text::uuid AND k.name > $2::text"
	    " COLLATE \"C\" ORDER BY k.name LIMIT $3::int8",
	    DB_FAST}},
    {0}};

static const struct question_form modules[] = {
    {0, {Q_TAKE(STATE)},
	{"adminq_modules",
	    "SELECT json_build_object('name', m.name, 'version', m.version,"
	    " 'digest', encode(m.digest, 'hex'), 'files', m.files,"
	    " 'bytes', m.bytes, 'state', m.state,"
	    " 'added_at', " ADMINQ_TIME("m.added_at") ","
	    " 'added_by', m.added_by, 'tools', coalesce((SELECT"
	    "  json_agg(n.exposed_name ORDER BY n.exposed_name)"
	    "  FROM mcpbox.tool_modules g JOIN mcpbox.tool_names n USING (tool_id)"
	    "  WHERE (g.name, g.version) = (m.name, m.version)"
	    "  AND g.revoked_at IS NULL), '[]'),"
	    " 'wheel', mcpbox.module_wheel_json(m.name, m.version))::text,"
	    " m.name || ' ' || m.version FROM mcpbox.modules m"
	    " WHERE ($1::text = '' OR m.state = $1::text)"
	    " AND ($2::text = '' OR m.name || ' ' || m.version > $2::text"
	    "  COLLATE \"C\")"
	    " ORDER BY m.name || ' ' || m.version COLLATE \"C\" LIMIT $3::int8",
	    DB_FAST}},
    {0}};

/* The modules to be fetched, and their state. */
static const struct question_form installs[] = {
    {0, {Q_TAKE(STATE)},
	{"adminq_installs",
	    "SELECT mcpbox.module_install_json(i)::text,"
	    " i.name || ' ' || i.version FROM mcpbox.module_installs i"
	    " WHERE ($1::text = '' OR i.state = $1::text)"
	    " AND ($2::text = '' OR i.name || ' ' || i.version > $2::text"
	    "  COLLATE \"C\")"
	    " ORDER BY i.name || ' ' || i.version COLLATE \"C\" LIMIT $3::int8",
	    DB_FAST}},
    {0}};

/* Gives the very bytes whose SHA-256 a change must name. */
static const struct question_form limits[] = {
    {0, {0},
	{"adminq_limits",
	    "SELECT mcpbox.server_limits_json($1::text) WHERE"
	    " mcpbox.server_limits_json($1::text) IS NOT NULL",
	    DB_FAST}},
    {0}};
/* Takes "kind/word". Answers with at most two ids that begin with the word, and
 * whether the word is a name, which takes precedence. Each branch reads a range
 * of its table's primary key, and runs only for its kind. */
#define IDS(KIND, TABLE) \
	" SELECT x.id FROM k, mcpbox." TABLE " x WHERE k.kind = '" KIND "'" \
	" AND x.id BETWEEN k.low AND k.high"
static const struct question_form ids[] = {
    {0, {0},
	{"adminq_ids",
	    "WITH k AS (SELECT split_part($1::text, '/', 1) AS kind,"
	    " split_part($1::text, '/', 2) AS word,"
	    " rpad(replace(split_part($1::text, '/', 2), '-', ''), 32, '0')::uuid AS low,"
	    " rpad(replace(split_part($1::text, '/', 2), '-', ''), 32, 'f')::uuid AS high)"
	    " SELECT json_build_object('items', coalesce((SELECT json_agg(i.id)"
	    " FROM (SELECT u.id FROM ("
	    IDS("approval", "approval_requests") " UNION ALL"
	    IDS("execution", "executions") " UNION ALL"
	    IDS("source", "external_sources") " UNION ALL"
	    IDS("server", "servers") " UNION ALL"
	    IDS("token", "api_tokens") " UNION ALL"
	    IDS("tool", "tools")
	    ") u LIMIT 2) i), '[]'::json),"
	    " 'name', CASE (SELECT kind FROM k)"
	    " WHEN 'server' THEN EXISTS (SELECT 1 FROM k JOIN mcpbox.servers s"
	    "  ON s.name = k.word)"
	    " WHEN 'token' THEN EXISTS (SELECT 1 FROM k JOIN mcpbox.api_tokens t"
	    "  ON t.name = k.word)"
	    " WHEN 'tool' THEN EXISTS (SELECT 1 FROM k JOIN mcpbox.tool_names n"
	    "  ON n.exposed_name = k.word) ELSE false END)::text",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_servers_questions[] = {
    {"servers", QUESTION_LIST, ADMIN_VIEWER, servers, NULL},
    {"server", QUESTION_NAMED, ADMIN_VIEWER, server, NULL},
    {"tools", QUESTION_LIST, ADMIN_VIEWER, tools, NULL},
    {"tool", QUESTION_NAMED, ADMIN_VIEWER, tool, NULL},
    {"version", QUESTION_NAMED, ADMIN_VIEWER, version, NULL},
    {"versions", QUESTION_LIST, ADMIN_VIEWER, versions, NULL},
    {"version_diff", QUESTION_NAMED, ADMIN_VIEWER, diff, NULL,
	manage_diff_make},
    {"sources", QUESTION_LIST, ADMIN_VIEWER, sources, NULL},
    {"source", QUESTION_OBJECT, ADMIN_VIEWER, source, NULL},
    {"source_tools", QUESTION_LIST, ADMIN_VIEWER, source_tools, NULL},
    {"modules", QUESTION_LIST, ADMIN_VIEWER, modules, NULL},
    {"installs", QUESTION_LIST, ADMIN_VIEWER, installs, NULL},
    {"limits", QUESTION_NAMED, ADMIN_VIEWER, limits, NULL},
    {"ids", QUESTION_NAMED, ADMIN_VIEWER, ids, NULL},
    {0},
};
