/* The rows that a statement gave, by row and column number. */
#ifndef DB_ROWS_H
#define DB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

struct pg_result; /* libpq's PGresult, binary format in every column */

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

#endif
