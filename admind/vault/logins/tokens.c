/*
 * LOGOUT, WHOAMI, SESSION_LOOKUP: asking about a login by its token, and ending
 * it.
 *
 * A token alone proves a login: a process that shows the token may ask whose
 * login it is, and may end the login. The web process brings the token's text,
 * which it joins from a cookie and a header; either part alone is refused here.
 * admind has only the token's hash. The hash does not count as a token, so
 * admind can't use the login at admind-http either.
 */
#include <string.h>

#include "ids.h"
#include "logins.h"

static int
logout(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char name[SESSIONS_USER_MAX + 1];
	const struct session *s;
	struct ipc_logout m;
	struct ipc_hash h;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	s = sessions_find_text_any(
	    port->v->sessions, m.token, now_boot_ms(), &h);
	if (s == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_UNAUTHENTICATED,
		    "not logged in", 0);
		return 0;
	}
	memcpy(name, s->username, sizeof(name));
	sessions_end(port->v->sessions, &h);
	(void)audit_event(port->v, name, "logout", name, "{}", NULL, NULL);
	(void)ipc_answer_ok(peer, m.request);
	return 0;
}

/* Answers with a login's user, role, end times and fresh proof. Asking counts
 * as use of the login: admind-http asks for each write, admind for each read.
 */
void
tokens_answer(struct vault *v, struct vault_ref ref, const struct session *s)
{
	uint64_t now = now_boot_ms(), unix_ms = now_us() / 1000;
	struct ipc_session_info info;

	if (s == NULL) {
		callers_refuse(
		    v, ref, FAILURE_UNAUTHENTICATED, "not logged in");
		return;
	}
	sessions_touch(v->sessions, s, now, unix_ms);
	memset(&info, 0, sizeof(info));
	info.username = ipc_str(s->username);
	info.role = ipc_str(s->role);
	info.expires_ms = s->expires_ms;
	info.idle_ms = s->idle_ms;
	if (sessions_proven(s, now))
		info.proof_until_ms =
		    unix_ms + s->proof_boot_ms + SESSIONS_PROOF_MS - now;
	callers_answer(v, ref, IPC_SESSION_INFO, &info);
}

static int
whoami(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_whoami m;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	tokens_answer(port->v, callers_ref(port, peer, m.request),
	    m.pending == 1 ? sessions_find_text_any(port->v->sessions, m.token,
				 now_boot_ms(), NULL)
			   : sessions_find_text(port->v->sessions, m.token,
				 now_boot_ms(), NULL));
	return 0;
}

/* Tells admind whose login a token's hash belongs to. admind can do nothing
 * else with the hash: admind's socket may not send a login's messages, and the
 * other sockets take only a token, never a token's hash. */
static int
session_lookup(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_session_lookup m;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	tokens_answer(port->v, callers_ref(port, peer, m.request),
	    sessions_find(port->v->sessions, &m.token, now_boot_ms()));
	return 0;
}

int
tokens_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_LOGOUT:
		return logout(port, peer, f);
	case IPC_WHOAMI:
		return whoami(port, peer, f);
	case IPC_SESSION_LOOKUP:
		return session_lookup(port, peer, f);
	default:
		return -1;
	}
}
