/*
 * Questions about the audit log and the administrators (adminq.h).
 */
#include "adminq.h"

/* clang-format off */

/*
 * The leading filters are search, object, actor, action and the times. Each has
 * an index of its own (sql/schema/audit.sql), which is read in two directions.
 * The other filters narrow the rows that the index found. If only times are
 * given, rows come in the order of their times. That is the chain's order
 * unless the clock was set back.
 */
#define SEQ(cursor, none) \
	"CASE " cursor "::text WHEN '' THEN " none " ELSE " cursor "::int8 END"
#define NEWEST(cursor, limit) \
	" AND l.seq < " SEQ(cursor, "9223372036854775807") \
	" ORDER BY l.seq DESC LIMIT " limit "::int8"
#define OLDEST(cursor, limit) \
	" AND l.seq > " SEQ(cursor, "0") \
	" ORDER BY l.seq LIMIT " limit "::int8"
#define FROM "SELECT mcpbox.audit_json(l), l.seq::text FROM mcpbox.audit_log l"
#define WORDS "mcpbox.audit_words(l.actor, l.action, l.subject, l.detail)" \
	" @@ mcpbox.audit_query("
#define ACTION(n) " AND (" n "::text = '' OR l.action = " n "::text)"
#define ACTOR(n) " AND (" n "::text = '' OR l.actor = " n "::text)"
#define OBJECT(n) " AND (" n "::text = '' OR l.subject = " n "::text)"
#define SINCE(n) " AND l.at >= coalesce(nullif(" n "::text, '')," \
	" '-infinity')::timestamptz"
#define UNTIL(n) " AND l.at < coalesce(nullif(" n "::text, '')," \
	" 'infinity')::timestamptz"

/* Reads rows in the order of the index audit_log_at. The cursor is Unix time in
 * ms, a dot, and seq. */
#define BY_TIME(compare, direction) \
	" AND ($5::text = '' OR (l.at, l.seq) " compare " (to_timestamp(0)" \
	" + nullif(split_part($5::text, '.', 1), '')::int8" \
	" * interval '1 millisecond'," \
	" nullif(split_part($5::text, '.', 2), '')::int8))" \
	" ORDER BY l.at " direction ", l.seq " direction " LIMIT $6::int8"
#define FROM_TIME "SELECT mcpbox.audit_json(l)," \
	" (extract(epoch FROM l.at) * 1000)::int8::text || '.' || l.seq::text" \
	" FROM mcpbox.audit_log l WHERE true" SINCE("$1") UNTIL("$2") \
	ACTION("$3") ACTOR("$4")

#define FORMS(name, ORDER, compare, direction) \
	{Q_MUST(SEARCH), {Q_TAKE(SEARCH), Q_TAKE(ACTION), Q_TAKE(ACTOR), \
	    Q_TAKE(OBJECT), Q_TAKE(SINCE), Q_TAKE(UNTIL)}, \
	    {"adminq_" name "_search", FROM " WHERE " WORDS "$1::text)" \
		ACTION("$2") ACTOR("$3") OBJECT("$4") SINCE("$5") UNTIL("$6") \
		ORDER("$7", "$8"), DB_SURE}}, \
	{Q_MUST(OBJECT), {Q_TAKE(OBJECT), Q_TAKE(ACTION), Q_TAKE(ACTOR), \
	    Q_TAKE(SINCE), Q_TAKE(UNTIL)}, \
	    {"adminq_" name "_object", FROM " WHERE l.subject = $1::text" \
		ACTION("$2") ACTOR("$3") SINCE("$4") UNTIL("$5") \
		ORDER("$6", "$7"), DB_SURE}}, \
	{Q_MUST(ACTOR), {Q_TAKE(ACTOR), Q_TAKE(ACTION), Q_TAKE(SINCE), \
	    Q_TAKE(UNTIL)}, \
	    {"adminq_" name "_actor", FROM " WHERE l.actor = $1::text" \
		ACTION("$2") SINCE("$3") UNTIL("$4") ORDER("$5", "$6"), \
		DB_SURE}}, \
	{Q_MUST(ACTION), {Q_TAKE(ACTION), Q_TAKE(SINCE), Q_TAKE(UNTIL)}, \
	    {"adminq_" name "_action", FROM " WHERE l.action = $1::text" \
		SINCE("$2") UNTIL("$3") ORDER("$4", "$5"), DB_SURE}}, \
	{Q_MUST(SINCE), {Q_TAKE(SINCE), Q_TAKE(UNTIL), Q_TAKE(ACTION), \
	    Q_TAKE(ACTOR)}, \
	    {"adminq_" name "_since", FROM_TIME BY_TIME(compare, direction), \
		DB_SURE}}, \
	{Q_MUST(UNTIL), {Q_TAKE(SINCE), Q_TAKE(UNTIL), Q_TAKE(ACTION), \
	    Q_TAKE(ACTOR)}, \
	    {"adminq_" name "_until", FROM_TIME BY_TIME(compare, direction), \
		DB_SURE}}, \
	{0, {0}, {"adminq_" name, FROM " WHERE true" ORDER("$1", "$2"), \
		DB_SURE}}, \
	{0}

static const struct question_form audit[] = {
	FORMS("audit", NEWEST, "<", "DESC")};
/* The same forms with the oldest row first, for an export. */
static const struct question_form export[] = {
	FORMS("audit_export", OLDEST, ">", "ASC")};

#define ADMINISTRATOR \
	"SELECT json_build_object('username', u.username, 'role', u.role," \
	" 'created_at', " ADMINQ_TIME("u.created_at") "," \
	" 'created_by', u.created_by," \
	" 'updated_at', " ADMINQ_TIME("u.updated_at") "," \
	" 'password_at', " ADMINQ_TIME("u.password_at") ")::text"

static const struct question_form administrators[] = {
    {0, {0},
	{"adminq_administrators",
	    ADMINISTRATOR ", u.username FROM mcpbox.admin_users u"
	    " WHERE u.username > $1::text COLLATE \"C\""
	    " ORDER BY u.username LIMIT $2::int8",
	    DB_FAST}},
    {0}};
static const struct question_form administrator[] = {
    {0, {0},
	{"adminq_administrator",
	    ADMINISTRATOR " FROM mcpbox.admin_users u"
	    " WHERE u.username = $1::text",
	    DB_FAST}},
    {0}};
/* clang-format on */

const struct question adminq_audit_questions[] = {
    {"audit", QUESTION_LIST, ADMIN_REVIEWER, audit, NULL},
    {"audit_export", QUESTION_LIST, ADMIN_REVIEWER, export,
	.scope = SCRIPT_EXPORT},
    {"administrators", QUESTION_LIST, ADMIN_REVIEWER, administrators, NULL},
    {"administrator", QUESTION_NAMED, ADMIN_REVIEWER, administrator, NULL},
    {0},
};
