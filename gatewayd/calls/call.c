/*
 * One tools/call: AUTHORISE at admind, RUN at sandboxd, the answer.
 *
 *	NEW -> CHECKING -> AUTHORISING -> RUNNING <-> ASKING -> KEPT -> ENDED
 *	          |            |             |          |
 *	          +--- refused, management result, lost: ENDED
 *
 * AUTHORISING <-> CONFIRMING (call_confirm.c): a person has to say yes first.
 *
 * ASKING (call_ask.c): the tool asked its client a question. A modern client
 * (MCP 2026-07-28) has no open request until it calls again with the answer.
 * KEPT: the call ended before the client called again.
 *
 * gatewayd decides nothing here. The credential travels with AUTHORISE, and the
 * answer is an id that works once, for these very arguments, on this listener's
 * socket. So a hostile gatewayd could at most leave the call out. RUN is sent
 * once and never again: if sandboxd goes away before it answers, this process
 * can't know whether the tool ran, so the client is told exactly that ("lost").
 * admind and sandboxd close the call's record without gatewayd.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "call_internal.h"
#include "catalogue.h"
#include "json.h"
#include "json_alike.h"
#include "jsonw.h"
#include "log.h"
#include "mcp_param.h"
#include "name.h"
#include "stream.h"
#include "tasks.h"

static const char *const state_names[] = {"new", "checking", "authorising",
    "confirming", "running", "asking", "kept", "ended"};

/* Starts or stops the timer that limits a run, so that the client gets an
 * answer in time. In the state ASKING sandboxd's timers apply instead. */
static void
late_timer(struct call *c, bool run)
{
	struct timeval tv = {(time_t)(c->limit_ms / 1000),
	    (suseconds_t)(c->limit_ms % 1000 * 1000)};

	if (c->late == NULL)
		return;
	if (run)
		evtimer_add(c->late, &tv);
	else
		evtimer_del(c->late);
}

/* Changes a call's state; no other function does. ENDED frees everything but
 * the call itself. */
void
call_set_state(struct call *c, enum call_state s)
{
	log_event(LOG_LV_DEBUG, "call_state", "%s: %s -> %s", c->tool,
	    state_names[c->state], state_names[s]);
	c->state = s;
	late_timer(c, s == CALL_RUNNING);
	if (s != CALL_ENDED)
		return;
	TAILQ_REMOVE(&c->gw->calls, c, all);
	if (c->quiet != NULL)
		event_free(c->quiet);
	if (c->late != NULL)
		event_free(c->late);
	if (c->again != NULL)
		event_free(c->again);
	c->quiet = c->late = c->again = NULL;
	questions_free(c->questions);
	c->questions = NULL;
	parked_free(c->parked);
	c->parked = NULL;
	call_end_forget(c);
	share_put(c->share);
	c->share = NULL;
}

/* ---- running ---- */

static void
send_cancel(struct call *c)
{
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);
	struct ipc_cancel m = {
	    .execution = c->execution, .failure = FAILURE_KILLED};

	/* If CANCEL can't be sent, sandboxd is gone, and so is a running call.
	 * If the call does not run yet, the context that sandboxd holds for the
	 * call expires by itself. */
	if (sandboxd != NULL)
		ipc_send(sandboxd, IPC_CANCEL, &m);
}

