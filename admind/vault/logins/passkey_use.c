/*
 * PASSKEY_REGISTER and PASSKEY_ASSERT: a browser's answer to a challenge.
 *
 * ceremony.c has the checks of the answer itself. Here are its purposes:
 *
 * - A registration makes a factor that outlives the login. It needs a fresh
 *   proof: of a password, or of a passkey that is there. The first passkey of
 *   an issuer's person needs root's code instead, since admind could invent
 *   such a login. The new passkey then conveys at most the role of the code,
 *   and further ones no more than the passkey that proved.
 * - An assertion makes a pending login whole, or proves a whole one. The
 *   challenge is of this login and this purpose, so an assertion for a proof
 *   completes no login, and no other login's.
 *
 * The challenge is gone after the first answer, right or wrong. A wrong answer
 * counts against the login, as a wrong password does. Each answer ends with a
 * row in the audit log: that of a change is in its transaction, before the
 * login gains anything.
 */
#include <string.h>

#include "fresh.h"
#include "ids.h"
#include "log.h"
#include "logins.h"
#include "passkey.h"

/* Returns the login that asked. NULL: it ended, or its verifier is not the
 * newest any more, and the request was refused. */
static const struct session *
still(struct attempt *a)
{
	const struct session *s =
	    sessions_find_any(a->v->sessions, &a->token, now_boot_ms());

	if (s == NULL) {
		attempt_refuse(
		    a, FAILURE_UNAUTHENTICATED, "the login has ended");
		return NULL;
	}
	if (a->passkey->by_password &&
	    !verifiers_current(a->v->verifiers, a->username, a->sealed_us)) {
		attempt_refuse(a, FAILURE_CONFLICT,
		    "the password or role was changed meanwhile");
		return NULL;
	}
	return s;
}

static void
refuse(struct attempt *a, const char *action, const struct err *err)
{
	log_event(LOG_LV_WARN, action, "%s: %s", a->username, err->text);
	(void)attempt_audit(a, a->actor, action, a->username, NULL);
	attempt_refuse(a, err->failure, err->text);
}

/* Takes the login's challenge of this kind. -1: the request was refused. */
static int
take_challenge(struct attempt *a, const struct session *s)
{
	struct passkey_op *op = a->passkey;
	struct err err;

	op->ceremony.rp_id = a->v->rp_id;
	op->ceremony.origins = a->v->origins;
	if (challenges_take(a->v->challenges, &s->id, op->kind, now_boot_ms(),
		op->ceremony.challenge) == 0)
		return 0;
	err_set(&err, FAILURE_PASSKEY_REFUSED,
	    "there is no challenge of this login for this, or it was used, or "
	    "its five minutes are over");
	refuse(a, "passkey_refused", &err);
	return -1;
}

/* ---- PASSKEY_REGISTER ---- */

/* A person's other logins end when the password becomes half a login, so that
 * none goes on that never showed a passkey. */
static void
registered(struct attempt *a)
{
	const struct session *s;

	if (a->stored_us != 0)
		(void)sessions_end_user(a->v->sessions, a->username, &a->token);
	if (a->passkey->coded) {
		challenges_code_end(a->v->challenges, a->username);
		if ((s = still(a)) == NULL)
			return;
		sessions_prove(a->v->sessions, s, now_boot_ms());
		sessions_cap(a->v->sessions, s, a->passkey->cap,
		    passkeys_lesser(s->role, a->passkey->cap));
	}
	log_event(LOG_LV_INFO, "passkey_registered", "of %s", a->username);
	attempt_ok(a);
}

