/* Shared by db.c (the lanes) and db_conn.c (one connection). */
#ifndef DB_INTERNAL_H
#define DB_INTERNAL_H

#include <sys/queue.h>

#include "db.h"

enum {
	DB_SURE_CONNS = 3, /* so that commits share a disk flush */
	DB_CONNS = 1 + DB_SURE_CONNS,
	DB_CHAIN_MAX = 8,
	/* Requests that may wait in one pipeline; a further request fails with
	 * BUSY. */
	DB_PENDING_MAX = 4096,
	/* The server ends a statement after this, so no lock is held long. */
	DB_STATEMENT_TIMEOUT_MS = 8000,
	/* A connection is dead if a request gets no answer for this long. */
	DB_SILENCE_MS = 12000,
	DB_BACKOFF_MIN_MS = 20,
	/* Short, since no client should wait for our next attempt after a
	 * restart of the server. */
	DB_BACKOFF_MAX_MS = 250,
	/* most bytes of libpq's reason for a failure, as `systemctl status`
	 * shows it */
	DB_WHY_MAX = 200,
};

struct db_conn;

/* These functions of db.c are called by db_conn.c. */
void db_conn_up(struct db *, unsigned lane_index);
void db_conn_down(struct db *, unsigned lane_index);
void db_notified(struct db *, const char *channel, const char *payload);
void db_wrong_schema(struct db *, const char *why);
void db_failed(struct db *, const char *why);

/* Turns a failed result into a failure mode (db.h lists them). */
void db_error(const struct pg_result *, struct err *);

/* Makes one connection. listen: channels or NULL. NULL without memory. */
struct db_conn *db_conn_new(struct db *, struct event_base *, unsigned index,
    const struct database *, bool synchronous, int schema,
    const char *const *listen);
void db_conn_free(struct db_conn *);
bool db_conn_ready(const struct db_conn *);
unsigned db_conn_pending(const struct db_conn *);
/* One statement of a transaction. */
struct db_step {
	const struct db_stmt *stmt;
	const struct db_params *params;
};
/* Sends statements as one transaction. The first failure rolls back all
 * statements; otherwise cb gets the rows of the last statement. 0: cb will be
 * called; -1 with err: cb won't be called. */
int db_conn_send(struct db_conn *, const struct db_step *, size_t n, db_cb *cb,
    void *arg, struct err *);

#endif
