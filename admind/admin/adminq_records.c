/*
 * Questions about executions and the activity log (adminq.h).
 *
 * A list has a form for each filter with which an index of execution_index
 * begins (sql/schema/records.sql). The most selective filter comes first. The
 * other filters are applied to the rows that this index finds, in the order of
 * time, so that few rows are read for a page. Rows that are not in
 * execution_index yet (open rows, and rows that ended just now) are few, so
 * each form adds them.
 */
#include "adminq.h"

/* clang-format off */

/* ---- the members shown of a row ---- */

#define MS(from, to) \
	"(extract(epoch FROM " to " - " from ") * 1000)::int8"
#define EXECUTION_HEAD                                                         \
	"'id', e.id, 'kind', e.kind, 'state', e.state, 'outcome', e.outcome,"  \
	" 'failure_mode', e.failure, 'delivered', e.delivered,"                \
	" 'tool', e.tool, 'version_id', e.version_id,"                         \
	" 'hash', encode(e.version_hash, 'hex'), 'principal', e.principal,"    \
	" 'listener', e.listener, 'client', e.client, 'protocol', e.protocol," \
	" 'created_at', " ADMINQ_TIME("e.created_at") ","                      \
	" 'deadline', " ADMINQ_TIME("e.deadline") ","                          \
	" 'started_at', " ADMINQ_TIME("e.started_at") ","                      \
	" 'ended_at', " ADMINQ_TIME("e.ended_at") ","                          \
	" 'duration_ms', greatest(0, "                                         \
	MS("coalesce(e.started_at, e.created_at)", "e.ended_at") "),"          \
	" 'cpu_us', e.cpu_us, 'restored', e.restored,"                         \
	" 'trace_id', replace(e.trace_id::text, '-', ''),"                     \
	" 'span_id', encode(e.span_id, 'hex'), 'session_id', e.session_id"

/* Tells whether a text was cut. A cut text ends with U+2026
 * (common/scan/kept.h). A stdout cut at 64 KiB has 65533 bytes or more. */
#define TRUNCATED                                                              \
	"(right(e.arguments, 1) = U&'\\2026' OR coalesce(right(e.result, 1)"   \
	" = U&'\\2026', false) OR coalesce(octet_length(e.stdout) >= 65533,"   \
	" false))"
#define EXECUTION_CONTENT                                                      \
	"'arguments', e.arguments,"                                            \
	" 'args_sha256', encode(e.args_sha256, 'hex'),"                        \
	" 'stdout', e.stdout, 'result', e.result, 'truncated', " TRUNCATED ","   \
	/* null: the call could not connect, or did not try */                 \
	" 'network', e.network"

/*
 * A line of the export. First come the fields that MiniClaw's ADR-010 named for
 * its runners, with the same meaning as there; then come our fields. For a
 * command, argv, command and exit_code are those of its program; exit_code -1:
 * a signal ended the program. For other tools argv is the tool's name and the
 * arguments, and exit_code is 0 if the tool returned, 1 if it failed, -1 if it
 * was stopped. exit_code null: the call never ran, or the outcome is unknown.
 */
#define EXIT_CODE                                                              \
	"CASE WHEN e.outcome = 'killed' THEN -1 WHEN e.outcome NOT IN"         \
	" ('done', 'failed') THEN NULL WHEN p.argv IS NOT NULL THEN"           \
	" CASE WHEN e.result ~ '\"exit_code\":null,\"signal\"' THEN -1"        \
	" ELSE mcpbox.command_exit_code(e.result) END"                         \
	" WHEN e.outcome = 'done' THEN 0 ELSE 1 END"
#define EXPORT_LINE                                                            \
	"(SELECT json_build_object('timestamp', "                              \
	ADMINQ_TIME("coalesce(e.ended_at, e.created_at)") ","                  \
	" 'event', CASE e.kind WHEN 'tool' THEN 'tool_call' ELSE e.kind END,"  \
	" 'container_id', replace(e.id::text, '-', ''),"                       \
	" 'chat_id', coalesce(replace(e.session_id::text, '-', ''),"           \
	" e.principal), 'argv',"                                               \
	" coalesce(p.argv, jsonb_build_array(e.tool, e.arguments)),"           \
	" 'command', coalesce(p.argv ->> 0, e.tool), 'exit_code', " EXIT_CODE ","\
	" 'stopped_reason', coalesce(e.failure, CASE WHEN e.outcome = 'done'"  \
	" THEN 'complete' END), 'error', CASE WHEN e.outcome <> 'done'"        \
	" THEN left(e.result, 2000) END, " EXECUTION_HEAD ", "                 \
	EXECUTION_CONTENT ") FROM (SELECT mcpbox.command_argv("              \
	"e.version_id, e.arguments) AS argv OFFSET 0) p)"

