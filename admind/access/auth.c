/*
 * Principals of gateways' clients, and a gateway's set-up.
 *
 * The local listener trusts every process that can reach 127.0.0.1, unless a
 * token is configured. The tunnel's listener admits only clients with an API
 * token that is valid there. A gateway only forwards the credential, so it
 * can't claim a principal.
 *
 * A client with an API token is that token's principal, on the local listener
 * too. A token that was revoked or is for another listener is refused there.
 * Its client does not become `local`, which may do everything. The same is true
 * of everything that has the form of a signed token, and of all that came as an
 * assertion, on every listener (identities.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access.h"
#include "activity.h"
#include "auth.h"
#include "crypto.h"
#include "endpoint.h"
#include "identities.h"
#include "ids.h"
#include "log.h"
#include "name.h"
#include "narrow.h"
#include "tokens.h"

enum {
	TOKEN_LEN_MIN = 16, /* shorter tokens can be guessed */
	TOKEN_LEN_MAX = 1024,
	IDENTITY_CACHE_MS = 30 * 1000, /* INTERFACES: at most 30 s */
};

static const struct db_stmt attach = {"auth_attach",
    "SELECT c.revision, e.id, e.expires_at FROM mcpbox.catalogue c"
    " LEFT JOIN mcpbox.ended_sessions e ON e.expires_at > now()",
    DB_FAST};
static const struct db_stmt session_end = {"auth_session_end",
    "SELECT mcpbox.session_end($1::uuid, $2::timestamptz)", DB_SURE};

/* Returns whether this is three non-empty parts in base64url, with dots between
 * them. */
