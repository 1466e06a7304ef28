/*
 * Closes rows whose owner will not close them any more.
 *
 * A row is lost if its owner's epoch ended; the database knows that, because a
 * new epoch ends the epoch before it. A row is also lost if its deadline is
 * long over and its living owner does not name it. This second rule is applied
 * only to owners that named their executions on the present connection: a
 * sandbox that is just not reachable may still be running a call, and its
 * record will come. If a whole node is gone, any other node closes the rows
 * whose deadlines are over. If that node was only away, it corrects the rows
 * later (nodes_sweep(), decision 0077).
 */
#include <string.h>

#include "activity.h"
#include "ending.h"
#include "ids.h"
#include "job.h"
#include "log.h"
#include "records.h"

enum {
	GRACE_S = 15,       /* time for a late record, after the deadline */
	OVERDUE_ROWS = 256, /* the most rows of one sweep; more rows wait for
			     * the next */
	/* A node that was not seen for so long is gone. A restart of a database
	 * or of a node takes less. A client that waits for a task of a dead
	 * node waits at most this long. */
	GONE_S = 60,
};

static const struct db_stmt begin_epoch = {"sweep_epoch",
    "SELECT mcpbox.epoch_begin($1::uuid, $2::text, 'admind')", DB_SURE};
static const struct db_stmt sweep_epochs = {
    "sweep_epochs", "SELECT mcpbox.sweep_epochs()", DB_SURE};
/* Finds open rows that may be lost: their deadline is over, or they are older
 * than this process. A call that an earlier admind had not handed over can't be
 * handed over now. The sandbox names the calls that were handed over. */
static const struct db_stmt overdue = {"sweep_overdue",
    "SELECT id, owner_epoch FROM mcpbox.executions WHERE state = 'open'"
    " AND owner_epoch IN ($1::uuid, $2::uuid)"
    " AND (deadline < now() - make_interval(secs => $3::int8)"
    " OR created_at < $5::timestamptz)"
    " ORDER BY deadline LIMIT $4::int8",
    DB_FAST};

/* Closes the rows that vanished nodes left open past their deadline. */
static const struct db_stmt gone_nodes = {"sweep_nodes",
    "SELECT mcpbox.nodes_sweep($1::text, $2::int8, $3::int8, $4::int8)",
    DB_SURE};

static bool
in_work(const struct admind *a, const struct ipc_id *id)
{
	const struct job *j;

	TAILQ_FOREACH(j, &a->jobs, entry)
		if (memcmp(&j->execution, id, sizeof(*id)) == 0)
			return true;
	return false;
}

static void
got_overdue(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	char text[UUID_TEXT_LEN + 1];

	a->sweeping = false;
	if (err != NULL)
		return;
	for (int i = 0; i < db_nrows(rows); i++) {
		struct ending e = {.id = db_id(rows, i, 0),
		    .epoch = db_id(rows, i, 1),
		    .outcome = OUTCOME_LOST,
		    .failure = FAILURE_LOST,
		    .ended_us = now_us()};

		if (idset_has(&a->live, &e.id) || in_work(a, &e.id) ||
		    ending_full(a))
			continue;
		/* The sandbox may have gone while the database answered. Then
		 * its rows are not closed: it may still send their records. */
		if (!a->sandbox_ready &&
		    memcmp(&e.epoch, &a->epoch, sizeof(e.epoch)) != 0)
			continue;
		uuid_text(&e.id, text);
		log_call(LOG_LV_WARN, "lost", text, NULL,
		    "nobody answers for it any more");
		ending_close(a, &e);
	}
}

/* Reports rows that this or another node's sweep closed as lost. */
static void
lost(struct admind *a, int64_t n, const char *whose)
{
	if (n <= 0)
		return;
	log_event(
	    LOG_LV_WARN, "lost", "%lld executions of %s", (long long)n, whose);
	activity_note(a, ACTIVITY_CALLS_LOST, "", LISTENER_NONE, "",
	    FAILURE_LOST, (uint64_t)n);
	upkeep_closed(a, (unsigned)n);
}

static void
swept(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct db_params p;

	if (err != NULL) {
		a->sweeping = false;
		return;
	}
	lost(a, db_int(rows, 0, 0), "ended epochs");
	db_params_init(&p);
	db_p_id(&p, &a->epoch);
	db_p_id(&p, a->sandbox_ready ? &a->sandbox_epoch : &a->epoch);
	db_p_i64(&p, GRACE_S);
	db_p_i64(&p, OVERDUE_ROWS);
	db_p_time_us(&p, a->started_us);
	db_query(a->db, &overdue, &p, got_overdue, a);
}

void
sweep_run(struct admind *a)
{
	if (a->sweeping || !a->epoch_stored)
		return;
	a->sweeping = true;
	db_query(a->db, &sweep_epochs, NULL, swept, a);
}

static void
own_epoch(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;

	a->storing_epoch = false;
	if (err == NULL) {
		a->epoch_stored = true;
		sweep_run(a);
		return;
	}
	/* Another admind of this node ended our epoch, and two processes can't
	 * work for one node at once. The service manager may start us again,
	 * with a new epoch. */
	if (err->failure == FAILURE_CONFLICT)
		log_fatal("epoch", "another admind works for node %s", a->node);
	log_event(LOG_LV_WARN, "epoch", "%s", err->text);
}

void
sweep_own_epoch(struct admind *a)
{
	struct db_params p;

	/* Our epoch ends our predecessor's epoch, so the predecessor's endings
	 * must be stored first. */
	if (a->storing_epoch || a->inherited > 0 || !db_is_up(a->db))
		return;
	a->storing_epoch = true;
	db_params_init(&p);
	db_p_id(&p, &a->epoch);
	db_p_str(&p, a->node);
	db_query(a->db, &begin_epoch, &p, own_epoch, a);
}

static void
swept_nodes(void *arg, const struct pg_result *rows, const struct err *err)
{
	if (err == NULL)
		lost(arg, db_int(rows, 0, 0), "nodes that are gone");
	else
		log_event(LOG_LV_WARN, "nodes", "%s", err->text);
}

void
sweep_nodes(struct admind *a)
{
	struct db_params p;

	db_params_init(&p);
	db_p_str(&p, a->node);
	db_p_i64(&p, GRACE_S);
	db_p_i64(&p, GONE_S);
	db_p_i64(&p, OVERDUE_ROWS);
	db_query(a->db, &gone_nodes, &p, swept_nodes, a);
}
