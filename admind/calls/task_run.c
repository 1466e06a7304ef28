/*
 * A task's call while it runs. admind itself runs the call: the context is held
 * for admind, and RUN comes from here. So the call goes on even if a gateway or
 * a client ends.
 *
 * The end of the call is not taken from the answer to RUN but from the call's
 * RECORD, which sandboxd repeats until it is committed. So all ends are handled
 * in one way, whichever process was restarted in between. This file only
 * listens to the tool's questions to its client.
 *
 * The call can't run twice. RUN is sent once, by the job whose context is held.
 * A later process of admind, or a new connection, only ever sends ATTACH, which
 * starts nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "ending.h"
#include "hold.h"
#include "ids.h"
#include "jobs.h"
#include "log.h"
#include "own_run.h"
#include "tasks.h"

enum {
	/* Longer than any call can take: its time in the queue, its limit (600
	 * s, which sandboxd enforces), its client's time to answer questions,
	 * and time for its end. */
	WAIT_MS = QUEUE_MS + 600 * 1000 + PARK_TOTAL_MS + 30 * 1000,
	/* In mode after_questions: if a tool asked nothing for this long, its
	 * call becomes a task. */
	FIRST_US = 2 * 1000 * 1000,
};

/* A call whose frames this process listens to. */
struct task {
	TAILQ_ENTRY(task) entry;
	struct admind *a;
	struct ipc_id id, epoch;
	uint32_t number; /* number of its last questions */
	struct buf questions;
	/* asking: a statement for the row is under way. unasked: the questions
	 * must be put into the row again. */
	bool asking, unasked;
	/* In mode after_questions: the gateway that still waits for an answer.
	 * Else NULL. */
	struct link *link;
	/* The gateway that began it, until its client is told of the task. */
	struct link *maker;
	uint64_t request, since_us;
	char principal[PRINCIPAL_MAX + 1];
};

static const struct db_stmt ask_row = {"task_ask",
    "SELECT mcpbox.task_ask($1::uuid, $2::uuid, $3::int8, $4::text)", DB_SURE};
static const struct db_stmt told_row = {
    "task_told", "SELECT mcpbox.task_told($1::uuid)", DB_SURE};
static const struct db_stmt open_rows = {"task_open_rows",
    "SELECT t.id, t.cancelled,"
    " v.task = 'after_questions' AND t.question = 0 AND NOT t.told"
    " FROM mcpbox.tasks t"
    " JOIN mcpbox.executions x ON x.id = t.id"
    " JOIN mcpbox.tool_versions v ON v.id = x.version_id"
    " WHERE t.owner_epoch = $1::uuid AND t.state IN"
    " ('working', 'input_required') AND x.state = 'open'",
    DB_FAST};

static struct task *
find(struct admind *a, const struct ipc_id *id)
{
	struct task *t;

	TAILQ_FOREACH(t, &a->tasks, entry)
		if (memcmp(&t->id, id, sizeof(*id)) == 0)
			return t;
	return NULL;
}

static struct task *
task_new(struct admind *a, const struct ipc_id *id)
{
	struct task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->a = a;
	t->id = *id;
	t->epoch = a->sandbox_epoch;
	buf_init(&t->questions, IPC_FRAME_MAX);
	TAILQ_INSERT_TAIL(&a->tasks, t, entry);
	return t;
}

static void
forget_maker(struct task *t)
{
	if (t->maker != NULL)
		link_unref(t->maker);
	t->maker = NULL;
}

const char *
task_run_untold(const struct link *l, const struct ipc_id *id)
{
	const struct task *t = find(l->a, id);

	return t != NULL && t->maker == l ? t->principal : NULL;
}

void
task_run_known(struct admind *a, const struct ipc_id *id)
{
	struct task *t = find(a, id);

	if (t != NULL)
		forget_maker(t);
}

/* Tells the waiting gateway that the call became a task. */
static void
tell(struct task *t)
{
	if (t->link == NULL)
		return;
	tasks_tell(t->link, t->request, &t->id, t->principal);
	link_unref(t->link);
	t->link = NULL;
}

static void
task_free(struct task *t)
{
	tell(t);
	forget_maker(t);
	TAILQ_REMOVE(&t->a->tasks, t, entry);
	buf_free(&t->questions);
	free(t);
}

/* ---- questions ---- */

/* The argument of a statement's callback. The task may be gone when the
 * callback runs, so the callback looks for the task by its id. */
struct asked {
	struct admind *a;
	struct ipc_id id;
	uint32_t number;
};

