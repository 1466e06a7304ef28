/*
 * PostgreSQL on the event loop: asynchronous, pipelined, prepared statements.
 *
 * There are two lanes. DB_FAST is one connection with synchronous_commit off,
 * for reads and intent rows, which must not wait for a disk flush. DB_SURE is a
 * few connections with synchronous_commit on. They carry writes that must
 * survive a crash before they are acknowledged. They also carry reads that may
 * take as long as a statement may (lists of things that callers make ever more
 * of), so that no intent waits for these. A statement's lane is part of its
 * definition.
 *
 * One statement is one transaction. Rows that must change together are changed
 * by one SQL function (sql/migrations), so no transaction ever stays open while
 * this process thinks, and a connection lost half-way leaves nothing half done.
 * db_chain sends several statements as one transaction where that reads better.
 *
 * While PostgreSQL is away every statement fails at once (from the loop) with
 * FAILURE_STORAGE_UNAVAILABLE; the connections come back by themselves. That
 * failure on a writing statement means "unknown": the commit may have happened.
 * Every writer here is therefore safe to repeat.
 */
#ifndef DB_H
#define DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"

struct event_base;
struct database;  /* database.h; the caller's, outlives the db */
struct pg_result; /* libpq's PGresult, binary format in every column */
struct db;

enum db_lane { DB_FAST, DB_SURE };

/* A statement: always a static const object, prepared on each connection at
 * its first use there. Parameters are binary: cast them ($1::uuid). */
struct db_stmt {
	const char *name; /* unique in the program */
	const char *sql;
	enum db_lane lane;
};

enum { DB_PARAMS_MAX = 24 };

/* Parameters in order. Pointers are borrowed until db_query returns. */
struct db_params {
	int n;
	const char *value[DB_PARAMS_MAX];
	int length[DB_PARAMS_MAX];
	uint8_t scratch[DB_PARAMS_MAX][16];
};

void db_params_init(struct db_params *);
void db_p_null(struct db_params *);
void db_p_id(struct db_params *, const struct ipc_id *);     /* uuid */
void db_p_bytes(struct db_params *, const void *, size_t);   /* bytea */
void db_p_hash(struct db_params *, const struct ipc_hash *); /* bytea */
/* text: must be UTF-8 without NUL, which the IPC codec guarantees of `str`.
 * Other bytes go through db_text_clean first. */
void db_p_text(struct db_params *, struct ipc_bytes);
void db_p_str(struct db_params *, const char *); /* text; NULL: null */
void db_p_i64(struct db_params *, int64_t);      /* int8 */
void db_p_i32(struct db_params *, int32_t);      /* int4 */
void db_p_bool(struct db_params *, bool);
void db_p_time_us(
    struct db_params *, uint64_t unix_us); /* timestamptz; 0: null */
/*
 * One array a parameter: elements in order, each put with the function of its
 * type, null by db_a_null. The array's bytes live in `b` until db_query
 * returns; db_array_free frees them. Without memory the parameter is refused
 * by the server, as INVALID_PARAMS.
 */
struct db_array {
	struct buf b;
	uint32_t n;
};
enum db_type {
	DB_BOOL = 16,
	DB_BYTEA = 17,
	DB_INT8 = 20,
	DB_TEXT = 25,
	DB_TIME = 1184,
	DB_UUID = 2950
}; /* pg_type.oid of the elements */
void db_array_init(struct db_array *, enum db_type, size_t max);
void db_array_free(struct db_array *);
void db_a_null(struct db_array *);
void db_a_bytes(struct db_array *, const void *, size_t); /* text, uuid */
void db_a_str(struct db_array *, const char *);           /* NULL: null */
void db_a_i64(struct db_array *, int64_t);
void db_a_bool(struct db_array *, bool);
void db_a_time_us(struct db_array *, uint64_t unix_us); /* 0: null */
void db_p_array(struct db_params *, struct db_array *);
/* Appends bytes to out as text that PostgreSQL accepts: invalid UTF-8 and NUL
 * become '?', at most max bytes, cut at a character. */
void db_text_clean(struct buf *out, const void *, size_t n, size_t max);

/* Copies a result so that it outlives its callback; NULL without memory. */
struct pg_result *db_keep(const struct pg_result *);
void db_keep_free(struct pg_result *);

/* Reading results, by row and column number. A null reads as empty, 0, false.
 */
int db_nrows(const struct pg_result *);
bool db_null(const struct pg_result *, int row, int col);
struct ipc_bytes db_bytes(
    const struct pg_result *, int row, int col); /* text, bytea */
int64_t db_int(
    const struct pg_result *, int row, int col); /* int2, int4, int8 */
bool db_bool(const struct pg_result *, int row, int col);
struct ipc_id db_id(const struct pg_result *, int row, int col);
uint64_t db_time_us(const struct pg_result *, int row, int col); /* Unix us */
/* Copies a text column into buf with NUL; false if it does not fit. */
bool db_text(const struct pg_result *, int row, int col, char *buf, size_t len);

/*
 * The answer, always from the loop, exactly once. err is NULL on success. Else
 * rows is NULL and err->failure is
 *   STORAGE_UNAVAILABLE  no connection, connection lost, server shutting
 *                        down, out of resources, timed out, serialization
 *   CONFLICT             unique violation
 *   the failure that a SQL function raised: ERRCODE 'MB001', MESSAGE
 *                        'failure_name: text'
 *   INVALID_PARAMS       a check or foreign key constraint (named in the text)
 *   INTERNAL             anything else (logged here)
 * rows lives until the callback returns.
 */
typedef void db_cb(
    void *arg, const struct pg_result *rows, const struct err *err);

/* Never fails synchronously and never calls cb from inside. */
void db_query(struct db *, const struct db_stmt *, const struct db_params *,
    db_cb *cb, void *arg);

/* Several statements as one transaction (all of the first one's lane): the
 * first failure rolls back all. cb gets the last statement's rows. */
struct db_step {
	const struct db_stmt *stmt;
	const struct db_params *params;
};
void db_chain(
    struct db *, const struct db_step *, size_t n, db_cb *cb, void *arg);

struct db_events {
	/* Both lanes work (after the schema was found right), or one stopped
	 * working. */
	void (*up)(void *arg);
	void (*down)(void *arg);
	/* A notification on one of `channels`. */
	void (*notify)(const char *channel, const char *payload, void *arg);
	/* The schema is not this program's: the process must end. */
	void (*wrong_schema)(const char *why, void *arg);
};

/*
 * Connects to conninfo (libpq's form) and keeps connecting. channels: names
 * to LISTEN on, NULL-terminated, borrowed for ever. schema: the migration
 * this program was built for. NULL with err without memory.
 */
struct db *db_new(struct event_base *, const struct database *, int schema,
    const char *const *channels, const struct db_events *, void *arg,
    struct err *);
void db_free(struct db *);        /* pending callbacks are not called */
bool db_is_up(const struct db *); /* both lanes have a connection */
/* Returns why the last connection failed, as libpq and the server say it, in
 * one line; "" if none did. */
const char *db_why(const struct db *);

#endif
