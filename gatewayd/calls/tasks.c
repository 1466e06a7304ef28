/* See tasks.h. */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "log.h"
#include "parked.h"
#include "stream.h"
#include "task_json.h"
#include "tasks.h"

#define REQUIRED                                     \
	"\"requiredCapabilities\":{\"extensions\":{" \
	"\"io.modelcontextprotocol/tasks\":{}}}"

static void
refuse(struct exchange *ex, enum failure f, uint64_t retry_ms, const char *text)
{
	struct refusal no;

	refusal_set(&no, f, retry_ms, text);
	exchange_refuse(ex, &no);
}

static void
refuse_away(struct exchange *ex)
{
	struct refusal no;

	refusal_away(&no, ex->gw, false);
	exchange_refuse(ex, &no);
}

/* Answers {"resultType": type, the task's members}. */
static void
answer_task(struct exchange *ex, const char *type,
    const struct ipc_task_state *t, bool detailed)
{
	struct answer_to to = exchange_to(ex);
	struct buf members, b;

	buf_init(&members, ANSWER_MAX);
	buf_init(&b, ANSWER_MAX);
	if (task_json_members(&members, t, detailed) == -1) {
		buf_free(&members);
		refuse(ex, FAILURE_INTERNAL, 0,
		    "The task can't be shown: admind answered nonsense, or "
		    "there is no memory.");
		return;
	}
	answer_members(&b, &to, type, ipc_bytes(members.p, members.len));
	buf_free(&members);
	exchange_answer(ex, 200, &b);
}

/* ---- tasks/get, tasks/update, tasks/cancel ---- */

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct exchange *ex = arg;
	struct answer_to to = exchange_to(ex);
	struct ipc_task_state t;
	struct refusal no;
	struct buf b;

	if (f == NULL || f->type != IPC_TASK_STATE ||
	    ipc_decode(f, &t, NULL) == -1) {
		refusal_from(&no, f, gone, "admind");
		if (no.failure == FAILURE_UNAUTHENTICATED ||
		    no.failure == FAILURE_FORBIDDEN)
			identity_cache_drop(ex->gw->identities);
		exchange_refuse(ex, &no);
		return;
	}
	if (ex->m.method == MCP_TASKS_GET) {
		answer_task(ex, "complete", &t, true);
		return;
	}
	/* An acknowledgement says nothing of the task. */
	buf_init(&b, ANSWER_MAX);
	answer_empty(&b, &to);
	exchange_answer(ex, 200, &b);
}

static int
ask_get(struct gateway *gw, const struct credential *credential,
    const struct ipc_id *id, ipc_answer_cb *cb, void *arg)
{
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	struct ipc_task_get m = {.credential = ipc_str(credential->text),
	    .via = credential->via,
	    .endpoint = ipc_str(credential->endpoint),
	    .task = *id};
	uint64_t request;

	return admind == NULL ||
		ipc_request(admind, IPC_TASK_GET, &m, ADMIND_ASK_MS, cb, arg,
		    &request) == -1
	    ? -1
	    : 0;
}

static int
ask_cancel(struct gateway *gw, const struct credential *credential,
    const struct ipc_id *id, ipc_answer_cb *cb, void *arg)
{
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	struct ipc_task_cancel m = {.credential = ipc_str(credential->text),
	    .via = credential->via,
	    .endpoint = ipc_str(credential->endpoint),
	    .task = *id};
	uint64_t request;

	return admind == NULL ||
		ipc_request(admind, IPC_TASK_CANCEL, &m, ADMIND_ASK_MS, cb, arg,
		    &request) == -1
	    ? -1
	    : 0;
}

/* Asks to end a task that was made for a call of ours and that no client knows.
 * The right to it is that of the connection, not of a credential. */
static int
ask_drop(
    struct gateway *gw, const struct ipc_id *id, ipc_answer_cb *cb, void *arg)
{
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	struct ipc_task_drop m = {.task = *id};
	uint64_t request;

	return admind == NULL ||
		ipc_request(admind, IPC_TASK_DROP, &m, ADMIND_ASK_MS, cb, arg,
		    &request) == -1
	    ? -1
	    : 0;
}

static int
ask_update(
    struct exchange *ex, const struct ipc_id *id, ipc_answer_cb *cb, void *arg)
{
	struct ipc_peer *admind = ipc_client_peer(ex->gw->admind);
	struct ipc_task_update m = {.credential = ipc_str(ex->credential.text),
	    .via = ex->credential.via,
	    .endpoint = ipc_str(ex->credential.endpoint),
	    .task = *id,
	    .answers = ex->m.input_responses.n > 0 ? ex->m.input_responses
						   : ipc_bytes("{}", 2)};
	uint64_t request;

