/*
 * LOGIN, PASSWORD, SETUP: whatever hashes a password.
 *
 * Why each is safe with a hostile admind, which holds the table of verifiers:
 * a verifier is opened only if it was sealed here for this very name and role
 * (AES-GCM, verifiers key), so admind can't make one, give one person's to
 * another, or raise a role. It can withhold one (refusal of service) or bring
 * back an older one of the same person: an old password then works again, for
 * somebody who knew it; docs/THREATS.md says so. Passwords and tokens never go
 * to admind, and LOGIN's socket isn't reachable for it (SO_PEERCRED).
 *
 * And with a hostile web process: it sees the passwords typed into it and can
 * act as who is logged in, no more; guessing costs a full Argon2id each, two
 * at a time; unknown names take the same path at the same cost.
 */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "stored.h"
#include "vault.h"

enum {
	PASSWORD_MIN = 12, /* characters */
	PASSWORD_MAX = 128,
	USER_MIN = 3,
	SOURCE_MAX = 64 /* an address; longer is cut */
};

enum op_what { OP_LOGIN, OP_PASSWORD, OP_SETUP };

struct op {
	struct vault *v;
	struct vault_ref ref;
	enum op_what what;
	char username[SESSIONS_USER_MAX + 1];
	char role[SESSIONS_ROLE_MAX + 1];
	char source[SOURCE_MAX + 1];
	bool known;            /* job.encoded is the user's, not the decoy */
	struct ipc_hash token; /* PASSWORD: the login to keep */
	char new_password[SLOTS_PASSWORD_MAX];
	size_t new_len;
	struct slots_job job;
};

static void on_slot(struct slots_job *, void *);

static struct op *
op_new(struct port *port, struct ipc_peer *peer, uint64_t request,
    enum op_what what)
{
	struct vault_ref ref = callers_ref(port, peer, request);
	struct op *op = NULL;

	if (callers_room(port))
		op = calloc(1, sizeof(*op));
	if (op == NULL) {
		callers_refuse(
		    port->v, ref, FAILURE_BUSY, "too many requests at once");
		return NULL;
	}
	port->v->ops++;
	op->v = port->v;
	op->ref = ref;
	op->what = what;
	op->job.done = on_slot;
	op->job.arg = op;
	return op;
}

static void
op_free(struct op *op)
{
	op->v->ops--;
	explicit_bzero(op, sizeof(*op));
	free(op);
}

static void
op_refuse(struct op *op, enum failure failure, const char *message)
{
	callers_refuse(op->v, op->ref, failure, message);
	op_free(op);
}

static void
submit(struct op *op, enum slots_what what)
{
	op->job.what = what;
	if (slots_submit(op->v->slots, &op->job) == -1)
		op_refuse(op, FAILURE_BUSY, "too many logins at once");
}

/* ^[a-zA-Z][a-zA-Z0-9_]{2,49}$ */
static bool
username_ok(struct ipc_bytes u)
{
	if (u.n < USER_MIN || u.n > SESSIONS_USER_MAX)
		return false;
	for (size_t i = 0; i < u.n; i++) {
		uint8_t c = u.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter &&
		    (i == 0 || !((c >= '0' && c <= '9') || c == '_')))
			return false;
	}
	return true;
}

/* Characters of UTF-8 already checked: bytes that don't continue one. */
static bool
password_ok(struct ipc_bytes p)
{
	size_t n = 0;

	for (size_t i = 0; i < p.n; i++)
		n += (p.p[i] & 0xc0) != 0x80;
	return n >= PASSWORD_MIN && n <= PASSWORD_MAX &&
	    p.n <= SLOTS_PASSWORD_MAX;
}

/* Copies text that fits, cutting what does not; NUL-terminated. */
static void
copy_text(char *to, size_t size, struct ipc_bytes from)
{
	size_t n = from.n < size ? from.n : size - 1;

	if (n != 0)
		memcpy(to, from.p, n);
	to[n] = '\0';
}

static void
put_password(struct op *op, struct ipc_bytes p)
{
	op->job.password_len = p.n;
	if (p.n != 0)
		memcpy(op->job.password, p.p, p.n);
}

static bool
role_ok(const char *role)
{
	return strcmp(role, "administrator") == 0 ||
	    strcmp(role, "reviewer") == 0 || strcmp(role, "viewer") == 0;
}

static struct stored_place
verifier_place(const struct op *op)
{
	struct stored_place at = {
	    "administrators", ipc_str(op->username), ipc_str(op->role)};

	return at;
}

