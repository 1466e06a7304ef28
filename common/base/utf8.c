#include "utf8.h"

/*
 * RFC 3629 section 4, the table of well-formed sequences: the first byte fixes
 * the length, and the second byte's range excludes overlong forms, surrogates
 * and code points above U+10FFFF.
 */
bool
utf8_valid(const uint8_t *p, size_t n)
{
	uint8_t lo, hi;
	size_t i = 0, more;

	while (i < n) {
		if (p[i] < 0x80) {
			i++;
			continue;
		}
		lo = 0x80;
		hi = 0xbf;
		if (p[i] >= 0xc2 && p[i] <= 0xdf)
			more = 1;
		else if (p[i] >= 0xe0 && p[i] <= 0xef) {
			more = 2;
			if (p[i] == 0xe0)
				lo = 0xa0;
			else if (p[i] == 0xed)
				hi = 0x9f;
		} else if (p[i] >= 0xf0 && p[i] <= 0xf4) {
			more = 3;
			if (p[i] == 0xf0)
				lo = 0x90;
			else if (p[i] == 0xf4)
				hi = 0x8f;
		} else
			return false;
		if (n - i <= more)
			return false;
		if (p[i + 1] < lo || p[i + 1] > hi)
			return false;
		for (size_t k = 2; k <= more; k++)
			if (p[i + k] < 0x80 || p[i + k] > 0xbf)
				return false;
		i += more + 1;
	}
	return true;
}

/* RFC 3629 section 3. */
size_t
utf8_encode(uint32_t c, uint8_t out[UTF8_MAX])
{
	size_t n = 0;

	if (c < 0x80) {
		out[n++] = (uint8_t)c;
		return n;
	}
	if (c < 0x800)
		out[n++] = (uint8_t)(0xc0 | c >> 6);
	else {
		if (c < 0x10000)
			out[n++] = (uint8_t)(0xe0 | c >> 12);
		else {
			out[n++] = (uint8_t)(0xf0 | c >> 18);
			out[n++] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
		}
		out[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	}
	out[n++] = (uint8_t)(0x80 | (c & 0x3f));
	return n;
}
