/*
 * The activity log: events that are not executions.
 *
 * Anyone who can reach a listener can make entries at any rate. So entries are
 * merged and counted for a second, then written by one statement. No entry
 * holds a text that a caller chose, except the name of the object that he
 * called, which is cleaned. If a caller always calls new names, a few of these
 * names are logged and the rest become one entry without a name. Otherwise this
 * caller would take all the room there is, and push other entries out of the
 * log within minutes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "ids.h"
#include "json_kv.h"
#include "log.h"

enum { NAMES_MAX = 4 }; /* different names of one caller in a second */

enum level { INFO, WARNING, ERROR };

static const char *const level_names[] = {"info", "warning", "error"};
static const struct {
	const char *name;
	enum level level;
} kinds[] = {
#define A(NAME, name, level, doc) {#name, level},
#include "activity.def"
#undef A
};

static const struct db_stmt add_rows = {"activity_add",
    "SELECT mcpbox.activity_add($1::text, $2::timestamptz[], $3::text[],"
    " $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int8[])",
    DB_FAST};

struct entry {
	uint64_t at_us, count;
	enum activity_kind kind;
	enum listener listener;
	enum failure failure;
	char principal[PRINCIPAL_MAX + 1];
	char subject[ACTIVITY_SUBJECT_MAX + 1];
};

struct activity {
	struct entry entry[ACTIVITY_PENDING_MAX];
	unsigned n;
	unsigned sent; /* how many of the n entries the statement under way
			* writes */
	uint64_t dropped;
	bool up; /* the database was reachable when last noted */
};

int
activity_start(struct admind *a, struct err *err)
{
	a->activity = calloc(1, sizeof(*a->activity));
	a->metrics = calloc(1, sizeof(*a->metrics));
	if (a->activity == NULL || a->metrics == NULL)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	return 0;
}

static const char *
failure_text(enum failure f)
{
	return f == FAILURE_NONE ? "" : failure_info(f)->name;
}

/* Copies a name; each character that a name cannot have becomes a question
 * mark. A sentence may have spaces, too. */
static void
clean(char *out, size_t size, const char *in, bool sentence)
{
	size_t n = 0;

	for (; in != NULL && *in != '\0' && n + 1 < size; in++)
		out[n++] = (*in >= 'a' && *in <= 'z') ||
			(*in >= 'A' && *in <= 'Z') ||
			(*in >= '0' && *in <= '9') ||
			strchr("_-.:@/+", *in) != NULL ||
			(sentence && *in == ' ')
		    ? *in
		    : '?';
	out[n] = '\0';
}

/* Sends a line to the followers. */
static void
tell(struct admind *a, const struct entry *e, uint64_t n)
{
	struct jsonw w;
	struct buf b;

	if (follow_count(a) == 0)
		return;
	buf_init(&b, IPC_FRAME_MAX / 4);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "activity");
	json_kv_time(&w, "at", e->at_us);
	jsonw_kv_str(&w, "node", a->node);
	jsonw_kv_str(&w, "kind", kinds[e->kind].name);
	jsonw_kv_str(&w, "level", level_names[kinds[e->kind].level]);
	jsonw_kv_str(&w, "principal", e->principal);
	jsonw_kv_str(&w, "listener", listener_name(e->listener));
	jsonw_kv_str(&w, "subject", e->subject);
	jsonw_kv_str(&w, "failure_mode", failure_text(e->failure));
	jsonw_kv_int(&w, "count", (int64_t)n);
	jsonw_obj_end(&w);
	follow_line(a, &b);
	buf_free(&b);
}

static bool
same_caller(const struct entry *x, const struct entry *y)
{
	return x->kind == y->kind && x->listener == y->listener &&
	    strcmp(x->principal, y->principal) == 0;
}

/* Returns the entry that equals e, or NULL. Entries that were sent to the
 * database are not looked at, because they can't change any more. */
static struct entry *
find(struct activity *log, struct entry *e)
{
	unsigned names = 0;

	for (unsigned i = log->sent; i < log->n; i++) {
		struct entry *o = &log->entry[i];

		if (!same_caller(o, e))
			continue;
		if (o->failure == e->failure &&
		    strcmp(o->subject, e->subject) == 0)
			return o;
		names += o->subject[0] != '\0';
	}
	if (names < NAMES_MAX || e->subject[0] == '\0' ||
	    e->kind != ACTIVITY_CALL_REFUSED)
		return NULL;
	e->subject[0] = '\0';
	return find(log, e);
}