static void
send_answers(struct task *t, uint32_t number, struct ipc_bytes json)
{
	struct ipc_peer *peer = ipc_client_peer(t->a->sandboxd);
	struct ipc_call_answer m = {
	    .execution = t->id, .number = number, .json = json};

	if (peer != NULL)
		(void)ipc_send(peer, IPC_CALL_ANSWER, &m);
}

static void
got_answers(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct asked *q = arg;
	struct admind *a = q->a;
	struct task *t = find(a, &q->id);
	uint32_t number = q->number;
	char id[UUID_TEXT_LEN + 1];

	free(q);
	if (t == NULL)
		return;
	t->asking = false;
	if (err != NULL &&
	    (err->failure == FAILURE_STORAGE_UNAVAILABLE ||
		err->failure == FAILURE_BUSY)) {
		t->unasked = true; /* the tick asks again */
		return;
	}
	if (err != NULL) {
		uuid_text(&t->id, id);
		log_call(
		    LOG_LV_WARN, "task_question", id, NULL, "%s", err->text);
		hold_cancel(a, &t->id, FAILURE_KILLED);
		return;
	}
	if (!db_null(rows, 0, 0))
		send_answers(t, number, db_bytes(rows, 0, 0));
	tell(t);
}

static void
told(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct asked *q = arg;
	struct task *t = find(q->a, &q->id);

	free(q);
	if (t == NULL)
		return;
	t->asking = false;
	tell(t); /* this reads the row; if the database is away, the task is
		  * ended */
}

/* Puts the newest questions into the task's row, and gets the answers if all
 * are there. If the row has these questions already (task_ask() compares their
 * number), only gets the answers. */
static void
put_questions(struct task *t)
{
	struct asked *q = malloc(sizeof(*q));
	struct db_params p;

	t->unasked = q == NULL;
	if (q == NULL)
		return;
	q->a = t->a;
	q->id = t->id;
	q->number = t->number;
	t->asking = true;
	db_params_init(&p);
	db_p_id(&p, &t->id);
	db_p_id(&p, &t->epoch);
	db_p_i64(&p, t->number);
	db_p_bytes(&p, t->questions.p, t->questions.len);
	db_query(t->a->db, &ask_row, &p, got_answers, q);
}

static void
asks(struct task *t, const struct ipc_call_event *m)
{
	t->number = m->number;
	buf_clear(&t->questions);
	db_text_clean(&t->questions, m->json.p, m->json.n, IPC_FRAME_MAX);
	if (t->questions.failed) {
		hold_cancel(t->a, &t->id, FAILURE_KILLED);
		return;
	}
	put_questions(t);
}

void
task_run_answered(struct admind *a, const struct ipc_id *id)
{
	struct task *t = find(a, id);

	if (t != NULL && t->number > 0)
		put_questions(t);
}

/* ---- running ---- */

static void
heard(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct task *t = arg;
	struct ipc_call_event ev;

	if (f != NULL && f->type == IPC_CALL_EVENT) {
		if (ipc_decode(f, &ev, NULL) == 0 && ev.kind == 3 &&
		    memcmp(&ev.execution, &t->id, sizeof(t->id)) == 0)
			asks(t, &ev);
		return;
	}
	/* If sandboxd is connected but was silent for WAIT_MS, its own limits
	 * did not hold, so the call is cancelled. If the connection ended,
	 * task_run_resume() listens to the task again on the next
	 * connection. */
	if (f == NULL && ipc_client_peer(t->a->sandboxd) != NULL)
		hold_cancel(t->a, &t->id, FAILURE_KILLED);
	task_free(t);
}

/* Tells the client that its call is a task. The answer is made here and not
 * read from the row, because from here on no failure may keep a running task
 * from its client. */
static void
answer(struct job *j)
{
	const struct conf *c = j->a->proc.conf;
	struct ipc_task_state m = {.task = j->execution,
	    .status = TASK_WORKING,
	    .created_us = j->created_us,
	    .updated_us = j->created_us,
	    .ttl_ms = (uint64_t)conf_int(c, "task_ttl"),
	    .poll_ms = (uint64_t)conf_int(c, "task_poll")};

	link_answer(j->link, j->request, IPC_TASK_STATE, &m);
}

/*
 * The answer goes out before RUN. If this process ends between the two, the
 * client knows of a task that never ran, and will be told so. If RUN went out
 * first, a task could run that no client knows.
 */
