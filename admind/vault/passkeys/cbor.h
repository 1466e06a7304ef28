/*
 * Reads the little of CBOR (RFC 8949) that a passkey's messages use: integers,
 * byte strings, texts and maps of definite length, in their shortest form. No
 * I/O, no memory of its own, no recursion.
 */
#ifndef CBOR_H
#define CBOR_H

#include <stdint.h>

#include "bytes.h"

/* The bytes that are left to read. */
struct cbor {
	const uint8_t *p, *end;
};

/* Begins to read these bytes, which must outlive the reader. */
void cbor_open(struct cbor *, struct ipc_bytes);
/* The next four functions read one item of their kind. 0, or -1 if the next
 * item is of another kind, cut off, or not in its shortest form. */
int cbor_int(struct cbor *, int64_t *);
int cbor_blob(struct cbor *, struct ipc_bytes *);
int cbor_text(struct cbor *, struct ipc_bytes *);
/* Reads a map's head; *pairs receives the number of its pairs, which follow. */
int cbor_map(struct cbor *, uint64_t *pairs);
/* Passes over one item of any kind, with all that it holds. 0 or -1. */
int cbor_skip(struct cbor *);
/* Returns the number of bytes that are left. */
size_t cbor_left(const struct cbor *);

#endif
