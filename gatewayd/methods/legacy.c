/* The legacy era: 2025-03-26, 2025-06-18, 2025-11-25. Serves sessions, and the
 * methods that both eras have. */
#include "call.h"
#include "ids.h"
#include "methods.h"
#include "stream.h"

/* Returns the revision that the client offered if it is a legacy revision, else
 * the newest legacy revision (MCP lifecycle, version negotiation). A modern
 * revision is not negotiated here. */
static enum mcp_rev
negotiate(const char *offered)
{
	int rev = mcp_rev_of(offered);

	return rev >= 0 && rev <= MCP_REV_LEGACY_NEWEST ? (enum mcp_rev)rev
							: MCP_REV_LEGACY_NEWEST;
}

static void
initialize(struct exchange *ex)
{
	struct gateway *gw = ex->gw;
	struct answer_to to = exchange_to(ex);
	char token[SESSION_TEXT_LEN + 1];
	enum mcp_rev rev = negotiate(ex->m.offered);
	struct session s;
	struct buf b;

	/* Without the session key no session can be made. The client then goes
	 * on without a session and is served in the same way. */
	if (gw->has_key && ex->req != NULL) {
		session_make(gw->session_key, (uint8_t)gw->listener, rev,
		    now_us() / 1000 + gw->session_ttl_ms, ex->who.principal,
		    ex->credential.endpoint, ex->m.declared, &s, token);
		httpd_header(ex->req, "Mcp-Session-Id", token);
	}
	buf_init(&b, ANSWER_MAX);
	answer_initialize(&b, &to, rev, exchange_instructions(ex));
	exchange_answer(ex, 200, &b);
}

bool
legacy_serve_common(struct exchange *ex)
{
	switch (ex->m.method) {
	case MCP_TOOLS_LIST:
	case MCP_PROMPTS_LIST:
	case MCP_RESOURCES_LIST:
	case MCP_TEMPLATES_LIST:
		listing_serve(ex);
		return true;
	case MCP_TOOLS_CALL:
	case MCP_PROMPTS_GET:
		call_start(ex);
		return true;
	case MCP_RESOURCES_READ:
		resource_read(ex);
		return true;
	case MCP_COMPLETE:
		complete_serve(ex);
		return true;
	default:
		return false;
	}
}

/* Sets the level from which on a session gets logs. Without a session the
 * request is refused, because no logs are sent and the client would wait for
 * them. */
static void
set_level(struct exchange *ex)
{
	struct answer_to to = exchange_to(ex);
	struct refusal no;
	struct buf b;

	if (!ex->has_session) {
		exchange_error(ex, 200, FAILURE_INVALID_REQUEST,
		    "A log level is of a session: send initialize first.",
		    NULL);
		return;
	}
	if (session_state_set_level(ex->gw->states, &ex->session, ex->m.level) <
	    0) {
		refusal_set(&no, FAILURE_BUSY, RETRY_MS, "Out of memory.");
		exchange_refuse(ex, &no);
		return;
	}
	buf_init(&b, ANSWER_MAX);
	answer_empty(&b, &to);
	exchange_answer(ex, 200, &b);
}

void
legacy_serve(struct exchange *ex)
{
	struct answer_to to = exchange_to(ex);
	struct buf b;

	buf_init(&b, ANSWER_MAX);
	if (ex->m.kind == MCP_RESPONSE) {
		(void)call_ask_response(
		    ex); /* 202 even if no call waits for the response */
		exchange_answer(ex, 202, &b);
		return;
	}
	if (ex->m.kind == MCP_NOTIFICATION) {
		/* A request id is unique only within a session. */
		if (ex->m.method == MCP_CANCELLED && ex->has_session &&
		    ex->m.cancel_id.n > 0)
			call_cancel_by_id(
			    ex->gw, &ex->session, ex->m.cancel_id);
		exchange_answer(ex, 202, &b);
		return;
	}
	switch (ex->m.method) {
	case MCP_INITIALIZE:
		initialize(ex);
		return;
	case MCP_PING:
		answer_empty(&b, &to);
		exchange_answer(ex, 200, &b);
		return;
	case MCP_SET_LEVEL:
		set_level(ex);
		return;
	case MCP_RESOURCES_SUBSCRIBE:
	case MCP_RESOURCES_UNSUBSCRIBE:
		resource_subscribe(ex);
		return;
	default:
		if (!legacy_serve_common(ex))
			exchange_no_method(ex);
		return;
	}
}

static void
deleted(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct exchange *ex = arg;
	struct refusal no;
	struct buf b;

	if (f == NULL || f->type != IPC_OK) {
		refusal_from(&no, f, gone, "admind");
		exchange_refuse(ex, &no);
		return;
	}
	buf_init(&b, ANSWER_MAX);
	exchange_answer(ex, 204, &b);
}

/* Ends the session here at once, and in other gateways through admind. */
void
legacy_delete(struct exchange *ex)
{
	struct gateway *gw = ex->gw;
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	struct answer_to to = exchange_to(ex);
	struct ipc_session_end m;
	struct refusal no;
	struct buf b;
	uint64_t id;

	if (!ex->has_session) {
		buf_init(&b, ANSWER_MAX);
		answer_error(&b, &to, FAILURE_INVALID_REQUEST,
		    "Mcp-Session-Id is missing.", 0, NULL);
		exchange_answer(ex, 400, &b);
		return;
	}
	session_ended_add(gw->ended, &ex->session.id, ex->session.expires_ms,
	    now_us() / 1000);
	session_state_forget(gw->states, &ex->session.id);
	stream_session_ended(gw, &ex->session.id);
	m.session = ex->session.id;
	m.expires_ms = ex->session.expires_ms;
	if (admind != NULL &&
	    ipc_request(admind, IPC_SESSION_END, &m, ADMIND_ASK_MS, deleted, ex,
		&id) == 0)
		return;
	refusal_away(&no, gw, false);
	exchange_refuse(ex, &no);
}
