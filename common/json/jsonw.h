/*
 * Writing JSON into a buffer. No parser: admind may write JSON but never
 * reads it. Commas are placed by the writer; nesting is the caller's duty and
 * is asserted.
 */
#ifndef JSONW_H
#define JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct jsonw {
	struct buf *out; /* also keeps the failure of a write */
	unsigned depth;
	bool comma; /* a value was written at this level */
	bool named; /* a name was written, its value is due */
};

void jsonw_open(struct jsonw *, struct buf *);
void jsonw_obj(struct jsonw *); /* { */
void jsonw_obj_end(struct jsonw *);
void jsonw_arr(struct jsonw *); /* [ */
void jsonw_arr_end(struct jsonw *);
void jsonw_name(struct jsonw *, const char *);
void jsonw_str(struct jsonw *, const char *);
/* Bytes that are invalid UTF-8 become U+FFFD. */
void jsonw_strn(struct jsonw *, const void *, size_t);
void jsonw_int(struct jsonw *, int64_t);
void jsonw_u64(struct jsonw *, uint64_t);
void jsonw_bool(struct jsonw *, bool);
void jsonw_null(struct jsonw *);
/* Writes JSON text that was made elsewhere and is known to be valid. */
void jsonw_raw(struct jsonw *, const void *, size_t);
/* name and value in one call */
void jsonw_kv_str(struct jsonw *, const char *name, const char *value);
void jsonw_kv_strn(struct jsonw *, const char *name, const void *, size_t);
void jsonw_kv_int(struct jsonw *, const char *name, int64_t);
void jsonw_kv_bool(struct jsonw *, const char *name, bool);
void jsonw_kv_raw(struct jsonw *, const char *name, const void *, size_t);

/*
 * Copies JSON with every character outside ASCII as \uXXXX. In JSON text such
 * characters occur only inside strings, so the value stays the same for a
 * parser. A reader of the text itself sees bidirectional controls, invisible
 * characters and look-alike letters as escapes. in is valid UTF-8.
 */
void jsonw_ascii(struct buf *out, const uint8_t *in, size_t n);

#endif
