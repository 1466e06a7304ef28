/*
 * Reads the access document and puts it into force.
 *
 * The newest row of the database that is not void (sql: access_now) holds, if
 * the vault says that it sealed these very bytes and knows none newer, and
 * admind-check says that they are a document. So a row that somebody else wrote
 * opens no door. A row that does not hold is not passed over, since the row
 * before is a state that an administrator wanted to leave. So until the newest
 * row holds, no signed token is accepted.
 *
 * A reading fails in one of two ways. If a process is away, or has trouble of
 * its own, people are not let in for that time, and nothing ends; the tick
 * reads again. If the row can't hold as it is, all people with signed tokens
 * end, as with an empty document.
 *
 * While a reading goes on, the document before it holds. The reading takes
 * milliseconds, and an administrator's answer waits for it (access_store.c).
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "crypto.h"
#include "ended.h"
#include "identities.h"
#include "ids.h"
#include "json_kv.h"
#include "log.h"
#include "narrow.h"
#include "otlp_state.h"
#include "tokens.h"

/* A serial is a time. One that is further ahead is of a clock that was wrong:
 * no later document could be newer (decision 0090). */
#define AHEAD_MAX_US (UINT64_C(24) * 3600 * 1000 * 1000)

static const struct db_stmt read_newest = {"document_read",
    "SELECT serial, document, sha256, actor, seal, stored_at"
    " FROM mcpbox.access_now",
    DB_FAST};

enum column { C_SERIAL, C_DOCUMENT, C_SHA256, C_ACTOR, C_SEAL };

struct access_waiter {
	STAILQ_ENTRY(access_waiter) entry;
	struct access_load *load; /* NULL: of the next reading */
	void (*then)(void *);
	void *arg;
};

/* A reading under way. */
struct access_load {
	struct admind *a;
	struct access_row row;
	struct buf document, seal;
};

