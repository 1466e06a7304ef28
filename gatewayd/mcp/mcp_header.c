/*
 * Values of Mcp-Name and Mcp-Param-*: plain text, or =?base64?...?= around
 * text that a header cannot carry (MCP 2026-07-28, Streamable HTTP). The
 * markers are case-sensitive, the base64 canonical (RFC 4648 section 4).
 */
#include <string.h>

#include "mcp_era.h"

static int
digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes canonical base64: whole quartets, padding only at the end, spare bits
 * zero, so that one text has one encoding. */
static int
decode(const char *s, size_t n, char *out, size_t size)
{
	size_t i, len = 0, pad = 0;
	unsigned acc = 0, bits = 0;
	int v;

	if (n % 4 != 0)
		return -1;
	while (pad < 2 && pad < n && s[n - 1 - pad] == '=')
		pad++;
	for (i = 0; i < n - pad; i++) {
		v = digit(s[i]);
		if (v < 0)
			return -1;
		acc = (acc << 6 | (unsigned)v) & 0xffffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			if (len + 1 >= size)
				return -1;
			out[len++] = (char)(acc >> bits & 0xff);
		}
	}
	if ((acc & ((1u << bits) - 1)) != 0)
		return -1;
	out[len] = '\0';
	if (strlen(out) != len || !utf8_valid((const uint8_t *)out, len))
		return -1;
	return 0;
}

int
mcp_header_decode(const char *s, char *out, size_t size)
{
	static const char open[] = "=?base64?", close[] = "?=";
	size_t n = strlen(s);

	if (n >= sizeof(open) - 1 + sizeof(close) - 1 &&
	    memcmp(s, open, sizeof(open) - 1) == 0 &&
	    memcmp(s + n - 2, close, 2) == 0)
		return decode(s + sizeof(open) - 1, n - (sizeof(open) - 1) - 2,
		    out, size);
	if (n >= size)
		return -1;
	memcpy(out, s, n + 1);
	return 0;
}
