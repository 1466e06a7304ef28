/*
 * One connection to PostgreSQL in pipeline mode.
 *
 *  down -> connecting -> setup -> ready -> down ...
 *
 * Commands go out as units. A unit is one caller's request. It has an Execute
 * for each statement, after a Parse if the connection has not prepared the
 * statement yet, and one Sync at its end. So a unit is one transaction, and an
 * error in it skips the rest of the unit and nothing else. Results come back in
 * the same order; each command gives exactly one result object.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <libpq-fe.h>

#include "database.h"
#include "db_internal.h"
#include "db_prepared.h"
#include "ids.h"
#include "log.h"
#include "waits.h"

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_SETUP, CONN_READY };

struct unit {
	STAILQ_ENTRY(unit) entry;
	db_cb *cb; /* NULL: the connection's own set-up */
	void *arg;
	unsigned ncmds, done;
	/* for each command: the statement that it parses; NULL: an Execute */
	const struct db_stmt *parse[2 * DB_CHAIN_MAX];
	PGresult *last;   /* result of the last Execute */
	PGresult *failed; /* first error */
	uint64_t sent_ms;
};
STAILQ_HEAD(unit_list, unit);

struct db_conn {
	struct db *db;
	struct event_base *base;
	unsigned index;
	const struct database *where;
	unsigned turn; /* which host is tried first */
	bool synchronous;
	int schema;
	const char *const *listen;
	enum conn_state state;
	PGconn *pg;
	struct event *io;    /* one-shot while connecting, else reading */
	struct event *out;   /* writing, while libpq holds unsent bytes */
	struct event *timer; /* runs on_timer(): next attempt, or check for
			      * silence */
	unsigned backoff_ms;
	unsigned failures; /* failed attempts in a row, for the log */
	uint64_t since_ms; /* start of this attempt */
	bool sent_broken;  /* half a unit was buffered: drop the connection */
	struct unit_list units;
	unsigned pending;
	struct db_prepared prepared;
};

static void conn_connect(struct db_conn *);
static void on_poll(evutil_socket_t, short, void *);

/* ---- going down ---- */

static void
unit_free(struct unit *u)
{
	PQclear(u->last);
	PQclear(u->failed);
	free(u);
}

static void
set_timer(struct db_conn *c, unsigned ms)
{
	struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

	evtimer_add(c->timer, &tv);
}

/* Ends the connection, fails the waiting units, and plans the next attempt. The
 * units' callbacks run last, so that a callback that sends again finds the
 * connection down. */
static void
conn_fail(struct db_conn *c, const char *why)
{
	struct unit_list units = STAILQ_HEAD_INITIALIZER(units);
	bool was_ready = c->state == CONN_READY;
	struct unit *u;
	struct err err;

	/* The reason may come from the server, so log_event() escapes it. The
	 * loss is logged, then the reason why the first attempt to connect
	 * again failed, which a person may have to mend. Then one failure per
	 * minute is logged. */
	db_failed(c->db, why);
	if (c->failures % 240 == 0 || c->failures == 1)
		log_event(
		    LOG_LV_WARN, "db_down", "connection %u: %s", c->index, why);
	c->failures++;
	if (c->io != NULL)
		event_free(c->io);
	if (c->out != NULL)
		event_free(c->out);
	c->io = c->out = NULL;
	PQfinish(c->pg);
	c->pg = NULL;
	/* libpq itself tries the next host if one refuses, but waits for ever
	 * for a silent host. So the next attempt begins with another host. */
	if (c->state == CONN_CONNECTING || c->state == CONN_SETUP)
		c->turn++;
	c->state = CONN_DOWN;
	c->prepared.n = 0;
	STAILQ_CONCAT(&units, &c->units);
	c->pending = 0;
	set_timer(c, c->backoff_ms);
	c->backoff_ms = c->backoff_ms * 2 > DB_BACKOFF_MAX_MS
	    ? DB_BACKOFF_MAX_MS
	    : c->backoff_ms * 2;
	if (was_ready)
		db_conn_down(c->db, c->index);
	err_set(&err, FAILURE_STORAGE_UNAVAILABLE,
	    "the connection to the database was lost");
	while ((u = STAILQ_FIRST(&units)) != NULL) {
		STAILQ_REMOVE_HEAD(&units, entry);
		if (u->cb != NULL)
			u->cb(u->arg, NULL, &err);
		unit_free(u);
	}
}

/* ---- sending ---- */

static int
flush(struct db_conn *c)
{
	int r = PQflush(c->pg);

	if (r < 0)
		return -1;
	if (r == 1)
		event_add(c->out, NULL);
	return 0;
}