int
document_start(struct admind *a, struct err *err)
{
	a->access = calloc(1, sizeof(*a->access));
	if (a->access == NULL ||
	    (a->access->narrowed = narrow_init()) == NULL ||
	    (a->access->telemetry = calloc(1, sizeof(*a->access->telemetry))) ==
		NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	a->access->failure = FAILURE_STORAGE_UNAVAILABLE;
	STAILQ_INIT(&a->access->waiters);
	buf_init(&a->access->document, ACCESS_DOCUMENT_MAX);
	buf_init(&a->access->seal, IPC_FRAME_MAX / 2);
	return 0;
}

/* ---- the end of a reading ---- */

static void begin(struct admind *);

/* Tells those that waited for this reading. A reading that they begin is a new
 * one. */
static void
finish(struct access_load *l)
{
	struct admind *a = l->a;
	struct access *x = a->access;
	struct access_waiter *w, *next;
	STAILQ_HEAD(, access_waiter) mine = STAILQ_HEAD_INITIALIZER(mine);
	bool again = x->again;

	x->load = NULL;
	x->again = false;
	x->settled = true;
	for (w = STAILQ_FIRST(&x->waiters); w != NULL; w = next) {
		next = STAILQ_NEXT(w, entry);
		if (w->load != l)
			continue;
		STAILQ_REMOVE(&x->waiters, w, access_waiter, entry);
		STAILQ_INSERT_TAIL(&mine, w, entry);
	}
	buf_free(&l->document);
	buf_free(&l->seal);
	free(l);
	if (again)
		begin(a);
	while ((w = STAILQ_FIRST(&mine)) != NULL) {
		STAILQ_REMOVE_HEAD(&mine, entry);
		w->then(w->arg);
		free(w);
	}
}

static void
say_why(struct access *x, const char *text)
{
	size_t n = strlen(text);

	if (n >= sizeof(x->why))
		n = sizeof(x->why) - 1;
	memcpy(x->why, text, n);
	x->why[n] = '\0';
}

/* Puts a document into force: tells the gateways, and judges all remembered
 * people by it. NULL: none holds. */
static void
adopt(struct admind *a, struct compiled *now)
{
	struct access *x = a->access;
	struct compiled *old = x->now;
	bool known = x->ready;

	x->now = now;
	x->ready = true;
	issuers_follow(now, &x->keysets);
	if (old == NULL && now == NULL && (x->settled || !x->stored)) {
		/* No document was ever set, so there are no runs. */
		if (!x->stored && a->identities != NULL)
			a->identities->judged = true;
		if (!known)
			metadata_tell(a);
		return;
	}
	x->generation++;
	narrow_drop(x->narrowed);
	metadata_tell(a);
	ended_endpoints(a, old, now);
	identities_judge_again(a, old, now);
	tokens_judge_again(a);
	compiled_free(old);
}

/* Keeps the texts of the document that holds. finish() frees those of the one
 * before it. */
static void
keep_texts(struct access_load *l)
{
	struct access *x = l->a->access;
	struct buf former[2] = {x->document, x->seal};

	x->document = l->document;
	x->seal = l->seal;
	l->document = former[0];
	l->seal = former[1];
}

/* Ends a reading after which a document holds, or none is stored. */
static void
holds(struct access_load *l, struct compiled *now)
{
	l->a->access->why[0] = '\0';
	l->a->access->held = l->row;
	keep_texts(l);
	log_event(LOG_LV_INFO, "access",
	    "%u issuers, %u rules and %u sets hold",
	    now != NULL ? now->nissuers : 0, now != NULL ? now->nrules : 0,
	    now != NULL ? now->nsets : 0);
	adopt(l->a, now);
	finish(l);
}

/* Ends a reading after which the stored document can't hold as it is. */
static void
void_row(struct access_load *l, const char *why)
{
	struct access *x = l->a->access;

	if (!x->ready || x->now != NULL || strcmp(x->why, why) != 0)
		log_event(LOG_LV_ERR, "access",
		    "the stored document does not hold: %s", why);
	say_why(x, why);
	adopt(l->a, NULL);
	finish(l);
}

/* Ends a reading that may succeed later. */
static void
trouble(struct access_load *l, const struct err *err)
{
	struct access *x = l->a->access;

	if (x->ready || strcmp(x->why, err->text) != 0)
		log_event(LOG_LV_WARN, "access", "not read: %s", err->text);
	x->ready = false;
	x->failure = err->failure;
	say_why(x, err->text);
	finish(l);
}

/* Ends a reading that another process stopped: that process has trouble, which
 * goes away by itself, or it said a word on the document. */
static void
refused(struct access_load *l, const struct err *err)
{
	switch (err->failure) {
	case FAILURE_BUSY:
	case FAILURE_INTERNAL:
	case FAILURE_STORAGE_UNAVAILABLE:
	case FAILURE_VAULT_UNAVAILABLE:
	case FAILURE_UPGRADING:
		trouble(l, err);
		break;
	default:
		void_row(l, err->text);
	}
}

/* ---- its steps ---- */

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct access_load *l = arg;
	struct ipc_check_errors bad;
	struct ipc_check_ok ok;
	struct compiled *c;
	struct err err;
	char *summary;

	if (f != NULL && f->type == IPC_CHECK_OK &&
	    ipc_decode(f, &ok, &err) == 0) {
		c = compiled_new(ok.fields, &err);
		if (c != NULL)
			holds(l, c);
		else
			trouble(l, &err);
		return;
	}
	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, &err) == 0) {
		summary = ipc_strdup(bad.summary);
		err_set(&err,
		    bad.failure < FAILURE_COUNT ? (enum failure)bad.failure
						: FAILURE_INVALID_PARAMS,
		    "%s", summary != NULL ? summary : "it is not valid");
		free(summary);
		refused(l, &err);
		return;
	}
	answer_err(f, gone, &err);
	trouble(l, &err);
}

static void
known(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct access_load *l = arg;
	struct ipc_check_access m = {0};
	struct err err;

	if (f == NULL || f->type != IPC_OK) {
		answer_err(f, gone, &err);
		if (f == NULL)
			err_set(&err, FAILURE_VAULT_UNAVAILABLE,
			    "the vault did not answer");
		refused(l, &err);
		return;
	}
	m.document = ipc_bytes(l->document.p, l->document.len);
	if (ask(l->a->check, IPC_CHECK_ACCESS, &m, checked, l, &err) == -1)
		trouble(l, &err);
}

