/*
 * LOGOUT, WHOAMI, SESSION_LOOKUP: what a login's token says and ends.
 *
 * A token is the whole proof of a login; whoever shows it may ask who it is and
 * end it. The web process brings the token's text, admind only its hash.
 */
#include <string.h>

#include "ids.h"
#include "vault.h"

static int
logout(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char name[SESSIONS_USER_MAX + 1];
	const struct session *s;
	struct ipc_logout m;
	struct ipc_hash h;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	s = sessions_find_text(port->v->sessions, m.token, now_boot_ms(), &h);
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

static int
whoami(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_session_info info;
	const struct session *s;
	struct ipc_whoami m;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	s = sessions_find_text(port->v->sessions, m.token, now_boot_ms(), NULL);
	if (s == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_UNAUTHENTICATED,
		    "not logged in", 0);
		return 0;
	}
	memset(&info, 0, sizeof(info));
	info.username = ipc_str(s->username);
	info.role = ipc_str(s->role);
	info.csrf = ipc_str(s->csrf);
	info.expires_ms = s->expires_ms;
	(void)ipc_answer(peer, m.request, IPC_SESSION_INFO, &info);
	return 0;
}

/* admind learns who a token's hash belongs to, and no CSRF token: with both it
 * could still not act, since its socket may not send what a login may. */
static int
session_lookup(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_session_lookup m;
	struct ipc_session_info info;
	const struct session *s;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	s = sessions_find(port->v->sessions, &m.token, now_boot_ms());
	if (s == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_UNAUTHENTICATED,
		    "not logged in", 0);
		return 0;
	}
	memset(&info, 0, sizeof(info));
	info.username = ipc_str(s->username);
	info.role = ipc_str(s->role);
	info.csrf = ipc_str("");
	info.expires_ms = s->expires_ms;
	(void)ipc_answer(peer, m.request, IPC_SESSION_INFO, &info);
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