static void
call_result(struct call *c, const struct ipc_call_result *m)
{
	const struct failure_info *fi;
	enum failure f;
	struct ipc_bytes body, meta;

	f = m->failure < FAILURE_COUNT ? (enum failure)m->failure
				       : FAILURE_INTERNAL;
	fi = failure_info(f);
	if (m->body_len > m->body_meta.n || m->outcome < OUTCOME_DONE ||
	    m->outcome > OUTCOME_LOST) {
		call_end_failure(
		    c, FAILURE_INTERNAL, 0, "The sandbox answered nonsense.");
		return;
	}
	body = ipc_bytes(m->body_meta.p, m->body_len);
	meta = ipc_bytes(
	    m->body_meta.p + m->body_len, m->body_meta.n - m->body_len);
	/* Failures of the platform become JSON-RPC errors. The tool's own
	 * failures become results, unless the tool ended the request with an
	 * error (FAILURE_TOOL_PROTOCOL). */
	if (f != FAILURE_NONE && fi->side == FAILURE_PLATFORM &&
	    f != FAILURE_TOOL_PROTOCOL)
		call_end_failure(
		    c, f, f == FAILURE_LOST ? 0 : RETRY_MS, fi->fix);
	else if (body.n > 0)
		call_end_result(c, f, body, meta);
	else
		call_end_failure(c, f != FAILURE_NONE ? f : FAILURE_INTERNAL, 0,
		    fi->fix[0] != '\0' ? fi->fix : "The result is empty.");
}

static void
run_answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct call *c = arg;
	struct ipc_call_event ev;
	struct ipc_call_result res;
	struct refusal r;

	if (f == NULL || f->type != IPC_CALL_EVENT)
		c->request = 0;
	if (f == NULL && gone == FAILURE_UPGRADING) {
		call_end_away(c, true); /* RUN was never sent: see run() */
		return;
	}
	if (f == NULL) {
		/* If the answer is late, the tool is killed in case it still
		 * runs. If sandboxd went away, the tool may have run. */
		if (ipc_client_peer(c->gw->sandboxd) != NULL)
			send_cancel(c);
		call_end_failure(c, FAILURE_LOST, 0,
		    c->gw->sandboxd == NULL /* drain.c */
			? "The server was stopped during the call, which goes "
			  "on; its record says how it ended."
			: "The sandbox went away during the call; the tool may "
			  "have run.");
		return;
	}
	switch (f->type) {
	case IPC_CALL_EVENT:
		if (ipc_decode(f, &ev, NULL) < 0 ||
		    memcmp(&ev.execution, &c->execution,
			sizeof(c->execution)) != 0)
			return; /* events may be lost anyway */
		call_event(c, &ev);
		return;
	case IPC_CALL_RESULT:
		if (ipc_decode(f, &res, NULL) == 0 &&
		    memcmp(&res.execution, &c->execution,
			sizeof(c->execution)) == 0) {
			call_result(c, &res);
			return;
		}
		call_end_failure(
		    c, FAILURE_INTERNAL, 0, "The sandbox answered nonsense.");
		return;
	default:
		refusal_from(&r, f, gone, "sandboxd");
		call_end_refused(c, &r);
		return;
	}
}

static void
quiet_cb(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;

	(void)fd;
	(void)what;
	if (c->ex != NULL)
		exchange_quiet(c->ex);
}

/* Ends a call that sandboxd did not answer in time, because sandboxd hangs. */
static void
late_cb(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;

	(void)fd;
	(void)what;
	if (c->request != 0)
		ipc_forget(c->asked, c->request);
	run_answered(c, NULL, FAILURE_BUSY);
}

/* Drops a call. No client waits for it or will come back for it. */
void
call_drop(struct call *c)
{
	if (c->request != 0) {
		ipc_forget(c->asked, c->request);
		send_cancel(c);
	}
	call_set_state(c, CALL_ENDED);
	free(c);
}

/* Starts the timer of quiet_cb. If there is no memory for the timer, the client
 * waits in silence, which does no harm. */
void
call_watch(struct call *c)
{
	struct timeval tv = {(time_t)(c->gw->quiet_ms / 1000),
	    (suseconds_t)(c->gw->quiet_ms % 1000 * 1000)};

	if (c->quiet == NULL)
		c->quiet = evtimer_new(c->gw->proc.base, quiet_cb, c);
	if (c->quiet != NULL)
		evtimer_add(c->quiet, &tv);
}