/* ---- which rows ---- */

/* $1 kind, $2 state, $3 server, $4 tool, $5 principal, $6 listener, $7 outcome,
 * $8 failure, $9 since, $10 until; then the cursor and the limit. */
#define FILTERS                                                                \
	Q_TAKE(KIND), Q_TAKE(STATE), Q_TAKE(SERVER), Q_TAKE(TOOL),             \
	Q_TAKE(PRINCIPAL), Q_TAKE(LISTENER), Q_TAKE(OUTCOME),                  \
	Q_TAKE(FAILURE), Q_TAKE(SINCE), Q_TAKE(UNTIL)
#define SINCE "coalesce(nullif($9::text, '')::timestamptz, '-infinity')"
#define UNTIL "coalesce(nullif($10::text, '')::timestamptz, 'infinity')"
/* Reads the cursor: "microseconds.uuid" of the last row of the page before. */
#define BEFORE(CURSOR)                                                         \
	"(CASE WHEN " CURSOR "::text = '' THEN 'infinity'::timestamptz"        \
	" ELSE to_timestamp(0) + split_part(" CURSOR "::text, '.', 1)::int8"   \
	" * interval '1 microsecond' END)"
#define BEFORE_ID(CURSOR)                                                      \
	"(CASE WHEN " CURSOR "::text = ''"                                     \
	" THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff'"                         \
	" ELSE split_part(" CURSOR "::text, '.', 2) END)::uuid"
#define CURSOR_OF                                                              \
	"(extract(epoch FROM e.created_at) * 1000000)::int8::text"             \
	" || '.' || e.id::text"
#define REST(STATE, SERVER, CURSOR)                                            \
	" AND e.created_at >= " SINCE " AND e.created_at < " UNTIL             \
	" AND (e.created_at, e.id) < (" BEFORE(CURSOR) ", " BEFORE_ID(CURSOR)  \
	")"                                                                    \
	" AND ($1::text = '' OR e.kind = $1::text)"                            \
	" AND ($2::text IN ('', " STATE ", e.outcome))"                        \
	" AND ($3::text = '' OR " SERVER ")"                                   \
	" AND ($4::text = '' OR e.tool = $4::text)"                            \
	" AND ($5::text = '' OR e.principal = $5::text)"                       \
	" AND ($6::text = '' OR e.listener = $6::text)"                        \
	" AND ($7::text = '' OR e.outcome = $7::text)"                         \
	" AND ($8::text = '' OR e.failure = $8::text)"
#define SERVER_ID "nullif($3::text, '')::uuid"
/* Ends a page of rows. Each part of a union is sorted and limited like a page,
 * because otherwise the planner would not read the part in an index's order. */
#define PAGE(LIMIT)                                                            \
	" ORDER BY e.created_at DESC, e.id DESC LIMIT " LIMIT "::int8)"
#define INDEXED_AT(CONDITION, CURSOR, LIMIT)                                   \
	"(SELECT e.id FROM mcpbox.execution_index e WHERE " CONDITION          \
	REST("'closed'", "e.server_id = " SERVER_ID, CURSOR) PAGE(LIMIT)
#define ROWS_AT(TABLE, CONDITION, CURSOR, LIMIT)                               \
	"(SELECT e.id FROM mcpbox." TABLE " e WHERE " CONDITION                \
	REST("e.state", "EXISTS (SELECT 1 FROM mcpbox.tool_versions v"         \
	" WHERE v.id = e.version_id AND v.server_id = " SERVER_ID ")", CURSOR) \
	PAGE(LIMIT)
#define INDEXED(CONDITION) INDEXED_AT(CONDITION, "$11", "$12")
#define FRESH(CONDITION)                                                       \
	" UNION ALL " ROWS_AT("executions_fresh", CONDITION, "$11", "$12")

#define ALL ROWS_AT("executions", "true", "$11", "$12")
/* $11 is the hash, so the cursor is $12. A version's hash covers its id and
 * number, so one version at most has the hash. Versions are kept as long as
 * records need them. */
#define OF_HASH                                                                \
	"e.version_id = (SELECT v.id FROM mcpbox.tool_versions v"              \
	" WHERE v.hash = decode($11::text, 'hex') LIMIT 1)"
#define BY_HASH                                                                \
	INDEXED_AT("e.version_id IS NOT NULL AND " OF_HASH, "$12", "$13")      \
	" UNION ALL " ROWS_AT("executions_fresh", OF_HASH, "$12", "$13")
