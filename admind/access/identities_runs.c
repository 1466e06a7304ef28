/*
 * Open runs of people with signed tokens, when another document comes into
 * force.
 *
 * Remembered people are judged by their claims (identities_change.c). The
 * claims of others are not known here. So their runs go on if the former
 * document and the new one say the same about their issuer: the issuer's
 * record, its rules, and their sets. All others end, also if a person would
 * have kept all rights: that can't be known.
 *
 * The first document after a start is such a change, too: it may have been set
 * while this process was down. The former one is the document by which this
 * node judged last, which the database remembers (access_judged). It is noted
 * only after the runs that end by it were cancelled, so a process that ends in
 * between leaves the work to the next. Without such a note all runs of people
 * end. No signed token is accepted before, so all runs found are of an earlier
 * process, and no person is remembered yet.
 *
 * An attacker that writes the database could keep a run alive by a false note,
 * or by a false former document. But it could as well write the rows of runs,
 * which are judged here. A former document opens no door: no token is judged by
 * it. So the vault is not asked about it.
 *
 * Streams and calls that wait for their clients are at gateways, which ask
 * about each credential again when they are connected again (gatewayd).
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "hold.h"
#include "identities.h"
#include "ids.h"
#include "log.h"

/* Finds open runs of all people with signed tokens. */
static const struct db_stmt open_runs = {"identities_runs",
    "SELECT id, principal FROM mcpbox.executions WHERE state = 'open'"
    " AND kind IN ('tool', 'test', 'inspect')"
    " AND starts_with(principal, 'oidc:')",
    DB_FAST};
static const struct db_stmt read_judged = {"identities_judged",
    "SELECT d.serial, d.document FROM mcpbox.access_judged j"
    " JOIN mcpbox.access_documents d ON d.serial = j.serial"
    " WHERE j.node = $1::text",
    DB_FAST};
static const struct db_stmt note_judged = {"identities_judged_note",
    "SELECT mcpbox.access_judged_note($1::text, $2::int8)", DB_SURE};

/* ---- cancelling ---- */

int
identities_cancel(struct admind *a, const struct ipc_id *id)
{
	hold_cancel(a, id, FAILURE_KILLED);
	if (a->sandbox_ready)
		return 0;
	return idset_add(&a->identities->doomed, id);
}

/* Cancels the runs that were found while the sandbox was away. */
static void
cancel_doomed(struct admind *a)
{
	struct idset *s = &a->identities->doomed;

	if (s->count == 0 || !a->sandbox_ready)
		return;
	for (size_t i = 0; i < s->size; i++)
		if (s->used[i] == 1)
			hold_cancel(a, &s->slot[i], FAILURE_KILLED);
	idset_clear(s);
}

/* ---- judging ---- */

/* One reading of the open runs, and the issuers whose people go on. */
struct judged_runs {
	struct admind *a;
	bool first;          /* of this process */
	unsigned generation; /* of the document that judges */
	uint64_t serial;     /* of that document; 0: none holds */
	unsigned n;
	char name[ACCESS_ISSUERS_MAX][ACCESS_NAME_MAX + 1]; /* unchanged */
};

/* Returns whether a principal is of an issuer about which nothing changed. */
static bool
undisturbed(const struct judged_runs *j, struct ipc_bytes principal)
{
	size_t n;

	for (unsigned i = 0; i < j->n; i++) {
		n = strlen(j->name[i]);
		if (principal.n > n + 6 &&
		    memcmp(principal.p + 5, j->name[i], n) == 0 &&
		    principal.p[5 + n] == ':')
			return true;
	}
	return false;
}

static void
noted(void *arg, const struct pg_result *rows, const struct err *err)
{
	/* The next process of this node will judge by an older document. */
	if (err != NULL)
		log_event(
		    LOG_LV_WARN, "identities", "not noted: %s", err->text);
}

static void
note(struct admind *a, uint64_t serial)
{
	struct db_params p;

	if (serial == 0)
		return;
	db_params_init(&p);
	db_p_str(&p, a->node);
	db_p_i64(&p, (int64_t)serial);
	db_query(a->db, &note_judged, &p, noted, a);
}

static void
got_open(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct judged_runs *j = arg;
	struct admind *a = j->a;
	char principal[PRINCIPAL_MAX + 1];
	bool whole = err == NULL;
	unsigned ended = 0;
	struct person *x;
	struct ipc_id id;

	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		if (undisturbed(j, db_bytes(rows, i, 1)))
			continue;
		x = db_text(rows, i, 1, principal, sizeof(principal))
		    ? people_person(&a->identities->people, principal)
		    : NULL;
		/* A remembered person was judged by claims. */
		if (x != NULL && x->ncredentials > 0)
			continue;
		id = db_id(rows, i, 0);
		whole &= identities_cancel(a, &id) == 0;
		ended++;
	}
	if (ended > 0)
		log_event(LOG_LV_INFO, "identities",
		    "%u runs ended: another access document holds", ended);
	if (j->first) {
		a->identities->judging = false;
		/* Else the tick begins again. */
		a->identities->judged =
		    whole && j->generation == a->access->generation;
	}
	if (whole)
		note(a, j->serial);
	free(j);
}