static bool
same_row(const struct access_row *a, const struct access_row *b)
{
	return a->serial == b->serial &&
	    memcmp(&a->sha256, &b->sha256, sizeof(a->sha256)) == 0 &&
	    memcmp(&a->seal, &b->seal, sizeof(a->seal)) == 0;
}

static void
got_row(void *arg, const struct pg_result *rows, const struct err *failed)
{
	struct access_load *l = arg;
	struct access *x = l->a->access;
	struct ipc_access_check m = {0};
	struct ipc_bytes document, seal;
	struct err err;

	if (failed != NULL) {
		trouble(l, failed);
		return;
	}
	if (db_nrows(rows) == 0) {
		x->stored = false;
		holds(l, NULL);
		return;
	}
	document = db_bytes(rows, 0, C_DOCUMENT);
	seal = db_bytes(rows, 0, C_SEAL);
	l->row.serial = (uint64_t)db_int(rows, 0, C_SERIAL);
	sha256(document.p, document.n, &l->row.sha256);
	sha256(seal.p, seal.n, &l->row.seal);
	x->stored = true;
	x->newest = l->row;
	/* The vault and admind-check said their word on this very row. */
	if (x->now != NULL && same_row(&x->held, &l->row)) {
		x->ready = true;
		x->why[0] = '\0';
		finish(l);
		return;
	}
	if (l->row.serial > now_us() + AHEAD_MAX_US) {
		void_row(l,
		    "it is dated more than a day ahead of this machine's "
		    "clock: set the clock right, then set the document "
		    "again");
		return;
	}
	buf_put(&l->document, document.p, document.n);
	buf_put(&l->seal, seal.p, seal.n);
	m.document = l->row.sha256;
	m.seal = ipc_bytes(l->seal.p, l->seal.len);
	if (l->document.failed || l->seal.failed)
		err_set(&err, FAILURE_BUSY, "out of memory");
	else if (ask(l->a->vault, IPC_ACCESS_CHECK, &m, known, l, &err) == 0)
		return;
	trouble(l, &err);
}

static void
begin(struct admind *a)
{
	struct access *x = a->access;
	struct access_load *l = calloc(1, sizeof(*l));
	struct access_waiter *w;

	if (l == NULL) { /* the tick tries again */
		log_event(LOG_LV_ERR, "memory", "the access document");
		x->ready = false;
		return;
	}
	l->a = a;
	buf_init(&l->document, ACCESS_DOCUMENT_MAX);
	buf_init(&l->seal, IPC_FRAME_MAX / 2);
	x->load = l;
	STAILQ_FOREACH(w, &x->waiters, entry)
		if (w->load == NULL)
			w->load = l;
	db_query(a->db, &read_newest, NULL, got_row, l);
}

/* ---- its occasions ---- */

/* Adds a caller that waits for a reading; NULL: for the next one. */
static struct access_waiter *
wait_for(
    struct access *x, struct access_load *l, void (*then)(void *), void *arg)
{
	struct access_waiter *w = calloc(1, sizeof(*w));

	if (w != NULL) {
		w->load = l;
		w->then = then;
		w->arg = arg;
		STAILQ_INSERT_TAIL(&x->waiters, w, entry);
	}
	return w;
}

void
document_settled(struct admind *a, void (*then)(void *), void *arg)
{
	struct access *x = a->access;

	if (x == NULL || x->settled || wait_for(x, x->load, then, arg) == NULL)
		then(arg);
}

void
document_load(struct admind *a, void (*then)(void *), void *arg)
{
	struct access_waiter *w = NULL;
	struct access *x = a->access;

	if (then != NULL && x != NULL)
		w = wait_for(x, NULL, then, arg);
	if (x != NULL && x->load != NULL)
		x->again = true;
	else if (x != NULL)
		begin(a);
	if (then != NULL && w == NULL)
		then(arg);
}

void
document_db_up(struct admind *a)
{
	if (a->access == NULL)
		return;
	a->access->ready = false;
	a->access->failure = FAILURE_STORAGE_UNAVAILABLE;
	document_load(a, NULL, NULL);
}