	return admind == NULL || m.answers.n > ARGUMENTS_MAX ||
		ipc_request(admind, IPC_TASK_UPDATE, &m, ADMIND_ASK_MS, cb, arg,
		    &request) == -1
	    ? -1
	    : 0;
}

void
tasks_serve(struct exchange *ex)
{
	char text[UUID_TEXT_LEN + 1];
	struct ipc_id id;
	int rv;

	if ((ex->m.declared & CLIENT_TASKS) == 0) {
		exchange_error(ex, 400, FAILURE_CAPABILITY_REQUIRED,
		    "Tasks need a client that declares the extension "
		    "io.modelcontextprotocol/tasks.",
		    REQUIRED);
		return;
	}
	/* A text that is no id names no task, so the answer is the same as for
	 * a wrong id. */
	if (mcp_json_text(ex->m.task_id, text, sizeof(text)) == -1 ||
	    uuid_parse(text, strlen(text), &id) == -1) {
		refuse(ex, FAILURE_UNKNOWN_TASK, 0, "you have no such task");
		return;
	}
	if (ex->m.input_responses.n > ARGUMENTS_MAX) {
		refuse(ex, FAILURE_TOO_LARGE, 0,
		    "inputResponses may have at most 1048576 bytes.");
		return;
	}
	if (ex->m.method == MCP_TASKS_GET)
		rv = ask_get(ex->gw, &ex->credential, &id, answered, ex);
	else if (ex->m.method == MCP_TASKS_CANCEL)
		rv = ask_cancel(ex->gw, &ex->credential, &id, answered, ex);
	else
		rv = ask_update(ex, &id, answered, ex);
	if (rv == -1)
		refuse_away(ex);
}

/* ---- a call that became a task ---- */

/*
 * A task that asked questions before its client was told of the task (task mode
 * after_questions). The questions are sent as those of a call are. The request
 * that brings the answers gets the task as its result. While the client is
 * asked, nothing runs here, and the task waits in the sandbox.
 */
struct asking {
	struct gateway *gw;
	struct ipc_id task;
	struct parked *parked;
	struct exchange *ex; /* its answers were sent to admind */
	uint64_t expires_ms;
	struct credential credential; /* ends the task if no client comes
				       * back */
	char text[];                  /* of the credential */
};

static void
ignore(void *arg, struct ipc_frame *f, enum failure gone)
{
}

static void
asking_free(struct asking *a)
{
	parked_free(a->parked);
	explicit_bzero(a->text, strlen(a->text));
	free(a);
}

/* True if the task asks questions. The questions are spliced into an answer, so
 * this checks that they are one JSON object and nothing more, whatever admind
 * sent. */
static bool
asks(const struct ipc_task_state *t, struct ipc_bytes *questions)
{
	if (t->status != TASK_INPUT_REQUIRED || t->body_len < 2 ||
	    t->body_len > t->body_meta.n)
		return false;
	*questions = ipc_bytes(t->body_meta.p, t->body_len);
	return questions->p[0] == '{' &&
	    json_scan(questions->p, questions->n, NULL) == 0;
}

static void resume(void *, struct exchange *);
static void expired(void *);
static void dropped(void *);
static const struct parked_owner owner = {
    .resume = resume, .expired = expired, .dropped = dropped};

static void
updated(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct asking *a = arg;
	struct exchange *ex = a->ex;
	struct ipc_bytes questions;
	struct ipc_task_state t;
	struct refusal no;

	a->ex = NULL;
	if (f == NULL || f->type != IPC_TASK_STATE ||
	    ipc_decode(f, &t, NULL) == -1) {
		refusal_from(&no, f, gone, "admind");
		/* By the newest credential: a's may have expired since. */
		(void)ask_cancel(
		    a->gw, &ex->credential, &a->task, ignore, NULL);
		exchange_refuse(ex, &no);
		asking_free(a);
		return;
	}
	/* Some questions are still open, so the client is asked again. */
	if (asks(&t, &questions)) {
		parked_answer(a->parked, ex, a->expires_ms, questions);
		return;
	}
	asking_free(a);
	answer_task(ex, "task", &t, false);
}

static void
resume(void *arg, struct exchange *ex)
{
	struct asking *a = arg;

	a->ex = ex;
	if (ask_update(ex, &a->task, updated, a) == -1) {
		refuse_away(ex);
		asking_free(a);
	}
}

static void
did_drop(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct asking *a = arg;

	(void)gone;
	/* Another admind does not know that the task is of this connection. If
	 * the credential is over, too, the task ends when its questions are too
	 * old (PARK_TOTAL_MS). */
	if (f != NULL && f->type == IPC_REFUSED)
		(void)ask_cancel(a->gw, &a->credential, &a->task, ignore, NULL);
	asking_free(a);
}

