/*
 * KEY_STATUS, KEY_NEXT, KEY_STEP, KEY_END: the master key is changed while all
 * runs (decision 0039). mcpboxctl drives it a step at a time; a step is one
 * question to admind for rows and one to store them, so whatever is killed
 * between two, the next run goes on where the rows say.
 *
 * Who may: uid 0's socket alone. What a hostile admind gains: it brings rows of
 * its choice, and gets back what opened here at its place, or verified here for
 * its purpose, with the same content and the same place or purpose, under the
 * newest key. Nothing that was worth nothing becomes worth something. It could
 * keep values that were withdrawn in this way, as it could without a rotation;
 * but a policy is renewed only while it is the one in force (0038: a rotation
 * ends all older ones).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "anchors.h"
#include "ids.h"
#include "log.h"
#include "macs.h"
#include "renew.h"
#include "stored.h"
#include "tlv.h"
#include "vault.h"

enum {
	/* After the end the older key opens for this long: calls that had read
	 * their seal or secret before are sealed meanwhile. */
	FORGET_S = 30,
	NAMES_MAX =
	    4096,       /* bytes of names of unreadable values in one answer */
	AFTER_MAX = 600 /* a kind's number and an id */
};

/* What rests, in the order of a pass: names of the view `resting`. */
enum how {
	HOW_SECRET,
	HOW_VERIFIER,
	HOW_SEAL,
	HOW_FIRST,
	HOW_POLICY,
	HOW_ANCHOR
};
static const struct {
	const char *kind, *shown;
	enum how how;
} rests[] = {
    {"secret", "secret", HOW_SECRET},
    {"verifier", "administrator", HOW_VERIFIER},
    {"seal", "approval", HOW_SEAL},
    {"first", "first of two approvals", HOW_FIRST},
    {"policy", "policy", HOW_POLICY},
    {"anchor", "signature of audit row", HOW_ANCHOR},
};
enum { NRESTS = sizeof(rests) / sizeof(rests[0]) };

struct rotate {
	struct event *forget; /* the timer of FORGET_S */
	bool over;            /* the older key is only waited for */
};

struct step {
	struct vault *v;
	struct vault_ref ref;
	bool renew;
	struct keys *fresh; /* KEY_NEXT's, in no chain yet; or NULL */
	unsigned kind;
	struct buf after, names;
	uint32_t seen, renewed, unreadable;
	struct buf store;       /* RENEW_STORE's rows */
	struct ipc_hash policy; /* of the renewed one, if there is one */
};

/* ---- life ---- */

static void
forget(evutil_socket_t fd, short what, void *arg)
{
	struct vault *v = arg;

	v->rotate->over = false;
	keys_forget(v->keys);
	log_event(LOG_LV_INFO, "key_forgotten", "one master key is valid");
}

int
rotate_init(struct vault *v)
{
	if ((v->rotate = calloc(1, sizeof(*v->rotate))) == NULL)
		return -1;
	v->rotate->forget = evtimer_new(v->proc.base, forget, v);
	return v->rotate->forget != NULL ? 0 : -1;
}

void
rotate_free(struct vault *v)
{
	if (v->rotate != NULL && v->rotate->forget != NULL)
		event_free(v->rotate->forget);
	free(v->rotate);
	v->rotate = NULL;
}

static struct step *
step_new(struct port *port, struct ipc_peer *peer, uint64_t request)
{
	struct step *s = NULL;

	if (!callers_room(port) || (s = calloc(1, sizeof(*s))) == NULL) {
		(void)ipc_refuse(peer, request, FAILURE_BUSY,
		    "too many requests at once", 1000);
		return NULL;
	}
	s->v = port->v;
	s->v->ops++;
	s->ref = callers_ref(port, peer, request);
	buf_init(&s->after, AFTER_MAX);
	buf_init(&s->names, NAMES_MAX);
	buf_init(&s->store, IPC_BLOB_MAX);
	return s;
}

