/* Turns the REFUSED of another process, or that process's absence, into an
 * answer that tells the client what to do. */
#include <stdio.h>
#include <string.h>

#include "gateway.h"
#include "json.h"
#include "refusal.h"

void
refusal_set(struct refusal *r, enum failure f, uint64_t retry_after_ms,
    const char *message)
{
	r->failure = f;
	r->retry_after_ms = retry_after_ms;
	snprintf(r->message, sizeof(r->message), "%s", message);
	r->data[0] = '\0';
	r->scope[0] = '\0';
}

void
refusal_scope(struct refusal *r, const char *scope)
{
	refusal_set(r, FAILURE_FORBIDDEN, 0,
	    "this token lacks a scope that its permission set has");
	snprintf(r->scope, sizeof(r->scope), "%s", scope);
}

/* Takes error.data of the peer. Takes nothing if the text is not the inside of
 * one JSON object, or if it has a member that we write ourselves. */
static void
take_data(struct refusal *r, struct ipc_bytes data)
{
	static const char *const ours[] = {
	    "failure_mode", "fix", "retry_after_ms"};
	char text[MCP_DATA_MAX + 2];
	const char *path[2] = {NULL, NULL};
	const uint8_t *p;
	size_t i, n;

	r->data[0] = '\0';
	if (data.n == 0 || data.n >= sizeof(r->data))
		return;
	n = (size_t)snprintf(
	    text, sizeof(text), "{%.*s}", (int)data.n, (const char *)data.p);
	if (n != data.n + 2 || json_scan((const uint8_t *)text, n, NULL) < 0)
		return;
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		path[0] = ours[i];
		if (json_slice((const uint8_t *)text, n, path, &p, &n) == 1)
			return;
		n = data.n + 2;
	}
	memcpy(r->data, data.p, data.n);
	r->data[data.n] = '\0';
}

void
refusal_away(struct refusal *r, const struct gateway *gw, bool sandboxd)
{
	if (gw->draining)
		refusal_set(r, FAILURE_UPGRADING, RETRY_MS,
		    "The server is being restarted.");
	else if (ipc_client_other_build(sandboxd ? gw->sandboxd : gw->admind))
		refusal_set(r, FAILURE_UPGRADING, RETRY_MS,
		    "The suite is being upgraded.");
	else if (sandboxd)
		refusal_set(r, FAILURE_SANDBOX_UNAVAILABLE, RETRY_MS,
		    "The sandbox is not reachable; it is restarting.");
	else
		refusal_set(r, FAILURE_BUSY, RETRY_MS,
		    "The control daemon (admind) is not reachable; it is "
		    "restarting.");
}

void
refusal_from(struct refusal *r, struct ipc_frame *f, enum failure gone,
    const char *process)
{
	struct ipc_refused m;
	char text[MCP_MESSAGE_MAX];
	size_t n;

	if (f == NULL) {
		snprintf(text, sizeof(text), "%s did not answer.", process);
		refusal_set(r, gone == FAILURE_NONE ? FAILURE_BUSY : gone,
		    RETRY_MS, text);
		return;
	}
	if (f->type != IPC_REFUSED || ipc_decode(f, &m, NULL) < 0) {
		snprintf(text, sizeof(text), "%s answered nonsense.", process);
		refusal_set(r, FAILURE_INTERNAL, 0, text);
		return;
	}
	r->failure = m.failure > FAILURE_NONE && m.failure < FAILURE_COUNT
	    ? (enum failure)m.failure
	    : FAILURE_INTERNAL;
	r->retry_after_ms = m.retry_after_ms;
	take_data(r, m.data);
	gw_access_scopes(m.scope, r->scope);
	/* Cut between characters, because the text goes into JSON. */
	n = m.message.n;
	if (n >= sizeof(r->message)) {
		n = sizeof(r->message) - 1;
		while (n > 0 && (m.message.p[n] & 0xc0) == 0x80)
			n--;
	}
	if (n > 0)
		memcpy(r->message, m.message.p, n);
	r->message[n] = '\0';
	if (n == 0)
		snprintf(r->message, sizeof(r->message), "%s",
		    failure_info(r->failure)->fix);
}