/* {"source": ...}: what the audit row says beside name and action. */
static int
audit(struct op *op, const char *action, ipc_answer_cb *cb)
{
	char detail[2 * sizeof(op->source) * 6 + 32];
	struct jsonw w;
	struct buf b;

	buf_init(&b, sizeof(detail) - 1);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "source", op->source);
	jsonw_obj_end(&w);
	copy_text(detail, sizeof(detail),
	    b.failed ? ipc_str("{}") : ipc_bytes(b.p, b.len));
	buf_free(&b);
	return audit_event(op->v, op->known ? op->username : "unknown", action,
	    op->username, detail, cb, op);
}

/*
 * The verifier, or an empty one. A verifier that doesn't open was not made
 * here for this name and role: treated as if there were no such user, at the
 * same cost, and logged.
 */
static void
on_record(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;
	struct ipc_admin_record r;
	struct buf plain;
	struct err err;

	if (f == NULL || f->type != IPC_ADMIN_RECORD) {
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	}
	if (ipc_decode(f, &r, &err) == -1) {
		op_refuse(op, FAILURE_INTERNAL, err.text);
		return;
	}
	buf_init(&plain, SLOTS_ENCODED_MAX - 1);
	copy_text(op->job.encoded, sizeof(op->job.encoded),
	    ipc_str(slots_decoy(op->v->slots)));
	if (r.verifier.n != 0) {
		copy_text(op->role, sizeof(op->role), r.role);
		if (!role_ok(op->role)) {
			log_event(LOG_LV_WARN, "verifier_refused",
			    "unknown role for %s", op->username);
		} else {
			struct stored_place at = verifier_place(op);

			if (stored_open(op->v->keys->verifiers, &at,
				r.verifier.p, r.verifier.n, &plain,
				&err) == -1) {
				log_event(LOG_LV_WARN, "verifier_refused",
				    "%s: %s", op->username, err.text);
			} else {
				copy_text(op->job.encoded,
				    sizeof(op->job.encoded),
				    ipc_bytes(plain.p, plain.len));
				op->known = true;
			}
		}
	}
	buf_free(&plain);
	submit(op, SLOTS_VERIFY);
}

/* The login is made once its audit row is committed, so that there is none
 * without a row. */
static void
on_login_audited(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;
	char token[SESSIONS_TEXT + 1];
	const struct session *s;
	struct ipc_login_ok ok;

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	}
	s = sessions_add(op->v->sessions, op->username, op->role, now_boot_ms(),
	    now_us() / 1000, token);
	if (s == NULL) {
		op_refuse(op, FAILURE_BUSY, "too many people are logged in");
		return;
	}
	memset(&ok, 0, sizeof(ok));
	ok.token = ipc_str(token);
	ok.csrf = ipc_str(s->csrf);
	ok.username = ipc_str(s->username);
	ok.role = ipc_str(s->role);
	ok.expires_ms = s->expires_ms;
	callers_answer(op->v, op->ref, IPC_LOGIN_OK, &ok);
	explicit_bzero(token, sizeof(token));
	op_free(op);
}

static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	}
	if (op->what == OP_PASSWORD) {
		sessions_end_user(op->v->sessions, op->username, &op->token);
		(void)audit(op, "password_change", NULL);
	} else {
		log_event(LOG_LV_INFO, "setup", "first administrator: %s",
		    op->username);
	}
	callers_ok(op->v, op->ref);
	op_free(op);
}

/* Seals the new verifier for its name and role and has admind commit it. */
static void
store(struct op *op)
{
	struct stored_place at = verifier_place(op);
	struct ipc_admin_store m;
	struct buf sealed;
	struct err err;

	buf_init(&sealed, SLOTS_ENCODED_MAX + STORED_OVERHEAD);
	if (stored_seal(op->v->keys->verifiers, &at, op->job.encoded,
		strlen(op->job.encoded), &sealed, &err) == -1) {
		op_refuse(op, err.failure, err.text);
		goto out;
	}
	memset(&m, 0, sizeof(m));
	m.username = ipc_str(op->username);
	m.role = ipc_str(op->role);
	m.first = op->what == OP_SETUP;
	m.actor = ipc_str(op->what == OP_SETUP ? "root" : op->username);
	m.verifier = ipc_bytes(sealed.p, sealed.len);
	if (callers_ask(op->v, IPC_ADMIN_STORE, &m, on_stored, op) == -1)
		op_refuse(op, FAILURE_BUSY, "admind is not connected");
out:
	buf_free(&sealed);
}

