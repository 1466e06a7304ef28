/*
 * The rows of tasks.
 *
 * A request may see a task, answer its questions or end it only with a
 * credential of the principal that the task was made for, and only on the
 * listener on which the task was made. Each request is checked again. A task's
 * id is 128 random bits, but gives no right. Everybody else gets the same
 * answer as for a wrong id, so no answer tells that the task exists.
 *
 * A task is committed together with its intent, with synchronous_commit on,
 * before any client hears its id. Its end is committed together with the end of
 * its execution. The JSON of clients and tools is parsed by PostgreSQL's
 * functions (sql/schema/tasks.sql), not by this file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth.h"
#include "context.h"
#include "hold.h"
#include "ids.h"
#include "intent.h"
#include "jobs.h"
#include "log.h"
#include "tasks.h"
#include "tokens.h"

/* The task modes of a version, without "forbidden". */
#define MODE_OPTIONAL "optional"
#define MODE_REQUIRED "required"
#define MODE_AFTER    "after_questions"

static const struct db_stmt open_row = {"task_open",
    "SELECT mcpbox.execution_marked(mcpbox.task_open($1::uuid, $2::uuid, "
    "$3::bytea, $4::uuid,"
    " $5::timestamptz, $6::text, $7::text, $8::text, $9::bytea, $10::text,"
    " $11::text, $12::text, $13::timestamptz, $14::timestamptz, $15::int4,"
    " $16::int8, $17::int8, $18::int8), $1::uuid, $19::uuid, $20::bytea,"
    " $21::uuid)",
    DB_SURE};
static const struct db_stmt read_row = {"task_read",
    "SELECT state, message, created_at, updated_at, ttl_ms, failure,"
    " questions::text, result, meta FROM mcpbox.tasks WHERE id = $1::uuid"
    " AND principal = $2::text AND listener = $3::text"
    " AND expires_at > clock_timestamp()",
    DB_FAST};
static const struct db_stmt answer_row = {"task_answer",
    "SELECT mcpbox.task_answer($1::uuid, $2::text, $3::text, $4::text)",
    DB_SURE};
static const struct db_stmt cancel_row = {"task_cancel",
    "SELECT mcpbox.task_cancel($1::uuid, $2::text, $3::text)", DB_SURE};
static const struct db_stmt at_endpoint = {"task_at_endpoint",
    "SELECT mcpbox.task_permits($1::uuid, $2::text, $3::text)", DB_FAST};
static const struct db_stmt sweep_rows = {
    "tasks_sweep", "SELECT mcpbox.tasks_sweep()", DB_FAST};

static bool
is(struct ipc_bytes b, const char *s)
{
	return b.n == strlen(s) && memcmp(b.p, s, b.n) == 0;
}

/* ---- making one ---- */

int
tasks_decide(struct job *j, struct ipc_bytes mode)
{
	bool must = is(mode, MODE_REQUIRED) || is(mode, MODE_AFTER);

	j->task = false;
	if (!must && !is(mode, MODE_OPTIONAL))
		return 0;
	if (j->task_wish == TASK_MAY) {
		j->task = true;
		j->after_questions = is(mode, MODE_AFTER);
		return 0;
	}
	if (!must)
		return 0;
	job_refuse_data(j, FAILURE_CAPABILITY_REQUIRED,
	    "this tool runs as a task only: the client must declare the "
	    "extension io.modelcontextprotocol/tasks",
	    "\"requiredCapabilities\":{\"extensions\":{"
	    "\"io.modelcontextprotocol/tasks\":{}}}");
	return -1;
}

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	char why[32] = "";

	if (err != NULL) {
		j->intent_cb(j, NULL, err);
		return;
	}
	(void)db_text(rows, 0, 0, why, sizeof(why));
	j->intent_cb(j, why, NULL);
}

void
tasks_open(struct job *j, intent_cb *cb)
{
	const struct conf *c = j->a->proc.conf;
	struct db_params p;
	struct buf text;

	buf_init(&text, ARGUMENTS_KEPT);
	intent_params(j, &p, &text);
	db_p_i32(&p, (int32_t)j->declared);
	db_p_i64(&p, (int64_t)conf_int(c, "task_ttl"));
	db_p_i64(&p, (int64_t)conf_int(c, "tasks_active"));
	db_p_i64(&p, (int64_t)conf_int(c, "tasks_kept"));
	intent_marks(j, &p);
	j->intent_cb = cb;
	db_query(j->a->db, &open_row, &p, opened, j);
	buf_free(&text);
}

/* ---- reading one ---- */

static const char *const states[] = {[TASK_WORKING] = "working",
    [TASK_INPUT_REQUIRED] = "input_required",
    [TASK_COMPLETED] = "completed",
    [TASK_FAILED] = "failed",
    [TASK_CANCELLED] = "cancelled"};