void
document_retry(struct admind *a, bool voided)
{
	struct access *x = a->access;

	if (x != NULL && x->load == NULL && db_is_up(a->db) &&
	    (!x->ready || (voided && x->why[0] != '\0')))
		begin(a);
}

void
document_notified(struct admind *a, const char *payload)
{
	if (strcmp(payload, "document") == 0)
		document_load(a, NULL, NULL);
	else
		identities_notified(a, payload);
}

/* ---- its state ---- */

int
document_ready(struct admind *a, struct err *err)
{
	const struct access *x = a->access;

	if (x == NULL || !db_is_up(a->db) ||
	    (!x->ready && x->failure == FAILURE_STORAGE_UNAVAILABLE))
		return err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
	if (!x->ready)
		return err_set(err, x->failure,
		    "signed tokens can't be judged now: %s", x->why);
	return 0;
}

/* Writes the state of each issuer whose keys are fetched. */
static void
keysets_json(const struct access *x, struct jsonw *w)
{
	uint64_t boot = now_boot_ms(), wall = now_us(), left;

	jsonw_name(w, "keys");
	jsonw_arr(w);
	for (unsigned i = 0; x != NULL && i < x->keysets.n; i++) {
		const struct keyset *s = &x->keysets.set[i];
		bool serves = s->read && boot < s->end_ms;

		left = s->tried && s->next_ms > boot ? s->next_ms - boot : 0;
		jsonw_obj(w);
		jsonw_kv_str(w, "issuer", s->name);
		jsonw_kv_int(w, "count", serves ? (int64_t)s->nkeys : 0);
		json_kv_time(w, "fetched_at", s->read_us);
		json_kv_time(w, "next_at", wall + left * 1000);
		jsonw_name(w, "error");
		if (s->why[0] != '\0')
			jsonw_strn(w, s->why, strlen(s->why));
		else
			jsonw_null(w);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

/* Writes how the sending of telemetry goes, or null. */
static void
telemetry_json(const struct access *x, struct jsonw *w)
{
	const struct otlp_state *s = x != NULL ? x->telemetry : NULL;
	uint64_t boot = now_boot_ms(), wait;
	struct ipc_bytes record;
	bool begun; /* the tick has seen this document */

	jsonw_name(w, "telemetry");
	if (s == NULL || x->now == NULL || x->now->telemetry.url.n == 0) {
		jsonw_null(w);
		return;
	}
	record = x->now->telemetry.record;
	begun = s->source.len == record.n &&
	    memcmp(s->source.p, record.p, record.n) == 0;
	wait = begun && s->next_ms > boot ? s->next_ms - boot : 0;
	jsonw_obj(w);
	jsonw_kv_strn(
	    w, "endpoint", x->now->telemetry.url.p, x->now->telemetry.url.n);
	json_kv_time(w, "sent_at", begun ? s->sent_us : 0);
	json_kv_time(w, "next_at", now_us() + wait * 1000);
	jsonw_kv_int(w, "spans", (int64_t)s->spans);
	jsonw_kv_int(w, "waiting", (int64_t)s->waiting);
	jsonw_kv_int(w, "dropped", (int64_t)s->dropped);
	jsonw_kv_int(w, "rejected", (int64_t)s->rejected);
	jsonw_name(w, "error");
	if (begun && s->why[0] != '\0')
		jsonw_strn(w, s->why, strlen(s->why));
	else
		jsonw_null(w);
	jsonw_obj_end(w);
}

void
document_json(struct admind *a, const struct ipc_hash *shown, struct jsonw *w)
{
	const struct access *x = a->access;
	const char *why = NULL;
	bool same = x != NULL && x->stored && shown != NULL &&
	    memcmp(&x->newest.sha256, shown, sizeof(*shown)) == 0;
	bool holding = same && x->ready && x->now != NULL &&
	    same_row(&x->held, &x->newest);

	if (shown != NULL && !holding)
		why =
		    same && x->why[0] != '\0' ? x->why : "admind is reading it";
	jsonw_kv_bool(w, "in_force", holding);
	jsonw_name(w, "why");
	if (why != NULL)
		jsonw_str(w, why);
	else
		jsonw_null(w);
	keysets_json(x, w);
	telemetry_json(x, w);
}
