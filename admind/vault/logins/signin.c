/*
 * SIGNIN_GRANT, SIGNIN_REDEEM, SIGNIN_HOLDS, SIGNIN_DROP: logins of people that
 * signed in by an issuer (docs/decisions/0105).
 *
 * Such a login is made on admind's word. The vault can't judge that word,
 * because it parses no token and knows no rule. So it is worth less than a
 * password: the login is BY_ISSUER and begins unproven, and each seal of the
 * vault asks for a proof (fresh.h). The name has an @, which no name with a
 * password has, so admind can't make a login of a person that has one.
 *
 * A hostile admind gains a login to admind-http. With it a browser reads and
 * changes things of admind, which a hostile admind reads and changes without a
 * login. It can't fetch the login itself: it has the hash of the
 * ticket alone, and REDEEM comes from the web process. It can't end the login
 * of a password either: HOLDS and DROP end logins BY_ISSUER alone, and so does
 * a login that it invents, until a passkey proves it (endings.c).
 *
 * The web process brings both halves of the ticket, once. A wrong ticket is 256
 * bits away from a right one for each half, so guesses are not counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "crypto.h"
#include "ids.h"
#include "jsonw.h"
#include "logins.h"
#include "tickets.h"

enum { DETAIL_MAX = 8192 };

/* A ticket that was shown, until its audit row is committed. */
struct redeem {
	struct vault *v;
	struct vault_ref ref;
	struct ticket ticket;
	struct session_origin from;
	uint64_t drops;
};

static bool
put(char *to, size_t size, struct ipc_bytes from)
{
	if (from.n >= size)
		return false;
	attempt_copy(to, size, from);
	return strlen(to) == from.n;
}

static int
grant(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	uint64_t now = now_boot_ms();
	struct ticket t = {.until_ms = now + TICKETS_MS};
	struct ipc_signin_grant m;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	t.ticket = m.ticket;
	t.basis = m.basis;
	if (!tickets_name_ok(m.username, m.issuer) ||
	    !attempt_role_ok(m.role) ||
	    !put(t.username, sizeof(t.username), m.username) ||
	    !put(t.role, sizeof(t.role), m.role) ||
	    !put(t.issuer, sizeof(t.issuer), m.issuer) ||
	    !put(t.subject, sizeof(t.subject), m.subject) ||
	    !put(t.email, sizeof(t.email), m.email))
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "this is no name, role or subject of an issuer's people",
		    0);
	else if (tickets_add(&port->v->tickets, &t, now, &err) == -1)
		(void)ipc_refuse(peer, m.request, err.failure, err.text, 0);
	else
		(void)ipc_answer_ok(peer, m.request);
	return 0;
}

/* ---- the ticket is shown ---- */

static void
redeem_end(struct redeem *r)
{
	r->v->ops--;
	explicit_bzero(r, sizeof(*r));
	free(r);
}

/* Makes the login after its audit row is committed, so that no login lacks a
 * row. */
static void
on_audited(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct redeem *r = arg;
	struct vault *v = r->v;
	char token[SESSIONS_TEXT + 1];
	const struct session *s;
	struct ipc_login_ok ok;
	uint64_t now = now_boot_ms();

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(v, r->ref, f, gone);
		redeem_end(r);
		return;
	}
	if (!tickets_holds(&v->tickets, &r->ticket.basis) ||
	    r->drops != v->tickets.drops) {
		callers_refuse(v, r->ref, FAILURE_CONFLICT,
		    "the access document or its people were changed during "
		    "the sign-in");
		redeem_end(r);
		return;
	}
	s = sessions_by_issuer(v->sessions, now) >= SESSIONS_BY_ISSUER_MAX
	    ? NULL
	    : sessions_add(v->sessions, r->ticket.username, r->ticket.role,
		  SESSION_BY_ISSUER, &r->from, now, now_us() / 1000, token);
	if (s == NULL) {
		callers_refuse(
		    v, r->ref, FAILURE_BUSY, "too many people are logged in");
		redeem_end(r);
		return;
	}
	sessions_based(v->sessions, s, &r->ticket.basis);
	memset(&ok, 0, sizeof(ok));
	ok.token = ipc_str(token);
	ok.username = ipc_str(s->username);
	ok.role = ipc_str(s->role);
	ok.expires_ms = s->expires_ms;
	ok.idle_ms = s->idle_ms;
	callers_answer(v, r->ref, IPC_LOGIN_OK, &ok);
	explicit_bzero(token, sizeof(token));
	redeem_end(r);
}

