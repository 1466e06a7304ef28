/*
 * A growing byte buffer with a fixed maximum.
 *
 * A write past the maximum, or for which there is no memory, sets `failed`, and
 * later writes do nothing. So a message can be built with many calls and
 * checked once.
 */
#ifndef BUF_H
#define BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *p;  /* owned; NULL while empty */
	size_t len;  /* bytes used */
	size_t cap;  /* bytes allocated */
	size_t max;  /* most bytes that it may hold */
	bool failed; /* a write did not fit or memory was out */
};

void buf_init(struct buf *, size_t max);
void buf_free(struct buf *);  /* also wipes; safe on a zeroed object */
void buf_clear(struct buf *); /* length 0, memory kept, failed cleared */
/* Makes room for n more bytes at p + len, to be filled in place; sets failed if
 * they do not fit. */
void buf_reserve(struct buf *, size_t n);
void buf_put(struct buf *, const void *, size_t);
void buf_puts(struct buf *, const char *);
void buf_putc(struct buf *, int);
void buf_putf(struct buf *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_put_u8(struct buf *, uint8_t);
void buf_put_u16(struct buf *, uint16_t); /* all numbers are big endian */
void buf_put_u32(struct buf *, uint32_t);
void buf_put_u64(struct buf *, uint64_t);
void buf_drain(struct buf *, size_t); /* drops bytes from the front */

uint16_t get_be16(const uint8_t *);
uint32_t get_be32(const uint8_t *);
uint64_t get_be64(const uint8_t *);

#endif
