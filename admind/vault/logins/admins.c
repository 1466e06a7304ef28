/*
 * PASSWORD, SETUP, ADMIN_CHANGE, DEVICE_MAKE: changes of administrators.
 *
 * A person who is logged in and knows the present password may change that
 * password. Other changes come from the socket that admits uid 0, or from an
 * administrator who is logged in and gives the administrator's own password in
 * this very request. The login alone is not enough, because the change outlives
 * the login: a person who borrowed a browser, read a cookie or took over the
 * web process could otherwise make an account and keep it. The login's proof
 * must be fresh, too, as for all that outlives a login (fresh.h). A person of
 * an issuer has no password. For that person the fresh proof, which only a
 * passkey gives, must be enough. Wrong passwords count against the login that
 * shows them, so no other person is locked out.
 *
 * admind may send none of these messages. It stores a verifier that is sealed
 * here for a name and a role, and could answer OK without storing it. Even then
 * the vault refuses the person's older verifiers until the vault restarts
 * (verifiers.h).
 *
 * Every change of a person's verifier ends the person's logins before the
 * change is answered (PASSWORD spares the login that asks). A login that is
 * being made at that time is refused: logins.c sees that its verifier is not
 * the newest.
 */
#include "admins.h"

#include <string.h>

#include "attempt.h"
#include "fresh.h"
#include "ids.h"
#include "log.h"

static const char name_form[] =
    "a user name has 3 to 50 letters, digits and underscores and begins with "
    "a letter";
static const char password_form[] = "a password has 12 to 128 characters";

/* ---- committed ---- */

static void
stored(struct attempt *a)
{
	bool own = strcmp(a->change, "own_password") == 0;
	const struct session *s;

	(void)sessions_end_user(
	    a->v->sessions, a->target, own ? &a->token : NULL);
	/* The person has just shown the old password. */
	if (own &&
	    (s = sessions_find(a->v->sessions, &a->token, now_boot_ms())) !=
		NULL)
		sessions_prove(a->v->sessions, s, now_boot_ms());
	log_event(LOG_LV_INFO, "administrator", "%s of %s by %s", a->change,
	    a->target, a->actor);
	attempt_ok(a);
}

/* Stores job.encoded: the hash of the new password or, for a new role, the
 * person's present hash. */
static void
store(struct attempt *a)
{
	attempt_store(a, stored);
}

/* ---- the change itself ---- */

static void
hash_new(struct attempt *a)
{
	attempt_put(a, ipc_bytes(a->new_password, a->new_len));
	attempt_hash(a, store);
}

/* Goes on with the person's present role and verifier. A new password is sealed
 * for the present role. A new role needs the present verifier, but not the
 * password. */
static void
target_found(struct attempt *a)
{
	if (!a->known) {
		attempt_refuse(a, FAILURE_NOT_FOUND,
		    "there is no administrator of that name");
	} else if (strcmp(a->change, "role") == 0) {
		store(a);
	} else {
		memcpy(a->target_role, a->role, sizeof(a->role));
		hash_new(a);
	}
}

/*
 * Begins a change if no other change is under way. If two ran at once, a change
 * of role could seal a verifier that the other change is replacing, and the old
 * password would come back.
 */
static void
begin(struct attempt *a)
{
	if (a->v->changing != NULL) {
		attempt_refuse(a, FAILURE_BUSY,
		    "another administrator is just being changed");
		return;
	}
	a->v->changing = a;
	/* the handle is still the asker's own */
	if (strcmp(a->change, "create") == 0)
		memset(&a->handle, 0, sizeof(a->handle));
	if (strcmp(a->change, "create") == 0 ||
	    strcmp(a->change, "own_password") == 0) {
		hash_new(a);
	} else if (strcmp(a->change, "delete") == 0) {
		attempt_store(a, stored);
	} else {
		memcpy(a->username, a->target, sizeof(a->target));
		attempt_find(a, target_found);
	}
}

/* ---- own password ---- */

/*
 * Returns the login that asked. NULL: the attempt was refused, because the
 * login ended while we hashed or, if `administrator`, is not an
 * administrator's, or because the verifier is not the newest any more.
 *
 * The verifier was read before the change began. A first passkey that was
 * registered since then has put its handle into a newer verifier. A new
 * password sealed without that handle would take the passkey away.
 */