static void
step_free(struct step *s)
{
	s->v->ops--;
	keys_drop(s->fresh);
	buf_free(&s->after);
	buf_free(&s->names);
	buf_free(&s->store);
	free(s);
}

static void
step_refuse(struct step *s, enum failure failure, const char *message)
{
	callers_refuse(s->v, s->ref, failure, message);
	step_free(s);
}

/* How the keys stand, and what a step did. Ends the step. */
static void
step_answer(struct step *s)
{
	const struct keys *k = s->v->keys;
	struct ipc_key_state m;

	memset(&m, 0, sizeof(m));
	m.key = ipc_bytes(k->id, sizeof(k->id));
	if (k->also != NULL)
		m.older = ipc_bytes(k->also->id, sizeof(k->also->id));
	m.over = s->v->rotate->over;
	m.credential = s->v->key_credential;
	m.after = ipc_bytes(s->after.p, s->after.len);
	m.seen = s->seen;
	m.renewed = s->renewed;
	m.unreadable = s->unreadable;
	m.names = ipc_bytes(s->names.p, s->names.len);
	callers_answer(s->v, s->ref, IPC_KEY_STATE, &m);
	step_free(s);
}

/* Passes on what admind answered instead of `want`; true: it did. */
static bool
failed(struct step *s, struct ipc_frame *f, enum ipc_type want)
{
	if (f != NULL && f->type == want)
		return false;
	callers_refuse_as(s->v, s->ref, f, FAILURE_BUSY);
	step_free(s);
	return true;
}

static void
step_ask(struct step *s, enum ipc_type type, const void *msg, ipc_answer_cb *cb)
{
	if (callers_ask(s->v, type, msg, cb, s) == -1)
		step_refuse(s, FAILURE_BUSY, "admind is not connected");
}

static void
hex_id(const struct keys *k, char out[2 * KEY_ID_LEN + 1])
{
	hex_encode(k->id, sizeof(k->id), out);
}

/* ---- the beginning ---- */

static void
on_begun(void *arg, struct ipc_frame *f, enum failure gone)
{
	char id[2 * KEY_ID_LEN + 1], older[2 * KEY_ID_LEN + 1] = "";
	struct step *s = arg;
	struct vault *v = s->v;
	struct err err;
	int rc;

	if (failed(s, f, IPC_OK))
		return;
	if (v->rotate->over && keys_find(v->keys, s->fresh->id) == NULL) {
		(void)event_del(v->rotate->forget);
		forget(-1, 0, v);
	}
	rc = keys_push(&v->keys, s->fresh, &err);
	s->fresh = NULL;
	if (rc == -1) {
		step_refuse(s, err.failure, err.text);
		return;
	}
	hex_id(v->keys, id);
	if (v->keys->also != NULL)
		hex_id(v->keys->also, older);
	log_event(LOG_LV_INFO, "key_rotation", "%s seals now, %s opens", id,
	    older[0] != '\0' ? older : "no other");
	step_answer(s);
}

/*
 * The database hears of the key before the vault uses it: it takes no value of
 * a key that it doesn't know of (key_stays()).
 */
static int
key_next(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_renew_phase phase = {0};
	const struct keys *k = port->v->keys;
	struct ipc_key_next m;
	struct step *s;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((s = step_new(port, peer, m.request)) == NULL) {
		close(m.file);
		return 0;
	}
	s->fresh = keys_read(m.file, &err);
	close(m.file);
	if (s->fresh == NULL) {
		step_refuse(s, err.failure, err.text);
	} else if (k->also != NULL && !port->v->rotate->over &&
	    keys_find(k, s->fresh->id) != k) {
		step_refuse(s, FAILURE_CONFLICT,
		    "a rotation to another key is under way");
	} else {
		phase.key = ipc_bytes(s->fresh->id, KEY_ID_LEN);
		step_ask(s, IPC_RENEW_PHASE, &phase, on_begun);
	}
	return 0;
}

