/* See fnv.h. */
#include "fnv.h"

uint32_t
fnv_bytes(uint32_t h, const void *p, size_t n)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++)
		h = fnv_add(h, in[i]);
	return h;
}
