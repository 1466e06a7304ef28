/*
 * PostgreSQL on the event loop: asynchronous, pipelined, prepared statements.
 *
 * There are two lanes. DB_FAST is one connection with synchronous_commit off,
 * for reads and for intent rows (one before each call), which must not wait for
 * a disk flush. DB_SURE is a few connections with synchronous_commit on. They
 * carry writes that must survive a crash before they are acknowledged. They
 * also carry slow reads, such as lists that grow with every call, so that no
 * intent waits for such a read. A statement's lane is part of its definition.
 *
 * One statement is one transaction. Rows that must change together are changed
 * by one SQL function (sql/schema). So no transaction stays open while this
 * process works, and a connection lost half-way leaves nothing half done.
 *
 * While PostgreSQL is away every statement fails at once (from the loop) with
 * FAILURE_STORAGE_UNAVAILABLE; the connections come back by themselves. A
 * writing statement that failed in this way may have been committed
 * nevertheless. So every statement that writes is safe to repeat.
 */
#ifndef DB_H
#define DB_H

#include <stdbool.h>
#include <stddef.h>

#include "db_params.h"
#include "db_rows.h"
#include "err.h"

struct event_base;
struct database; /* database.h; the caller's, outlives the db */
struct db;

enum db_lane { DB_FAST, DB_SURE };

/* A statement: always a static const object, prepared on each connection at
 * its first use there. Parameters are binary: cast them ($1::uuid). */
struct db_stmt {
	const char *name; /* unique in the program */
	const char *sql;
	enum db_lane lane;
};

/*
 * Gets the answer from the loop, exactly once. err is NULL on success. Else
 * rows is NULL and err->failure is
 *   STORAGE_UNAVAILABLE  no connection, connection lost, server shutting
 *                        down, out of resources, timed out, serialization
 *   CONFLICT             unique violation
 *   the failure that a SQL function raised: ERRCODE 'MB001', MESSAGE
 *                        'failure_name: text'
 *   INVALID_PARAMS       a check or foreign key constraint (named in the text),
 *                        or a value that its type does not allow
 *   BUSY                 too many statements wait, or no memory
 *   INTERNAL             anything else (logged here)
 * rows lives until the callback returns.
 */
typedef void db_cb(
    void *arg, const struct pg_result *rows, const struct err *err);

/* Sends a statement. Every failure comes through cb, which is never called from
 * inside db_query(). */
void db_query(struct db *, const struct db_stmt *, const struct db_params *,
    db_cb *cb, void *arg);

struct db_events {
	/* up: both lanes work, and the schema was found right. down: a lane
	 * stopped working. */
	void (*up)(void *arg);
	void (*down)(void *arg);
	/* A notification on one of `channels`. */
	void (*notify)(const char *channel, const char *payload, void *arg);
	/* The schema is not the one that this program needs, so the process
	 * must end. */
	void (*wrong_schema)(const char *why, void *arg);
};

/* Connects to the database, and connects again after each loss. channels: names
 * to LISTEN on, NULL-terminated, borrowed for ever. schema: the migration that
 * this program was built for. NULL with err: no memory. */
struct db *db_new(struct event_base *, const struct database *, int schema,
    const char *const *channels, const struct db_events *, void *arg,
    struct err *);
void db_free(struct db *);        /* pending callbacks are not called */
bool db_is_up(const struct db *); /* both lanes have a connection */
/* Returns why the last connection failed, as libpq and the server say it, in
 * one line; "" if none failed. */
const char *db_why(const struct db *);

#endif
