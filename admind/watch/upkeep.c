/*
 * Work on records in the pauses between calls. Records are counted and made
 * searchable (records_work), and deleted after their time (records_expire).
 *
 * Calls come first. In a second with calls only a sixtieth of the backlog is
 * worked off. So under a lasting load the backlog settles at the records of a
 * minute, and a burst of calls is hardly slowed. After a second without a call
 * the whole backlog is worked off, in pieces that each hold a connection for
 * milliseconds.
 */
#include "activity.h"
#include "log.h"

enum {
	PIECE_ROWS = 250,
	BUSY_ROWS_MIN = 25,
	BACKLOG_S = 60,
	IDLE_TICKS = 10,   /* after so many ticks, looks for work even without a
			    * backlog: another node may have left some */
	EXPIRE_TICKS = 60, /* between two expiries; 1 if more must expire */
	EXPIRE_ROWS = 1000
};

static const struct db_stmt work_rows = {
    "upkeep_work", "SELECT mcpbox.records_work($1::int8)", DB_SURE};
static const struct db_stmt expire_rows = {
    "upkeep_expire", "SELECT mcpbox.records_expire($1::int8)", DB_SURE};

void
upkeep_closed(struct admind *a, unsigned n)
{
	a->upkeep.closed += n;
	a->upkeep.backlog += n;
}

static void work(struct admind *, uint64_t rows);

static void
worked(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct upkeep *u = &a->upkeep;
	uint64_t n;

	u->working = false;
	if (err != NULL) {
		if (err->failure != FAILURE_STORAGE_UNAVAILABLE)
			log_event(LOG_LV_ERR, "records_work", "%s", err->text);
		return;
	}
	n = (uint64_t)db_int(rows, 0, 0);
	u->backlog -= n < u->backlog ? n : u->backlog;
	u->share -= n < u->share ? n : u->share;
	if (n < u->asked)
		u->backlog = 0;
	else if (u->idle && a->njobs == 0)
		work(a, PIECE_ROWS);
	else if (u->share > 0)
		work(a, u->share < PIECE_ROWS ? u->share : PIECE_ROWS);
}

static void
work(struct admind *a, uint64_t rows)
{
	struct db_params p;

	a->upkeep.working = true;
	a->upkeep.asked = rows;
	db_params_init(&p);
	db_p_i64(&p, (int64_t)rows);
	db_query(a->db, &work_rows, &p, worked, a);
}

static void
expired(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;

	a->upkeep.expiring = false;
	if (err != NULL) {
		if (err->failure != FAILURE_STORAGE_UNAVAILABLE)
			log_event(
			    LOG_LV_ERR, "records_expire", "%s", err->text);
		a->upkeep.more_to_expire = false;
		return;
	}
	a->upkeep.more_to_expire = db_int(rows, 0, 0) == EXPIRE_ROWS;
}

/* Called while the database is reachable. */
void
upkeep_tick(struct admind *a)
{
	struct upkeep *u = &a->upkeep;
	struct db_params p;

	u->idle = u->closed == 0 && a->njobs == 0;
	u->closed = 0;
	u->share = u->backlog / BACKLOG_S;
	if (u->share < BUSY_ROWS_MIN)
		u->share = BUSY_ROWS_MIN;
	if (!u->working && (u->backlog > 0 || a->ticks % IDLE_TICKS == 1))
		work(a,
		    u->idle || u->share > PIECE_ROWS ? PIECE_ROWS : u->share);
	if (!u->expiring &&
	    (u->more_to_expire || a->ticks % EXPIRE_TICKS == 2)) {
		u->expiring = true;
		db_params_init(&p);
		db_p_i64(&p, EXPIRE_ROWS);
		db_query(a->db, &expire_rows, &p, expired, a);
	}
}
