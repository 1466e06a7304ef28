/*
 * One tools/call: AUTHORISE at admind, RUN at sandboxd, the answer.
 *
 *	NEW -> CHECKING -> AUTHORISING -> RUNNING <-> ASKING -> KEPT -> ENDED
 *	          |            |             |          |
 *	          +--- refused, management result, lost: ENDED
 *
 * AUTHORISING <-> CONFIRMING (call_confirm.c): a person has to say yes first.
 *
 * ASKING (call_ask.c): the tool asked its client; on the modern wire no request
 * of the client's is there meanwhile. KEPT: it ended during that.
 *
 * gatewayd decides nothing here. The credential travels with AUTHORISE, and
 * what comes back is an id that works once, for these very arguments, on this
 * listener's socket; a hostile gatewayd could at most not run it. RUN is sent
 * once and never again: if sandboxd goes away in between, nobody here can
 * know whether the tool ran, so the client is told exactly that ("lost"), and
 * the record is closed by admind and sandboxd without us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "call_internal.h"
#include "json.h"
#include "jsonw.h"
#include "log.h"
#include "mcp_param.h"
#include "stream.h"
#include "tasks.h"

static const char *const state_names[] = {"new", "checking", "authorising",
    "confirming", "running", "asking", "kept", "ended"};

/* A run's answer in time is what the limit promises; while the client is asked
 * the sandbox's clocks count instead. */
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

static void
kept_free(struct call_kept *k)
{
	if (k == NULL)
		return;
	buf_free(&k->body);
	buf_free(&k->meta);
	free(k);
}

/* The only place where a call changes state. ENDED releases all but the call
 * itself. */
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
	if (c->kept != NULL)
		c->gw->kept_bytes -= c->kept->body.len + c->kept->meta.len;
	kept_free(c->kept);
	c->kept = NULL;
}

/* Ends the call; the exchange takes the answer. */
static void
end_answer(struct call *c, int status, struct buf *b)
{
	struct exchange *ex = c->ex;

	call_set_state(c, CALL_ENDED);
	free(c);
	exchange_answer(ex, status, b);
}

/*
 * It ended while its client is away: kept until that is back or too late, and
 * so long as not too much is kept. Without memory the client is told that the
 * state it brings is no good.
 */
static void
keep(struct call *c, const struct refusal *r, enum failure f,
    struct ipc_bytes body, struct ipc_bytes meta)
{
	struct call_kept *k = calloc(1, sizeof(*k));

	c->request = 0;
	if (k == NULL) {
		call_drop(c);
		return;
	}
	buf_init(&k->body, body.n + 1);
	buf_init(&k->meta, meta.n + 1);
	if (r == NULL &&
	    c->gw->kept_bytes + body.n + meta.n <= KEPT_BYTES_MAX) {
		buf_put(&k->body, body.p, body.n);
		buf_put(&k->meta, meta.p, meta.n);
	}
	k->failure = f;
	k->refused =
	    r != NULL || k->body.len == 0 || k->body.failed || k->meta.failed;
	if (r != NULL)
		k->refusal = *r;
	else if (k->refused)
		refusal_set(&k->refusal, FAILURE_LOST, 0,
		    "The call ended while its client was away, and its result "
		    "could not be kept.");
	c->gw->kept_bytes += k->body.len + k->meta.len;
	c->kept = k;
	call_set_state(c, CALL_KEPT);
}

void
call_end_refused(struct call *c, const struct refusal *r)
{
	struct exchange *ex = c->ex;

	if (ex == NULL) {
		keep(c, r, r->failure, ipc_bytes(NULL, 0), ipc_bytes(NULL, 0));
		return;
	}
	call_set_state(c, CALL_ENDED);
	free(c);
	ex->call = NULL;
	exchange_refuse(ex, r);
}

static void
end_failure(struct call *c, enum failure f, uint64_t retry_ms, const char *text)
{
	struct refusal r;

	refusal_set(&r, f, retry_ms, text);
	call_end_refused(c, &r);
}

static void
end_away(struct call *c, bool sandboxd)
{
	struct refusal r;

	refusal_away(&r, c->gw, sandboxd);
	call_end_refused(c, &r);
}

/* A result from elsewhere; f: why it is an isError result, or NONE. */
static void
end_result(struct call *c, enum failure f, struct ipc_bytes body,
    struct ipc_bytes meta)
{
	struct answer_to to;
	enum call_method method;
	struct buf b;
	int rc;

