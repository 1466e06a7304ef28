/*
 * Questions about settings and the state of the suite (adminq.h).
 */
#include "admin.h"
#include "adminq.h"

/* clang-format off */
static const struct question_form settings[] = {
    {0, {0},
	{"adminq_settings",
	    "SELECT mcpbox.setting_json(k.key), k.key FROM mcpbox.setting_keys k"
	    " WHERE k.key > $1::text ORDER BY k.key LIMIT $2::int8",
	    DB_FAST}},
    {0}};

/* Gives the very bytes whose SHA-256 a change may name. */
static const struct question_form setting[] = {
    {0, {0},
	{"adminq_setting",
	    "SELECT mcpbox.setting_json($1::text) WHERE"
	    " mcpbox.setting($1::text) IS NOT NULL",
	    DB_FAST}},
    {0}};

static const struct question_form status[] = {
    {0, {0},
	{"adminq_status",
	    "SELECT json_build_object('servers',"
	    " (SELECT count(*) FROM mcpbox.servers WHERE deleted_at IS NULL),"
	    " 'tools',"
	    " (SELECT count(*) FROM mcpbox.tools WHERE object = 'tool'"
	    " AND deleted_at IS NULL), 'pending_approvals',"
	    " (SELECT count(*) FROM mcpbox.approval_requests"
	    " WHERE state = 'pending'), 'open_executions',"
	    " (SELECT count(*) FROM mcpbox.executions WHERE state = 'open'),"
	    " 'administrators', (SELECT count(*) FROM mcpbox.admin_users),"
	    " 'audit_seq', (SELECT seq FROM mcpbox.audit_head),"
	    " 'audit_anchored_seq', (SELECT max(seq)"
	    " FROM mcpbox.audit_anchors), 'audit_verified',"
	    " mcpbox.audit_verdict_json(), 'catalogue_revision',"
	    " (SELECT revision FROM mcpbox.catalogue), 'schema',"
	    " (SELECT max(version) FROM mcpbox.schema_migrations))::text",
	    DB_FAST}},
    {0}};

/* Uses the lane DB_SURE, because counting must not delay a call. */
static const struct question_form dashboard[] = {
    {0, {Q_TAKE(PERIOD)},
	{"adminq_dashboard", "SELECT mcpbox.dashboard($1::text)", DB_SURE}},
    {0}};

/* The lines of one export, in order. */
static const struct question_form export_lines[] = {
    {Q_MUST(OBJECT), {Q_TAKE(OBJECT)},
	{"adminq_export_lines",
	    "SELECT to_json(l.line)::text, l.n::text FROM mcpbox.export_lines l"
	    " WHERE l.export = $1::text::uuid"
	    " AND l.n > coalesce(nullif($2::text, '')::int8, 0)"
	    " ORDER BY l.n LIMIT $3::int8",
	    DB_SURE}},
    {0}};

static const struct question_form health[] = {
    {0, {0},
	{"adminq_health", "SELECT mcpbox.health_figures()", DB_SURE}},
    {0}};
/* clang-format on */

const struct question adminq_admin_questions[] = {
    {"settings", QUESTION_LIST, ADMIN_VIEWER, settings, NULL},
    {"setting", QUESTION_NAMED, ADMIN_VIEWER, setting, NULL},
    {"status", QUESTION_SINGLE, ADMIN_VIEWER, status, doctor_status_json},
    {"dashboard", QUESTION_SINGLE, ADMIN_VIEWER, dashboard, NULL},
    {"export_lines", QUESTION_LIST, ADMIN_ADMINISTRATOR, export_lines,
	.scope = SCRIPT_EXPORT},
    {"health", QUESTION_SINGLE, ADMIN_VIEWER, health, doctor_json},
    {0},
};
