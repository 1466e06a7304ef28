/*
 * The values that messages, hashes and ids are made of: a borrowed run of
 * bytes, an id of 16 bytes, a SHA-256. They have the names of the IPC fields
 * that carry them. They are not part of the IPC library, so that parsers need
 * no message table.
 */
#ifndef BYTES_H
#define BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipc_id {
	uint8_t b[16];
};
struct ipc_hash {
	uint8_t b[32];
};
struct ipc_bytes {
	const uint8_t *p;
	size_t n;
};

/* Borrows the characters of a C string; NULL gives an empty value. */
struct ipc_bytes ipc_str(const char *);
/* Borrows n bytes. */
struct ipc_bytes ipc_bytes(const void *, size_t);
/* Returns a NUL-terminated copy; NULL without memory. The caller frees it. */
char *ipc_strdup(struct ipc_bytes);
/* Tells whether the bytes are those of this C string. */
bool ipc_streq(struct ipc_bytes, const char *);

#endif