	if (c->ex == NULL) {
		keep(c, NULL, f, body, meta);
		return;
	}
	to = exchange_to(c->ex);
	method = exchange_call_method(c->ex);
	buf_init(&b, ANSWER_MAX);
	if (f != FAILURE_NONE &&
	    (method != CALL_TOOL || f == FAILURE_TOOL_PROTOCOL))
		rc = answer_failed_call(&b, &to, f, body, meta, c->ex->m.uri);
	else if (method == CALL_RESOURCE)
		rc = answer_resource(
		    &b, &to, body, meta, c->ex->m.uri, c->ex->ttl_ms);
	else
		rc = answer_call(&b, &to, body, meta);
	if (rc == 0) {
		end_answer(c, 200, &b);
		return;
	}
	buf_free(&b);
	log_event(LOG_LV_ERR, "bad_result",
	    "the result of %s is not what a result may be", c->tool);
	end_failure(c, FAILURE_INTERNAL, 0,
	    "The result is not a JSON object that can be passed on.");
}

void
call_tell_kept(struct call *c)
{
	struct call_kept k = *c->kept;
	struct refusal r = k.refusal;

	/* Taken out: the call ends, and frees what it has. */
	c->gw->kept_bytes -= k.body.len + k.meta.len;
	free(c->kept);
	c->kept = NULL;
	if (k.refused)
		call_end_refused(c, &r);
	else
		end_result(c, k.failure, ipc_bytes(k.body.p, k.body.len),
		    ipc_bytes(k.meta.p, k.meta.len));
	buf_free(&k.body);
	buf_free(&k.meta);
}

/* ---- running ---- */

static void
send_cancel(struct call *c)
{
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);
	struct ipc_cancel m = {
	    .execution = c->execution, .failure = FAILURE_KILLED};

	/* If it can't be sent, sandboxd is gone and the call with it, or the
	 * held context expires by itself. */
	if (sandboxd != NULL)
		ipc_send(sandboxd, IPC_CANCEL, &m);
}

/* {"progressToken":T, ...}: the token is the client's business, sandboxd and
 * the tool never see it. */
static void
progress(struct call *c, struct ipc_bytes params)
{
	static const char *const path[] = {"progressToken", NULL};
	struct ipc_bytes token =
	    c->ex != NULL ? c->ex->m.progress_token : ipc_bytes(NULL, 0);
	const uint8_t *p;
	struct buf b;
	size_t n;

	if (token.n == 0 || params.n < 2 || params.p[0] != '{' ||
	    json_scan(params.p, params.n, NULL) < 0 ||
	    json_slice(params.p, params.n, path, &p, &n) == 1)
		return;
	buf_init(&b, IPC_FRAME_MAX * 2);
	buf_puts(&b, "{\"progressToken\":");
	buf_put(&b, token.p, token.n);
	buf_putc(&b, ',');
	buf_put(&b, params.p + 1, params.n - 1);
	if (!b.failed)
		exchange_notify(
		    c->ex, "notifications/progress", ipc_bytes(b.p, b.len));
	buf_free(&b);
}

/* From which level on this request wants log lines; -1: none. A modern one says
 * so itself; a legacy one by its session, and without a session can't. */
static int
log_level(const struct exchange *ex)
{
	if (ex == NULL)
		return -1; /* away: nobody hears it */
	if (ex->m.modern)
		return ex->m.log_level;
	return ex->has_session
	    ? session_state_level(ex->gw->states, &ex->session.id)
	    : -1;
}