int
db_conn_send(struct db_conn *c, const struct db_step *steps, size_t n,
    db_cb *cb, void *arg, struct err *err)
{
	struct unit *u = NULL;

	if (c->state != CONN_READY)
		return err_set(err, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
	if (c->pending >= DB_PENDING_MAX || n == 0 || n > DB_CHAIN_MAX)
		return err_set(
		    err, FAILURE_BUSY, "the database's queue is full");
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return err_set(err, FAILURE_BUSY, "out of memory");
	u->cb = cb;
	u->arg = arg;
	u->sent_ms = now_boot_ms();
	for (size_t i = 0; i < n; i++) {
		const struct db_stmt *s = steps[i].stmt;
		const struct db_params *p = steps[i].params;
		int formats[DB_PARAMS_MAX];

		for (int k = 0; k < DB_PARAMS_MAX; k++)
			formats[k] = 1;
		if (!db_prepared_has(&c->prepared, s)) {
			if (db_prepared_add(&c->prepared, s) == -1 ||
			    PQsendPrepare(c->pg, s->name, s->sql, 0, NULL) != 1)
				goto broken;
			u->parse[u->ncmds++] = s;
		}
		if (PQsendQueryPrepared(c->pg, s->name, p != NULL ? p->n : 0,
			p != NULL ? p->value : NULL,
			p != NULL ? p->length : NULL,
			p != NULL ? formats : NULL, 1) != 1)
			goto broken;
		u->ncmds++;
	}
	if (PQpipelineSync(c->pg) != 1)
		goto broken;
	STAILQ_INSERT_TAIL(&c->units, u, entry);
	c->pending++;
	if (flush(c) == -1)
		event_active(c->io, EV_READ, 1); /* on_read() finds the loss */
	return 0;
broken:
	/* Half a unit may be in libpq's buffer, so only a new connection can be
	 * used. on_read() ends this connection at once; on_timer() would take
	 * seconds. */
	free(u);
	c->sent_broken = true;
	event_active(c->io, EV_READ, 1);
	return err_set(err, FAILURE_STORAGE_UNAVAILABLE,
	    "the statement could not be sent");
}

/* ---- receiving ---- */

/* Checks the answer to set-up: encoding, schema version. */
static int
check_setup(struct db_conn *c, struct unit *u)
{
	const char *state;
	char why[256];
	int version;

	if (u->failed != NULL) {
		state = PQresultErrorField(u->failed, PG_DIAG_SQLSTATE);
		if (state != NULL &&
		    (strcmp(state, "42P01") == 0 ||
			strcmp(state, "3F000") == 0)) {
			db_wrong_schema(c->db,
			    "the database has no schema: run "
			    "mcpbox-admind -m first");
			return -1;
		}
		log_event(LOG_LV_WARN, "db_setup", "%s",
		    PQresultErrorMessage(u->failed));
		return -1;
	}
	if (u->last == NULL || PQntuples(u->last) != 1)
		return -1;
	if (strcmp(PQgetvalue(u->last, 0, 0), "UTF8") != 0) {
		db_wrong_schema(c->db, "the database's encoding is not UTF8");
		return -1;
	}
	version = (int)strtol(PQgetvalue(u->last, 0, 1), NULL, 10);
	if (version != c->schema) {
		snprintf(why, sizeof(why),
		    "the database's schema is %d, this "
		    "program's is %d: %s",
		    version, c->schema,
		    version < c->schema ? "run mcpbox-admind -m first"
					: "use the program that made it");
		db_wrong_schema(c->db, why);
		return -1;
	}
	return 0;
}

/* Ends the first unit, whose Sync came. 0, or -1: set-up failed. */
static int
unit_end(struct db_conn *c)
{
	struct unit *u = STAILQ_FIRST(&c->units);
	struct err err;
	int rv = 0;

	STAILQ_REMOVE_HEAD(&c->units, entry);
	c->pending--;
	c->failures = 0;
	if (u->cb == NULL) {
		rv = check_setup(c, u);
		if (rv == 0) {
			c->state = CONN_READY;
			c->backoff_ms = DB_BACKOFF_MIN_MS;
			db_conn_up(c->db, c->index);
		}
	} else if (u->failed != NULL) {
		db_error(u->failed, &err);
		u->cb(u->arg, NULL, &err);
	} else {
		u->cb(u->arg, u->last, NULL);
	}
	unit_free(u);
	return rv;
}

static int
take_result(struct db_conn *c, PGresult *r)
{
	struct unit *u = STAILQ_FIRST(&c->units);
	ExecStatusType st = PQresultStatus(r);
	const struct db_stmt *parse;

	if (u == NULL) {
		/* an error outside any unit: the server ends the connection */
		PQclear(r);
		return -1;
	}
	if (st == PGRES_PIPELINE_SYNC) {
		PQclear(r);
		return unit_end(c);
	}
	parse = u->done < u->ncmds ? u->parse[u->done] : NULL;
	u->done++;
	if (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK) {
		if (parse == NULL) {
			PQclear(u->last);
			u->last = r;
			return 0;
		}
	} else {
		if (parse != NULL)
			db_prepared_drop(&c->prepared, parse);
		if (u->failed == NULL && st != PGRES_PIPELINE_ABORTED) {
			u->failed = r;
			return 0;
		}
	}
	PQclear(r);
	return 0;
}

static void
on_read(evutil_socket_t fd, short what, void *arg)
{
	struct db_conn *c = arg;
	PGnotify *n;
	PGresult *r;

	if (c->sent_broken || PQconsumeInput(c->pg) != 1) {
		conn_fail(c, PQerrorMessage(c->pg));
		return;
	}
	/* A NULL ends the results of one command, and further commands may
	 * follow. So the loop ends only if libpq is busy or no unit waits. */
	while (!STAILQ_EMPTY(&c->units) && !PQisBusy(c->pg)) {
		r = PQgetResult(c->pg);
		if (r == NULL) {
			if (PQstatus(c->pg) != CONNECTION_OK)
				break;
			continue;
		}
		if (take_result(c, r) == -1) {
			conn_fail(c, "unusable");
			return;
		}
		if (c->state < CONN_SETUP)
			return; /* a callback brought the connection down */
	}
	if (PQstatus(c->pg) != CONNECTION_OK) {
		conn_fail(c, PQerrorMessage(c->pg));
		return;
	}
	while ((n = PQnotifies(c->pg)) != NULL) {
		db_notified(c->db, n->relname, n->extra);
		PQfreemem(n);
	}
	if (flush(c) == -1)
		conn_fail(c, PQerrorMessage(c->pg));
}

static void
on_write(evutil_socket_t fd, short what, void *arg)
{
	struct db_conn *c = arg;

	if (flush(c) == -1)
		conn_fail(c, PQerrorMessage(c->pg));
}

/* ---- connecting ---- */

/*
 * Sends the first unit on a new connection. This unit sets how commits behave
 * and the longest time of a statement. It names the channels to listen to, and
 * asks whether this is our database at all.
 *
 * Statements are planned once per connection, not once per call (by default the
 * server would plan again for each value if there are partial indexes). The
 * plan may be made while the tables are still empty, and then reading a whole
 * table looks cheap. So sequential scans are off; every statement here has an
 * index to use. jit is off, because a plan that must read a whole table
 * nevertheless looks costly then, and compiling it would take longer than
 * running it.
 */
static int
send_setup(struct db_conn *c)
{
	const char *values[2];
	char timeout[16], listen[80];
	struct unit *u;

	if (PQsetnonblocking(c->pg, 1) != 0 || PQenterPipelineMode(c->pg) != 1)
		return -1;
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -1;
	snprintf(
	    timeout, sizeof(timeout), "%d", wait_ms(DB_STATEMENT_TIMEOUT_MS));
	values[0] = c->synchronous ? "on" : "off";
	values[1] = timeout;
	if (PQsendQueryParams(c->pg,
		"SELECT set_config('synchronous_commit', $1, false),"
		" set_config('statement_timeout', $2, false),"
		" set_config('client_encoding', 'UTF8', false),"
		" set_config('plan_cache_mode', 'force_generic_plan', false),"
		" set_config('enable_seqscan', 'off', false),"
		" set_config('jit', 'off', false),"
		" set_config('search_path', 'pg_catalog', false)",
		2, NULL, values, NULL, NULL, 0) != 1)
		goto fail;
	u->ncmds++;
	for (size_t i = 0; c->listen != NULL && c->listen[i] != NULL; i++) {
		snprintf(listen, sizeof(listen), "LISTEN %s", c->listen[i]);
		if (PQsendQueryParams(
			c->pg, listen, 0, NULL, NULL, NULL, NULL, 0) != 1)
			goto fail;
		u->ncmds++;
	}
	if (PQsendQueryParams(c->pg,
		"SELECT current_setting('server_encoding'),"
		" coalesce(max(version), 0) FROM mcpbox.schema_migrations",
		0, NULL, NULL, NULL, NULL, 0) != 1)
		goto fail;
	u->ncmds++;
	if (PQpipelineSync(c->pg) != 1)
		goto fail;
	u->sent_ms = now_boot_ms();
	STAILQ_INSERT_TAIL(&c->units, u, entry);
	c->pending++;
	return 0;
fail:
	free(u);
	return -1;
}

static int
watch(struct db_conn *c, short what)
{
	if (c->io != NULL)
		event_free(c->io);
	c->io = event_new(c->base, PQsocket(c->pg), what, on_poll, c);
	return c->io != NULL && event_add(c->io, NULL) == 0 ? 0 : -1;
}

/* Runs libpq's connection state machine, whose socket may change at each
 * step. */
static void
on_poll(evutil_socket_t fd, short what, void *arg)
{
	struct db_conn *c = arg;
	int r = -1;

	switch (PQconnectPoll(c->pg)) {
	case PGRES_POLLING_READING:
		r = watch(c, EV_READ);
		break;
	case PGRES_POLLING_WRITING:
		r = watch(c, EV_WRITE);
		break;
	case PGRES_POLLING_OK:
		event_free(c->io);
		c->io = event_new(
		    c->base, PQsocket(c->pg), EV_READ | EV_PERSIST, on_read, c);
		c->out =
		    event_new(c->base, PQsocket(c->pg), EV_WRITE, on_write, c);
		if (c->io == NULL || c->out == NULL ||
		    event_add(c->io, NULL) != 0)
			break;
		c->state = CONN_SETUP;
		r = send_setup(c);
		if (r == 0)
			r = flush(c);
		if (r == 0)
			set_timer(c, 1000);
		break;
	default:
		break;
	}
	if (r == -1)
		conn_fail(c, PQerrorMessage(c->pg));
}

/* Logs a notice. libpq itself would print it unchanged, on the stream that is
 * our log. */
static void
on_notice(void *arg, const char *message)
{
	log_event(LOG_LV_DEBUG, "db_notice", "%s", message);
}

static void
conn_connect(struct db_conn *c)
{
	c->state = CONN_CONNECTING;
	c->sent_broken = false;
	c->pg = PQconnectStart(c->where->conninfo[c->turn % c->where->n]);
	if (c->pg != NULL)
		(void)PQsetNoticeProcessor(c->pg, on_notice, NULL);
	/* on_timer()'s check for silence bounds connecting, too. */
	c->since_ms = now_boot_ms();
	if (c->pg == NULL || PQstatus(c->pg) == CONNECTION_BAD ||
	    watch(c, EV_WRITE) == -1) {
		conn_fail(c, c->pg != NULL ? PQerrorMessage(c->pg) : "memory");
		return;
	}
	set_timer(c, 1000);
}

/* Runs once a second. A server that took our bytes and stays silent (stopped,
 * or its machine is gone) counts as lost, so that waiting units fail and do not
 * wait for ever. */
static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct db_conn *c = arg;
	struct unit *u = STAILQ_FIRST(&c->units);
	uint64_t now = now_boot_ms(),
		 silence = (uint64_t)wait_ms(DB_SILENCE_MS);

	if (c->state == CONN_DOWN) {
		conn_connect(c);
		return;
	}
	if ((c->state == CONN_CONNECTING && now - c->since_ms > silence) ||
	    (u != NULL && now - u->sent_ms > silence)) {
		conn_fail(c, "no answer");
		return;
	}
	set_timer(c, 1000);
}