void
task_run_start(struct job *j)
{
	struct admind *a = j->a;
	char id[UUID_TEXT_LEN + 1];
	struct task *t = ipc_client_peer(a->sandboxd) != NULL
	    ? task_new(a, &j->execution)
	    : NULL;

	if (t == NULL) {
		hold_cancel(a, &j->execution, FAILURE_KILLED);
		job_refuse(j, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable, or there is no memory");
		return;
	}
	uuid_text(&j->execution, id);
	log_call(LOG_LV_DEBUG, "task", id, j->principal, "%s", j->tool);
	if (j->after_questions) {
		t->link = link_ref(j->link);
		t->maker = link_ref(j->link);
		t->request = j->request;
		t->since_us = now_us();
		memcpy(t->principal, j->principal, sizeof(t->principal));
	} else {
		answer(j);
	}
	if (own_run_send(a, &j->execution,
		ipc_bytes(j->arguments.p, j->arguments.len), WAIT_MS, heard,
		t) == -1)
		task_free(t);
	(void)job_enter(j, JOB_DONE);
	job_free(j);
}

/* ---- after a restart, or a connection that was lost ---- */

static bool
in_work(const struct admind *a, const struct ipc_id *id)
{
	const struct job *j;

	TAILQ_FOREACH(j, &a->jobs, entry)
		if (memcmp(&j->execution, id, sizeof(*id)) == 0)
			return true;
	return false;
}

static void
attach(struct admind *a, const struct ipc_id *id)
{
	struct ipc_peer *peer = ipc_client_peer(a->sandboxd);
	struct ipc_attach m = {.execution = *id};
	struct task *t = task_new(a, id);
	uint64_t request;

	if (t == NULL)
		return; /* no memory: the tool's questions time out, but the
			 * task's record still comes */
	if (peer == NULL ||
	    ipc_request(peer, IPC_ATTACH, &m, WAIT_MS, heard, t, &request) ==
		-1)
		task_free(t);
}

/*
 * Closes the row of a call that never began. The sandbox named every execution
 * that it answers for, and this one was not among them, so RUN or HELD was lost
 * with a connection. If the call had run, its committed record would have
 * closed the row.
 */
static void
lost(struct admind *a, const struct ipc_id *id)
{
	struct ending e = {.id = *id,
	    .epoch = a->sandbox_epoch,
	    .outcome = OUTCOME_LOST,
	    .failure = FAILURE_LOST,
	    .ended_us = now_us()};

	if (!ending_full(a))
		ending_close(a, &e);
}

static void
got_open(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct ipc_id id;
	struct task *t;

	a->resuming_tasks = false;
	if (err != NULL || !a->sandbox_ready)
		return; /* task_run_resume() is called again when the database
			 * or sandbox is back */
	for (int i = 0; i < db_nrows(rows); i++) {
		id = db_id(rows, i, 0);
		if (in_work(a, &id))
			continue;
		if (!idset_has(&a->live, &id)) {
			lost(a, &id);
			continue;
		}
		t = find(a, &id);
		/* Cancels a task whose client asked for that. Also cancels a
		 * task whose id no client got, because an earlier process of
		 * admind ended too soon. */
		if (db_bool(rows, i, 1) || (t == NULL && db_bool(rows, i, 2)))
			hold_cancel(a, &id, FAILURE_KILLED);
		if (t == NULL)
			attach(a, &id);
		else
			task_run_answered(a, &id);
	}
}

void
task_run_resume(struct admind *a)
{
	struct db_params p;

	if (!a->sandbox_ready || a->resuming_tasks || !db_is_up(a->db))
		return;
	a->resuming_tasks = true;
	db_params_init(&p);
	db_p_id(&p, &a->sandbox_epoch);
	db_query(a->db, &open_rows, &p, got_open, a);
}

/* Makes the call a task like any other and tells the client, because the tool
 * asked nothing for a while, or because admind ends. */
static void
tell_late(struct task *t)
{
	struct asked *q = malloc(sizeof(*q));
	struct db_params p;

	if (q == NULL)
		return; /* the next tick tries again */
	q->a = t->a;
	q->id = t->id;
	t->asking = true;
	db_params_init(&p);
	db_p_id(&p, &t->id);
	db_query(t->a->db, &told_row, &p, told, q);
}

unsigned
task_run_tell_all(struct admind *a)
{
	struct task *t;
	unsigned waiting = 0;

	TAILQ_FOREACH(t, &a->tasks, entry) {
		if (t->link == NULL)
			continue;
		waiting++;
		if (!t->asking)
			tell_late(t);
	}
	return waiting;
}

void
task_run_tick(struct admind *a)
{
	struct task *t;

	TAILQ_FOREACH(t, &a->tasks, entry) {
		if (t->unasked && !t->asking && db_is_up(a->db))
			put_questions(t);
		if (t->link != NULL && !t->asking &&
		    now_us() - t->since_us > FIRST_US)
			tell_late(t);
	}
}
