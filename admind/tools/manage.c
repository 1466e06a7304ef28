/*
 * Management tools: the path of a call. step.c has the steps with which tools
 * are written.
 *
 *	check -> row opened -> run(job) ... -> row closed -> RESULT
 *
 * A management call is recorded like any other. Its owner is this process's
 * epoch: if admind dies during the call, the next admind closes the row as
 * lost.
 */
#include <string.h>

#include "context.h"
#include "ids.h"
#include "inner.h"
#include "intent.h"
#include "jobs.h"
#include "limits.h"
#include "log.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "tokens.h"

static const struct db_stmt open_row = {"manage_open",
    "SELECT mcpbox.management_open($1::uuid, $2::uuid, $3::text, $4::text,"
    " $5::text, $6::bytea, $7::text, $8::text, $9::text, $10::timestamptz,"
    " $11::timestamptz, $12::uuid, $13::bytea, $14::uuid)",
    DB_FAST};

/*
 * Asks whether the token may see the objects that the arguments name. For a
 * token that may not see an object, the object does not exist. Other objects
 * are left out by the tool itself (permit.h, PERMIT_REACH_SELF), or the tool is
 * not offered to such a token.
 */
static const struct db_stmt judge = {"manage_judge",
    "SELECT mcpbox.token_permits_ids($1::text, $2::text, $3::uuid, $4::uuid)",
    DB_FAST};

static void
judged(struct job *j, const struct pg_result *rows)
{
	if (db_bool(rows, 0, 0))
		j->manage->run(j);
	else
		job_fail(j, FAILURE_NOT_FOUND, "there is no such object");
}

/* Adds a parameter: the id that the call gives for one kind of object, or null.
 * A call names at most one object of each kind. */
static void
put_id(const struct job *j, struct db_params *p, const uint8_t *tags, size_t n)
{
	struct ipc_bytes b;
	struct ipc_id id;

	for (size_t i = 0; i < n; i++)
		if (job_field(j, tags[i], &b) == 1 && b.n == sizeof(id.b)) {
			memcpy(id.b, b.p, sizeof(id.b));
			db_p_id(p, &id);
			return;
		}
	db_p_null(p);
}

void
manage_judge(struct job *j)
{
	static const uint8_t servers[] = {MF_SERVER_ID};
	static const uint8_t objects[] = {
	    MF_TOOL_ID, MF_PROMPT_ID, MF_RESOURCE_ID};
	struct db_params p;

	if (j->token == NULL || permit_everything(&j->token->permit)) {
		j->manage->run(j);
		return;
	}
	db_params_init(&p);
	token_params(j->token, &p);
	put_id(j, &p, servers, sizeof(servers));
	put_id(j, &p, objects, sizeof(objects));
	job_query(j, &judge, &p, judged);
}

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	char why[32];

	if (err != NULL) {
		j->has_intent = err->failure == FAILURE_STORAGE_UNAVAILABLE;
		job_refuse(j, err->failure, err->text);
		return;
	}
	if (!db_text(rows, 0, 0, why, sizeof(why)) || strcmp(why, "ok") != 0) {
		job_refuse(j, FAILURE_BUSY, "admind is restarting");
		return;
	}
	j->has_intent = true;
	if (j->revoked) {
		job_refuse(j, j->revoked_why, "the token was revoked");
		return;
	}
	if (job_enter(j, JOB_WORKING) == -1) {
		job_refuse(j, FAILURE_INTERNAL, "internal state");
		return;
	}
	jsonw_open(&j->json, &j->out);
	jsonw_obj(&j->json);
	/* A management tool acts with a client's authority: a client could undo
	 * the act of a person, and would be told that a client did it. */
	if (inner_is_person(j) &&
	    job_number(j, MF_ENABLED, UINT64_MAX) != UINT64_MAX)
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "a draft switches nothing: POST /api/tools/{id}/enable and "
		    "/api/tools/{id}/disable do, as an administrator");
	else
		manage_named(j);
}

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct job *j = arg;
	struct ipc_check_ok m;
	struct db_params p;
	struct buf text;

	if (f == NULL || f->type != IPC_CHECK_OK) {
		job_check_failed(j, f, gone);
		return;
	}
	if (ipc_decode(f, &m, NULL) == -1) {
		job_refuse(j, FAILURE_INTERNAL, "malformed fields");
		return;
	}
	buf_put(&j->fields, m.fields.p, m.fields.n);
	buf_put(&j->kept, m.kept.p, m.kept.n);
	if (j->fields.failed || j->kept.failed ||
	    job_enter(j, JOB_INTENT) == -1) {
		job_refuse(j, FAILURE_BUSY, "out of memory");
		return;
	}
	buf_init(&text, ARGUMENTS_KEPT);
	intent_arguments(j, &text);
	j->epoch = j->a->epoch;
	db_params_init(&p);
	db_p_id(&p, &j->execution);
	db_p_id(&p, &j->epoch);
	db_p_str(&p, j->principal);
	db_p_str(&p, listener_name(j->listener));
	db_p_str(&p, j->tool);
	db_p_hash(&p, &j->args_sha256);
	db_p_bytes(&p, text.p, text.len);
	db_p_str(&p, j->client);
	db_p_str(&p, j->protocol);
	db_p_time_us(&p, j->created_us);
	db_p_time_us(
	    &p, j->created_us + MANAGEMENT_DEADLINE_MS * UINT64_C(1000));
	intent_marks(j, &p);
	db_query(j->a->db, &open_row, &p, opened, j);
	buf_free(&text);
}

static const struct manage_tool *
tool_named(struct ipc_bytes name)
{
	for (const struct manage_tool *t = manage_tools; t->name != NULL; t++)
		if (ipc_streq(name, t->name))
			return t;
	return NULL;
}

static void
within_limits(struct job *j)
{
	struct ipc_check_management m = {.tool = ipc_str(j->tool),
	    .arguments = ipc_bytes(j->arguments.p, j->arguments.len)};
	struct err err;

	if (job_enter(j, JOB_CHECKING) == -1 ||
	    ask(j->a->check, IPC_CHECK_MANAGEMENT, &m, checked, j, &err) == -1)
		job_refuse(
		    j, FAILURE_BUSY, "the checking process is not reachable");
}

void
manage_start(struct job *j)
{
	const struct management_tool *tool = management_tool(ipc_str(j->tool));
	unsigned scope = permit_tool(j->tool)->scope;
	const char *sentence;
	struct lack lack;

	j->manage = tool_named(ipc_str(j->tool));
	if (tool == NULL || j->manage == NULL) {
		job_refuse(j, FAILURE_UNKNOWN_TOOL, "no tool has this name");
		return;
	}
	if (j->token != NULL && (j->token->permit.scopes & scope) == 0) {
		tokens_lack(j->a, j->token, j->listener, scope, &lack);
		job_refuse_lack(j, &lack);
		return;
	}
	if (j->token != NULL &&
	    permit_management(&j->token->permit,
		token_scopes(j->a, j->token, j->listener), j->tool,
		&sentence) != FAILURE_NONE) {
		job_refuse(j, FAILURE_FORBIDDEN, sentence);
		return;
	}
	/* Anyone who reaches 127.0.0.1 may be `local`, so an administrator can
	 * switch off the deleting tools. */
	if (tool->deletes && !conf_bool(j->a->proc.conf, "local_destructive")) {
		job_refuse(j, FAILURE_FORBIDDEN,
		    "deleting is switched off here (local_destructive)");
		return;
	}
	if (!j->a->epoch_stored) {
		job_refuse(j, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
		return;
	}
	limits_known(j, within_limits);
}