static void
noted(void *arg, struct ipc_frame *f, enum failure gone)
{
	if (f == NULL || f->type != IPC_OK)
		log_event(LOG_LV_WARN, "key_rotation",
		    "admind did not note that a rotation is under way");
}

/* Both files were there at the start: what is sealed from now on is the newer
 * one's, which the database must know of. */
void
rotate_admind_up(struct vault *v)
{
	struct ipc_renew_phase m = {0};

	if (v->keys->also == NULL || v->rotate->over)
		return;
	m.key = ipc_bytes(v->keys->id, sizeof(v->keys->id));
	(void)callers_ask(v, IPC_RENEW_PHASE, &m, noted, v);
}

/* ---- one step ---- */

struct row {
	struct ipc_bytes id, place, column, value;
};

/* The next row of RENEW_ROWS: 1, 0 at its end, -1 malformed. */
static int
next_row(struct tlv_reader *r, struct row *out)
{
	struct ipc_bytes *const fields[] = {
	    &out->id, &out->place, &out->column, &out->value};
	struct tlv f;
	int rc;

	for (unsigned i = 0; i < 4; i++) {
		if ((rc = tlv_next(r, &f)) != 1)
			return i == 0 ? rc : -1;
		if (f.tag != RENEW_ID + i)
			return -1;
		*fields[i] = ipc_bytes(f.p, f.n);
	}
	return 1;
}

static int
renew_anchor(
    const struct keys *k, const struct row *r, struct buf *out, struct err *err)
{
	struct ipc_hash head, signature;
	char number[24], *end;
	uint64_t seq;

	if (r->place.n == 0 || r->place.n >= sizeof(number) ||
	    r->value.n != sizeof(signature.b) || r->column.n != HEX32_LEN ||
	    hex_decode((const char *)r->column.p, r->column.n, head.b) == -1)
		return err_set(err, FAILURE_FORBIDDEN, "not an anchor");
	memcpy(number, r->place.p, r->place.n);
	number[r->place.n] = '\0';
	seq = strtoull(number, &end, 10);
	memcpy(signature.b, r->value.p, sizeof(signature.b));
	if (*end != '\0' || anchors_check(k, seq, &head, &signature) == NULL ||
	    anchors_sign(k, seq, &head, &signature) == -1)
		return err_set(
		    err, FAILURE_FORBIDDEN, "the signature does not verify");
	buf_clear(out);
	buf_put(out, signature.b, sizeof(signature.b));
	return 0;
}

static int
renew_stored(const struct keys *k, enum stored_table table, const struct row *r,
    struct buf *out, struct err *err)
{
	const struct stored_place at = {table, r->place, r->column};
	struct buf plain;
	int rc = -1;

	buf_init(&plain, MACS_MAX);
	if (stored_open(k, &at, r->value.p, r->value.n, &plain, err) == 0)
		rc = stored_seal(k, &at, plain.p, plain.len, out, err);
	buf_free(&plain); /* wiped there */
	return rc;
}