static int
audit(struct redeem *r)
{
	char detail[DETAIL_MAX];
	struct jsonw w;
	struct buf b;

	buf_init(&b, sizeof(detail) - 1);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "source", r->from.source);
	jsonw_kv_str(&w, "issuer", r->ticket.issuer);
	jsonw_kv_str(&w, "subject", r->ticket.subject);
	if (r->ticket.email[0] != '\0')
		jsonw_kv_str(&w, "email", r->ticket.email);
	jsonw_obj_end(&w);
	attempt_copy(detail, sizeof(detail),
	    b.failed ? ipc_str("{}") : ipc_bytes(b.p, b.len));
	buf_free(&b);
	return audit_event(r->v, r->ticket.username, "login",
	    r->ticket.username, detail, on_audited, r);
}

/* Copies UTF-8; a text cut inside a character becomes empty. */
static void
copy_shown(char *to, size_t size, struct ipc_bytes from)
{
	attempt_copy(to, size, from);
	if (!utf8_valid((const uint8_t *)to, strlen(to)))
		to[0] = '\0';
}

static int
redeem(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_signin_redeem m;
	struct redeem *r = NULL;
	struct ipc_hash hash;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (callers_room(port))
		r = calloc(1, sizeof(*r));
	if (r == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_BUSY,
		    "too many requests at once", 0);
		return 0;
	}
	r->v = port->v;
	r->v->ops++;
	r->ref = callers_ref(port, peer, m.request);
	r->drops = r->v->tickets.drops;
	copy_shown(r->from.source, sizeof(r->from.source), m.source);
	copy_shown(r->from.agent, sizeof(r->from.agent), m.agent);
	sha256(m.ticket.p, m.ticket.n, &hash);
	if (m.ticket.n != LOGIN_TEXT ||
	    !tickets_take(&r->v->tickets, &hash, now_boot_ms(), &r->ticket)) {
		callers_refuse(r->v, r->ref, FAILURE_UNAUTHENTICATED,
		    "no sign-in of this browser came to its end, or not any "
		    "more");
		redeem_end(r);
	} else if (audit(r) == -1) {
		callers_refuse(
		    r->v, r->ref, FAILURE_BUSY, "admind is not connected");
		redeem_end(r);
	}
	return 0;
}

/* ---- ends ---- */

static void
audit_end(struct vault *v, const char *username, size_t n)
{
	char detail[48];

	snprintf(detail, sizeof(detail), "{\"logins\":%zu}", n);
	(void)audit_event(
	    v, "access", "login_ended", username, detail, NULL, NULL);
}

static int
holds(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_hash bases[TICKETS_BASES_MAX];
	struct vault *v = port->v;
	struct ipc_signin_holds m;
	size_t n, ended;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	n = m.issuers.n / sizeof(bases[0]);
	if (m.issuers.n % sizeof(bases[0]) != 0 || n > TICKETS_BASES_MAX)
		return -1;
	if (n > 0)
		memcpy(bases, m.issuers.p, m.issuers.n);
	tickets_follow(&v->tickets, bases, n);
	ended = sessions_keep(v->sessions, bases, n);
	if (ended > 0)
		audit_end(v, "issuers", ended);
	(void)ipc_answer_ok(peer, m.request);
	return 0;
}

static int
drop(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char username[SESSIONS_USER_MAX + 1];
	struct vault *v = port->v;
	struct ipc_signin_drop m;
	size_t ended;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	/* Without an @ it could be a password's. */
	if (!put(username, sizeof(username), m.username) ||
	    strchr(username, '@') == NULL) {
		(void)ipc_refuse(peer, m.request, FAILURE_INVALID_PARAMS,
		    "this is no name of an issuer's people", 0);
		return 0;
	}
	tickets_drop(&v->tickets, username);
	ended = sessions_end_user(v->sessions, username, NULL);
	if (ended > 0)
		audit_end(v, username, ended);
	(void)ipc_answer_ok(peer, m.request);
	return 0;
}

int
signin_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_SIGNIN_GRANT:
		return grant(port, peer, f);
	case IPC_SIGNIN_REDEEM:
		return redeem(port, peer, f);
	case IPC_SIGNIN_HOLDS:
		return holds(port, peer, f);
	case IPC_SIGNIN_DROP:
		return drop(port, peer, f);
	default:
		return -1;
	}
}
