#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "passkey.h"
#include "stored.h"

static void on_slot(struct slots_job *, void *);

struct attempt *
attempt_new(struct port *port, struct ipc_peer *peer, uint64_t request)
{
	struct vault_ref ref = callers_ref(port, peer, request);
	struct attempt *a = NULL;

	if (callers_room(port))
		a = calloc(1, sizeof(*a));
	if (a == NULL) {
		callers_refuse(
		    port->v, ref, FAILURE_BUSY, "too many requests at once");
		return NULL;
	}
	port->v->ops++;
	a->v = port->v;
	a->ref = ref;
	a->job.done = on_slot;
	a->job.arg = a;
	return a;
}

void
attempt_free(struct attempt *a)
{
	a->v->ops--;
	if (a->stranger)
		a->v->strangers--;
	if (a->v->changing == a)
		a->v->changing = NULL;
	if (a->passkey != NULL)
		explicit_bzero(a->passkey, sizeof(*a->passkey));
	free(a->passkey);
	explicit_bzero(a, sizeof(*a));
	free(a);
}

void
attempt_refuse(struct attempt *a, enum failure failure, const char *message)
{
	/* A request that is refused for another reason was no guess, so its
	 * count is taken back. INVALID_PARAMS of a request that was counted is
	 * a passkey's answer that is malformed. */
	if (failure != FAILURE_BAD_LOGIN &&
	    failure != FAILURE_PASSKEY_REFUSED &&
	    failure != FAILURE_INVALID_PARAMS)
		attempt_right(a);
	callers_refuse(a->v, a->ref, failure, message);
	attempt_free(a);
}

void
attempt_ok(struct attempt *a)
{
	callers_ok(a->v, a->ref);
	attempt_free(a);
}

/* ---- forms ---- */

bool
attempt_username_ok(struct ipc_bytes u)
{
	if (u.n < 3 || u.n > SESSIONS_NAME_MAX)
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

/* Counts the characters of valid UTF-8: all bytes but continuation bytes. */
bool
attempt_password_ok(struct ipc_bytes p)
{
	size_t n = 0;

	for (size_t i = 0; i < p.n; i++)
		n += (p.p[i] & 0xc0) != 0x80;
	return n >= ATTEMPT_PASSWORD_MIN && n <= ATTEMPT_PASSWORD_MAX &&
	    p.n <= SLOTS_PASSWORD_MAX;
}

bool
attempt_role_ok(struct ipc_bytes role)
{
	return ipc_streq(role, "administrator") ||
	    ipc_streq(role, "reviewer") || ipc_streq(role, "viewer");
}

void
attempt_copy(char *to, size_t size, struct ipc_bytes from)
{
	size_t n = from.n < size ? from.n : size - 1;

	if (n != 0)
		memcpy(to, from.p, n);
	to[n] = '\0';
}

/* ---- counting ---- */

static struct ipc_bytes
counted_as(const struct attempt *a)
{
	return a->counted == THROTTLE_NAME
	    ? ipc_str(a->username)
	    : ipc_bytes(a->number.b, sizeof(a->number.b));
}

static int
refuse_throttled(struct attempt *a, uint64_t wait_ms)
{
	log_event(LOG_LV_WARN, "login_throttled", "%s from %s", a->username,
	    a->from.source);
	callers_refuse_later(a->v, a->ref, FAILURE_RATE_LIMITED,
	    a->stranger ? "too many wrong passwords from browsers that never "
			  "logged in here; mcpboxctl administrators device "
			  "gives a code that lets this one in"
			: "too many wrong passwords",
	    wait_ms);
	attempt_free(a);
	return -1;
}

/*
 * A stranger's attempt is counted twice: in the bucket of the name, so that
 * guesses at one name are limited, and in the bucket of all names together.
 * Other strangers use up both buckets as well, so a known browser has a bucket
 * of its own. If one bucket is empty, nothing is taken from the other.
 */
int
attempt_count(
    struct attempt *a, enum throttle_what what, const struct ipc_id *number)
{
	struct throttle *t = a->v->throttle;
	uint64_t now = now_boot_ms(), wait;

	if (number != NULL)
		a->number = *number;
	if (what == THROTTLE_NAME) {
		a->stranger = a->job.stranger = true;
		if (++a->v->strangers > ATTEMPT_STRANGERS_MAX) {
			attempt_refuse(
			    a, FAILURE_BUSY, "too many logins at once");
			return -1;
		}
		wait = throttle_take(t, THROTTLE_ALL, ipc_str(""), now);
		if (wait > 0)
			return refuse_throttled(a, wait);
	}
	a->counted = what;
	wait = throttle_take(t, what, counted_as(a), now);
	if (wait == 0)
		return 0;
	if (what == THROTTLE_NAME)
		throttle_give(t, THROTTLE_ALL, ipc_str(""));
	a->counted = THROTTLE_NONE;
	return refuse_throttled(a, wait);
}

void
attempt_right(struct attempt *a)
{
	if (a->counted == THROTTLE_NONE)
		return;
	throttle_give(a->v->throttle, a->counted, counted_as(a));
	if (a->counted == THROTTLE_NAME)
		throttle_give(a->v->throttle, THROTTLE_ALL, ipc_str(""));
	a->counted = THROTTLE_NONE;
}

/* ---- steps ---- */

/*
 * Takes the verifier from admind's answer. It is empty if there is no such
 * user. A verifier is refused if it was not made here for this name and role,
 * or if a newer one was seen. The refusal is logged, and the attempt goes on as
 * for an unknown user, at the same cost.
 */
static void
on_record(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct attempt *a = arg;
	struct ipc_admin_record r;
	struct err err;

	if (f == NULL || f->type != IPC_ADMIN_RECORD) {
		attempt_right(a);
		callers_refuse_as(a->v, a->ref, f, gone);
		attempt_free(a);
		return;
	}
	if (ipc_decode(f, &r, &err) == -1) {
		attempt_refuse(a, FAILURE_INTERNAL, err.text);
		return;
	}
	a->known = false;
	memset(&a->handle, 0, sizeof(a->handle));
	a->sealed_set = r.passkeys;
	attempt_copy(a->job.encoded, sizeof(a->job.encoded),
	    ipc_str(slots_decoy(a->v->slots)));
	attempt_copy(a->role, sizeof(a->role), r.role);
	if (r.verifier.n != 0 && !attempt_role_ok(r.role))
		log_event(LOG_LV_WARN, "verifier_refused",
		    "unknown role for %s", a->username);
	else if (r.verifier.n != 0 &&
	    verifiers_open(a->v->verifiers, a->v->keys, a->username, a->role,
		r.verifier, a->job.encoded, &a->handle, &a->sealed_us,
		&err) == -1) {
		log_event(LOG_LV_WARN, "verifier_refused", "%s: %s",
		    a->username, err.text);
		attempt_copy(a->job.encoded, sizeof(a->job.encoded),
		    ipc_str(slots_decoy(a->v->slots)));
	} else {
		a->known = r.verifier.n != 0;
	}
	a->then(a);
}

void
attempt_find(struct attempt *a, void (*then)(struct attempt *))
{
	struct ipc_admin_lookup m;

	memset(&m, 0, sizeof(m));
	m.username = ipc_str(a->username);
	a->then = then;
	if (callers_ask(a->v, IPC_ADMIN_LOOKUP, &m, on_record, a) == -1)
		attempt_refuse(a, FAILURE_BUSY, "admind is not connected");
}

/* Goes on after a thread used the password, which is wiped, because no later
 * step needs it. */
static void
on_slot(struct slots_job *job, void *arg)
{
	struct attempt *a = arg;

	explicit_bzero(job->password, sizeof(job->password));
	if (job->failed)
		attempt_refuse(
		    a, FAILURE_BUSY, "no memory for a password hash");
	else
		a->then(a);
}

void
attempt_put(struct attempt *a, struct ipc_bytes password)
{
	a->job.password_len = password.n;
	if (password.n != 0)
		memcpy(a->job.password, password.p, password.n);
}

static void
submit(struct attempt *a, enum slots_what what, void (*then)(struct attempt *))
{
	a->job.what = what;
	a->job.match = false;
	a->then = then;
	if (slots_submit(a->v->slots, &a->job) == -1)
		attempt_refuse(a, FAILURE_BUSY, "too many logins at once");
}

void
attempt_verify(struct attempt *a, void (*then)(struct attempt *))
{
	submit(a, SLOTS_VERIFY, then);
}

void
attempt_hash(struct attempt *a, void (*then)(struct attempt *))
{
	submit(a, SLOTS_HASH, then);
}

static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct attempt *a = arg;

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(a->v, a->ref, f, gone);
		attempt_free(a);
		return;
	}
	/* admind committed: earlier verifiers are void from here on. */
	verifiers_stored(a->v->verifiers, a->target, a->stored_us);
	a->then(a);
}

