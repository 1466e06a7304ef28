/*
 * LOGIN: exchanges a password for a token.
 *
 * LOGIN is safe even if admind, which holds the table of verifiers, is hostile.
 * A verifier is opened only if it was sealed here for this very name and role
 * (verifiers.c). So admind can't make a verifier, give one person's verifier to
 * another, or raise a role. It can withhold a verifier (denial of service).
 * After a restart of the vault it can also bring back an older verifier of the
 * same person. Then an old password works again for a person who knew it
 * (docs/THREATS.md). Passwords and tokens never go to admind, and admind can't
 * reach LOGIN's socket (SO_PEERCRED).
 *
 * A hostile web process sees the passwords typed into it and can act as the
 * persons who are logged in, but can do no more. Each guess costs a full
 * Argon2id hash on one thread, and is counted here, where no other process can
 * skip the count. An unknown name takes the same path at the same cost and with
 * the same counts. The web process can name only a device that it knows,
 * because it can't make a device's MAC. A login's source and agent are only
 * claims of the web process.
 */
#include <string.h>

#include "attempt.h"
#include "ids.h"
#include "log.h"
#include "logins.h"

/* The name used in place of every name that can't exist. So all such names
 * share one bucket and take the usual path. */
static const char invalid[] = "(invalid)";

/* Tells whether the password is only half of the login: the verifier, which
 * only the vault can seal, carries the handle of the person's passkeys. Then
 * the login is pending. It does nothing but show the passkey (passkey_use.c)
 * and end. */
static bool
needs_passkey(const struct attempt *a)
{
	static const struct ipc_id none;

	return memcmp(a->handle.b, none.b, sizeof(none.b)) != 0;
}

/* Makes the login after its audit row is committed, so that no login lacks a
 * row. The verifier must still be the person's newest: a new password, a new
 * role or a deletion in between ended all of the person's logins, and so ends
 * this one. */
static void
on_audited(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct attempt *a = arg;
	char token[SESSIONS_TEXT + 1];
	struct devices_text device;
	const struct session *s;
	struct ipc_login_ok ok;
	bool half = needs_passkey(a);

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(a->v, a->ref, f, gone);
		attempt_free(a);
		return;
	}
	if (!verifiers_current(a->v->verifiers, a->username, a->sealed_us)) {
		attempt_refuse(a, FAILURE_CONFLICT,
		    "the password or role was changed meanwhile");
		return;
	}
	if (devices_make(a->v->keys, DEVICES_BROWSER, a->username,
		now_us() / 1000000, &device) == -1) {
		attempt_refuse(a, FAILURE_BUSY, "out of memory");
		return;
	}
	s = half ? sessions_add_pending(a->v->sessions, a->username, a->role,
		       &a->from, now_boot_ms(), now_us() / 1000, token)
		 : sessions_add(a->v->sessions, a->username, a->role,
		       SESSION_BY_PASSWORD, &a->from, now_boot_ms(),
		       now_us() / 1000, token);
	if (s == NULL) {
		attempt_refuse(
		    a, FAILURE_BUSY, "too many people are logged in");
		return;
	}
	memset(&ok, 0, sizeof(ok));
	ok.token = ipc_str(token);
	ok.username = ipc_str(s->username);
	ok.role = ipc_str(s->role);
	ok.expires_ms = s->expires_ms;
	ok.idle_ms = s->idle_ms;
	ok.device = ipc_str(device.s);
	ok.passkey = half;
	callers_answer(a->v, a->ref, IPC_LOGIN_OK, &ok);
	explicit_bzero(token, sizeof(token));
	attempt_free(a);
}

static void
wrong(struct attempt *a)
{
	(void)attempt_audit(a, a->known ? a->username : "unknown",
	    "login_failed", a->username, NULL);
	attempt_refuse(a, FAILURE_BAD_LOGIN, "user name or password is wrong");
}

static void
judged(struct attempt *a)
{
	if (!a->job.match || !a->known) {
		wrong(a);
		return;
	}
	if (attempt_audit(a, a->username,
		needs_passkey(a) ? "login_begun" : "login", a->username,
		on_audited) == -1) {
		attempt_refuse(a, FAILURE_BUSY, "admind is not connected");
		return;
	}
	attempt_right(a);
}

static void
found(struct attempt *a)
{
	attempt_verify(a, judged);
}

/* Copies UTF-8; a text cut inside a character becomes empty. */
static void
copy_shown(char *to, size_t size, struct ipc_bytes from)
{
	attempt_copy(to, size, from);
	if (!utf8_valid((const uint8_t *)to, strlen(to)))
		to[0] = '\0';
}

static void
login(struct attempt *a, const struct ipc_login *m)
{
	bool valid = attempt_username_ok(m->username);
	struct ipc_id number;

	attempt_copy(a->username, sizeof(a->username),
	    valid ? m->username : ipc_str(invalid));
	copy_shown(a->from.source, sizeof(a->from.source), m->source);
	copy_shown(a->from.agent, sizeof(a->from.agent), m->agent);
	if (m->device.n > 0 &&
	    devices_check(a->v->keys, a->username, m->device,
		now_us() / 1000000, &number)) {
		if (attempt_count(a, THROTTLE_DEVICE, &number) == -1)
			return;
	} else if (attempt_count(a, THROTTLE_NAME, NULL) == -1) {
		return;
	}
	if (m->password.n > SLOTS_PASSWORD_MAX) {
		wrong(a);
		return;
	}
	attempt_put(a, m->password);
	if (valid) {
		attempt_find(a, found);
		return;
	}
	/* No such name can exist, so admind is not asked. The cost is the
	 * same. */
	attempt_copy(a->job.encoded, sizeof(a->job.encoded),
	    ipc_str(slots_decoy(a->v->slots)));
	attempt_verify(a, judged);
}

int
logins_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_login m;
	struct attempt *a;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((a = attempt_new(port, peer, m.request)) != NULL)
		login(a, &m);
	return 0;
}