void
activity_note(struct admind *a, enum activity_kind kind, const char *principal,
    enum listener listener, const char *subject, enum failure failure,
    uint64_t n)
{
	struct activity *log = a->activity;
	struct entry e = {.at_us = now_us(),
	    .count = n,
	    .kind = kind,
	    .listener = listener,
	    .failure = failure};
	struct entry *same;

	if (log == NULL || n == 0)
		return;
	clean(e.principal, sizeof(e.principal), principal, false);
	clean(e.subject, sizeof(e.subject), subject,
	    kind == ACTIVITY_AUTH_FAILED);
	same = find(log, &e);
	if (same != NULL) {
		same->count += n;
		return; /* followers have seen the first such entry */
	}
	if (log->n == ACTIVITY_PENDING_MAX) {
		log->dropped += n;
		if (a->metrics != NULL)
			a->metrics->activity_dropped += n;
		return;
	}
	log->entry[log->n++] = e;
	tell(a, &e, n);
}

static void
added(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct activity *log = a->activity;
	unsigned sent = log->sent;

	log->sent = 0;
	if (err != NULL && err->failure == FAILURE_STORAGE_UNAVAILABLE)
		return; /* the entries are sent again, with later ones */
	if (err != NULL)
		log_event(LOG_LV_ERR, "activity", "%s", err->text);
	memmove(log->entry, log->entry + sent,
	    (log->n - sent) * sizeof(log->entry[0]));
	log->n -= sent;
}

enum { COLUMNS = 8 };

static void
write_entries(struct admind *a)
{
	static const enum db_type types[COLUMNS] = {DB_TIME, DB_TEXT, DB_TEXT,
	    DB_TEXT, DB_TEXT, DB_TEXT, DB_TEXT, DB_INT8};
	struct activity *log = a->activity;
	struct db_array col[COLUMNS];
	struct db_params p;

	for (int i = 0; i < COLUMNS; i++)
		db_array_init(&col[i], types[i],
		    ACTIVITY_PENDING_MAX * (PRINCIPAL_MAX + sizeof(uint32_t)) +
			64);
	for (unsigned i = 0; i < log->n; i++) {
		const struct entry *e = &log->entry[i];

		db_a_time_us(&col[0], e->at_us);
		db_a_str(&col[1], kinds[e->kind].name);
		db_a_str(&col[2], level_names[kinds[e->kind].level]);
		db_a_str(&col[3], e->principal);
		db_a_str(&col[4], listener_name(e->listener));
		db_a_str(&col[5], e->subject);
		db_a_str(&col[6], failure_text(e->failure));
		db_a_i64(&col[7],
		    e->count <= INT64_MAX ? (int64_t)e->count : INT64_MAX);
	}
	log->sent = log->n;
	db_params_init(&p);
	db_p_str(&p, a->node);
	for (int i = 0; i < COLUMNS; i++)
		db_p_array(&p, &col[i]);
	db_query(a->db, &add_rows, &p, added, a);
	for (int i = 0; i < COLUMNS; i++)
		db_array_free(&col[i]);
}

void
activity_tick(struct admind *a)
{
	struct activity *log = a->activity;
	bool up = db_is_up(a->db);
	uint64_t dropped;

	if (up != log->up) {
		log->up = up;
		activity_note(a,
		    up ? ACTIVITY_DATABASE_UP : ACTIVITY_DATABASE_DOWN, "",
		    LISTENER_NONE, "", FAILURE_NONE, 1);
	}
	if (!up || log->sent != 0)
		return;
	if (log->dropped != 0 && log->n < ACTIVITY_PENDING_MAX) {
		dropped = log->dropped;
		log->dropped = 0;
		activity_note(a, ACTIVITY_ACTIVITY_DROPPED, "", LISTENER_NONE,
		    "", FAILURE_NONE, dropped);
	}
	if (log->n > 0)
		write_entries(a);
}
