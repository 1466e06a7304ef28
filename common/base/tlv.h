/*
 * Tag-length-value lists: u8 tag, u32be length, bytes. Version hash pre-images,
 * context material and field lists between processes have this form.
 * Reading is strict: a length past the end is an error, never a short value.
 */
#ifndef TLV_H
#define TLV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct tlv {
	uint8_t tag;
	const uint8_t *p; /* borrowed from the list */
	size_t n;
};

struct tlv_reader {
	const uint8_t *p, *end;
};

void tlv_put(struct buf *, uint8_t tag, const void *, size_t);
void tlv_puts(struct buf *, uint8_t tag, const char *);
void tlv_put_u64(struct buf *, uint8_t tag, uint64_t); /* 8 bytes, big endian */

void tlv_open(struct tlv_reader *, const void *, size_t);
/* Reads the next field. 1: *out holds the field; 0: the list ended exactly; -1:
 * malformed. */
int tlv_next(struct tlv_reader *, struct tlv *out);
/* Finds the first field with this tag in a whole list. 1 found, 0 absent,
 * -1 malformed anywhere in the list. */
int tlv_find(const void *, size_t, uint8_t tag, struct tlv *out);
/* Reads a u64 value. 0, or -1 if the length is not 8. */
int tlv_u64(const struct tlv *, uint64_t *);

#endif
