/*
 * One tools/call: AUTHORISE at admind, RUN at sandboxd, the answer.
 *
 *	NEW -> CHECKING -> AUTHORISING -> RUNNING -> ENDED
 *	          |            |             |
 *	          +--- refused, management result, lost: ENDED
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

#include "gateway.h"
#include "json.h"
#include "jsonw.h"
#include "log.h"
#include "mcp_param.h"

enum call_state {
	CALL_NEW,
	CALL_CHECKING,
	CALL_AUTHORISING,
	CALL_RUNNING,
	CALL_ENDED
};

struct call {
	TAILQ_ENTRY(call) all;
	struct gateway *gw;
	struct exchange *ex;
	enum call_state state;
	bool cancelled; /* its client asked; CANCEL as soon as there is an id */
	struct ipc_id execution; /* from RUNNING on */
	struct event *quiet;     /* RUNNING: nothing was heard for a while */
};

static const char *const state_names[] = {
    "new", "checking", "authorising", "running", "ended"};

/* The only place where a call changes state. */
static void
set_state(struct call *c, enum call_state s)
{
	log_event(LOG_LV_DEBUG, "call_state", "%s: %s -> %s", c->ex->m.tool,
	    state_names[c->state], state_names[s]);
	c->state = s;
	if (s != CALL_ENDED)
		return;
	TAILQ_REMOVE(&c->gw->calls, c, all);
	if (c->quiet != NULL)
		event_free(c->quiet);
	c->quiet = NULL;
}

/* Ends the call; the exchange takes the answer. */
static void
end_answer(struct call *c, int status, struct buf *b)
{
	struct exchange *ex = c->ex;

	set_state(c, CALL_ENDED);
	free(c);
	exchange_answer(ex, status, b);
}

static void
end_refused(struct call *c, const struct refusal *r)
{
	struct exchange *ex = c->ex;

	set_state(c, CALL_ENDED);
	free(c);
	ex->call = NULL;
	exchange_refuse(ex, r);
}

static void
end_failure(struct call *c, enum failure f, uint64_t retry_ms, const char *text)
{
	struct refusal r;

	refusal_set(&r, f, retry_ms, text);
	end_refused(c, &r);
}

static void
end_away(struct call *c, bool sandboxd)
{
	struct refusal r;

	refusal_away(&r, c->gw, sandboxd);
	end_refused(c, &r);
}

/* A result from elsewhere; f: why it is an isError result, or NONE. */
static void
end_result(struct call *c, enum failure f, struct ipc_bytes body,
    struct ipc_bytes meta)
{
	struct answer_to to = exchange_to(c->ex);
	enum call_method method = exchange_call_method(c->ex);
	struct buf b;
	int rc;

	buf_init(&b, ANSWER_MAX);
	if (f != FAILURE_NONE && method != CALL_TOOL)
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
	    "the result of %s is not what a result may be", c->ex->m.tool);
	end_failure(c, FAILURE_INTERNAL, 0,
	    "The result is not a JSON object that can be passed on.");
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
	struct ipc_bytes token = c->ex->m.progress_token;
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
	/* Failures of the platform are errors; the tool's own are results. */
	if (f != FAILURE_NONE && fi->side == FAILURE_PLATFORM)
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
		if (ev.kind == 1)
			progress(c, ev.json);
		else if (ev.kind == 2)
			log_line(c, ev.json);
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
		end_refused(c, &r);
		return;
	}
}

static void
quiet_cb(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;

	(void)fd;
	(void)what;
	exchange_quiet(c->ex);
}

/* Without memory for it the client waits in silence: no harm. */
static void
watch(struct call *c)
{
	struct timeval tv = {(time_t)(c->gw->quiet_ms / 1000),
	    (suseconds_t)(c->gw->quiet_ms % 1000 * 1000)};

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
	uint64_t id, ms = m->timeout_ms;

	c->execution = m->execution;
	if (c->cancelled) {
		send_cancel(c);
		end_failure(c, FAILURE_KILLED, 0, "The client cancelled.");
		return;
	}
	/* An hour is beyond any limit a call may have. */
	if (ms > 3600 * 1000)
		ms = 3600 * 1000;
	set_state(c, CALL_RUNNING);
	watch(c);
	if (sandboxd == NULL ||
	    ipc_request(sandboxd, IPC_RUN, &r, (int)ms + RUN_MARGIN_MS,
		run_answered, c, &id) < 0)
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
	if (f->type == IPC_RUN_ID && ipc_decode(f, &id, NULL) == 0) {
		run(c, &id);
	} else if (f->type == IPC_RESULT && ipc_decode(f, &res, NULL) == 0) {
		management_result(c, &res);
	} else {
		refusal_from(&r, f, gone, "admind");
		if (r.failure == FAILURE_UNAUTHENTICATED ||
		    r.failure == FAILURE_FORBIDDEN)
			identity_cache_drop(c->gw->identities);
		end_refused(c, &r);
	}
}

static void
authorise(struct call *c)
{
	struct exchange *ex = c->ex;
	struct ipc_peer *admind = ipc_client_peer(c->gw->admind);
	struct ipc_authorise m = {.credential = ipc_str(ex->credential),
	    .method = (uint8_t)exchange_call_method(ex),
	    .tool = ipc_str(ex->m.tool),
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
	m.capabilities =
	    ex->m.capabilities.n > 0 ? ex->m.capabilities : ipc_bytes("{}", 2);
	set_state(c, CALL_AUTHORISING);
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
		end_refused(c, no);
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
	authorise(c);
}

void
call_start(struct exchange *ex)
{
	struct gateway *gw = ex->gw;
	struct refusal r;
	struct call *c;

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
	ex->call = c;
	TAILQ_INSERT_TAIL(&gw->calls, c, all);
	if (ex->m.modern && ex->m.method == MCP_TOOLS_CALL) {
		set_state(c, CALL_CHECKING);
		catalogue_ask(gw, ex->who.permission_set, checked, c);
	} else {
		authorise(c);
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
	if (c->state == CALL_RUNNING)
		send_cancel(c);
}

void
call_cancel_by_id(
    struct gateway *gw, const struct session *s, struct ipc_bytes id)
{
	struct call *c;
	const struct exchange *ex;

	TAILQ_FOREACH(c, &gw->calls, all)
	{
		ex = c->ex;
		if (!ex->m.modern && ex->has_session &&
		    memcmp(&ex->session.id, &s->id, sizeof(s->id)) == 0 &&
		    ex->m.id.n == id.n && memcmp(ex->m.id.p, id.p, id.n) == 0)
			call_cancel(c);
	}
}