/* admind says of what it is a seal: it verifies as that, or not at all. */
static int
renew_seal(
    const struct keys *k, const struct row *r, struct buf *out, struct err *err)
{
	static const struct {
		const char *name;
		enum macs_purpose purpose;
	} known[] = {{"version", MACS_VERSION}, {"call", MACS_CALL},
	    {"grant", MACS_GRANT}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (ipc_streq(r->column, known[i].name))
			return macs_renew(k, known[i].purpose, r->value.p,
			    r->value.n, out, err);
	return err_set(err, FAILURE_FORBIDDEN, "a seal of nothing known");
}

/* Of the policy that is in force, and of no other that ever was. */
static int
renew_policy(
    struct step *s, const struct row *r, struct buf *out, struct err *err)
{
	struct policy *now = &s->v->policy;
	struct ipc_hash hash;

	policy_take(s->v->keys, r->value, now);
	sha256(r->value.p, r->value.n, &hash);
	if (!ct_equal(hash.b, now->seal.b, sizeof(hash.b)))
		return err_set(err, FAILURE_FORBIDDEN,
		    "it is not ours, or not the newest one");
	if (macs_renew(s->v->keys, MACS_POLICY, r->value.p, r->value.n, out,
		err) == -1)
		return -1;
	sha256(out->p, out->len, &s->policy);
	return 0;
}

/* The same value under the newest key. -1: none that is valid opens it. */
static int
renew(struct step *s, const struct row *r, struct buf *out, struct err *err)
{
	const struct keys *k = s->v->keys;

	switch (rests[s->kind].how) {
	case HOW_SECRET:
		return renew_stored(k, STORED_SECRETS, r, out, err);
	case HOW_VERIFIER:
		return renew_stored(k, STORED_VERIFIERS, r, out, err);
	case HOW_ANCHOR:
		return renew_anchor(k, r, out, err);
	case HOW_POLICY:
		return renew_policy(s, r, out, err);
	case HOW_SEAL:
		return renew_seal(k, r, out, err);
	case HOW_FIRST:
		break;
	}
	return macs_renew(k, MACS_FIRST, r->value.p, r->value.n, out, err);
}

/* "secret demo/TOKEN", a line each, as many as fit. */
static void
name_unreadable(struct step *s, const struct row *r, const struct err *err)
{
	enum how how = rests[s->kind].how;
	char line[512];
	int n;

	n = how == HOW_SECRET
	    ? snprintf(line, sizeof(line), "%s %.*s/%.*s: %s\n",
		  rests[s->kind].shown, (int)r->place.n,
		  (const char *)r->place.p, (int)r->column.n,
		  (const char *)r->column.p, err->text)
	    : snprintf(line, sizeof(line), "%s %.*s: %s\n",
		  rests[s->kind].shown, (int)r->id.n, (const char *)r->id.p,
		  err->text);
	log_event(LOG_LV_WARN, "key_unreadable", "%.*s",
	    n > 0 ? (int)strcspn(line, "\n") : 0, line);
	if (n > 0 && (size_t)n < sizeof(line) &&
	    s->names.len + (size_t)n <= NAMES_MAX)
		buf_put(&s->names, line, (size_t)n);
}

static void
on_renewed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct step *s = arg;

	if (failed(s, f, IPC_OK))
		return;
	/* What a change of it is compared with (POLICY_SET's seen). */
	if (rests[s->kind].how == HOW_POLICY)
		s->v->policy.seal = s->policy;
	step_answer(s);
}

/* 0; -1 when memory is out. */
static int
take_row(struct step *s, const struct row *r)
{
	struct buf fresh;
	struct err err;
	int rc = 0;

	buf_init(&fresh, MACS_MAX);
	s->seen++;
	if (renew(s, r, &fresh, &err) == -1) {
		if (err.failure == FAILURE_BUSY ||
		    err.failure == FAILURE_TOO_LARGE) {
			rc = -1; /* says nothing of the value */
		} else {
			s->unreadable++;
			name_unreadable(s, r, &err);
		}
	} else if (s->renew) {
		tlv_put(&s->store, RENEW_ID, r->id.p, r->id.n);
		tlv_put(&s->store, RENEW_VALUE, r->value.p, r->value.n);
		tlv_put(&s->store, RENEW_RENEWED, fresh.p, fresh.len);
		s->renewed++;
	}
	buf_free(&fresh);
	return s->store.failed ? -1 : rc;
}