void
attempt_store(struct attempt *a, void (*then)(struct attempt *))
{
	struct ipc_admin_store m;
	struct buf sealed;
	struct err err;

	buf_init(&sealed, VERIFIERS_PLAIN_MAX + STORED_OVERHEAD);
	memset(&m, 0, sizeof(m));
	if (strcmp(a->change, "delete") == 0) {
		a->stored_us = verifiers_now(a->v->verifiers, a->target);
	} else if (verifiers_seal(a->v->verifiers, a->v->keys, a->target,
		       a->target_role, a->job.encoded, &a->handle, &sealed,
		       &a->stored_us, &err) == -1) {
		buf_free(&sealed);
		attempt_refuse(a, err.failure, err.text);
		return;
	}
	m.change = ipc_str(a->change);
	m.username = ipc_str(a->target);
	m.role = ipc_str(a->target_role);
	m.actor = ipc_str(a->actor);
	m.verifier = ipc_bytes(sealed.p, sealed.len);
	a->then = then;
	if (callers_ask(a->v, IPC_ADMIN_STORE, &m, on_stored, a) == -1)
		attempt_refuse(a, FAILURE_BUSY, "admind is not connected");
	buf_free(&sealed);
}

int
attempt_audit(struct attempt *a, const char *actor, const char *action,
    const char *subject, ipc_answer_cb *cb)
{
	char detail[2 * sizeof(a->from.source) * 6 + 64];
	struct jsonw w;
	struct buf b;

	buf_init(&b, sizeof(detail) - 1);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "source", a->from.source);
	if (a->counted == THROTTLE_DEVICE || a->stranger)
		jsonw_kv_str(&w, "browser", a->stranger ? "unknown" : "known");
	jsonw_obj_end(&w);
	attempt_copy(detail, sizeof(detail),
	    b.failed ? ipc_str("{}") : ipc_bytes(b.p, b.len));
	buf_free(&b);
	return audit_event(a->v, actor, action, subject, detail, cb, a);
}
