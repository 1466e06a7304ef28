/*
 * Management tools whose result PostgreSQL makes: one statement, one JSON
 * object. A row of the table names the fields that the statement takes, in
 * order. The statement's answer goes out unchanged, since this process reads no
 * JSON.
 *
 * The functions are in sql/schema/manage.sql. Newer functions and newer bodies
 * are in sql/migrations. A function returns null if there is no such object,
 * and raises every other failure itself.
 */
#include <string.h>

#include "ids.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "token.h"

/* Parameters that are not arguments. Their numbers are above those of all
 * fields. */
enum {
	P_NEW_ID = 240,  /* a uuid for the new object */
	P_ACTOR = 241,   /* the principal of the job */
	P_TIMEOUT = 242, /* the configured limit of a call, in ms */
	P_TOKEN = 243,   /* two: the patterns of the job's token */
};

enum {
	PARAMS_MAX = 10,
	PAGE_SIZE = 50, /* as the schemas say */
	LOGS_DEFAULT = 10,
};

struct made {
	const char *tool;
	struct db_stmt stmt;
	uint8_t param[PARAMS_MAX]; /* MF_* or P_*, ended by 0 */
	/* changes the set of callable objects, so gateways are told */
	bool changes;
	const char *missing;
};

#define NO_SERVER "no server has this id: see mcpbox_list_servers"
#define NO_TOOL   "no tool, prompt or resource has this id: see mcpbox_list_tools"
#define PAGED     "$1::uuid, $2::int8, $3::int8)"

static const struct made rows[] = {
    {"mcpbox_get_server",
	{"manage_get_server",
	    "SELECT mcpbox.manage_get_server($1::uuid, $2::int8)", DB_FAST},
	{MF_SERVER_ID, P_TIMEOUT}, false, NO_SERVER},
    {"mcpbox_update_server",
	{"manage_update_server",
	    "SELECT mcpbox.manage_update_server($1::uuid, $2::text, $3::text)",
	    DB_SURE},
	{MF_SERVER_ID, MF_DESCRIPTION, P_ACTOR}, false, NO_SERVER},
    {"mcpbox_delete_server",
	{"manage_delete_server",
	    "SELECT mcpbox.manage_delete_server($1::uuid, $2::text)", DB_SURE},
	{MF_SERVER_ID, P_ACTOR}, true, NO_SERVER},
    {"mcpbox_get_tool",
	{"manage_get_tool",
	    "SELECT mcpbox.manage_get_tool($1::uuid, $2::int8, $3::int8)",
	    DB_FAST},
	{MF_TOOL_ID, MF_VERSION, P_TIMEOUT}, false, NO_TOOL},
    {"mcpbox_list_tool_versions",
	{"manage_list_versions", "SELECT mcpbox.manage_list_versions(" PAGED,
	    DB_FAST},
	{MF_TOOL_ID, MF_PAGE, MF_PAGE_SIZE}, false, NO_TOOL},
    {"mcpbox_rollback_tool",
	{"manage_rollback",
	    "SELECT mcpbox.manage_rollback($1::uuid, $2::uuid, $3::int8,"
	    " $4::text)",
	    DB_SURE},
	{P_NEW_ID, MF_TOOL_ID, MF_VERSION, P_ACTOR}, false, NO_TOOL},
    {"mcpbox_get_tool_logs",
	{"manage_get_logs",
	    "SELECT mcpbox.manage_get_logs($1::uuid, $2::int8, $3::uuid)",
	    DB_FAST},
	{MF_TOOL_ID, MF_LIMIT, MF_EXECUTION_ID}, false, NO_TOOL},
    {"mcpbox_get_server_modules",
	{"manage_get_modules",
	    "SELECT mcpbox.manage_get_modules($1::int8, $2::int8)", DB_FAST},
	{MF_PAGE, MF_PAGE_SIZE}, false, NULL},
    {"mcpbox_create_server_secret",
	{"manage_create_secret",
	    "SELECT mcpbox.manage_create_secret($1::uuid, $2::text, $3::text,"
	    " $4::text)",
	    DB_SURE},
	{MF_SERVER_ID, MF_SECRET_KEY, MF_DESCRIPTION, P_ACTOR}, false,
	NO_SERVER},
    {"mcpbox_list_server_secrets",
	{"manage_list_secrets", "SELECT mcpbox.manage_list_secrets(" PAGED,
	    DB_FAST},
	{MF_SERVER_ID, MF_PAGE, MF_PAGE_SIZE}, false, NO_SERVER},
    {"mcpbox_add_external_source",
	{"manage_add_source",
	    "SELECT mcpbox.manage_add_source($1::uuid, $2::uuid, $3::text,"
	    " $4::text, $5::text, $6::text, $7::text, $8::text, $9::text)",
	    DB_SURE},
	{P_NEW_ID, MF_SERVER_ID, MF_NAME, MF_URL, MF_AUTH_TYPE,
	    MF_AUTH_SECRET_NAME, MF_AUTH_HEADER_NAME, MF_TRANSPORT_TYPE,
	    P_ACTOR},
	false, NO_SERVER},
    {"mcpbox_list_endpoints",
	{"manage_list_endpoints",
	    "SELECT mcpbox.manage_list_endpoints($1::text, $2::text)", DB_FAST},
	{P_TOKEN}, false, NULL},
    {"mcpbox_list_external_sources",
	{"manage_list_sources", "SELECT mcpbox.manage_list_sources(" PAGED,
	    DB_FAST},
	{MF_SERVER_ID, MF_PAGE, MF_PAGE_SIZE}, false, NO_SERVER},
};

