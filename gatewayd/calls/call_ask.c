/*
 * A call that asks its client, in both eras.
 *
 * Modern: the request is answered "input_required" with the questions and a
 * requestState. The call goes on without an exchange until the client calls
 * again with its answers (parked.h says which client may). That request takes
 * the place of the old request.
 *
 * Legacy: each question is a JSON-RPC request on the answer's event stream. The
 * response comes by another POST of the same session, so from the same
 * principal (session.h). It names the question's id, which only this client
 * got.
 *
 * An answer goes to the tool that asked, as text. By a false answer a client
 * only misleads its own call.
 */
#include <string.h>

#include <event2/event.h>

#include "call_internal.h"
#include "ids.h"
#include "log.h"

static void ask(struct call *);

/* Sends the answers, which are complete. The tool goes on. */
static void
answer(struct call *c)
{
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);
	struct ipc_call_answer m = {.execution = c->execution,
	    .number = questions_number(c->questions)};
	struct buf b;

	buf_init(&b, ARGUMENTS_MAX);
	questions_answers(c->questions, &b);
	/* If there is no memory, {} is sent, and sandboxd tells the tool "not
	 * answered" for each question. */
	m.json = b.failed ? ipc_bytes("{}", 2) : ipc_bytes(b.p, b.len);
	/* If the answers can't be sent, sandboxd is gone, and run_answered()
	 * ends the call. */
	if (sandboxd != NULL)
		ipc_send(sandboxd, IPC_CALL_ANSWER, &m);
	buf_free(&b);
	questions_free(c->questions);
	c->questions = NULL;
	call_set_state(c, CALL_RUNNING);
}

/* ---- modern ---- */

/* Goes on with the call when the client calls again, with answers or
 * without. */
static void
resume(void *arg, struct exchange *ex)
{
	struct call *c = arg;

	c->ex = ex;
	ex->call = c;
	if (c->state == CALL_KEPT) {
		call_end_kept(c);
		return;
	}
	call_watch(c);
	/* The tool has given up the questions that its client was asked, and
	 * has asked new ones. A yes to an old question must not count for a new
	 * one, even if the keys are the same. */
	if (c->questions != NULL && questions_number(c->questions) != c->put)
		ex->m.input_responses = ipc_bytes(NULL, 0);
	ask(c);
}

/* Drops a call whose client did not come back. Either sandboxd's timer told the
 * tool long ago that no answer came, or the tool is killed now. */
static void
expired(void *arg)
{
	struct call *c = arg;

	c->parked = NULL;
	call_drop(c);
}

static void
park(struct call *c)
{
	static const struct parked_owner owner = {
	    .resume = resume, .expired = expired};
	uint64_t expires_ms = now_us() / 1000 + PARK_TOTAL_MS;
	struct exchange *ex = c->ex;
	struct refusal no;
	struct buf b;

	if (c->parked == NULL)
		c->parked = parked_new(c->gw, ex, &owner, c, &no);
	buf_init(&b, IPC_FRAME_MAX * 2);
	if (c->parked != NULL)
		questions_requests(c->questions, &b);
	if (c->parked == NULL || b.failed) {
		questions_fail(c->questions,
		    c->parked == NULL ? no.message : "Out of memory.");
		answer(c);
	} else {
		c->ex = NULL;
		c->put = questions_number(c->questions);
		call_set_state(c, CALL_ASKING);
		parked_answer(c->parked, ex, expires_ms, ipc_bytes(b.p, b.len));
	}
	buf_free(&b);
}

/* ---- legacy ---- */

static void
send_requests(struct call *c)
{
	struct buf b;
	bool end = false;
	unsigned i;

	for (i = 0; !end; i++) {
		buf_init(&b, IPC_FRAME_MAX * 2);
		if (questions_request(c->questions, i, &b, &end) &&
		    !exchange_request(c->ex, &b))
			questions_fail(c->questions,
			    "The client has no event stream to be asked on.");
		buf_free(&b);
	}
	if (questions_open(c->questions) == 0)
		answer(c);
	else
		call_set_state(c, CALL_ASKING);
}

bool
call_ask_response(struct exchange *ex)
{
	const struct mcp_message *m = &ex->m;
	struct call *c;

	if (!ex->has_session || m->id.n == 0)
		return false;
	TAILQ_FOREACH(c, &ex->gw->calls, all) {
		/* Only calls of the response's session count. A session belongs
		 * to one principal. */
		if (c->state != CALL_ASKING || c->ex == NULL ||
		    c->questions == NULL || !c->ex->has_session ||
		    memcmp(&c->ex->session.id, &ex->session.id,
			sizeof(ex->session.id)) != 0 ||
		    !questions_response(
			c->questions, m->id, m->result, m->response_error))
			continue;
		if (questions_open(c->questions) == 0)
			answer(c);
		return true;
	}
	return false;
}

/* ---- both ---- */

/* Sends the open questions to the client unless the client is away. */
static void
ask(struct call *c)
{
	struct exchange *ex = c->ex;

	/* A client that is away is asked when it is back. */
	if (ex == NULL || c->questions == NULL) {
		call_set_state(
		    c, c->questions == NULL ? CALL_RUNNING : CALL_ASKING);
		return;
	}
	questions_declared(c->questions, ex->m.declared, ex->m.rev);
	/* The answers in a request count only for the first questions after
	 * that request, because a tool that asks again wants new answers. */
	if (ex->m.modern) {
		questions_take(c->questions, ex->m.input_responses);
		ex->m.input_responses = ipc_bytes(NULL, 0);
	}
	/* The client is not asked during a restart, because its answer would
	 * come to another process. */
	if (c->gw->draining)
		questions_fail(c->questions, "The server is being restarted.");
	if (questions_open(c->questions) == 0)
		answer(c);
	else if (ex->m.modern)
		park(c);
	else
		send_requests(c);
}

void
call_ask_questions(struct call *c, const struct ipc_call_event *ev)
{
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);
	struct ipc_call_answer m = {
	    .execution = c->execution, .number = ev->number};

	questions_free(c->questions);
	c->questions = questions_new(ev->number, ev->json);
	if (c->questions != NULL) {
		ask(c);
		return;
	}
	log_event(
	    LOG_LV_WARN, "questions", "%s: no memory, or malformed", c->tool);
	m.json = ipc_bytes("{}", 2);
	if (sandboxd != NULL)
		ipc_send(sandboxd, IPC_CALL_ANSWER, &m);
}