static void
log_line(struct call *c, struct ipc_bytes params)
{
	static const char *const path[] = {"level", NULL};
	static const char *const levels[] = {"\"debug\"", "\"info\"",
	    "\"notice\"", "\"warning\"", "\"error\"", "\"critical\"",
	    "\"alert\"", "\"emergency\""};
	const uint8_t *p;
	size_t n;
	int i, least = log_level(c->ex);

	if (least < 0 || json_scan(params.p, params.n, NULL) < 0 ||
	    json_slice(params.p, params.n, path, &p, &n) != 1)
		return;
	for (i = 7; i >= 0; i--)
		if (n == strlen(levels[i]) && memcmp(p, levels[i], n) == 0)
			break;
	if (i >= least)
		exchange_notify(c->ex, "notifications/message", params);
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
		end_failure(
		    c, FAILURE_INTERNAL, 0, "The sandbox answered nonsense.");
		return;
	}
	body = ipc_bytes(m->body_meta.p, m->body_len);
	meta = ipc_bytes(
	    m->body_meta.p + m->body_len, m->body_meta.n - m->body_len);
	/* Failures of the platform are errors; the tool's own are results,
	 * unless it said otherwise. */
	if (f != FAILURE_NONE && fi->side == FAILURE_PLATFORM &&
	    f != FAILURE_TOOL_PROTOCOL)
		end_failure(c, f, f == FAILURE_LOST ? 0 : RETRY_MS, fi->fix);
	else if (body.n > 0)
		end_result(c, f, body, meta);
	else
		end_failure(c, f != FAILURE_NONE ? f : FAILURE_INTERNAL, 0,
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
	if (f == NULL) {
		/* Too late: kill it, if it still runs. Gone: it may have run.
		 */
		if (ipc_client_peer(c->gw->sandboxd) != NULL)
			send_cancel(c);
		(void)gone;
		end_failure(c, FAILURE_LOST, 0,
		    "The sandbox went away during the call; the tool may have "
		    "run.");
		return;
	}
	switch (f->type) {
	case IPC_CALL_EVENT:
		if (ipc_decode(f, &ev, NULL) < 0 ||
		    memcmp(&ev.execution, &c->execution,
			sizeof(c->execution)) != 0)
			return; /* lossy anyway */
		if (ev.kind == CALL_EVENT_PROGRESS)
			progress(c, ev.json);
		else if (ev.kind == CALL_EVENT_LOG)
			log_line(c, ev.json);
		else if (ev.kind == CALL_EVENT_ASK)
			call_ask_questions(c, &ev);
		else if (ev.kind == CALL_EVENT_PAUSE && c->ex != NULL)
			stream_post_pause(c->ex, ev.json);
		return;
	case IPC_CALL_RESULT:
		if (ipc_decode(f, &res, NULL) == 0 &&
		    memcmp(&res.execution, &c->execution,
			sizeof(c->execution)) == 0) {
			call_result(c, &res);
			return;
		}
		end_failure(
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

/* Sandboxd answers each call in its time, unless it hangs. */
static void
late_cb(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);

	(void)fd;
	(void)what;
	if (sandboxd != NULL && c->request != 0)
		ipc_forget(sandboxd, c->request);
	run_answered(c, NULL, FAILURE_BUSY);
}

/* Nobody is there to be told, and nobody will come. */
void
call_drop(struct call *c)
{
	struct ipc_peer *sandboxd = ipc_client_peer(c->gw->sandboxd);

	if (c->request != 0 && sandboxd != NULL) {
		ipc_forget(sandboxd, c->request);
		send_cancel(c);
	}
	call_set_state(c, CALL_ENDED);
	free(c);
}

/* Without memory for it the client waits in silence: no harm. */
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
		end_failure(c, FAILURE_KILLED, 0, "The client cancelled.");
		return;
	}
	/* An hour is beyond any limit a call may have. */
	if (ms > 3600 * 1000)
		ms = 3600 * 1000;
	c->limit_ms = ms + RUN_MARGIN_MS;
	c->late = evtimer_new(c->gw->proc.base, late_cb, c);
	call_set_state(c, CALL_RUNNING);
	call_watch(c);
	/* The time-out of the request itself counts from here, questions and
	 * all; late_cb comes first where it should. */
	if (sandboxd == NULL ||
	    ipc_request(sandboxd, IPC_RUN, &r,
		(int)ms + RUN_MARGIN_MS + PARK_TOTAL_MS, run_answered, c,
		&c->request) < 0)
		/* Never sent: it can't have run, and the held context expires
		 * as refused. */
		end_away(c, true);
}

/* ---- authorising ---- */