static const struct made *
find(const char *tool)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(tool, rows[i].tool) == 0)
			return &rows[i];
	return NULL;
}

static void
answered(struct job *j, const struct pg_result *r)
{
	const struct made *m = find(j->tool);

	if (db_nrows(r) != 1 || db_null(r, 0, 0)) {
		job_fail(j, FAILURE_NOT_FOUND, "%s",
		    m->missing != NULL ? m->missing : "there is no such thing");
		return;
	}
	job_out(j, db_bytes(r, 0, 0));
	if (m->changes)
		job_done_changed(j);
	else
		job_done(j);
}

/* Finds the default that the tools' schemas give a field. Returns whether the
 * field has one. */
static bool
standard(uint8_t field, int64_t *out)
{
	switch (field) {
	case MF_PAGE:
		*out = 1;
		return true;
	case MF_PAGE_SIZE:
		*out = PAGE_SIZE;
		return true;
	case MF_LIMIT:
		*out = LOGS_DEFAULT;
		return true;
	default:
		return false;
	}
}

/* Adds one parameter. id: room for an id that must live until the statement is
 * sent. 0, or -1 with the job failed. */
static int
put(struct job *j, uint8_t field, struct ipc_id *id, struct db_params *p)
{
	enum management_kind kind = MANAGEMENT_S;
	struct ipc_bytes text;
	int64_t n;

	switch (field) {
	case P_NEW_ID:
		uuid_v7(id);
		db_p_id(p, id);
		return 0;
	case P_ACTOR:
		db_p_str(p, j->principal);
		return 0;
	case P_TOKEN:
		token_params(j->token, p);
		return 0;
	case P_TIMEOUT:
		db_p_i64(p, conf_int(j->a->proc.conf, "call_timeout"));
		return 0;
	default:
		break;
	}
	(void)management_field(field, &kind);
	if (kind == MANAGEMENT_I && field == MF_EXECUTION_ID &&
	    job_field(j, field, &text) == 0) {
		db_p_null(p);
	} else if (kind == MANAGEMENT_I) {
		if (job_uuid(j, field, id) == -1)
			return -1;
		db_p_id(p, id);
	} else if (job_field(j, field, &text) == 0) {
		if (standard(field, &n))
			db_p_i64(p, n);
		else
			db_p_null(p);
	} else if (kind == MANAGEMENT_N) {
		db_p_i64(p, (int64_t)job_number(j, field, 0));
	} else {
		db_p_text(p, text);
	}
	return 0;
}

void
manage_made(struct job *j)
{
	const struct made *m = find(j->tool);
	struct ipc_id ids[PARAMS_MAX];
	struct db_params p;

	if (m == NULL) {
		job_fail(j, FAILURE_INTERNAL, "the tool has no statement");
		return;
	}
	db_params_init(&p);
	for (size_t i = 0; i < PARAMS_MAX && m->param[i] != 0; i++)
		if (put(j, m->param[i], &ids[i], &p) == -1)
			return;
	job_query(j, &m->stmt, &p, answered);
}
