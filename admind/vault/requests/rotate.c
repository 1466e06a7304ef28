/*
 * KEY_STATUS, KEY_NEXT, KEY_STEP, KEY_END: changes the master key while
 * everything runs (decision 0039). mcpboxctl drives the change step by step. In
 * a step the vault asks admind for rows, and then asks it to store the renewed
 * ones. The rows themselves tell how far the change is. So if any process is
 * killed between two steps, the next run goes on from there.
 *
 * Only uid 0's socket may ask. A hostile admind gains nothing by rows of its
 * choice. Only rows that open here at their place, or verify here for their
 * purpose, are renewed. A renewed row has the same content and the same place
 * or purpose, under the newest key. In this way admind could keep values that
 * were withdrawn, as it could without a rotation. But only the policy in force
 * is renewed (0038: a rotation ends all older policies).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "ids.h"
#include "log.h"
#include "renew.h"
#include "renewal.h"
#include "tlv.h"
#include "requests.h"

enum {
	/* Time for which the older key still opens values after a rotation's
	 * end. Calls that read their seal or secret before that end get their
	 * context within this time. */
	FORGET_S = 30,
	NAMES_MAX = 4096, /* bytes, for names of unreadable values */
	AFTER_MAX = 600   /* a kind's number and an id */
};

struct rotate {
	struct event *forget; /* the timer of FORGET_S */
	bool over;            /* the older key only waits to be forgotten */
};

struct step {
	struct vault *v;
	struct vault_ref ref;
	bool renew;
	struct keys *fresh; /* KEY_NEXT's key, in no chain yet; or NULL */
	enum renewal_kind kind;
	struct buf after, names;
	uint32_t seen, renewed, unreadable;
	struct buf store;       /* RENEW_STORE's rows */
	struct ipc_hash policy; /* SHA-256 of the renewed policy */
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

/* Answers with the state of the keys and the step's result. Ends the step. */
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

/* Returns false if admind's answer is of type `want`. Otherwise refuses the
 * request because of the answer, ends the step and returns true. */
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
 * Begins a rotation. The database learns of the key before the vault uses the
 * key, because the database accepts no value under a key that it does not know
 * (key_stays()).
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
	s->fresh = keys_read(m.file, s->v->key_credential, &err);
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

/* Tells admind of a rotation that is under way, for example because both key
 * files were there at the start. New values are sealed with the newer key, so
 * the database must know that key. */
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

/* Logs the name of an unreadable value, and adds it to the answer if it
 * fits. */
static void
name_unreadable(
    struct step *s, const struct renewal_row *r, const struct err *err)
{
	char line[512];
	size_t n;

	renewal_tell(s->kind, r, err, line, sizeof(line));
	n = strlen(line);
	log_event(LOG_LV_WARN, "key_unreadable", "%.*s",
	    (int)strcspn(line, "\n"), line);
	if (s->names.len + n <= NAMES_MAX && utf8_valid((uint8_t *)line, n))
		buf_put(&s->names, line, n);
}

static void
on_renewed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct step *s = arg;

	if (failed(s, f, IPC_OK))
		return;
	/* POLICY_SET's `seen` is compared with policy.seal. */
	if (s->kind == RENEWAL_POLICY)
		s->v->policy.seal = s->policy;
	step_answer(s);
}

/* Opens or renews one row. 0, or -1 without memory. */
static int
take_row(struct step *s, const struct renewal_row *r)
{
	struct buf fresh;
	struct err err;
	int rc = 0;

	buf_init(&fresh, MACS_MAX);
	s->seen++;
	if (renewal_make(s->v, s->kind, r, &fresh, &err) == -1) {
		if (err.failure == FAILURE_BUSY ||
		    err.failure == FAILURE_TOO_LARGE) {
			rc = -1; /* the value itself may be readable */
		} else {
			s->unreadable++;
			name_unreadable(s, r, &err);
		}
	} else if (s->renew) {
		tlv_put(&s->store, RENEW_ID, r->id.p, r->id.n);
		tlv_put(&s->store, RENEW_VALUE, r->value.p, r->value.n);
		tlv_put(&s->store, RENEW_RENEWED, fresh.p, fresh.len);
		s->renewed++;
		if (s->kind == RENEWAL_POLICY)
			sha256(fresh.p, fresh.len, &s->policy);
	}
	buf_free(&fresh);
	return s->store.failed ? -1 : rc;
}

/* Opens or renews all rows. A step that only checks does not use the older key
 * after the rotation has ended: that key is about to be forgotten, so values
 * that only this key opens are lost. 0: all were read; -1: malformed; -2:
 * without memory. */
static int
take_rows(struct step *s, struct tlv_reader *in, struct ipc_bytes *last)
{
	struct keys *head = s->v->keys, *also = head->also;
	struct renewal_row r;
	int rc;

	if (!s->renew && s->v->rotate->over)
		head->also = NULL;
	while ((rc = renewal_next(in, &r)) == 1) {
		if (take_row(s, &r) == -1) {
			rc = -2;
			break;
		}
		*last = r.id;
	}
	head->also = also;
	return rc;
}

static void
on_rows(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_bytes last = {NULL, 0};
	struct step *s = arg;
	struct ipc_renew_store store = {0};
	struct ipc_renew_rows m;
	struct tlv_reader in;
	struct err err;
	int rc;

	if (failed(s, f, IPC_RENEW_ROWS))
		return;
	if (ipc_decode(f, &m, &err) == -1) {
		step_refuse(s, FAILURE_INTERNAL, err.text);
		return;
	}
	tlv_open(&in, m.rows.p, m.rows.n);
	if ((rc = take_rows(s, &in, &last)) == -2) {
		step_refuse(s, FAILURE_BUSY, "out of memory");
		return;
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
	else if (s->kind + 1 < RENEWAL_COUNT)
		buf_putf(&s->after, "%u:", s->kind + 1);
	if (s->after.failed) {
		step_refuse(s, FAILURE_INTERNAL, "an id is too long");
		return;
	}
	if (s->renewed == 0) {
		step_answer(s);
		return;
	}
	store.kind = ipc_str(renewal_name(s->kind));
	store.rows = ipc_bytes(s->store.p, s->store.len);
	step_ask(s, IPC_RENEW_STORE, &store, on_renewed);
}

/* Reads the position, such as "2:id", that an earlier answer gave. Only root
 * sends it, and a wrong position just makes the step begin elsewhere. 0 or
 * -1. */
static int
take_after(struct ipc_bytes t, enum renewal_kind *kind, struct ipc_bytes *id)
{
	*kind = RENEWAL_SECRET;
	*id = ipc_bytes(NULL, 0);
	if (t.n == 0)
		return 0;
	if (t.n < 2 || t.p[0] < '0' || t.p[0] >= '0' + RENEWAL_COUNT ||
	    t.p[1] != ':')
		return -1;
	*kind = (enum renewal_kind)(t.p[0] - '0');
	*id = ipc_bytes(t.p + 2, t.n - 2);
	return 0;
}
_Static_assert(RENEWAL_COUNT <= 10, "a kind's number is one digit");

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
	get.kind = ipc_str(renewal_name(s->kind));
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

/* Ends a rotation. The database counts the values that are left under the older
 * key. If a hostile database says that none is left, the values that it hid
 * can't be opened any more. */
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