static void
management_result(struct call *c, const struct ipc_result *m)
{
	const struct failure_info *fi;
	enum failure f = FAILURE_NONE;
	struct ipc_bytes meta = {NULL, 0};
	struct jsonw w;
	struct buf b;

	buf_init(&b, 4096);
	if (m->is_error) {
		f = m->failure > FAILURE_NONE && m->failure < FAILURE_COUNT
		    ? (enum failure)m->failure
		    : FAILURE_INTERNAL;
		fi = failure_info(f);
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		jsonw_name(&w, "mcpbox/failure");
		jsonw_obj(&w);
		jsonw_kv_str(&w, "failure_mode", fi->name);
		jsonw_kv_str(&w, "fix", fi->fix);
		jsonw_obj_end(&w);
		jsonw_obj_end(&w);
		if (!b.failed)
			meta = ipc_bytes(b.p, b.len);
	}
	end_result(c, f, m->body, meta);
	buf_free(&b);
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
		/* A management tool may have done its work; any other can't
		 * have run, since nobody got its id. */
		if (strncmp(c->ex->m.tool, "mcpbox_", 7) == 0)
			end_failure(c, FAILURE_LOST, 0,
			    "The control daemon (admind) went away during the "
			    "call; it may have been done.");
		else
			end_failure(c,
			    gone == FAILURE_UPGRADING ? gone : FAILURE_BUSY,
			    RETRY_MS,
			    "The control daemon (admind) went away before the "
			    "tool was run; it is restarting.");
		return;
	}
	if (f->type == IPC_PENDING && ipc_decode(f, &pending, NULL) == 0) {
		call_confirm(c, &pending);
		return;
	}
	/* The tool's own conversation is another. */
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
	struct ipc_authorise m = {.credential = ipc_str(ex->credential),
	    .method = (uint8_t)exchange_call_method(ex),
	    .tool = ipc_str(ex->m.tool),
	    .approval = c->approval,
	    .protocol = ipc_str(mcp_request_rev_text(ex->m.rev)),
	    .arguments = ex->m.arguments};
	char client[MCP_CLIENT_MAX + 1] = "";
	uint64_t id;

	/* Legacy requests don't name their client; its HTTP library does. */
	if (ex->m.client[0] != '\0')
		memcpy(client, ex->m.client, sizeof(client));
	else if (ex->agent != NULL)
		snprintf(client, sizeof(client), "%s", ex->agent);
	m.client = ipc_str(client);
	m.declared = ex->m.declared;
	if (ex->m.modern && ex->m.method == MCP_TOOLS_CALL &&
	    (ex->m.declared & CLIENT_TASKS) != 0)
		m.task = TASK_MAY;
	m.capabilities =
	    ex->m.capabilities.n > 0 ? ex->m.capabilities : ipc_bytes("{}", 2);
	call_set_state(c, CALL_AUTHORISING);
	if (admind == NULL ||
	    ipc_request(admind, IPC_AUTHORISE, &m, AUTHORISE_MS, authorised, c,
		&id) < 0)
		end_away(c, false);
}

/* ---- before: step 11, for tools that ask for it ---- */

static const char *
header(void *arg, const char *name)
{
	return http1_field(arg, name, NULL);
}

static void
checked(void *arg, const struct catalogue *cat, const struct refusal *no)
{
	struct call *c = arg;
	struct exchange *ex = c->ex;
	struct answer_to to = exchange_to(ex);
	struct mcp_error e = {FAILURE_NONE, 0, "", ""};
	const struct catalogue_item *tool;
	struct buf b;

	if (cat == NULL) {
		call_end_refused(c, no);
		return;
	}
	if (c->cancelled || ex->req == NULL) {
		end_failure(c, FAILURE_KILLED, 0, "The client cancelled.");
		return;
	}
	tool = catalogue_item_named(cat, MCP_LIST_TOOLS, ex->m.tool);
	if (tool != NULL && tool->marked &&
	    mcp_param_check(
		catalogue_item_json(&cat->part[MCP_LIST_TOOLS], tool),
		ex->m.arguments, header,
		(void *)(uintptr_t)httpd_request(ex->req), &e) < 0) {
		buf_init(&b, ANSWER_MAX);
		answer_refusal(&b, &to, &e);
		end_answer(c, e.status, &b);
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

	/* A request that goes on with one that waits. */
	if (ex->m.request_state.n > 0) {
		if (ex->req == NULL) {
			/* Left already: its state is still good. */
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
	memcpy(c->tool, ex->m.tool, sizeof(c->tool));
	ex->call = c;
	TAILQ_INSERT_TAIL(&gw->calls, c, all);
	if (ex->m.modern && ex->m.method == MCP_TOOLS_CALL) {
		call_set_state(c, CALL_CHECKING);
		catalogue_ask(gw, ex->who.permission_set, checked, c);
	} else {
		call_authorise(c);
	}
}

/* ---- cancelling ---- */

/* The answer still comes by the usual way: a killed call has a result, too,
 * and one whose id is not here yet is cancelled when it is. */
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

/* At the end: those whose clients are away have nobody who would end them. */
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