/* Judges root's code. Without one, enrol() has seen a fresh proof. */
static int
may_register(struct attempt *a, const struct session *s, struct err *err)
{
	struct passkey_op *op = a->passkey;
	const char *role;

	if (op->code[0] == '\0') {
		attempt_copy(op->cap, sizeof(op->cap), ipc_str(s->cap));
		/* The proof was by a passkey that is not there any more. */
		if (!op->by_password && op->set.n == 0)
			return err_set(err, FAILURE_PASSKEY_REFUSED,
			    "the first passkey of a person of an issuer needs "
			    "a code of mcpboxctl passkeys code");
		return 0;
	}
	if (op->by_password || op->set.n > 0)
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "a code is for the first passkey of a person of an issuer: "
		    "prove yourself instead");
	role = challenges_code_role(
	    a->v->challenges, a->username, ipc_str(op->code), now_boot_ms());
	if (role == NULL)
		return err_set(err, FAILURE_PASSKEY_REFUSED,
		    "the code is not this person's, or its 15 minutes are "
		    "over");
	attempt_copy(op->cap, sizeof(op->cap), ipc_str(role));
	op->coded = true;
	return 0;
}

static void
register_found(struct attempt *a)
{
	struct passkey_op *op = a->passkey;
	struct passkey *k = NULL;
	const struct session *s;
	struct authdata d;
	struct ipc_hash hash;
	struct err err;

	if ((s = still(a)) == NULL)
		return;
	if (may_register(a, s, &err) == -1) {
		refuse(a, "passkey_refused", &err);
		return;
	}
	if (take_challenge(a, s) == -1)
		return;
	if (ceremony_register(&op->ceremony,
		ipc_bytes(op->client_data, op->nclient),
		ipc_bytes(op->data, op->ndata), &d, &err) == -1 ||
	    (k = passkeys_add(&op->set, &d, &err)) == NULL) {
		refuse(a, "passkey_refused", &err);
		return;
	}
	memcpy(k->label, op->label, sizeof(k->label));
	memcpy(k->cap, op->cap, sizeof(k->cap));
	k->created_ms = now_us() / 1000;
	memcpy(op->credential, k->id, k->nid);
	op->ncredential = k->nid;
	if (op->set.n == 1) {
		sha256(op->ceremony.challenge, sizeof(op->ceremony.challenge),
		    &hash);
		memcpy(op->set.handle.b, hash.b, sizeof(op->set.handle.b));
	}
	attempt_right(a);
	passkey_store(a, "register", registered);
}

static bool
label_ok(struct ipc_bytes b)
{
	if (b.n == 0 || b.n > PASSKEYS_LABEL_MAX)
		return false;
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] < 0x20 || b.p[i] == 0x7f)
			return false;
	return true;
}

static int
enrol(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_passkey_register m;
	const struct session *s;
	struct passkey_op *op;
	struct attempt *a;
	struct ipc_id id;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	a = passkey_begin(port, peer, m.request, m.token, false, &s);
	if (a == NULL || passkey_on(a) == -1)
		return 0;
	op = a->passkey;
	id = s->id;
	if (!label_ok(m.label) || m.code.n > CHALLENGES_CODE_TEXT) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS,
		    m.code.n > CHALLENGES_CODE_TEXT
			? "that is no code of mcpboxctl passkeys code"
			: "a label has 1 to 64 bytes of text in one line");
		return 0;
	}
	attempt_copy(op->label, sizeof(op->label), m.label);
	attempt_copy(op->code, sizeof(op->code), m.code);
	/* before this becomes the one change under way: a login without a
	 * proof must not hold other changes up */
	if (m.code.n == 0 &&
	    fresh_check(s, IPC_PASSKEY_REGISTER, now_boot_ms(), &err) == -1) {
		refuse(a, "passkey_refused", &err);
		return 0;
	}
	op->kind = CHALLENGES_REGISTER;
	if (passkey_copy(a, m.client_data, op->client_data,
		sizeof(op->client_data), &op->nclient) == 0 &&
	    passkey_copy(a, m.attestation, op->data, sizeof(op->data),
		&op->ndata) == 0 &&
	    passkey_alone(a) == 0 && attempt_count(a, THROTTLE_LOGIN, &id) == 0)
		passkey_find(a, register_found);
	return 0;
}

/* ---- PASSKEY_ASSERT ---- */