static enum task_status
status_of(struct ipc_bytes name)
{
	for (unsigned i = TASK_WORKING; i <= TASK_CANCELLED; i++)
		if (is(name, states[i]))
			return (enum task_status)i;
	return TASK_FAILED;
}

static void
got_row(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_task_state m = {.task = op->id};
	struct ipc_bytes body, meta;
	char failure[32] = "";
	struct buf b;

	if (err != NULL) {
		/* No client will ever hear the task's id, so the task must not
		 * go on unseen. */
		if (op->number == IPC_AUTHORISE)
			hold_cancel(op->a, &op->id, FAILURE_KILLED);
		op_refuse_err(op, err);
		return;
	}
	if (db_nrows(rows) != 1) {
		op_refuse(op, FAILURE_UNKNOWN_TASK, "you have no such task");
		return;
	}
	m.status = (uint8_t)status_of(db_bytes(rows, 0, 0));
	/* A call that asks its client something is answered by the questions,
	 * not by the task. */
	if (op->number == IPC_TASK_GET || m.status != TASK_INPUT_REQUIRED)
		task_run_known(op->a, &op->id);
	m.message = db_bytes(rows, 0, 1);
	m.created_us = db_time_us(rows, 0, 2);
	m.updated_us = db_time_us(rows, 0, 3);
	m.ttl_ms = (uint64_t)db_int(rows, 0, 4);
	m.poll_ms = (uint64_t)conf_int(op->a->proc.conf, "task_poll");
	if (m.status == TASK_FAILED) {
		(void)db_text(rows, 0, 5, failure, sizeof(failure));
		m.failure = (uint16_t)failure_by_name(failure);
	}
	body = db_bytes(rows, 0, m.status == TASK_COMPLETED ? 7 : 6);
	meta = db_bytes(rows, 0, 8);
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, body.p, body.n);
	buf_put(&b, meta.p, meta.n);
	m.body_len = (uint32_t)body.n;
	m.body_meta = ipc_bytes(b.p, b.len);
	if (b.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		op_answer(op, IPC_TASK_STATE, &m);
	buf_free(&b);
}

static void
put_who(const struct op *op, struct db_params *p)
{
	db_params_init(p);
	db_p_id(p, &op->id);
	db_p_str(p, op->actor);
	db_p_str(p, listener_name(op->link->listener));
}

static void
read_it(struct op *op)
{
	struct db_params p;

	put_who(op, &p);
	db_query(op->a->db, &read_row, &p, got_row, op);
}

void
tasks_tell(struct link *l, uint64_t request, const struct ipc_id *id,
    const char *principal)
{
	struct op *op = op_new(l, request);

	if (op == NULL) {
		hold_cancel(l->a, id, FAILURE_KILLED);
		return;
	}
	op->id = *id;
	op->number = IPC_AUTHORISE;
	memcpy(op->actor, principal, strlen(principal) + 1);
	read_it(op);
}

/* ---- requests of clients ---- */

static void
changed(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	/* Cancels at once if the task runs in this node's sandbox. Another node
	 * is told by NOTIFY. */
	if (op->number == IPC_TASK_CANCEL || op->number == IPC_TASK_DROP)
		hold_cancel(op->a, &op->id, FAILURE_KILLED);
	if (op->number == IPC_TASK_DROP)
		op_ok(op);
	else
		read_it(op);
}

/* Stores a client's answers. The database decides whether they are valid. */
static void
update(struct op *op)
{
	struct db_params p;

	put_who(op, &p);
	db_p_bytes(&p, op->buf.p, op->buf.len);
	db_query(op->a->db, &answer_row, &p, changed, op);
}

static void
cancel(struct op *op)
{
	struct db_params p;

	put_who(op, &p);
	db_query(op->a->db, &cancel_row, &p, changed, op);
}

/*
 * Ends a task whose client never heard its id, and does not come back for the
 * answer to its call. The client's credential may be over by then, so no
 * credential is asked for.
 *
 * Only the connection that began the task may do so, and only until the task's
 * client hears the id. A gateway that lies gains nothing: it could as well
 * have kept the call, or its answer, to itself. It reads nothing of the task
 * here, and can't end a task of another connection, nor one that its client
 * knows.
 */
static int
drop(struct link *l, struct ipc_frame *f)
{
	struct ipc_task_drop m;
	const char *principal;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	principal = task_run_untold(l, &m.task);
	if (principal == NULL) {
		link_refuse(l, m.request, FAILURE_UNKNOWN_TASK,
		    "this connection began no such task");
		return 0;
	}
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	memcpy(op->actor, principal, strlen(principal) + 1);
	op->id = m.task;
	op->number = IPC_TASK_DROP;
	cancel(op);
	return 0;
}