/* The outcome `done` has no index of its own. It is the usual outcome, so a few
 * rows of the index of all rows give a page. */
#define BY_STATE                                                               \
	INDEXED("e.outcome <> 'done' AND e.outcome = $2::text") " UNION ALL "  \
	INDEXED("$2::text IN ('closed', 'done')") FRESH("true")
#define BY_TOOL INDEXED("e.tool = $4::text") FRESH("e.tool = $4::text")
#define BY_PRINCIPAL                                                           \
	INDEXED("e.principal = $5::text") FRESH("e.principal = $5::text")
#define BY_OUTCOME                                                             \
	INDEXED("e.outcome <> 'done' AND e.outcome = $7::text") " UNION ALL "  \
	INDEXED("e.outcome = 'done' AND $7::text = 'done'")                    \
	FRESH("e.outcome = $7::text")
#define BY_KIND                                                                \
	INDEXED("e.kind <> 'tool' AND e.kind = $1::text") " UNION ALL "        \
	INDEXED("e.kind = 'tool' AND $1::text = 'tool'")                       \
	FRESH("e.kind = $1::text")
#define BY_LISTENER                                                            \
	INDEXED("e.listener <> 'local' AND e.listener = $6::text")             \
	" UNION ALL " INDEXED("e.listener = 'local' AND $6::text = 'local'")   \
	FRESH("e.listener = $6::text")
#define BY_FAILURE                                                             \
	INDEXED("e.failure IS NOT NULL AND e.failure = $8::text")              \
	FRESH("e.failure = $8::text")
#define BY_SERVER                                                              \
	INDEXED("e.server_id IS NOT NULL AND e.server_id = " SERVER_ID)        \
	FRESH("true")
/* Searches for words in arguments, result, output and names, or for the id of
 * an execution or a trace. */
#define BY_SEARCH                                                              \
	"SELECT id FROM mcpbox.executions_search($11::text, $1::text, $2::text,"\
	" $4::text, $5::text, $6::text, $7::text, $8::text, " SINCE ", " UNTIL \
	", " BEFORE("$12") ", " BEFORE_ID("$12") ", $13::int8)"                \
	" WHERE $3::text = ''"

/* Reads each row of the page by its key, even if the planner expects so many
 * rows that it would read the whole table. */
#define LIST(name, what, rows, limit)                                          \
	{name, "SELECT " what "::text, " CURSOR_OF " FROM (" rows ") k"        \
	" CROSS JOIN LATERAL (SELECT * FROM mcpbox.executions x"               \
	" WHERE x.id = k.id OFFSET 0) e"                                       \
	" ORDER BY e.created_at DESC, e.id DESC LIMIT " limit "::int8", DB_SURE}