/* A worker is done. The old password and its hash are not needed any more. */
static void
on_slot(struct slots_job *job, void *arg)
{
	struct op *op = arg;

	explicit_bzero(job->password, sizeof(job->password));
	if (job->failed) {
		op_refuse(op, FAILURE_BUSY, "no memory for a password hash");
		return;
	}
	if (job->what == SLOTS_HASH) {
		store(op);
		return;
	}
	if (!job->match || !op->known) {
		(void)audit(op, "login_failed", NULL);
		op_refuse(
		    op, FAILURE_BAD_LOGIN, "user name or password is wrong");
		return;
	}
	if (op->what == OP_LOGIN) {
		if (audit(op, "login", on_login_audited) == -1)
			op_refuse(op, FAILURE_BUSY, "admind is not connected");
		return;
	}
	/* The login that asked must not have ended while we hashed. */
	if (sessions_find(op->v->sessions, &op->token, now_boot_ms()) == NULL) {
		op_refuse(op, FAILURE_UNAUTHENTICATED, "the login has ended");
		return;
	}
	put_password(op, ipc_bytes(op->new_password, op->new_len));
	submit(op, SLOTS_HASH);
}

static void
look_up(struct op *op)
{
	struct ipc_admin_lookup m;

	memset(&m, 0, sizeof(m));
	m.username = ipc_str(op->username);
	if (callers_ask(op->v, IPC_ADMIN_LOOKUP, &m, on_record, op) == -1)
		op_refuse(op, FAILURE_BUSY, "admind is not connected");
}

static int
login(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_login m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(port, peer, m.request, OP_LOGIN)) == NULL)
		return 0;
	copy_text(op->source, sizeof(op->source), m.source);
	if (!utf8_valid((const uint8_t *)op->source, strlen(op->source)))
		op->source[0] = '\0'; /* cut inside a character */
	if (m.password.n > SLOTS_PASSWORD_MAX) {
		op_refuse(
		    op, FAILURE_BAD_LOGIN, "user name or password is wrong");
		return 0;
	}
	put_password(op, m.password);
	/* No such name can exist: no need to ask, but the same price. */
	if (!username_ok(m.username)) {
		copy_text(
		    op->username, sizeof(op->username), ipc_str("(invalid)"));
		copy_text(op->job.encoded, sizeof(op->job.encoded),
		    ipc_str(slots_decoy(port->v->slots)));
		submit(op, SLOTS_VERIFY);
		return 0;
	}
	copy_text(op->username, sizeof(op->username), m.username);
	look_up(op);
	return 0;
}

static int
password(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	const struct session *s;
	struct ipc_password m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(port, peer, m.request, OP_PASSWORD)) == NULL)
		return 0;
	s = sessions_find_text(
	    port->v->sessions, m.token, now_boot_ms(), &op->token);
	if (s == NULL) {
		op_refuse(op, FAILURE_UNAUTHENTICATED, "not logged in");
	} else if (!password_ok(m.new)) {
		op_refuse(op, FAILURE_INVALID_PARAMS,
		    "a password has 12 to 128 characters");
	} else if (m.old.n > SLOTS_PASSWORD_MAX) {
		op_refuse(
		    op, FAILURE_BAD_LOGIN, "user name or password is wrong");
	} else {
		copy_text(
		    op->username, sizeof(op->username), ipc_str(s->username));
		put_password(op, m.old);
		memcpy(op->new_password, m.new.p, m.new.n);
		op->new_len = m.new.n;
		look_up(op);
	}
	return 0;
}

/* Only from the socket that admits uid 0; admind commits it only if there is
 * no administrator yet. */
static int
setup(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_setup m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(port, peer, m.request, OP_SETUP)) == NULL)
		return 0;
	if (!username_ok(m.username)) {
		op_refuse(op, FAILURE_INVALID_PARAMS,
		    "a user name has 3 to 50 letters, digits and underscores "
		    "and begins with a letter");
	} else if (!password_ok(m.password)) {
		op_refuse(op, FAILURE_INVALID_PARAMS,
		    "a password has 12 to 128 characters");
	} else {
		copy_text(op->username, sizeof(op->username), m.username);
		copy_text(op->role, sizeof(op->role), ipc_str("administrator"));
		op->known = true;
		put_password(op, m.password);
		submit(op, SLOTS_HASH);
	}
	return 0;
}

int
logins_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_LOGIN:
		return login(port, peer, f);
	case IPC_PASSWORD:
		return password(port, peer, f);
	case IPC_SETUP:
		return setup(port, peer, f);
	default:
		return -1;
	}
}