static const struct session *
still(struct attempt *a, bool administrator)
{
	const struct session *s =
	    sessions_find(a->v->sessions, &a->token, now_boot_ms());

	if (s == NULL) {
		attempt_refuse(
		    a, FAILURE_UNAUTHENTICATED, "the login has ended");
	} else if (administrator && strcmp(s->role, "administrator") != 0) {
		attempt_refuse(a, FAILURE_FORBIDDEN,
		    "only an administrator may change this");
		s = NULL;
	} else if (!verifiers_current(
		       a->v->verifiers, a->username, a->sealed_us)) {
		attempt_refuse(a, FAILURE_CONFLICT,
		    "the password or role was changed meanwhile");
		s = NULL;
	}
	return s;
}

static void
own_judged(struct attempt *a)
{
	bool own = strcmp(a->change, "own_password") == 0;

	if (!a->job.match || !a->known) {
		(void)attempt_audit(
		    a, a->actor, "password_wrong", a->target, NULL);
		attempt_refuse(
		    a, FAILURE_BAD_LOGIN, "the own password is wrong");
		return;
	}
	attempt_right(a);
	if (still(a, !own) != NULL)
		begin(a);
}

static void
own_found(struct attempt *a)
{
	if (strcmp(a->change, "own_password") == 0)
		memcpy(a->target_role, a->role, sizeof(a->role));
	attempt_verify(a, own_judged);
}

/* Checks a password that should be that of the person whose login asks. */
static void
prove(struct attempt *a, const struct session *s, struct ipc_bytes password)
{
	struct ipc_id id = s->id;

	attempt_copy(a->username, sizeof(a->username), ipc_str(s->username));
	attempt_copy(a->actor, sizeof(a->actor), ipc_str(s->username));
	a->from = s->from;
	if (attempt_count(a, THROTTLE_LOGIN, &id) == -1)
		return;
	if (password.n > SLOTS_PASSWORD_MAX) {
		(void)attempt_audit(
		    a, a->actor, "password_wrong", a->target, NULL);
		attempt_refuse(
		    a, FAILURE_BAD_LOGIN, "the own password is wrong");
		return;
	}
	attempt_put(a, password);
	attempt_find(a, own_found);
}

/* A person of an issuer has no password, so a hash would be wasted. */
static bool
has_password(const struct session *s)
{
	return s->by == SESSION_BY_PASSWORD;
}

static void
put_new(struct attempt *a, struct ipc_bytes password)
{
	if (password.n != 0)
		memcpy(a->new_password, password.p, password.n);
	a->new_len = password.n;
}

/* ---- messages ---- */

static int
own_password(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	const struct session *s;
	struct ipc_password m;
	struct attempt *a;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((a = attempt_new(port, peer, m.request)) == NULL)
		return 0;
	s = sessions_find_text(
	    port->v->sessions, m.token, now_boot_ms(), &a->token);
	if (s == NULL) {
		attempt_refuse(a, FAILURE_UNAUTHENTICATED, "not logged in");
	} else if (!has_password(s)) {
		attempt_refuse(a, FAILURE_FORBIDDEN,
		    "a person who signs in by an issuer has no password here: "
		    "a passkey is the proof");
	} else if (!attempt_password_ok(m.new)) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS, password_form);
	} else {
		a->change = "own_password";
		attempt_copy(
		    a->target, sizeof(a->target), ipc_str(s->username));
		put_new(a, m.new);
		prove(a, s, m.old);
	}
	return 0;
}

/* Makes the first administrator. SETUP comes only from the socket that admits
 * uid 0. admind commits the new account only while there is no administrator.
 */
static int
setup(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_setup m;
	struct attempt *a;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((a = attempt_new(port, peer, m.request)) == NULL)
		return 0;
	if (!attempt_username_ok(m.username)) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS, name_form);
	} else if (!attempt_password_ok(m.password)) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS, password_form);
	} else {
		a->change = "setup";
		attempt_copy(a->target, sizeof(a->target), m.username);
		attempt_copy(a->target_role, sizeof(a->target_role),
		    ipc_str("administrator"));
		attempt_copy(a->actor, sizeof(a->actor), ipc_str("root"));
		put_new(a, m.password);
		hash_new(a);
	}
	return 0;
}

/* Returns the error, or NULL if the change is known and has exactly the fields
 * that it needs. */
