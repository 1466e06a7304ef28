/*
 * PROVE: the person of a login shows the password once more. The login is then
 * proven for SESSIONS_PROOF_MS (fresh.h).
 *
 * PROVE goes the road of PASSWORD. The password is that of the login's own
 * person, under a verifier that was sealed here for this name and role. Wrong
 * passwords count against the login that shows them. So a thief of a login
 * guesses no faster than a stranger, and locks out no other login. A wrong
 * password does not end the login, because a thief could otherwise throw the
 * person out.
 *
 * The proof belongs to one login alone, not to its person: another browser of
 * the same person stays as it was. It begins after its audit row is committed,
 * so that no proof lacks a row. A login that ended since the request came, or
 * whose verifier is not the newest any more, is not proven.
 *
 * admind may not send PROVE. It can withhold a verifier or the row (denial of
 * service). The web process sees the password, as it does at LOGIN.
 */
#include <string.h>

#include "attempt.h"
#include "ids.h"
#include "logins.h"

/* Returns the login that asked, if it may still be proven. NULL: the attempt
 * was refused. */
static const struct session *
still(struct attempt *a)
{
	const struct session *s =
	    sessions_find(a->v->sessions, &a->token, now_boot_ms());

	if (s == NULL) {
		attempt_refuse(
		    a, FAILURE_UNAUTHENTICATED, "the login has ended");
		return NULL;
	}
	if (!verifiers_current(a->v->verifiers, a->username, a->sealed_us)) {
		attempt_refuse(a, FAILURE_CONFLICT,
		    "the password or role was changed meanwhile");
		return NULL;
	}
	return s;
}

static void
on_audited(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct attempt *a = arg;
	const struct session *s;

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(a->v, a->ref, f, gone);
		attempt_free(a);
		return;
	}
	if ((s = still(a)) == NULL)
		return;
	sessions_prove(a->v->sessions, s, now_boot_ms());
	attempt_ok(a);
}

static void
wrong(struct attempt *a)
{
	(void)attempt_audit(a, a->actor, "proof_failed", a->actor, NULL);
	attempt_refuse(a, FAILURE_BAD_LOGIN, "the own password is wrong");
}

static void
judged(struct attempt *a)
{
	if (!a->job.match || !a->known) {
		wrong(a);
		return;
	}
	attempt_right(a);
	if (still(a) != NULL &&
	    attempt_audit(a, a->actor, "proof", a->actor, on_audited) == -1)
		attempt_refuse(a, FAILURE_BUSY, "admind is not connected");
}

static void
found(struct attempt *a)
{
	attempt_verify(a, judged);
}

static void
prove(struct attempt *a, const struct session *s, const struct ipc_prove *m)
{
	struct ipc_id id = s->id;

	attempt_copy(a->username, sizeof(a->username), ipc_str(s->username));
	attempt_copy(a->actor, sizeof(a->actor), ipc_str(s->username));
	/* The login's own source may be the person's, and this one a thief's,
	 * so the audit row has this one. */
	attempt_copy(a->from.source, sizeof(a->from.source), m->source);
	if (!utf8_valid(
		(const uint8_t *)a->from.source, strlen(a->from.source)))
		a->from.source[0] = '\0';
	if (attempt_count(a, THROTTLE_LOGIN, &id) == -1)
		return;
	if (m->password.n > SLOTS_PASSWORD_MAX) {
		wrong(a);
		return;
	}
	attempt_put(a, m->password);
	attempt_find(a, found);
}

int
prove_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	const struct session *s;
	struct ipc_prove m;
	struct attempt *a;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((a = attempt_new(port, peer, m.request)) == NULL)
		return 0;
	s = sessions_find_text(
	    port->v->sessions, m.token, now_boot_ms(), &a->token);
	if (s == NULL)
		attempt_refuse(a, FAILURE_UNAUTHENTICATED, "not logged in");
	else if (s->by != SESSION_BY_PASSWORD)
		attempt_refuse(a, FAILURE_FORBIDDEN,
		    "a person who signs in by an issuer has no password here: "
		    "a passkey is the proof");
	else
		prove(a, s, &m);
	return 0;
}
