/*
 * Identifiers and encodings: random ids, UUID version 7, hex, base64url,
 * times. No dependency but getrandom(2).
 */
#ifndef IDS_H
#define IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum { UUID_TEXT_LEN = 36, HEX32_LEN = 64, TIME_TEXT_LEN = 27 };

/* Fills n bytes with the kernel's randomness. Aborts if the kernel has none;
 * after boot this can't happen for our sizes (getrandom(2)). */
void random_bytes(void *, size_t);
void id_random(struct ipc_id *); /* 128 random bits */
void uuid_v7(struct ipc_id *);   /* RFC 9562 section 5.7 */
void uuid_text(const struct ipc_id *, char out[UUID_TEXT_LEN + 1]);
/* Parses strict 8-4-4-4-12 lower- or upper-case hex. 0 or -1. */
int uuid_parse(const char *, size_t, struct ipc_id *);
/* Returns the lower-case hex digit of the low four bits. */
static inline char
hex_char(unsigned v)
{
	return "0123456789abcdef"[v & 15];
}

/* Returns the value of a hex digit of either case, or -1. */
static inline int
hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads n hex digits of either case, at most 7. Returns their value, or -1 if a
 * character is not a hex digit. */
static inline int
hex_number(const uint8_t *p, size_t n)
{
	int v = 0, d;

	for (size_t i = 0; i < n; i++) {
		if ((d = hex_digit(p[i])) < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

void hex_encode(const void *, size_t, char *out /* 2n+1 */);
int hex_decode(const char *, size_t, void *out /* n/2 */); /* lower case only */
/* Encodes as base64url without padding (RFC 4648 section 5). Returns the
 * length. out: 4*ceil(n/3)+1 bytes. */
size_t b64url_encode(const void *, size_t, char *out);
/* Decodes base64url. Returns the number of bytes, or -1 for a character outside
 * the alphabet, a bad length or non-zero spare bits. out: 3*n/4 bytes. */
long b64url_decode(const char *, size_t, void *out);
uint64_t now_us(void);      /* CLOCK_REALTIME, Unix time */
uint64_t now_boot_ms(void); /* CLOCK_BOOTTIME */
/* Writes a time as RFC 3339 in UTC, with ms and Z. */
void time_text(uint64_t unix_us, char out[TIME_TEXT_LEN + 1]);
/* Tells whether the n bytes are equal. No branch depends on the bytes, so the
 * time reveals no secret. */
bool ct_equal(const void *, const void *, size_t);

#endif