static void
on_rows(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_bytes last = {NULL, 0};
	struct step *s = arg;
	struct ipc_renew_store store = {0};
	struct ipc_renew_rows m;
	struct tlv_reader in;
	struct row r;
	struct err err;
	int rc;

	if (failed(s, f, IPC_RENEW_ROWS))
		return;
	if (ipc_decode(f, &m, &err) == -1) {
		step_refuse(s, FAILURE_INTERNAL, err.text);
		return;
	}
	tlv_open(&in, m.rows.p, m.rows.n);
	while ((rc = next_row(&in, &r)) == 1) {
		if (take_row(s, &r) == -1) {
			step_refuse(s, FAILURE_BUSY, "out of memory");
			return;
		}
		last = r.id;
	}
	if (rc == -1 || !utf8_valid(last.p, last.n)) {
		step_refuse(
		    s, FAILURE_INTERNAL, "admind gave rows that make no sense");
		return;
	}
	buf_clear(&s->after);
	if (last.n != 0)
		buf_putf(&s->after, "%u:%.*s", s->kind, (int)last.n,
		    (const char *)last.p);
	else if (s->kind + 1 < NRESTS)
		buf_putf(&s->after, "%u:", s->kind + 1);
	if (s->after.failed) {
		step_refuse(s, FAILURE_INTERNAL, "an id is too long");
		return;
	}
	if (s->renewed == 0) {
		step_answer(s);
		return;
	}
	store.kind = ipc_str(rests[s->kind].kind);
	store.rows = ipc_bytes(s->store.p, s->store.len);
	step_ask(s, IPC_RENEW_STORE, &store, on_renewed);
}

/* "2:id" of an earlier answer. Root's: a wrong one begins elsewhere. */
static int
take_after(struct ipc_bytes t, unsigned *kind, struct ipc_bytes *id)
{
	*kind = 0;
	*id = ipc_bytes(NULL, 0);
	if (t.n == 0)
		return 0;
	if (t.n < 2 || t.p[0] < '0' || t.p[0] >= '0' + NRESTS || t.p[1] != ':')
		return -1;
	*kind = (unsigned)(t.p[0] - '0');
	*id = ipc_bytes(t.p + 2, t.n - 2);
	return 0;
}
_Static_assert(NRESTS <= 10, "a kind's number is one digit");

static int
key_step(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_renew_get get = {0};
	struct ipc_key_step m;
	struct step *s;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((s = step_new(port, peer, m.request)) == NULL)
		return 0;
	s->renew = m.renew == 1;
	if (m.limit < 1 || m.limit > RENEW_MAX ||
	    take_after(m.after, &s->kind, &get.after) == -1) {
		step_refuse(s, FAILURE_INVALID_PARAMS, "no such step");
		return 0;
	}
	get.kind = ipc_str(rests[s->kind].kind);
	get.limit = m.limit;
	if (s->renew)
		get.key = ipc_bytes(s->v->keys->id, sizeof(s->v->keys->id));
	step_ask(s, IPC_RENEW_GET, &get, on_rows);
	return 0;
}

/* ---- the end ---- */

static void
on_ended(void *arg, struct ipc_frame *f, enum failure gone)
{
	static const struct timeval delay = {FORGET_S, 0};
	char id[2 * KEY_ID_LEN + 1];
	struct step *s = arg;
	struct vault *v = s->v;

	if (failed(s, f, IPC_OK))
		return;
	hex_id(v->keys, id);
	log_event(LOG_LV_INFO, "key_rotated", "all is under %s", id);
	if (v->keys->also != NULL && !v->rotate->over) {
		v->rotate->over = true;
		(void)evtimer_add(v->rotate->forget, &delay);
	}
	step_answer(s);
}

/* The database counts; a hostile one may say that none is left under the older
 * key: what it hid is then lost to it. */
static int
key_end(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_renew_phase phase = {.end = 1};
	struct ipc_key_end m;
	struct step *s;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((s = step_new(port, peer, m.request)) == NULL)
		return 0;
	phase.key = ipc_bytes(s->v->keys->id, sizeof(s->v->keys->id));
	phase.leave = m.leave;
	step_ask(s, IPC_RENEW_PHASE, &phase, on_ended);
	return 0;
}

int
rotate_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_key_status m;
	struct step *s;

	switch (f->type) {
	case IPC_KEY_NEXT:
		return key_next(port, peer, f);
	case IPC_KEY_STEP:
		return key_step(port, peer, f);
	case IPC_KEY_END:
		return key_end(port, peer, f);
	default:
		break;
	}
	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((s = step_new(port, peer, m.request)) != NULL)
		step_answer(s);
	return 0;
}