static void
serve(struct op *op)
{
	if (op->number == IPC_TASK_UPDATE)
		update(op);
	else if (op->number == IPC_TASK_CANCEL)
		cancel(op);
	else
		read_it(op);
}

/* An endpoint has only the tasks of the tools that it has. A token that was
 * made for an endpoint would read the results of others else. */
static void
judged(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL)
		op_refuse_err(op, err);
	else if (!db_bool(rows, 0, 0))
		op_refuse(op, FAILURE_UNKNOWN_TASK, "you have no such task");
	else
		serve(op);
}

int
tasks_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_task_get get;
	struct ipc_task_update up = {0};
	struct ipc_task_cancel end;
	struct ipc_bytes credential, endpoint;
	struct ipc_id id;
	struct auth who;
	struct db_params p;
	struct lack lack;
	struct err err;
	uint8_t via;
	struct op *op;

	switch (f->type) {
	case IPC_TASK_DROP:
		return drop(l, f);
	case IPC_TASK_GET:
		if (ipc_decode(f, &get, NULL) == -1)
			return -1;
		id = get.task;
		credential = get.credential;
		endpoint = get.endpoint;
		via = get.via;
		break;
	case IPC_TASK_UPDATE:
		if (ipc_decode(f, &up, NULL) == -1)
			return -1;
		id = up.task;
		credential = up.credential;
		endpoint = up.endpoint;
		via = up.via;
		break;
	default:
		if (ipc_decode(f, &end, NULL) == -1)
			return -1;
		id = end.task;
		credential = end.credential;
		endpoint = end.endpoint;
		via = end.via;
		break;
	}
	op = op_new(l, f->request);
	if (op == NULL)
		return 0;
	if (auth_principal(l->a, l->listener, via, credential, endpoint, &who,
		&err) == -1 ||
	    op_count(op, who.token, &err) == -1) {
		op_refuse_err(op, &err);
		return 0;
	}
	if (token_may_call(l->a, who.token, l->listener, &lack) == -1) {
		op_refuse_lack(op, &lack);
		return 0;
	}
	memcpy(op->actor, who.principal, sizeof(op->actor));
	op->id = id;
	op->number = f->type;
	/* Untrusted bytes. The database takes only clean text. */
	if (f->type == IPC_TASK_UPDATE)
		db_text_clean(
		    &op->buf, up.answers.p, up.answers.n, ARGUMENTS_MAX);
	if (op->buf.failed) {
		op_refuse(op, FAILURE_BUSY, "out of memory");
	} else if (who.token != NULL && who.token->endpoint != NULL) {
		db_params_init(&p);
		db_p_id(&p, &op->id);
		token_params(who.token, &p);
		db_query(l->a->db, &at_endpoint, &p, judged, op);
	} else {
		serve(op);
	}
	return 0;
}

/* ---- telling ---- */

static void
tell(struct ipc_peer *peer, void *arg)
{
	(void)ipc_send(peer, IPC_TASK_CHANGED, arg);
}

/* Parses "uuid what state listener principal", where principal may have any
 * characters. */
void
tasks_notified(struct admind *a, const char *payload)
{
	struct ipc_task_changed m = {0};
	char what[16], state[16], listener[8];
	int at = 0;

	if (uuid_parse(payload, strcspn(payload, " "), &m.task) == -1 ||
	    sscanf(payload, "%*s %15s %15s %7s %n", what, state, listener,
		&at) != 3 ||
	    at == 0)
		return;
	if (strcmp(what, "cancelled") == 0)
		hold_cancel(a, &m.task, FAILURE_KILLED);
	else if (strcmp(what, "answered") == 0)
		task_run_answered(a, &m.task);
	if (strcmp(what, "cancelled") == 0)
		return; /* the task's state did not change yet */
	m.status = (uint8_t)status_of(ipc_str(state));
	m.principal = ipc_str(payload + at);
	ipc_server_each(listener_of(listener) == LISTENER_LOCAL ? a->gw_local
								: a->gw_tunnel,
	    tell, &m);
}

/* ---- ends ---- */

static void
swept(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;

	a->sweeping_tasks = false;
	if (err == NULL && db_int(rows, 0, 0) > 0)
		log_event(LOG_LV_WARN, "task_lost",
		    "%lld tasks ended with their executions",
		    (long long)db_int(rows, 0, 0));
}

void
tasks_tick(struct admind *a)
{
	task_run_tick(a);
	if (a->sweeping_tasks || !db_is_up(a->db))
		return;
	a->sweeping_tasks = true;
	db_query(a->db, &sweep_rows, NULL, swept, a);
}