struct db_conn *
db_conn_new(struct db *db, struct event_base *base, unsigned index,
    const struct database *where, bool synchronous, int schema,
    const char *const *listen)
{
	struct db_conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->db = db;
	c->base = base;
	c->index = index;
	c->where = where;
	c->synchronous = synchronous;
	c->schema = schema;
	c->listen = listen;
	c->backoff_ms = DB_BACKOFF_MIN_MS;
	STAILQ_INIT(&c->units);
	c->timer = evtimer_new(base, on_timer, c);
	if (c->timer == NULL) {
		free(c);
		return NULL;
	}
	set_timer(c, 0);
	return c;
}

void
db_conn_free(struct db_conn *c)
{
	struct unit *u;

	if (c == NULL)
		return;
	while ((u = STAILQ_FIRST(&c->units)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->units, entry);
		unit_free(u);
	}
	if (c->io != NULL)
		event_free(c->io);
	if (c->out != NULL)
		event_free(c->out);
	event_free(c->timer);
	PQfinish(c->pg);
	db_prepared_free(&c->prepared);
	free(c);
}

bool
db_conn_ready(const struct db_conn *c)
{
	return c->state == CONN_READY && !c->sent_broken;
}

unsigned
db_conn_pending(const struct db_conn *c)
{
	return c->pending;
}