/* Reads the open runs, and ends those of issuers about which the documents
 * differ. from NULL: it is not known. 0, or -1 without memory. */
static int
judge(struct admind *a, const struct compiled *from, const struct compiled *to,
    bool first)
{
	struct judged_runs *j = calloc(1, sizeof(*j));

	if (j == NULL) {
		log_event(LOG_LV_ERR, "memory", "runs of a former document");
		return -1;
	}
	j->a = a;
	j->first = first;
	j->generation = a->access->generation;
	j->serial = to != NULL ? a->access->held.serial : 0;
	for (unsigned i = 0; to != NULL && i < to->nissuers; i++) {
		struct ipc_bytes name = to->issuer[i].name;

		if (from != NULL && rules_same(from, to, name)) {
			memcpy(j->name[j->n], name.p, name.n);
			j->n++;
		}
	}
	db_query(a->db, &open_runs, NULL, got_open, j);
	return 0;
}

/* ---- the first document of this process ---- */

/* A reading of the document by which an earlier process judged. */
struct former {
	struct admind *a;
	unsigned generation; /* of the document that holds */
	struct buf document;
};

static void
former_free(struct former *x)
{
	buf_free(&x->document);
	free(x);
}

/* Ends a reading. If it failed, the tick begins again. */
static void
former_end(struct former *x, const struct compiled *from, bool good)
{
	struct admind *a = x->a;

	if (!good || x->generation != a->access->generation ||
	    judge(a, from, a->access->now, true) == -1)
		a->identities->judging = false;
	former_free(x);
}

static void
compiled_former(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct former *x = arg;
	struct compiled *from = NULL;
	struct ipc_check_errors bad;
	struct ipc_check_ok ok;
	struct err err;
	bool good = true;

	if (f != NULL && f->type == IPC_CHECK_OK &&
	    ipc_decode(f, &ok, &err) == 0)
		from = compiled_new(ok.fields, &err);
	else /* A document of former rules may have faults today. Then it is as
	      * if there were no note. */
		good = f != NULL && f->type == IPC_CHECK_ERRORS &&
		    ipc_decode(f, &bad, &err) == 0 &&
		    (bad.failure >= FAILURE_COUNT ||
			failure_info(bad.failure)->side != FAILURE_PLATFORM);
	former_end(x, from, good);
	compiled_free(from);
}

static void
got_judged(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct former *x = arg;
	struct admind *a = x->a;
	struct ipc_check_access m = {0};
	struct ipc_bytes document;
	struct err no;

	if (err != NULL || x->generation != a->access->generation) {
		former_end(x, NULL, false);
		return;
	}
	if (db_nrows(rows) == 0 || a->access->now == NULL) {
		former_end(x, NULL, true);
		return;
	}
	if ((uint64_t)db_int(rows, 0, 0) == a->access->held.serial) {
		former_end(x, a->access->now, true);
		return;
	}
	document = db_bytes(rows, 0, 1);
	buf_put(&x->document, document.p, document.n);
	m.document = ipc_bytes(x->document.p, x->document.len);
	if (x->document.failed ||
	    ask(a->check, IPC_CHECK_ACCESS, &m, compiled_former, x, &no) == -1)
		former_end(x, NULL, false);
}

static void
judge_former(struct admind *a)
{
	struct former *x = calloc(1, sizeof(*x));
	struct db_params p;

	if (x == NULL) {
		log_event(LOG_LV_ERR, "memory", "the former document");
		return;
	}
	x->a = a;
	x->generation = a->access->generation;
	buf_init(&x->document, ACCESS_DOCUMENT_MAX);
	a->identities->judging = true;
	db_params_init(&p);
	db_p_str(&p, a->node);
	db_query(a->db, &read_judged, &p, got_judged, x);
}

/* ---- its occasions ---- */

void
identities_judge_runs(
    struct admind *a, const struct compiled *from, const struct compiled *to)
{
	if (a->identities->judged)
		(void)judge(a, from, to, false);
	else if (!a->identities->judging)
		judge_former(a);
}

void
identities_runs_tick(struct admind *a)
{
	struct identities *x = a->identities;

	if (x == NULL)
		return;
	cancel_doomed(a);
	if (!x->judged && !x->judging && a->access->ready && db_is_up(a->db))
		judge_former(a);
}