/* The time may be over because that of the credential is, so the credential
 * can't end the task any more. */
static void
expired(void *arg)
{
	struct asking *a = arg;

	a->parked = NULL;
	if (ask_drop(a->gw, &a->task, did_drop, a) == -1)
		asking_free(a);
}

static void
dropped(void *arg)
{
	struct asking *a = arg;

	a->parked = NULL;
	asking_free(a);
}

static void
ask_first(struct exchange *ex, const struct ipc_task_state *t,
    struct ipc_bytes questions)
{
	size_t n = strlen(ex->credential.text);
	struct asking *a = calloc(1, sizeof(*a) + n + 1);
	struct refusal no;

	if (a == NULL) {
		refuse(ex, FAILURE_BUSY, RETRY_MS, "Out of memory.");
		return;
	}
	memcpy(a->text, ex->credential.text, n + 1);
	a->credential = ex->credential;
	a->credential.text = a->text;
	a->gw = ex->gw;
	a->task = t->task;
	a->expires_ms = now_us() / 1000 + PARK_TOTAL_MS;
	a->parked = parked_new(ex->gw, ex, &owner, a, &no);
	if (a->parked == NULL) {
		exchange_refuse(ex, &no);
		expired(a);
		return;
	}
	parked_answer(a->parked, ex, a->expires_ms, questions);
}

void
tasks_created(struct exchange *ex, const struct ipc_task_state *t)
{
	struct ipc_bytes questions;

	/* The client has cancelled by closing the response. It never got the
	 * task's id, so it could not fetch the outcome. */
	if (ex->req == NULL) {
		(void)ask_cancel(
		    ex->gw, &ex->credential, &t->task, ignore, NULL);
		refuse(ex, FAILURE_KILLED, 0, "The client cancelled.");
	} else if (asks(t, &questions)) {
		ask_first(ex, t, questions);
	} else {
		answer_task(ex, "task", t, false);
	}
}

/* ---- notifications/tasks ---- */

struct telling {
	struct gateway *gw;
	struct ipc_id task;
	char principal[PRINCIPAL_MAX + 1];
	struct credential credential; /* of the streams that are told */
	char text[];                  /* of the credential */
};

static void
telling_free(struct telling *x)
{
	explicit_bzero(x->text, strlen(x->text));
	free(x);
}

/* Tells the streams of x->credential the task's state, as tasks/get would give
 * it to this credential. If the credential has ended, its streams end, too. */
static void
tell(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct telling *x = arg;
	struct ipc_task_state t;
	char id[UUID_TEXT_LEN + 1];
	struct refusal no;
	struct buf b;

	uuid_text(&x->task, id);
	if (f == NULL || f->type != IPC_TASK_STATE) {
		refusal_from(&no, f, gone, "admind");
		if (no.failure == FAILURE_UNAUTHENTICATED ||
		    no.failure == FAILURE_FORBIDDEN)
			stream_task_refused(
			    x->gw, x->principal, id, &x->credential);
		telling_free(x);
		return;
	}
	buf_init(&b, ANSWER_MAX);
	buf_putc(&b, '{');
	if (ipc_decode(f, &t, NULL) == 0 &&
	    task_json_members(&b, &t, true) == 0) {
		buf_putc(&b, '}');
		if (!b.failed)
			stream_notify_task(x->gw, x->principal, id,
			    &x->credential, ipc_bytes(b.p, b.len));
	}
	buf_free(&b);
	telling_free(x);
}

struct change {
	struct gateway *gw;
	const struct ipc_task_changed *m;
};

/* Asks for the task's state with one credential. If there is no memory to ask,
 * the streams of this credential are told nothing, as if their client did not
 * read. */
static void
ask_for(void *arg, const struct credential *credential)
{
	const struct change *c = arg;
	struct telling *x;
	size_t n = strlen(credential->text);

	if ((x = calloc(1, sizeof(*x) + n + 1)) == NULL)
		return;
	x->gw = c->gw;
	x->task = c->m->task;
	memcpy(x->principal, c->m->principal.p, c->m->principal.n);
	memcpy(x->text, credential->text, n);
	x->credential = *credential;
	x->credential.text = x->text;
	if (ask_get(c->gw, credential, &x->task, tell, x) == -1)
		telling_free(x);
}

int
tasks_changed(struct gateway *gw, struct ipc_frame *f)
{
	struct ipc_task_changed m;
	struct change c = {gw, &m};
	char id[UUID_TEXT_LEN + 1], principal[PRINCIPAL_MAX + 1] = "";

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.principal.n == 0 || m.principal.n > PRINCIPAL_MAX)
		return 0;
	memcpy(principal, m.principal.p, m.principal.n);
	uuid_text(&m.task, id);
	stream_task_each(gw, principal, id, ask_for, &c);
	return 0;
}
