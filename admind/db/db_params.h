/*
 * The parameters of a statement, in order and in binary form. An array is one
 * parameter.
 */
#ifndef DB_PARAMS_H
#define DB_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "bytes.h"

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
 * An array, which is one parameter. Each element is appended with the function
 * of its type, a null with db_a_null. The array's bytes are in `b`, so call
 * db_array_free only after db_query returned. If memory ran out, the server
 * refuses the parameter, as INVALID_PARAMS.
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
 * become '?'. Text after max bytes is cut off, but no character is cut in
 * two. */
void db_text_clean(struct buf *out, const void *, size_t n, size_t max);

#endif
