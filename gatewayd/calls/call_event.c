/* Passes on a running call's messages before its result: progress, log lines,
 * questions, hints. The messages come from a tool. sandboxd checked them, and
 * they are checked again here. All messages but the questions may be lost. */
#include <string.h>

#include "call_internal.h"
#include "json.h"
#include "stream.h"

/* Sends {"progressToken":T, ...} with the client's token, which sandboxd and
 * the tool never see. */
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

/* Returns the least level of the log lines that this request wants, or -1 for
 * none. A modern request names the level. A legacy request has its session's
 * level; without a session it wants none. */
static int
log_level(const struct exchange *ex)
{
	if (ex == NULL)
		return -1; /* the client is away */
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

void
call_event(struct call *c, const struct ipc_call_event *ev)
{
	switch (ev->kind) {
	case CALL_EVENT_PROGRESS:
		progress(c, ev->json);
		break;
	case CALL_EVENT_LOG:
		log_line(c, ev->json);
		break;
	case CALL_EVENT_ASK:
		call_ask_questions(c, ev);
		break;
	case CALL_EVENT_PAUSE:
		if (c->ex != NULL)
			stream_post_pause(c->ex, ev->json);
		break;
	default:
		break;
	}
}
