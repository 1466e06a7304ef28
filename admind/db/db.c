/*
 * The database's interface for the rest of admind: lanes, parameters, results.
 * db_conn.c holds the protocol.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <libpq-fe.h>

#include "db_internal.h"
#include "log.h"
#include "utf8.h"

/* timestamptz counts microseconds from 2000-01-01 (PostgreSQL manual, 55.7);
 * the constant is that day in Unix microseconds. */
static const int64_t PG_EPOCH_US = INT64_C(946684800000000);

/* A failure that cb must get from the loop, not from inside db_query(). */
struct deferred {
	STAILQ_ENTRY(deferred) entry;
	db_cb *cb;
	void *arg;
	struct err err;
};

struct db {
	struct db_conn *conns[DB_CONNS]; /* 0 is DB_FAST */
	struct db_events events;
	void *arg;
	struct event *later;
	bool up; /* the last event was `up` */
	char why[DB_WHY_MAX];
	STAILQ_HEAD(, deferred) deferred;
};

static void
on_later(evutil_socket_t fd, short what, void *arg)
{
	struct db *db = arg;
	struct deferred *d;

	while ((d = STAILQ_FIRST(&db->deferred)) != NULL) {
		STAILQ_REMOVE_HEAD(&db->deferred, entry);
		d->cb(d->arg, NULL, &d->err);
		free(d);
	}
}

static void
defer(struct db *db, db_cb *cb, void *arg, const struct err *err)
{
	struct deferred *d = malloc(sizeof(*d));

	/* If memory for d runs out, the failure can't be reported: the caller's
	 * object would leak, and its client would wait for ever. So end the
	 * process. Every record is safe with sandboxd and the database. */
	if (d == NULL)
		log_fatal("memory", "out of memory");
	d->cb = cb;
	d->arg = arg;
	d->err = *err;
	STAILQ_INSERT_TAIL(&db->deferred, d, entry);
	event_active(db->later, EV_TIMEOUT, 1);
}

/* Returns the lane's connection with the shortest queue, or NULL. */
static struct db_conn *
pick(struct db *db, enum db_lane lane)
{
	struct db_conn *best = NULL;

	if (lane == DB_FAST)
		return db_conn_ready(db->conns[0]) ? db->conns[0] : NULL;
	for (unsigned i = 1; i < DB_CONNS; i++)
		if (db_conn_ready(db->conns[i]) &&
		    (best == NULL ||
			db_conn_pending(db->conns[i]) < db_conn_pending(best)))
			best = db->conns[i];
	return best;
}