static const char *
unfit(struct attempt *a, const struct ipc_admin_change *m)
{
	static const char *const changes[] = {
	    "create", "password", "role", "delete"};
	bool secret, role;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (ipc_streq(m->change, changes[i]))
			a->change = changes[i];
	if (a->change == NULL)
		return "unknown change";
	role = a->change[0] == 'c' || a->change[0] == 'r';
	secret = a->change[0] == 'c' || a->change[0] == 'p';
	if (!attempt_username_ok(m->username))
		return name_form;
	if (role ? !attempt_role_ok(m->role) : m->role.n != 0)
		return "a role is administrator, reviewer or viewer";
	if (secret ? !attempt_password_ok(m->new) : m->new.n != 0)
		return password_form;
	return NULL;
}

static int
change(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	const struct session *s = NULL;
	struct ipc_admin_change m;
	struct attempt *a;
	const char *why;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((a = attempt_new(port, peer, m.request)) == NULL)
		return 0;
	if (port->role != IPC_ROLE_CTL &&
	    (s = sessions_find_text(port->v->sessions, m.token, now_boot_ms(),
		 &a->token)) == NULL) {
		attempt_refuse(a, FAILURE_UNAUTHENTICATED, "not logged in");
		return 0;
	}
	if (s != NULL && strcmp(s->role, "administrator") != 0) {
		attempt_refuse(a, FAILURE_FORBIDDEN,
		    "only an administrator may change this");
		return 0;
	}
	if ((why = unfit(a, &m)) != NULL) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS, why);
		return 0;
	}
	/* A person's own password is changed by PASSWORD, which ends the
	 * person's other logins but not the login that asks. */
	if (s != NULL && a->change[0] == 'p' &&
	    ipc_streq(m.username, s->username)) {
		attempt_refuse(a, FAILURE_INVALID_PARAMS,
		    "one's own password is changed by POST /api/password");
		return 0;
	}
	attempt_copy(a->target, sizeof(a->target), m.username);
	attempt_copy(a->target_role, sizeof(a->target_role), m.role);
	put_new(a, m.new);
	if (s != NULL && fresh_check(s, f->type, now_boot_ms(), &err) == -1) {
		a->from = s->from;
		(void)attempt_audit(
		    a, s->username, "administrator_refused", a->target, NULL);
		attempt_refuse(a, err.failure, err.text);
	} else if (s != NULL && has_password(s)) {
		prove(a, s, m.password);
	} else if (s != NULL && m.password.n != 0) {
		attempt_refuse(a, FAILURE_FORBIDDEN,
		    "a person who signs in by an issuer gives an empty "
		    "password: a passkey is the proof");
	} else if (s != NULL) {
		/* fresh_check() has seen the passkey's proof */
		attempt_copy(a->actor, sizeof(a->actor), ipc_str(s->username));
		a->from = s->from;
		begin(a);
	} else {
		attempt_copy(a->actor, sizeof(a->actor), ipc_str("root"));
		begin(a);
	}
	return 0;
}

/*
 * Makes a device code for uid 0. The code counts as a known browser for a
 * quarter of an hour. Its holder still needs the password, but the guesses of
 * others do not count against the holder. The name is not looked up, because a
 * code for a person who does not exist opens nothing.
 */
static int
device(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char name[SESSIONS_USER_MAX + 1];
	struct devices_text text;
	struct ipc_device_make m;
	struct ipc_device_code c;
	uint64_t now = now_us() / 1000000;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (!attempt_username_ok(m.username)) {
		(void)ipc_refuse(
		    peer, m.request, FAILURE_INVALID_PARAMS, name_form, 0);
		return 0;
	}
	attempt_copy(name, sizeof(name), m.username);
	if (devices_make(port->v->keys, DEVICES_CODE, name, now, &text) == -1) {
		(void)ipc_refuse(
		    peer, m.request, FAILURE_BUSY, "out of memory", 1000);
		return 0;
	}
	(void)audit_event(
	    port->v, "root", "device_code", name, "{}", NULL, NULL);
	memset(&c, 0, sizeof(c));
	c.device = ipc_str(text.s);
	c.expires_ms = (now + DEVICES_CODE_S) * 1000;
	(void)ipc_answer(peer, m.request, IPC_DEVICE_CODE, &c);
	explicit_bzero(&text, sizeof(text));
	return 0;
}

int
admins_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_PASSWORD:
		return own_password(port, peer, f);
	case IPC_SETUP:
		return setup(port, peer, f);
	case IPC_ADMIN_CHANGE:
		return change(port, peer, f);
	case IPC_DEVICE_MAKE:
		return device(port, peer, f);
	default:
		return -1;
	}
}