static void
run(struct call *c, const struct ipc_run_id *m)
{
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);
	struct ipc_run r = {
	    .execution = m->execution, .arguments = c->ex->m.arguments};
	uint64_t ms = m->timeout_ms;

	c->execution = m->execution;
	if (c->cancelled) {
		send_cancel(c);
		call_end_failure(c, FAILURE_KILLED, 0, call_why_cancelled(c));
		return;
	}
	/* An hour is beyond any limit a call may have. */
	if (ms > 3600 * 1000)
		ms = 3600 * 1000;
	c->limit_ms = ms + RUN_MARGIN_MS;
	c->late = evtimer_new(c->gw->proc.base, late_cb, c);
	c->asked = sandboxd;
	call_set_state(c, CALL_RUNNING);
	call_watch(c);
	/* The time-out of the IPC request counts from here and includes the
	 * time for questions. If the tool asks nothing, late_cb comes first. */
	if (sandboxd == NULL ||
	    ipc_request(sandboxd, IPC_RUN, &r,
		(int)ms + RUN_MARGIN_MS + PARK_TOTAL_MS, run_answered, c,
		&c->request) < 0)
		/* RUN was not sent, so the tool can't have run. The context
		 * that sandboxd holds for the call expires and counts as
		 * refused. */
		call_end_away(c, true);
}

/* ---- authorising ---- */

static void
management_result(struct call *c, const struct ipc_result *m)
{
	enum failure f = FAILURE_NONE;
	struct ipc_bytes meta = {NULL, 0};
	struct jsonw w;
	struct buf b;

	buf_init(&b, 4096);
	if (m->is_error) {
		f = m->failure > FAILURE_NONE && m->failure < FAILURE_COUNT
		    ? (enum failure)m->failure
		    : FAILURE_INTERNAL;
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		jsonw_name(&w, "mcpbox/failure");
		jsonw_obj(&w);
		jsonw_kv_str(&w, "failure_mode", failure_info(f)->name);
		jsonw_kv_strn(&w, "fix", m->fix.p, m->fix.n);
		jsonw_obj_end(&w);
		jsonw_obj_end(&w);
		if (!b.failed)
			meta = ipc_bytes(b.p, b.len);
	}
	call_end_result(c, f, m->body, meta);
	buf_free(&b);
}

/* True if admind may make a task of the call. */
static bool
may_be_task(const struct exchange *ex)
{
	return ex->m.modern && ex->m.method == MCP_TOOLS_CALL &&
	    (ex->m.declared & CLIENT_TASKS) != 0;
}

static void
authorised(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct call *c = arg;
	struct ipc_run_id id;
	struct ipc_result res;
	struct ipc_task_state task;
	struct ipc_pending pending;
	struct exchange *ex;
	struct refusal r;

	if (f == NULL) {
		/*
		 * The call may have been done if it is of a management tool or
		 * may be a task, because admind runs these tools and begins
		 * tasks by itself. Any other tool can't have run, since the id
		 * for RUN never came here. FAILURE_UPGRADING: AUTHORISE was
		 * never sent, so nothing was done.
		 */
		if (gone != FAILURE_UPGRADING &&
		    (name_is_management(c->ex->m.tool) || may_be_task(c->ex)))
			call_end_failure(c, FAILURE_LOST, 0,
			    "The control daemon (admind) went away during the "
			    "call; it may have been done.");
		else
			call_end_failure(c,
			    gone == FAILURE_UPGRADING || c->gw->admind == NULL
				? FAILURE_UPGRADING
				: FAILURE_BUSY,
			    RETRY_MS,
			    c->gw->admind == NULL
				? "The server was stopped before the tool was "
				  "run."
				: "The control daemon (admind) went away "
				  "before the tool was run; it is "
				  "restarting.");
		return;
	}
	if (f->type == IPC_PENDING && ipc_decode(f, &pending, NULL) == 0) {
		call_confirm(c, &pending);
		return;
	}
	/* The conversation about the approval is over. Questions of the tool
	 * begin another conversation. */
	parked_free(c->parked);
	c->parked = NULL;
	if (f->type == IPC_RUN_ID && ipc_decode(f, &id, NULL) == 0) {
		run(c, &id);
	} else if (f->type == IPC_RESULT && ipc_decode(f, &res, NULL) == 0) {
		management_result(c, &res);
	} else if (f->type == IPC_TASK_STATE &&
	    ipc_decode(f, &task, NULL) == 0) {
		ex = c->ex;
		call_set_state(c, CALL_ENDED);
		free(c);
		ex->call = NULL;
		tasks_created(ex, &task);
	} else {
		refusal_from(&r, f, gone, "admind");
		if (r.failure == FAILURE_UNAUTHENTICATED ||
		    r.failure == FAILURE_FORBIDDEN)
			identity_cache_drop(c->gw->identities);
		call_end_refused(c, &r);
	}
}

