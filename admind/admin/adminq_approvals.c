/*
 * Questions about requests that wait for a person, or were decided (adminq.h).
 * Requests are listed in the order of their ids, which is the order of their
 * making. Each leading filter has a statement of its own, so that each
 * statement uses an index.
 *
 * A viewer may not see the arguments of a call, here or in its record. `reads`
 * is the last parameter of a QUESTION_LIST statement.
 */
#include "adminq.h"

/* Lists a page of requests after the cursor. The ids of the page come first,
 * from one of two parts: the oldest first, or, by `order`, the newest first.
 * The other part is not read. */
#define PART(condition, cursor, compare, none, direction, limit)        \
	"(SELECT a.id FROM mcpbox.approval_requests a WHERE " condition \
	" AND a.id " compare " coalesce(nullif(" cursor                 \
	"::text, '')::uuid, '" none "') ORDER BY a.id " direction       \
	" LIMIT " limit "::int8)"
#define LIST(condition, order, cursor, limit, reads)                          \
	"SELECT CASE WHEN " reads "::bool THEN mcpbox.approval_item(a) ELSE"  \
	" (mcpbox.approval_item(a)::jsonb || '{\"arguments\":null}')::text"   \
	" END, a.id::text FROM (" PART(order                                  \
	    "::text <> 'newest' AND " condition,                              \
	    cursor, ">", "00000000-0000-0000-0000-000000000000", "ASC",       \
	    limit) " UNION ALL " PART(order                                   \
	    "::text = 'newest' AND " condition,                               \
	    cursor, "<", "ffffffff-ffff-ffff-ffff-ffffffffffff", "DESC",      \
	    limit) ") k JOIN mcpbox.approval_requests a ON a.id = k.id"       \
		   " ORDER BY CASE WHEN " order "::text = 'newest' THEN NULL" \
		   " ELSE a.id END, a.id DESC"
#define IF_KIND(p)  " AND (" p "::text = '' OR a.kind = " p "::text)"
#define IF_STATE(p) " AND (" p "::text = '' OR a.state = " p "::text)"

/* clang-format off */
static const struct question_form approvals[] = {
    {Q_MUST(SEARCH), {Q_TAKE(SEARCH), Q_TAKE(KIND), Q_TAKE(STATE), Q_TAKE(ORDER)},
	{"adminq_approvals_search",
	    LIST("a.search @@ mcpbox.approval_query($1::text)"
	    IF_KIND("$2") IF_STATE("$3"), "$4", "$5", "$6", "$7"), DB_FAST}},
    {Q_MUST(TOOL), {Q_TAKE(TOOL), Q_TAKE(KIND), Q_TAKE(STATE), Q_TAKE(ORDER)},
	{"adminq_approvals_tool",
	    LIST("a.tool_id = (SELECT coalesce((SELECT n.tool_id"
	    " FROM mcpbox.tool_names n WHERE n.exposed_name = $1::text),"
	    " CASE WHEN $1::text ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-"
	    "[0-9a-fA-F]{12}$' THEN $1::uuid END))"
	    IF_KIND("$2") IF_STATE("$3"), "$4", "$5", "$6", "$7"), DB_FAST}},
    {Q_MUST(SERVER), {Q_TAKE(SERVER), Q_TAKE(KIND), Q_TAKE(STATE), Q_TAKE(ORDER)},
	{"adminq_approvals_server",
	    LIST("a.server_id = $1::text::uuid"
	    IF_KIND("$2") IF_STATE("$3"), "$4", "$5", "$6", "$7"), DB_FAST}},
    {Q_MUST(KIND) | Q_MUST(STATE), {Q_TAKE(KIND), Q_TAKE(STATE), Q_TAKE(ORDER)},
	{"adminq_approvals_queue",
	    LIST("a.kind = $1::text AND a.state = $2::text", "$3", "$4", "$5",
	    "$6"), DB_FAST}},
    {Q_MUST(KIND), {Q_TAKE(KIND), Q_TAKE(ORDER)},
	{"adminq_approvals_kind", LIST("a.kind = $1::text", "$2", "$3", "$4",
	    "$5"), DB_FAST}},
    {Q_MUST(STATE), {Q_TAKE(STATE), Q_TAKE(ORDER)},
	{"adminq_approvals_state", LIST("a.state = $1::text", "$2", "$3", "$4",
	    "$5"), DB_FAST}},
    {0, {Q_TAKE(ORDER)},
	{"adminq_approvals", LIST("true", "$1", "$2", "$3", "$4"), DB_FAST}},
    {0}};

static const struct question_form comments[] = {
    {0, {0},
	{"adminq_comments",
	    "SELECT json_build_object('items', mcpbox.comments_json(a.id))::text"
	    " FROM mcpbox.approval_requests a WHERE a.id = $1::uuid",
	    DB_FAST}},
    {0}};

#define GRANT \
	"SELECT json_build_object('id', g.request_id, 'server_id', g.server_id," \
	" 'server', split_part(s.name, '@', 1), 'proto', g.proto," \
	" 'host', g.host, 'port', nullif(g.port, 0), 'automatic', g.automatic," \
	" 'granted_at', mcpbox.approval_time(g.granted_at)," \
	" 'granted_by', g.granted_by," \
	" 'revoked_at', mcpbox.approval_time(g.revoked_at)," \
	" 'revoked_by', g.revoked_by)::text, g.request_id::text" \
	" FROM mcpbox.network_grants g" \
	" JOIN mcpbox.servers s ON s.id = g.server_id WHERE "
#define GRANT_PAGE(state, cursor, limit) \
	" AND CASE " state "::text WHEN 'active' THEN g.revoked_at IS NULL" \
	" WHEN 'revoked' THEN g.revoked_at IS NOT NULL ELSE true END" \
	" AND g.request_id > coalesce(nullif(" cursor "::text, '')::uuid," \
	" '00000000-0000-0000-0000-000000000000')" \
	" ORDER BY g.request_id LIMIT " limit "::int8"
static const struct question_form network[] = {
    {Q_MUST(SERVER), {Q_TAKE(SERVER), Q_TAKE(STATE)},
	{"adminq_network_server",
	    GRANT "g.server_id = $1::text::uuid" GRANT_PAGE("$2", "$3", "$4"),
	    DB_FAST}},
    {0, {Q_TAKE(STATE)},
	{"adminq_network", GRANT "true" GRANT_PAGE("$1", "$2", "$3"),
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_approvals_questions[] = {
    {"approvals", QUESTION_LIST, ADMIN_VIEWER, approvals, NULL, NULL, true},
    {"comments", QUESTION_OBJECT, ADMIN_VIEWER, comments, NULL},
    {"network", QUESTION_LIST, ADMIN_VIEWER, network, NULL},
    {0},
};
