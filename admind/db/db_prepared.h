/*
 * The statements that the server has prepared for a connection; they end with
 * the connection.
 */
#ifndef DB_PREPARED_H
#define DB_PREPARED_H

#include <stdbool.h>
#include <stddef.h>

struct db_stmt;

/* Zeroed: empty. Statements are borrowed for ever. */
struct db_prepared {
	const struct db_stmt **list;
	size_t n, max;
};

bool db_prepared_has(const struct db_prepared *, const struct db_stmt *);
/* Adds a statement that the server prepares. 0, or -1 without memory. */
int db_prepared_add(struct db_prepared *, const struct db_stmt *);
void db_prepared_drop(struct db_prepared *, const struct db_stmt *);
void db_prepared_free(struct db_prepared *);

#endif
