/*
 * The database of unit tests. Lanes, parameters and results are admind's own
 * (db.c); its connections (db_conn.c) are these: every statement waits here
 * until the test answers it.
 */
#ifndef FAKE_DB_H
#define FAKE_DB_H

#include "db.h"

struct event_base;

/* A database whose lanes are both up. */
struct db *fake_db_new(struct event_base *);
/* Frees it and all that waits. No answer may be left unused. */
void fake_db_free(struct db *);
/* Without a connection every statement fails from the loop. */
void fake_db_up(bool);

/* Returns the number of waiting statements of this name; NULL: of any name. */
unsigned fake_db_waits(const char *name);
/* Returns the number of statements of this name ever sent. */
unsigned fake_db_sent(const char *name);
/* A parameter, from 0 on, of the oldest statement of this name that waits. The
 * test fails without one. */
bool fake_db_null(const char *name, int i);
struct ipc_bytes fake_db_bytes(const char *name, int i);
int64_t fake_db_int(const char *name, int i);
void fake_db_is(const char *name, int i, const char *text);
/* Elements of a parameter that is an array. */
uint32_t fake_db_elements(const char *name, int i);

/*
 * Adds a row to the next answer, a letter a column: i int64_t, s const char *
 * (NULL: null), u const struct ipc_id *, h const struct ipc_hash *, b bool as
 * int, t uint64_t of Unix microseconds; and, taking nothing, n null, 0 the int8
 * 0.
 */
void fake_db_row(const char *columns, ...);
/* Answers the oldest statement of this name with the rows that were added. */
void fake_db_answer(const char *name);
void fake_db_fail(const char *name, enum failure, const char *text);
/* Fails the oldest statement, as if the database went. Returns false if none
 * waits. */
bool fake_db_goes(void);

#endif