#define FORM(filter, by, name, what)                                           \
	{Q_MUST(filter), {FILTERS},                                            \
	    LIST(name "_" #filter, what, BY_##by, "$12"), ADMIN_VIEWER}
#define FORMS(name, what)                                                      \
	{Q_MUST(SEARCH), {FILTERS, Q_TAKE(SEARCH)},                            \
	    LIST(name "_search", what, BY_SEARCH, "$13"), ADMIN_REVIEWER},     \
	{Q_MUST(HASH), {FILTERS, Q_TAKE(HASH)},                                \
	    LIST(name "_hash", what, BY_HASH, "$13"), ADMIN_VIEWER},           \
	FORM(FAILURE, FAILURE, name, what),                                    \
	FORM(OUTCOME, OUTCOME, name, what),                                    \
	FORM(STATE, STATE, name, what),                                        \
	FORM(TOOL, TOOL, name, what),                                          \
	FORM(SERVER, SERVER, name, what),                                      \
	FORM(PRINCIPAL, PRINCIPAL, name, what),                                \
	FORM(KIND, KIND, name, what),                                          \
	FORM(LISTENER, LISTENER, name, what),                                  \
	{0, {FILTERS}, LIST(name, what, ALL, "$12"), ADMIN_VIEWER},            \
	{0}

static const struct question_form executions[] = {
    FORMS("adminq_executions", "json_build_object(" EXECUTION_HEAD ")")};
static const struct question_form lines[] = {
    FORMS("adminq_export", EXPORT_LINE)};

static const struct question_form execution[] = {
    {0, {0},
	{"adminq_execution",
	    "SELECT json_build_object(" EXECUTION_HEAD ", " EXECUTION_CONTENT
	    ")::text FROM mcpbox.executions e WHERE e.id = $1::uuid",
	    DB_FAST}},
    {0}};

static const struct question_form stats[] = {
    {0, {Q_TAKE(SINCE), Q_TAKE(UNTIL), Q_TAKE(PERIOD), Q_TAKE(TOOL),
	    Q_TAKE(PRINCIPAL), Q_TAKE(LISTENER), Q_TAKE(KIND), Q_TAKE(OUTCOME)},
	{"adminq_execution_stats",
	    "SELECT mcpbox.execution_statistics("
	    "nullif($1::text, '')::timestamptz,"
	    " nullif($2::text, '')::timestamptz, $3::text, $4::text, $5::text,"
	    " $6::text, $7::text, $8::text)",
	    DB_FAST}},
    {0}};

/* ---- the activity log: 100,000 rows at most ---- */

/* $1 kind, $2 level, $3 subject, $4 principal, $5 listener, $6 failure, $7
 * since, $8 until, $9 search, $10 cursor, $11 limit */
#define ACTIVITY(name, condition)                                              \
	{name, "SELECT json_build_object('seq', a.seq, 'at', "                 \
	ADMINQ_TIME("a.at") ", 'node', a.node, 'kind', a.kind,"                \
	" 'level', a.level, 'principal', nullif(a.principal, ''),"             \
	" 'listener', nullif(a.listener, ''), 'subject', nullif(a.subject, '')," \
	" 'failure_mode', nullif(a.failure, ''), 'count', a.count)::text,"     \
	" a.seq::text FROM mcpbox.activity a WHERE " condition                 \
	" AND a.seq < coalesce(nullif($10::text, '')::int8, 9223372036854775807)" \
	" AND ($1::text = '' OR a.kind = $1::text)"                            \
	" AND ($2::text = '' OR a.level = $2::text)"                           \
	" AND ($3::text = '' OR a.subject = $3::text)"                         \
	" AND ($4::text = '' OR a.principal = $4::text)"                       \
	" AND ($5::text = '' OR a.listener = $5::text)"                        \
	" AND ($6::text = '' OR a.failure = $6::text)"                         \
	/* + interval '0': no index on the time is used, only that on seq */  \
	" AND a.at + interval '0' >= coalesce(nullif($7::text, '')::timestamptz, '-infinity')" \
	" AND a.at + interval '0' < coalesce(nullif($8::text, '')::timestamptz, 'infinity')"  \
	" AND ($9::text = '' OR strpos(lower(concat_ws(' ', a.kind, a.principal," \
	" a.subject, a.failure)), lower($9::text)) > 0)"                       \
	" ORDER BY a.seq DESC LIMIT $11::int8", DB_SURE}
#define ACTIVITY_FILTERS                                                       \
	{Q_TAKE(KIND), Q_TAKE(LEVEL), Q_TAKE(TOOL), Q_TAKE(PRINCIPAL),         \
	    Q_TAKE(LISTENER), Q_TAKE(FAILURE), Q_TAKE(SINCE), Q_TAKE(UNTIL),   \
	    Q_TAKE(SEARCH)}

static const struct question_form activity[] = {
    {Q_MUST(TOOL), ACTIVITY_FILTERS,
	ACTIVITY("adminq_activity_tool", "a.subject = $3::text")},
    {Q_MUST(PRINCIPAL), ACTIVITY_FILTERS,
	ACTIVITY("adminq_activity_principal", "a.principal = $4::text")},
    {Q_MUST(KIND), ACTIVITY_FILTERS,
	ACTIVITY("adminq_activity_kind", "a.kind = $1::text")},
    {Q_MUST(LEVEL), ACTIVITY_FILTERS,
	ACTIVITY("adminq_activity_level",
	    "(a.level <> 'info' OR $2::text = 'info')")},
    {0, ACTIVITY_FILTERS, ACTIVITY("adminq_activity", "true")},
    {0}};
/* clang-format on */

/* A viewer may see that a call ran, but not its arguments or result. Only a
 * reviewer may search in these or export them. */
const struct question adminq_records_questions[] = {
    {"executions", QUESTION_LIST, ADMIN_VIEWER, executions, NULL},
    {"executions_export", QUESTION_LIST, ADMIN_REVIEWER, lines,
	.scope = SCRIPT_EXPORT},
    {"execution", QUESTION_OBJECT, ADMIN_REVIEWER, execution, NULL},
    {"execution_stats", QUESTION_SINGLE, ADMIN_VIEWER, stats, NULL},
    {"activity", QUESTION_LIST, ADMIN_VIEWER, activity, NULL},
    {0},
};
