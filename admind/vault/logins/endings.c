/*
 * LOGINS_GET, LOGIN_END: lists logins, and ends them.
 *
 * A person may list and end the person's own logins. An administrator and uid 0
 * may list and end all logins. The list has a login's id but not its token, so
 * a reader of the list can't use the login. A login ends before the answer is
 * sent, whether or not admind records the end: taking a right away must not
 * depend on another process.
 *
 * admind can invent a login by an issuer. Until its person shows a passkey,
 * such a login ends no login of a person with a password. A hostile admind
 * could otherwise throw out the other administrators.
 */
#include <stdio.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "logins.h"

static void
json_time(struct jsonw *w, const char *name, uint64_t unix_ms)
{
	char text[TIME_TEXT_LEN + 1];

	time_text(unix_ms * 1000, text);
	jsonw_kv_str(w, name, text);
}

static void
json_login(struct jsonw *w, const struct session *s, bool current)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_text(&s->id, id);
	jsonw_obj(w);
	jsonw_kv_str(w, "id", id);
	jsonw_kv_str(w, "username", s->username);
	jsonw_kv_str(w, "role", s->role);
	jsonw_kv_str(
	    w, "by", s->by == SESSION_BY_ISSUER ? "issuer" : "password");
	jsonw_kv_str(w, "source", s->from.source);
	jsonw_kv_str(w, "agent", s->from.agent);
	json_time(w, "created_at", s->created_ms);
	json_time(w, "seen_at", s->seen_ms);
	json_time(w, "expires_at", s->expires_ms);
	json_time(w, "idle_expires_at", s->idle_ms);
	jsonw_kv_bool(w, "pending", s->pending);
	jsonw_kv_bool(w, "current", current);
	jsonw_obj_end(w);
}

/* Finds the login that asks. *s receives the login (NULL for root), *hash the
 * hash of the login's token. -1: the request was refused. */
static int
asker(struct port *port, struct ipc_peer *peer, uint64_t request,
    struct ipc_bytes token, struct ipc_hash *hash, const struct session **s)
{
	memset(hash, 0, sizeof(*hash));
	*s = NULL;
	if (port->role == IPC_ROLE_CTL)
		return 0;
	*s = sessions_find_text(port->v->sessions, token, now_boot_ms(), hash);
	if (*s != NULL)
		return 0;
	(void)ipc_refuse(
	    peer, request, FAILURE_UNAUTHENTICATED, "not logged in", 0);
	return -1;
}

static bool
all_of(const struct session *s)
{
	return s == NULL || strcmp(s->role, "administrator") == 0;
}

/* Tells whether this login may end the logins of a person of that name. Only
 * names of an issuer have an @. */
static bool
may_end(const struct session *s, const char *username)
{
	return s == NULL || s->by == SESSION_BY_PASSWORD ||
	    sessions_proven(s, now_boot_ms()) || strchr(username, '@') != NULL;
}

static void
refuse_unproven(struct ipc_peer *peer, uint64_t request)
{
	(void)ipc_refuse(peer, request, FAILURE_PROOF_REQUIRED,
	    "this login by an issuer needs a fresh proof to end the login of a "
	    "person with a password",
	    0);
}

static int
logins_get(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	uint64_t now = now_boot_ms();
	const struct session *s, *r;
	struct ipc_logins_get m;
	struct ipc_logins answer;
	struct ipc_hash hash;
	struct jsonw w;
	struct buf b;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (asker(port, peer, m.request, m.token, &hash, &s) == -1)
		return 0;
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (size_t at = 0;
	    (r = sessions_next(port->v->sessions, &at, now)) != NULL;)
		if ((all_of(s) || strcmp(r->username, s->username) == 0) &&
		    (m.username.n == 0 || ipc_streq(m.username, r->username)))
			json_login(&w, r, r == s);
	jsonw_arr_end(&w);
	jsonw_name(&w, "next_cursor");
	jsonw_null(&w);
	jsonw_obj_end(&w);
	memset(&answer, 0, sizeof(answer));
	answer.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		(void)ipc_refuse(
		    peer, m.request, FAILURE_BUSY, "out of memory", 1000);
	else
		(void)ipc_answer(peer, m.request, IPC_LOGINS, &answer);
	buf_free(&b);
	return 0;
}

/* The audit row says whose logins ended, how many, and by whom. */
static void
audit_end(struct port *port, const char *actor, const char *username, size_t n)
{
	char detail[48];

	snprintf(detail, sizeof(detail), "{\"logins\":%zu}", n);
	(void)audit_event(
	    port->v, actor, "login_ended", username, detail, NULL, NULL);
}

static int
login_end(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	static const struct ipc_id none;
	char actor[SESSIONS_USER_MAX + 1] = "root";
	char username[SESSIONS_USER_MAX + 1] = "";
	const struct session *s, *r;
	struct ipc_login_end m;
	struct ipc_hash hash;
	size_t n = 1;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (asker(port, peer, m.request, m.token, &hash, &s) == -1)
		return 0;
	if (s != NULL)
		memcpy(actor, s->username, sizeof(actor));
	if (memcmp(m.login.b, none.b, sizeof(none.b)) != 0) {
		r = sessions_by_id(port->v->sessions, &m.login, now_boot_ms());
		/* a person who may not see this login gets the same answer as
		 * if the login did not exist */
		if (r == NULL ||
		    (!all_of(s) && strcmp(r->username, actor) != 0)) {
			(void)ipc_refuse(peer, m.request, FAILURE_NOT_FOUND,
			    "there is no such login", 0);
			return 0;
		}
		if (!may_end(s, r->username)) {
			refuse_unproven(peer, m.request);
			return 0;
		}
		memcpy(username, r->username, sizeof(username));
		hash = r->token;
		sessions_end(port->v->sessions, &hash);
	} else {
		if (m.username.n == 0 || m.username.n > SESSIONS_USER_MAX ||
		    (!all_of(s) && !ipc_streq(m.username, actor))) {
			(void)ipc_refuse(peer, m.request, FAILURE_FORBIDDEN,
			    "only an administrator ends others' logins", 0);
			return 0;
		}
		memcpy(username, m.username.p, m.username.n);
		if (!may_end(s, username)) {
			refuse_unproven(peer, m.request);
			return 0;
		}
		n = sessions_end_user(port->v->sessions, username, NULL);
	}
	if (n > 0)
		audit_end(port, actor, username, n);
	(void)ipc_answer_ok(peer, m.request);
	return 0;
}

int
endings_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_LOGINS_GET:
		return logins_get(port, peer, f);
	case IPC_LOGIN_END:
		return login_end(port, peer, f);
	default:
		return -1;
	}
}