static void
used(struct attempt *a)
{
	struct passkey_op *op = a->passkey;
	struct sessions *all = a->v->sessions;
	const struct session *s = still(a);

	if (s == NULL)
		return;
	if (!s->pending) {
		sessions_prove(all, s, now_boot_ms());
	} else if (!sessions_complete(all, s, now_boot_ms(), now_us() / 1000)) {
		attempt_refuse(
		    a, FAILURE_UNAUTHENTICATED, "the login has ended");
		return;
	}
	if (!op->by_password)
		sessions_cap(
		    all, s, op->cap, passkeys_lesser(s->role, op->cap));
	tokens_answer(a->v, a->ref, s);
	attempt_free(a);
}

/* Refuses a passkey that may have been copied. The row of the audit log is
 * written. */
static void
shut(struct attempt *a)
{
	log_event(LOG_LV_WARN, "passkey_cloned", "%s: %s", a->username,
	    a->passkey->label);
	attempt_refuse(a, FAILURE_PASSKEY_REFUSED,
	    "the passkey's counter went back, so there may be a copy of it: it "
	    "opens nothing any more. Remove it and register another one");
}

static void
assert_found(struct attempt *a)
{
	struct passkey_op *op = a->passkey;
	struct ceremony_answer answer = {
	    ipc_bytes(op->client_data, op->nclient),
	    ipc_bytes(op->data, op->ndata),
	    ipc_bytes(op->signature, op->nsignature),
	    ipc_bytes(op->handle, op->nhandle)};
	bool cloned = false;
	const struct session *s;
	struct passkey *k;
	uint32_t count = 0;
	struct err err;

	if ((s = still(a)) == NULL || take_challenge(a, s) == -1)
		return;
	k = passkeys_find(&op->set, ipc_bytes(op->credential, op->ncredential));
	if (k == NULL) {
		err_set(&err, FAILURE_PASSKEY_REFUSED,
		    "the person has no such passkey");
		refuse(a, "passkey_refused", &err);
		return;
	}
	if (ceremony_assert(&op->ceremony, &answer, k, &op->set.handle, &count,
		&cloned, &err) == -1 &&
	    !cloned) {
		refuse(a, "passkey_refused", &err);
		return;
	}
	if (cloned) {
		/* No counter is above this one, so neither the copy nor the
		 * device gets in with this passkey again. */
		k->sign_count = UINT32_MAX;
		memcpy(op->label, k->label, sizeof(op->label));
		passkey_store(a, "cloned", shut);
		return;
	}
	attempt_right(a);
	k->sign_count = count;
	k->used_ms = now_us() / 1000;
	memcpy(op->cap, k->cap, sizeof(op->cap));
	memcpy(op->label, k->label, sizeof(op->label));
	passkey_store(
	    a, op->kind == CHALLENGES_LOGIN ? "login" : "proof", used);
}

static int
judge(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_passkey_assert m;
	const struct session *s;
	struct passkey_op *op;
	struct attempt *a;
	struct ipc_id id;
	bool login;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	login = ipc_streq(m.kind, "login");
	a = passkey_begin(port, peer, m.request, m.token, login, &s);
	if (a == NULL || passkey_on(a) == -1)
		return 0;
	op = a->passkey;
	id = s->id;
	if (login != s->pending) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS,
		    "this login has its passkey already: POST /api/proof");
		return 0;
	}
	op->kind = login ? CHALLENGES_LOGIN : CHALLENGES_PROOF;
	if (passkey_copy(a, m.credential, op->credential,
		sizeof(op->credential), &op->ncredential) == 0 &&
	    passkey_copy(a, m.client_data, op->client_data,
		sizeof(op->client_data), &op->nclient) == 0 &&
	    passkey_copy(a, m.auth_data, op->data, AUTHDATA_MAX, &op->ndata) ==
		0 &&
	    passkey_copy(a, m.signature, op->signature, sizeof(op->signature),
		&op->nsignature) == 0 &&
	    passkey_copy(a, m.handle, op->handle, sizeof(op->handle),
		&op->nhandle) == 0 &&
	    passkey_alone(a) == 0 && attempt_count(a, THROTTLE_LOGIN, &id) == 0)
		passkey_find(a, assert_found);
	return 0;
}

int
passkey_use_message(
    struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_PASSKEY_REGISTER:
		return enrol(port, peer, f);
	case IPC_PASSKEY_ASSERT:
		return judge(port, peer, f);
	default:
		return -1;
	}
}