void
call_authorise(struct call *c)
{
	struct exchange *ex = c->ex;
	struct ipc_peer *admind = ipc_client_peer(c->gw->admind);
	struct ipc_authorise m = {.credential = ipc_str(ex->credential.text),
	    .via = ex->credential.via,
	    .endpoint = ipc_str(ex->credential.endpoint),
	    .by_name = ex->m.by_name,
	    .method = (uint8_t)exchange_call_method(ex),
	    .tool = ipc_str(ex->m.tool),
	    .approval = c->approval,
	    .protocol = ipc_str(mcp_rev_text(ex->m.rev)),
	    .trace = ex->m.trace,
	    .arguments = ex->m.arguments};
	char client[MCP_CLIENT_MAX + 1] = "";
	uint64_t id;

	/* A legacy request does not name its client, so User-Agent is used. */
	if (ex->m.client[0] != '\0')
		memcpy(client, ex->m.client, sizeof(client));
	else if (ex->agent != NULL)
		snprintf(client, sizeof(client), "%s", ex->agent);
	m.client = ipc_str(client);
	json_alike(m.arguments, &m.alike);
	m.declared = ex->m.declared;
	if (ex->has_session)
		m.session = ex->session.id;
	if (may_be_task(ex))
		m.task = TASK_MAY;
	m.capabilities =
	    ex->m.capabilities.n > 0 ? ex->m.capabilities : ipc_bytes("{}", 2);
	call_set_state(c, CALL_AUTHORISING);
	if (admind == NULL ||
	    ipc_request(admind, IPC_AUTHORISE, &m, AUTHORISE_MS, authorised, c,
		&id) < 0)
		call_end_away(c, false);
}

/* ---- before AUTHORISE: step 11 (mcp_request.h) ---- */

/*
 * A tool that is in no list may still be callable by its name: at an endpoint
 * of mode `search`, or if it was approved a moment ago. Nothing says which of
 * its arguments a field mirrors. So no such field is accepted then: a proxy
 * that decides by it could be told something else than the arguments say.
 */
static const char *
header(void *arg, const char *name)
{
	return http1_field(arg, name, NULL);
}

/* Returns the name of a field that mirrors an argument, or NULL. */
static const char *
mirror(const struct http1_request *r)
{
	for (size_t i = 0; i < r->nfields; i++)
		if (strncmp(r->fields[i].name, MCP_PARAM_FIELD,
			strlen(MCP_PARAM_FIELD)) == 0)
			return r->fields[i].name;
	return NULL;
}

static void
checked(void *arg, const struct catalogue *cat, const struct refusal *no)
{
	struct call *c = arg;
	struct exchange *ex = c->ex;
	struct answer_to to = exchange_to(ex);
	struct mcp_error e = {.failure = FAILURE_NONE};
	const struct catalogue_item *tool;
	const char *field;
	struct buf b;
	int rc = 0;

	if (cat == NULL) {
		call_end_refused(c, no);
		return;
	}
	if (c->cancelled || ex->req == NULL) {
		call_end_failure(c, FAILURE_KILLED, 0, call_why_cancelled(c));
		return;
	}
	tool = catalogue_item_named(cat, MCP_LIST_TOOLS, ex->m.tool);
	field = tool == NULL ? mirror(httpd_request(ex->req)) : NULL;
	if (field != NULL)
		rc = mcp_param_unlisted(field, &e);
	else if (tool != NULL && tool->marked)
		rc = mcp_param_check(
		    catalogue_item_json(&cat->part[MCP_LIST_TOOLS], tool),
		    ex->m.arguments, header,
		    (void *)(uintptr_t)httpd_request(ex->req), &e);
	if (rc < 0) {
		buf_init(&b, ANSWER_MAX);
		answer_refusal(&b, &to, &e);
		call_end_answer(c, e.status, &b);
		return;
	}
	call_authorise(c);
}