static bool
has_three_parts(struct ipc_bytes c)
{
	size_t part = 0;
	unsigned dots = 0;

	for (size_t i = 0; i < c.n; i++, part++) {
		uint8_t b = c.p[i];

		if (b == '.') {
			if (part == 0 || ++dots > 2)
				return false;
			part = (size_t)-1; /* 0 after this turn */
		} else if (!((b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') ||
			       (b >= '0' && b <= '9') || b == '-' ||
			       b == '_')) {
			return false;
		}
	}
	return dots == 2 && part > 0;
}

int
auth_load_token(struct admind *a, struct err *err)
{
	const char *path = conf_str(a->proc.conf, "local_token_file");
	char token[TOKEN_LEN_MAX + 2];
	ssize_t n;
	int fd;

	if (path[0] == '\0')
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", path);
	n = read(fd, token, sizeof(token));
	close(fd);
	if (n == -1)
		return err_sys(err, FAILURE_INTERNAL, "%s", path);
	while (n > 0 && (token[n - 1] == '\n' || token[n - 1] == '\r'))
		n--;
	if (n < TOKEN_LEN_MIN || n > TOKEN_LEN_MAX)
		return err_set(err, FAILURE_INTERNAL,
		    "%s: a token has %d to %d characters", path, TOKEN_LEN_MIN,
		    TOKEN_LEN_MAX);
	if (has_three_parts(ipc_bytes(token, (size_t)n)))
		return err_set(err, FAILURE_INTERNAL,
		    "%s: a token with two dots would be taken for a signed "
		    "one: make another",
		    path);
	/* Only the token's digest stays in memory. */
	sha256(token, (size_t)n, &a->local_token);
	explicit_bzero(token, sizeof(token));
	a->have_local_token = true;
	return 0;
}

bool
auth_is_signed(uint8_t via, struct ipc_bytes credential)
{
	return via != VIA_AUTHORIZATION || has_three_parts(credential);
}

/* Finds the owner of an API token or of a signed token. */
static int
find_owner(struct admind *a, enum listener listener, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint, struct auth *who,
    struct err *err)
{
	if (auth_is_signed(via, credential))
		who->token = identities_find(a, listener, via, credential,
		    endpoint, &who->expires_us, err);
	else
		who->token = tokens_find(a, listener, credential, err);
	if (who->token == NULL)
		return -1;
	if (who->expires_us == 0)
		who->expires_us = who->token->expires_us;
	memcpy(who->principal, who->token->principal, sizeof(who->principal));
	return 0;
}

/*
 * Narrows a client's rights to those at an endpoint. The gateway says which one
 * the path named, and the client chose the path. So that an endpoint only takes
 * rights away is all that its security rests on: a client that names another
 * one, or a gateway that lies, gets nothing that the credential lacks.
 */
static int
narrow(struct admind *a, enum listener listener, struct ipc_bytes name,
    struct auth *who, struct err *err)
{
	const struct access_set *set = NULL;
	struct endpoint *e;
	struct token *t;
	bool made;

	if (document_ready(a, err) == -1)
		return -1;
	e = rules_endpoint(a->access->now, name, listener);
	if (e == NULL)
		return err_set(err, FAILURE_FORBIDDEN,
		    "this endpoint is not there any more");
	if (e->set.n > 0)
		set = rules_set_named(a->access->now, e->set);
	t = narrow_token(a->access->narrowed, who->token, e,
	    set != NULL ? set->scopes : 0, set != NULL ? set->allow : NULL,
	    set != NULL ? set->deny : NULL, &made);
	if (t == NULL || a->tokens == NULL)
		return err_set(err, FAILURE_BUSY, "out of memory");
	if (made)
		tokens_name_set(a, t);
	who->token = t;
	return 0;
}

/*
 * Compares digests, not tokens. Digests have the same length, and the time that
 * a wrong guess takes tells nothing about the right token.
 */
static int
find(struct admind *a, enum listener listener, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint, struct auth *who,
    struct err *err)
{
	struct ipc_hash h;

	memset(who, 0, sizeof(*who));
	if (auth_is_signed(via, credential) || tokens_like(credential))
		return find_owner(
		    a, listener, via, credential, endpoint, who, err);
	if (listener != LISTENER_LOCAL)
		return err_set(err, FAILURE_UNAUTHENTICATED,
		    "this listener needs a credential that is valid here");
	if (a->have_local_token) {
		sha256(credential.p, credential.n, &h);
		if (!ct_equal(&h, &a->local_token, sizeof(h)))
			return err_set(err, FAILURE_UNAUTHENTICATED,
			    "the bearer token is missing or wrong");
	}
	memcpy(who->principal, NAME_LOCAL, sizeof(NAME_LOCAL));
	return 0;
}

int
auth_principal(struct admind *a, enum listener listener, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint, struct auth *who,
    struct err *err)
{
	if (find(a, listener, via, credential, endpoint, who, err) == -1)
		return -1;
	return endpoint.n == 0 ? 0 : narrow(a, listener, endpoint, who, err);
}

static struct token *
whole_of_set(struct admind *a, enum listener listener, struct ipc_bytes set)
{
	struct token *t = tokens_of_set(a, listener, set);

	return t != NULL ? t : identities_of_set(a, listener, set);
}

/* A set of an endpoint counts as long as the set that it was made of is live.
 */
struct token *
auth_of_set(struct admind *a, enum listener listener, struct ipc_bytes set)
{
	struct token *t = whole_of_set(a, listener, set), *base = NULL;

	if (t != NULL || a->access == NULL)
		return t;
	t = narrow_of_set(a->access->narrowed, listener, set, &base);
	return t == NULL || base == NULL ||
		whole_of_set(a, listener, ipc_str(base->set[listener])) != NULL
	    ? t
	    : NULL;
}

/* Returns the time that a credential has left, in ms; 0: it has no end. A
 * gateway takes it by its clock since boot. */
static uint64_t
left_ms(struct admind *a, uint64_t expires_us)
{
	uint64_t now = identities_now(a);

	if (expires_us == 0)
		return 0;
	return expires_us > now + 1000 ? (expires_us - now) / 1000 : 1;
}

void
auth_refused(struct link *l, struct ipc_bytes name, enum failure f)
{
	struct admind *a = l->a;
	char text[EXPOSED_NAME_MAX + 1];

	if (f == FAILURE_UNAUTHENTICATED) {
		a->metrics->auth_failed++;
		activity_note(
		    a, ACTIVITY_AUTH_FAILED, "", l->listener, "", f, 1);
		return;
	}
	snprintf(text, sizeof(text), "%.*s",
	    name.n < sizeof(text) ? (int)name.n : 0, (const char *)name.p);
	a->metrics->refused[f]++;
	activity_note(a, ACTIVITY_CALL_REFUSED, "", l->listener, text, f, 1);
}

void
auth_refused_token(struct link *l, const char *principal, const struct err *err)
{
	if (failure_info(err->failure)->side == FAILURE_PLATFORM) {
		auth_refused(l, ipc_bytes(NULL, 0), err->failure);
		return;
	}
	l->a->metrics->auth_failed++;
	activity_note(l->a, ACTIVITY_AUTH_FAILED, principal, l->listener,
	    err->text, err->failure, 1);
}

/* Answers with the owner of a credential. ticket: the credential, if it is one
 * that the gateway does not have yet; else "". */
static void
answer_identity(struct link *l, uint64_t request, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint, const char *ticket)
{
	struct ipc_identity answer = {0};
	struct token_hints hints;
	struct auth who;
	struct err err;

	if (auth_principal(l->a, l->listener, via, credential, endpoint, &who,
		&err) == -1) {
		auth_refused(l, ipc_bytes(NULL, 0), err.failure);
		link_refuse(l, request, err.failure, err.text);
		return;
	}
	answer.principal = ipc_str(who.principal);
	answer.permission_set = ipc_str(
	    who.token != NULL ? who.token->set[l->listener] : NAME_LOCAL);
	tokens_hint(l->a, who.token, l->listener, &hints);
	answer.unread = hints.unread;
	answer.read_scope = ipc_str(hints.read_scope);
	answer.call_scope = ipc_str(hints.call_scope);
	answer.left_ms = left_ms(l->a, who.expires_us);
	answer.cache_ms = IDENTITY_CACHE_MS;
	if (answer.left_ms != 0 && answer.left_ms < IDENTITY_CACHE_MS)
		answer.cache_ms = answer.left_ms;
	/* A gateway keeps answers by the credential that it asked with. A token
	 * that was good once must not be kept. */
	if (ticket[0] != '\0')
		answer.cache_ms = 0;
	answer.ticket = ipc_str(ticket);
	link_answer(l, request, IPC_IDENTITY, &answer);
}

static int
authenticate(struct link *l, struct ipc_frame *f)
{
	struct ipc_authenticate m;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	answer_identity(l, m.request, m.via, m.credential, m.endpoint, "");
	return 0;
}

void
auth_admitted(struct link *l, uint64_t request, struct ipc_bytes endpoint,
    const char *ticket)
{
	answer_identity(
	    l, request, VIA_TICKET, ipc_str(ticket), endpoint, ticket);
}

/* Sends a gateway's set-up, then every ended session whose own expiry is in the
 * future. The gateway keeps these sessions in memory and refuses them. */
static void
attached(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct admind *a = op->a;
	struct ipc_gw_config m = {0};
	struct ipc_session_ended e = {0};

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	m.listener = ipc_str(listener_name(op->link->listener));
	m.session_key = ipc_bytes(a->session_key, sizeof(a->session_key));
	m.revision = (uint64_t)db_int(rows, 0, 0);
	link_answer(op->link, op->request, IPC_GW_CONFIG, &m);
	metadata_send(op->link);
	for (int i = 0; i < db_nrows(rows) && op->link->peer != NULL; i++) {
		if (db_null(rows, i, 1))
			continue;
		e.session = db_id(rows, i, 1);
		e.expires_ms = db_time_us(rows, i, 2) / 1000;
		(void)ipc_send(op->link->peer, IPC_SESSION_ENDED, &e);
	}
	op_free(op);
}

static void
attach_it(void *arg)
{
	struct op *op = arg;

	db_query(op->a->db, &attach, NULL, attached, op);
}

static int
gw_attach(struct link *l, struct ipc_frame *f)
{
	struct ipc_gw_attach m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (!l->a->have_session_key) {
		link_refuse(l, m.request, FAILURE_VAULT_UNAVAILABLE,
		    "the vault has not given the session key yet");
		return 0;
	}
	op = op_new(l, m.request);
	/* A gateway without the access document would refuse signed tokens as
	 * unknown, and their clients would throw them away. So its set-up waits
	 * for the first reading. Without a database no reading begins. */
	if (op != NULL && db_is_up(l->a->db))
		document_settled(l->a, attach_it, op);
	else if (op != NULL)
		attach_it(op);
	return 0;
}

static int
end_session(struct link *l, struct ipc_frame *f)
{
	struct ipc_session_end m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	db_params_init(&p);
	db_p_id(&p, &m.session);
	/* An expiry of 0 would be stored as null, so the present time is
	 * stored. A session with expiry 0 is over anyway. */
	db_p_time_us(&p,
	    m.expires_ms == 0
		? now_us()
		: (m.expires_ms < UINT64_MAX / 1000 ? m.expires_ms * 1000
						    : UINT64_MAX));
	activity_note(op->a, ACTIVITY_SESSION_ENDED, "", l->listener, "",
	    FAILURE_NONE, 1);
	db_query(op->a->db, &session_end, &p, op_db_ok, op);
	return 0;
}

int
auth_message(struct link *l, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_AUTHENTICATE:
		return authenticate(l, f);
	case IPC_GW_ATTACH:
		return gw_attach(l, f);
	default:
		return end_session(l, f);
	}
}

