/*
 * Finds values in text that json_scan accepted: where a member's bytes begin
 * and end. Nothing is judged and nothing built. The scan made sure that
 * brackets balance and strings end, so a value is passed by counting brackets
 * outside of strings. Whatever the text is, no byte at or after its end is
 * read.
 */
#include <string.h>

#include "ids.h"
#include "json_scan.h"
#include "utf8.h"
#include "walk.h"

struct cursor {
	const uint8_t *p, *end;
};

uint32_t
json_slice_point(const uint8_t **pp)
{
	const uint8_t *p = *pp;
	uint32_t u;
	size_t n;

	if (*p == '\\') {
		static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
		const char *c;

		if (p[1] != 'u') {
			*pp = p + 2;
			c = strchr(from, p[1]);
			return c ? (uint32_t)to[c - from] : p[1];
		}
		u = (uint32_t)hex_number(p + 2, 4);
		*pp = p + 6;
		if (u < 0xd800 || u > 0xdbff)
			return u;
		*pp = p + 12;
		return 0x10000 + ((u - 0xd800) << 10) +
		    ((uint32_t)hex_number(p + 8, 4) - 0xdc00);
	}
	if (*p < 0x80) {
		*pp = p + 1;
		return *p;
	}
	n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
	u = (uint32_t)*p & (n == 2 ? 0x1fu : n == 3 ? 0x0fu : 0x07u);
	for (size_t i = 1; i < n; i++)
		u = u << 6 | (p[i] & 0x3fu);
	*pp = p + n;
	return u;
}

static void
skip_space(struct cursor *c)
{
	while (c->p < c->end && walk_space(*c->p))
		c->p++;
}

/* Moves past the string at c->p; true: the string has escapes. */
static bool
skip_string(struct cursor *c)
{
	bool escaped = false;

	for (c->p++; c->p < c->end && *c->p != '"'; c->p++)
		if (*c->p == '\\') {
			escaped = true;
			c->p++;
		}
	c->p++;
	if (c->p > c->end)
		c->p = c->end;
	return escaped;
}

/* Moves past the value at c->p. */
static void
skip_value(struct cursor *c)
{
	unsigned depth = 0;

	for (; c->p < c->end; c->p++) {
		switch (*c->p) {
		case '"':
			(void)skip_string(c);
			if (depth == 0)
				return;
			c->p--; /* the loop steps over the quote */
			break;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (depth == 0)
				return; /* the container of a number ends */
			if (--depth == 0) {
				c->p++;
				return;
			}
			break;
		case ',':
		case ' ':
		case '\n':
		case '\r':
		case '\t':
			if (depth == 0)
				return; /* a number or literal ended */
			break;
		default:
			break;
		}
	}
}

/* Compares a name as written (between its quotes) with `want`, which has no
 * escapes. */
static bool
name_is(const uint8_t *p, size_t n, bool escaped, const char *want, size_t len)
{
	const uint8_t *end = p + n;
	size_t i;

	if (!escaped)
		return n == len && memcmp(p, want, n) == 0;
	for (i = 0; p < end && i < len; i++)
		if (json_slice_point(&p) != (uint8_t)want[i])
			return false;
	return p == end && i == len;
}

/* Moves to the next member of the object that c is inside: gives its name as
 * written and leaves c at its value. false: there is none. */
static bool
next_member(struct cursor *c, const uint8_t **name, size_t *n, bool *escaped)
{
	skip_space(c);
	if (c->p < c->end && *c->p == ',') {
		c->p++;
		skip_space(c);
	}
	if (c->p == c->end || *c->p != '"')
		return false;
	*name = c->p + 1;
	*escaped = skip_string(c);
	*n = (size_t)(c->p - 1 - *name);
	skip_space(c);
	if (c->p == c->end)
		return false;
	c->p++; /* the colon */
	skip_space(c);
	return true;
}

int
json_slice(const uint8_t *text, size_t n, const char *const *path,
    const uint8_t **p, size_t *len)
{
	struct cursor c = {text, text + n};
	const uint8_t *name, *start;
	size_t name_len;
	bool escaped, found;

	skip_space(&c);
	for (; *path != NULL; path++) {
		size_t want = strlen(*path);

		if (c.p == c.end || *c.p != '{')
			return 0;
		c.p++;
		for (found = false; !found;) {
			if (!next_member(&c, &name, &name_len, &escaped))
				return 0;
			found = name_is(name, name_len, escaped, *path, want);
			if (!found)
				skip_value(&c);
		}
	}
	start = c.p;
	skip_value(&c);
	*p = start;
	*len = (size_t)(c.p - start);
	return 1;
}

void
json_slice_all(
    const uint8_t *text, size_t n, struct json_wanted *want, size_t wanted)
{
	struct cursor c = {text, text + n};
	const uint8_t *name, *start;
	size_t name_len, i, found = 0;
	bool escaped;

	for (i = 0; i < wanted; i++) {
		want[i].p = NULL;
		want[i].n = 0;
	}
	skip_space(&c);
	if (c.p == c.end || *c.p != '{')
		return;
	c.p++;
	while (found < wanted && next_member(&c, &name, &name_len, &escaped)) {
		start = c.p;
		skip_value(&c);
		for (i = 0; i < wanted; i++)
			if (want[i].p == NULL &&
			    name_is(name, name_len, escaped, want[i].name,
				want[i].len)) {
				want[i].p = start;
				want[i].n = (size_t)(c.p - start);
				found++;
				break;
			}
	}
}

int
json_unescape(const uint8_t *p, size_t n, struct buf *out)
{
	if (n < 2 || *p != '"' || p[n - 1] != '"')
		return -1;
	json_unescape_inside(p + 1, n - 2, out);
	return out->failed ? -1 : 0;
}

void
json_unescape_inside(const uint8_t *p, size_t n, struct buf *out)
{
	const uint8_t *end = p + n, *slash;
	uint8_t utf8[UTF8_MAX];

	while (p < end) {
		slash = memchr(p, '\\', (size_t)(end - p));
		if (slash == NULL)
			slash = end;
		buf_put(out, p, (size_t)(slash - p));
		if ((p = slash) == end)
			break;
		n = utf8_encode(json_slice_point(&p), utf8);
		buf_put(out, utf8, n);
	}
}