void
call_start(struct exchange *ex)
{
	struct gateway *gw = ex->gw;
	struct refusal r;
	struct call *c;

	/* This request goes on with a call that waits for its client. */
	if (ex->m.request_state.n > 0) {
		if (ex->req == NULL) {
			/* The client has left already. Its requestState stays
			 * valid. */
			refusal_set(
			    &r, FAILURE_KILLED, 0, "The client cancelled.");
			exchange_refuse(ex, &r);
		} else if (parked_resume(ex, &r) < 0) {
			exchange_refuse(ex, &r);
		}
		return;
	}
	if (ex->m.arguments.n > ARGUMENTS_MAX) {
		refusal_set(&r, FAILURE_LIMIT, 0,
		    "The arguments are too large: the limit "
		    "argument_bytes is 1048576 bytes.");
		exchange_refuse(ex, &r);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		refusal_set(&r, FAILURE_BUSY, RETRY_MS, "Out of memory.");
		exchange_refuse(ex, &r);
		return;
	}
	c->gw = gw;
	c->ex = ex;
	c->share = share_ref(ex->share);
	memcpy(c->tool, ex->m.tool, sizeof(c->tool));
	ex->call = c;
	TAILQ_INSERT_TAIL(&gw->calls, c, all);
	/* If mcpbox_call_tool named the tool (by_name), no header mirrors the
	 * tool's arguments, so there is nothing to compare. */
	if (ex->m.modern && ex->m.method == MCP_TOOLS_CALL && !ex->m.by_name) {
		call_set_state(c, CALL_CHECKING);
		catalogue_ask(gw, ex->who.permission_set, checked, c);
	} else {
		call_authorise(c);
	}
}

/* ---- cancelling ---- */

const char *
call_why_cancelled(const struct call *c)
{
	return c->ex != NULL && c->ex->ended
	    ? "The credential of this call ended."
	    : "The client cancelled.";
}

/* Cancels a call. The answer still comes in the usual way, because a killed
 * call has a result, too. A call that has no execution id yet is cancelled when
 * the id comes. */
void
call_cancel(struct call *c)
{
	if (c->cancelled)
		return;
	c->cancelled = true;
	if (c->state == CALL_RUNNING || c->state == CALL_ASKING)
		send_cancel(c);
	else if (c->state == CALL_CONFIRMING)
		call_confirm_end(c);
}

void
call_cancel_by_id(
    struct gateway *gw, const struct session *s, struct ipc_bytes id)
{
	struct call *c, *next;
	const struct exchange *ex;

	for (c = TAILQ_FIRST(&gw->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, all);
		ex = c->ex;
		if (ex != NULL && !ex->m.modern && ex->has_session &&
		    memcmp(&ex->session.id, &s->id, sizeof(s->id)) == 0 &&
		    ex->m.id.n == id.n && memcmp(ex->m.id.p, id.p, id.n) == 0)
			call_cancel(c);
	}
}

/* Ends the calls that wait for approval or for an absent client, because this
 * process ends: no request comes any more that would end them. */
void
call_drop_all(struct gateway *gw)
{
	struct call *c, *next;

	for (c = TAILQ_FIRST(&gw->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, all);
		if (c->state == CALL_CONFIRMING)
			call_confirm_end(c);
		else if (c->ex == NULL)
			call_drop(c);
	}
}
