/* FNV-1a, a hash of 32 bits (RFC 9923): begin with FNV_START, add the bytes in
 * order. The hash has no secret, so the author of the bytes can choose the
 * hash. */
#ifndef FNV_H
#define FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT32_C(2166136261)

/* Adds one byte, or one number. */
static inline uint32_t
fnv_add(uint32_t h, uint32_t x)
{
	return (h ^ x) * UINT32_C(16777619);
}

/* Adds n bytes. */
static inline uint32_t
fnv_bytes(uint32_t h, const void *p, size_t n)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++)
		h = fnv_add(h, in[i]);
	return h;
}

#endif