void
db_query(struct db *db, const struct db_stmt *stmt, const struct db_params *p,
    db_cb *cb, void *arg)
{
	struct db_conn *c = pick(db, stmt->lane);
	struct db_step step = {stmt, p};
	struct err err;

	if (c == NULL)
		err_set(&err, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
	else if (db_conn_send(c, &step, 1, cb, arg, &err) == 0)
		return;
	defer(db, cb, arg, &err);
}

bool
db_is_up(const struct db *db)
{
	bool sure = false;

	for (unsigned i = 1; i < DB_CONNS; i++)
		sure = sure || db_conn_ready(db->conns[i]);
	return sure && db_conn_ready(db->conns[0]);
}

/* Calls the event `up` once both lanes work, since its handler needs both
 * lanes. */
void
db_conn_up(struct db *db, unsigned index)
{
	log_event(LOG_LV_INFO, "db_up", "connection %u", index);
	if (db->up || !db_is_up(db))
		return;
	db->up = true;
	if (db->events.up != NULL)
		db->events.up(db->arg);
}

void
db_conn_down(struct db *db, unsigned index)
{
	if (!db->up || db_is_up(db))
		return;
	db->up = false;
	if (db->events.down != NULL)
		db->events.down(db->arg);
}

/* Keeps the reason in one line. libpq's messages end with a newline, and some
 * have several lines. */
void
db_failed(struct db *db, const char *why)
{
	size_t n;

	snprintf(db->why, sizeof(db->why), "%s", why);
	for (n = strlen(db->why); n > 0; n--)
		if (db->why[n - 1] == '\n')
			db->why[n - 1] = db->why[n] == '\0' ? '\0' : ' ';
}

const char *
db_why(const struct db *db)
{
	return db->why;
}

void
db_notified(struct db *db, const char *channel, const char *payload)
{
	if (db->events.notify != NULL)
		db->events.notify(channel, payload, db->arg);
}

void
db_wrong_schema(struct db *db, const char *why)
{
	if (db->events.wrong_schema != NULL)
		db->events.wrong_schema(why, db->arg);
}

struct db *
db_new(struct event_base *base, const struct database *where, int schema,
    const char *const *channels, const struct db_events *events, void *arg,
    struct err *err)
{
	struct db *db = calloc(1, sizeof(*db));

	if (db == NULL)
		goto fail;
	STAILQ_INIT(&db->deferred);
	db->events = *events;
	db->arg = arg;
	db->later = event_new(base, -1, 0, on_later, db);
	if (db->later == NULL)
		goto fail;
	for (unsigned i = 0; i < DB_CONNS; i++) {
		db->conns[i] = db_conn_new(db, base, i, where, i != 0, schema,
		    i == 0 ? channels : NULL);
		if (db->conns[i] == NULL)
			goto fail;
	}
	return db;
fail:
	db_free(db);
	err_set(err, FAILURE_INTERNAL, "out of memory");
	return NULL;
}

void
db_free(struct db *db)
{
	struct deferred *d;

	if (db == NULL)
		return;
	for (unsigned i = 0; i < DB_CONNS; i++)
		db_conn_free(db->conns[i]);
	while ((d = STAILQ_FIRST(&db->deferred)) != NULL) {
		STAILQ_REMOVE_HEAD(&db->deferred, entry);
		free(d);
	}
	if (db->later != NULL)
		event_free(db->later);
	free(db);
}

/* ---- parameters ---- */

void
db_params_init(struct db_params *p)
{
	p->n = 0;
}

static void
add(struct db_params *p, const void *value, size_t n)
{
	if (p->n >= DB_PARAMS_MAX || n > INT32_MAX)
		abort(); /* a bug of ours: statements are constants, so the
			  * first run of the wrong one shows it */
	/* An empty value needs a pointer: NULL would be SQL's null. */
	p->value[p->n] = value != NULL ? value : "";
	p->length[p->n++] = (int)n;
}

static uint8_t *
scratch(struct db_params *p)
{
	if (p->n >= DB_PARAMS_MAX)
		abort();
	return p->scratch[p->n];
}

static void
add_be(struct db_params *p, uint64_t v, unsigned n)
{
	uint8_t *s = scratch(p);

	for (unsigned i = 0; i < n; i++)
		s[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
	add(p, s, n);
}

void
db_p_null(struct db_params *p)
{
	add(p, "", 0);
	p->value[p->n - 1] = NULL;
}

void
db_p_id(struct db_params *p, const struct ipc_id *id)
{
	uint8_t *s = scratch(p);

	memcpy(s, id->b, sizeof(id->b));
	add(p, s, sizeof(id->b));
}

void
db_p_bytes(struct db_params *p, const void *bytes, size_t n)
{
	add(p, bytes, n);
}

void
db_p_hash(struct db_params *p, const struct ipc_hash *h)
{
	add(p, h->b, sizeof(h->b));
}

void
db_p_text(struct db_params *p, struct ipc_bytes t)
{
	add(p, t.p, t.n);
}

void
db_p_str(struct db_params *p, const char *s)
{
	if (s == NULL)
		db_p_null(p);
	else
		add(p, s, strlen(s));
}

void
db_p_i64(struct db_params *p, int64_t v)
{
	add_be(p, (uint64_t)v, 8);
}

void
db_p_i32(struct db_params *p, int32_t v)
{
	add_be(p, (uint32_t)v, 4);
}

void
db_p_bool(struct db_params *p, bool v)
{
	add_be(p, v, 1);
}

/* Converts a time to timestamptz, at most of the year 9999, so that a larger
 * number from a peer does not become an SQL error. */
static uint64_t
pg_time(uint64_t unix_us)
{
	const uint64_t max = UINT64_C(253402300799000000);

	return (
	    uint64_t)((int64_t)(unix_us < max ? unix_us : max) - PG_EPOCH_US);
}

void
db_p_time_us(struct db_params *p, uint64_t unix_us)
{
	if (unix_us == 0)
		db_p_null(p);
	else
		add_be(p, pg_time(unix_us), 8);
}

/*
 * An array as PostgreSQL's array_recv() reads it: the number of dimensions
 * (one), the flag "has nulls", the type of the elements, the dimension's length
 * and first subscript, and then the elements. Before each element comes its
 * length, which is -1 for null.
 */
enum { ARRAY_DIM_AT = 12 }; /* offset of the dimension's length */

void
db_array_init(struct db_array *a, enum db_type type, size_t max)
{
	buf_init(&a->b, max);
	a->n = 0;
	buf_put_u32(&a->b, 1);
	buf_put_u32(&a->b, 1);
	buf_put_u32(&a->b, (uint32_t)type);
	buf_put_u32(&a->b, 0); /* ARRAY_DIM_AT: see db_p_array */
	buf_put_u32(&a->b, 1);
}

void
db_array_free(struct db_array *a)
{
	buf_free(&a->b);
}

void
db_a_null(struct db_array *a)
{
	buf_put_u32(&a->b, UINT32_MAX);
	a->n++;
}

void
db_a_bytes(struct db_array *a, const void *p, size_t n)
{
	buf_put_u32(&a->b, (uint32_t)n);
	buf_put(&a->b, p, n);
	a->n++;
}

void
db_a_str(struct db_array *a, const char *s)
{
	if (s == NULL)
		db_a_null(a);
	else
		db_a_bytes(a, s, strlen(s));
}

void
db_a_i64(struct db_array *a, int64_t v)
{
	buf_put_u32(&a->b, 8);
	buf_put_u64(&a->b, (uint64_t)v);
	a->n++;
}

void
db_a_bool(struct db_array *a, bool v)
{
	buf_put_u32(&a->b, 1);
	buf_put_u8(&a->b, v);
	a->n++;
}

void
db_a_time_us(struct db_array *a, uint64_t unix_us)
{
	if (unix_us == 0)
		db_a_null(a);
	else
		db_a_i64(a, (int64_t)pg_time(unix_us));
}

void
db_p_array(struct db_params *p, struct db_array *a)
{
	/* If memory ran out, the array is sent as an empty value, which the
	 * server refuses for an array. */
	if (!a->b.failed && a->b.len > ARRAY_DIM_AT + 4)
		for (int i = 0; i < 4; i++)
			a->b.p[ARRAY_DIM_AT + i] =
			    (uint8_t)(a->n >> (24 - 8 * i));
	add(p, a->b.p, a->b.failed ? 0 : a->b.len);
}

void
db_text_clean(struct buf *out, const void *bytes, size_t n, size_t max)
{
	const uint8_t *s = bytes;
	size_t i = 0, from = 0, len;
	bool good;

	/* Good characters are copied in long pieces, since most texts have no
	 * bad ones. */
	while (i < n) {
		/* The lead byte says the length; utf8_valid() checks all
		 * bytes. */
		len = s[i] < 0x80 ? 1 : s[i] < 0xe0 ? 2 : s[i] < 0xf0 ? 3 : 4;
		good = s[i] != 0 &&
		    (len == 1 || (len <= n - i && utf8_valid(s + i, len)));
		if (!good)
			len = 1;
		if (len > max - i)
			break;
		if (!good) {
			buf_put(out, s + from, i - from);
			buf_putc(out, '?');
			from = i + 1;
		}
		i += len;
	}
	if (i > from) /* s may be NULL if the text is empty */
		buf_put(out, s + from, i - from);
}

/* ---- results ---- */

struct pg_result *
db_keep(const struct pg_result *r)
{
	return PQcopyResult(r, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
}

void
db_keep_free(struct pg_result *r)
{
	PQclear(r);
}

int
db_nrows(const struct pg_result *r)
{
	return PQntuples(r);
}

bool
db_null(const struct pg_result *r, int row, int col)
{
	return PQgetisnull(r, row, col) == 1;
}

struct ipc_bytes
db_bytes(const struct pg_result *r, int row, int col)
{
	return ipc_bytes(
	    PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col));
}

int64_t
db_int(const struct pg_result *r, int row, int col)
{
	const uint8_t *p = (const uint8_t *)PQgetvalue(r, row, col);

	switch (PQgetlength(r, row, col)) {
	case 1:
		return p[0];
	case 2:
		return (int16_t)get_be16(p);
	case 4:
		return (int32_t)get_be32(p);
	case 8:
		return (int64_t)get_be64(p);
	default:
		return 0;
	}
}

bool
db_bool(const struct pg_result *r, int row, int col)
{
	return db_int(r, row, col) != 0;
}

struct ipc_id
db_id(const struct pg_result *r, int row, int col)
{
	struct ipc_id id = {{0}};

	if (PQgetlength(r, row, col) == sizeof(id.b))
		memcpy(id.b, PQgetvalue(r, row, col), sizeof(id.b));
	return id;
}

uint64_t
db_time_us(const struct pg_result *r, int row, int col)
{
	if (db_null(r, row, col))
		return 0;
	return (uint64_t)(db_int(r, row, col) + PG_EPOCH_US);
}

bool
db_text(const struct pg_result *r, int row, int col, char *buf, size_t len)
{
	struct ipc_bytes b = db_bytes(r, row, col);

	if (b.n >= len)
		return false;
	memcpy(buf, b.p, b.n);
	buf[b.n] = '\0';
	return true;
}