/* ---- the session key ---- */

static void
session_key(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct admind *a = arg;
	struct ipc_session_key m;
	struct err err;

	if (f == NULL || f->type != IPC_SESSION_KEY) {
		answer_err(f, gone, &err);
		log_event(LOG_LV_WARN, "session_key", "%s", err.text);
		return;
	}
	if (ipc_decode(f, &m, &err) == -1 ||
	    m.key.n != sizeof(a->session_key)) {
		log_event(LOG_LV_ERR, "session_key", "malformed");
		return;
	}
	memcpy(a->session_key, m.key.p, sizeof(a->session_key));
	a->have_session_key = true;
}

/* Asks the vault for the session key. The key is derived from the master key,
 * so it is the same after a restart of the vault. */
void
auth_vault_up(struct admind *a)
{
	struct ipc_session_key_get m = {0};

	(void)ask(a->vault, IPC_SESSION_KEY_GET, &m, session_key, a, NULL);
}

/* ---- sessions ended anywhere: NOTIFY mcpbox_session 'uuid ms' ---- */

static void
tell_ended(struct ipc_peer *peer, void *arg)
{
	(void)ipc_send(peer, IPC_SESSION_ENDED, arg);
}

void
auth_session_ended(struct admind *a, const char *payload)
{
	struct ipc_session_ended m = {0};
	char *end;

	if (strlen(payload) < UUID_TEXT_LEN + 2 ||
	    uuid_parse(payload, UUID_TEXT_LEN, &m.session) == -1)
		return;
	errno = 0;
	m.expires_ms = strtoull(payload + UUID_TEXT_LEN + 1, &end, 10);
	if (errno != 0 || *end != '\0')
		return;
	ipc_server_each(a->gw_local, tell_ended, &m);
	ipc_server_each(a->gw_tunnel, tell_ended, &m);
}
