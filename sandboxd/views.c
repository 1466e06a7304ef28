/* See views.h. */
#include <stdlib.h>
#include <string.h>

#include "views.h"

void
view_mem_free(struct view_mem *m)
{
	if (m->p != NULL)
		explicit_bzero(m->p, m->cap);
	free(m->p);
	free(m->at);
	memset(m, 0, sizeof(*m));
}

int
view_mem_reserve(struct view_mem *m, size_t n, bool places)
{
	m->places = places;
	if (n > m->cap) {
		view_mem_free(m);
		m->places = places;
		if ((m->p = malloc(n)) == NULL)
			return -1;
		m->cap = n;
	}
	if (places && n > m->at_cap) {
		free(m->at);
		m->at_cap = 0;
		if ((m->at = malloc(n * sizeof(m->at[0]))) == NULL)
			return -1;
		m->at_cap = n;
	}
	return 0;
}

uint32_t
view_from(const struct view *v, size_t i)
{
	return v->at != NULL ? v->at[i].from : v->base + (uint32_t)i;
}

uint32_t
view_to(const struct view *v, size_t i)
{
	return v->at != NULL ? v->at[i].to : v->base + (uint32_t)i + 1;
}

/* Appends one byte made of in[first..last]. */
static void
put(struct view_mem *m, struct view *out, int c, const struct view *in,
    size_t first, size_t last)
{
	m->p[out->n] = (uint8_t)c;
	if (m->places) {
		m->at[out->n].from = view_from(in, first);
		m->at[out->n].to = view_to(in, last);
	}
	out->n++;
}

static void
start(struct view_mem *m, struct view *out)
{
	out->p = m->p;
	out->at = m->places ? m->at : NULL;
	out->base = 0;
	out->n = 0;
}

static int
digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The n hex digits at in[i], or -1. */
static long
digits(const struct view *in, size_t i, unsigned n)
{
	long v = 0;
	int d;

	if (in->n - i < n)
		return -1;
	while (n-- > 0) {
		if ((d = digit(in->p[i++])) < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* One code point written in in[first..last]; a surrogate that stands alone
 * too. */
static void
put_point(struct view_mem *m, struct view *out, uint32_t c,
    const struct view *in, size_t first, size_t last)
{
	if (c < 0x80) {
		put(m, out, (int)c, in, first, last);
		return;
	}
	if (c < 0x800)
		put(m, out, (int)(0xc0 | c >> 6), in, first, last);
	else {
		if (c < 0x10000)
			put(m, out, (int)(0xe0 | c >> 12), in, first, last);
		else {
			put(m, out, (int)(0xf0 | c >> 18), in, first, last);
			put(m, out, (int)(0x80 | (c >> 12 & 0x3f)), in, first,
			    last);
		}
		put(m, out, (int)(0x80 | (c >> 6 & 0x3f)), in, first, last);
	}
	put(m, out, (int)(0x80 | (c & 0x3f)), in, first, last);
}

/* The escape whose backslash is in[i]: its code point or byte, and how long it
 * is; 0 if it is none. */
static size_t
backslash(const struct view *in, size_t i, uint32_t *c, bool *byte)
{
	static const char names[] = "bfnrtav0\"\\/'",
			  values[] = "\b\f\n\r\t\a\v\0\"\\/'";
	const char *s;
	long v, low;

	*byte = false;
	if (in->n - i < 2)
		return 0;
	switch (in->p[i + 1]) {
	case 'u':
		if ((v = digits(in, i + 2, 4)) < 0)
			return 0;
		*c = (uint32_t)v;
		if (v < 0xd800 || v > 0xdbff || in->n - i < 12 ||
		    in->p[i + 6] != '\\' || in->p[i + 7] != 'u' ||
		    (low = digits(in, i + 8, 4)) < 0xdc00 || low > 0xdfff)
			return 6;
		*c = 0x10000 + (uint32_t)((v - 0xd800) << 10 | (low - 0xdc00));
		return 12;
	case 'x':
		if ((v = digits(in, i + 2, 2)) < 0)
			return 0;
		*c = (uint32_t)v;
		*byte = true;
		return 4;
	case 'U':
		if ((v = digits(in, i + 2, 8)) < 0 || v > 0x10ffff)
			return 0;
		*c = (uint32_t)v;
		return 10;
	case '\0':
		return 0;
	}
	if ((s = strchr(names, in->p[i + 1])) == NULL)
		return 0;
	*c = (uint8_t)values[s - names];
	return 2;
}

/* Likewise, of any kind. */
static size_t
escape(const struct view *in, size_t i, enum view_escapes kind, uint32_t *c,
    bool *byte)
{
	size_t n;
	long v;

	if (kind == VIEW_BACKSLASH || kind == VIEW_POINTS) {
		if (in->p[i] != '\\' || (n = backslash(in, i, c, byte)) == 0)
			return 0;
		*byte = *byte && kind == VIEW_BACKSLASH;
		return n;
	}
	*byte = true;
	if (in->p[i] == '%' && (v = digits(in, i + 1, 2)) >= 0) {
		*c = (uint32_t)v;
		return 3;
	}
	*c = ' ';
	return kind == VIEW_FORM && in->p[i] == '+' ? 1 : 0;
}

/* The first escape at or behind i, or in->n. */
static size_t
next_escape(const struct view *in, size_t i, enum view_escapes kind)
{
	int lead = kind == VIEW_PERCENT || kind == VIEW_FORM ? '%' : '\\';
	const uint8_t *p;
	uint32_t c;
	bool byte;

	for (; i < in->n; i++) {
		if (kind != VIEW_FORM) {
			p = memchr(in->p + i, lead, in->n - i);
			if (p == NULL)
				return in->n;
			i = (size_t)(p - in->p);
		}
		if (escape(in, i, kind, &c, &byte) != 0)
			return i;
	}
	return in->n;
}

bool
view_escapes(const struct view *in, size_t *pos, size_t reach,
    enum view_escapes kind, struct view_mem *m, struct view *out)
{
	size_t i, n, last;
	uint32_t c;
	bool byte;

	if ((last = next_escape(in, *pos, kind)) == in->n)
		return false;
	start(m, out);
	/* What stood between here and the part before holds no escape, so no
	 * more than reach bytes of it matter. */
	for (i = last > reach ? last - reach : 0;
	    i < in->n && (i <= last || i - last <= reach);) {
		if ((n = escape(in, i, kind, &c, &byte)) == 0) {
			put(m, out, in->p[i], in, i, i);
			i++;
			continue;
		}
		if (byte)
			put(m, out, (int)c, in, i, i + n - 1);
		else
			put_point(m, out, c, in, i, i + n - 1);
		i += n;
		last = i;
	}
	*pos = i;
	return true;
}

static void
cut(const struct view *in, size_t i, size_t end, struct view *run)
{
	run->p = in->p + i;
	run->at = in->at != NULL ? in->at + i : NULL;
	run->base = in->base + (uint32_t)i;
	run->n = end - i;
}

static bool
separates(int c)
{
	return c == ':' || c == ' ' || c == '-' || c == '\n';
}

bool
view_hex_run(const struct view *in, size_t *pos, struct view *run)
{
	size_t i = *pos, first, count;

	while (i < in->n) {
		if (digit(in->p[i]) < 0) {
			i++;
			continue;
		}
		first = i;
		for (count = 0; i < in->n; i++)
			if (digit(in->p[i]) >= 0)
				count++;
			else if (!separates(in->p[i]) ||
			    separates(in->p[i - 1]))
				break;
		if (count >= 2 * VIEW_RUN_BYTES) {
			cut(in, first, i, run);
			*pos = i;
			return true;
		}
	}
	return false;
}

void
view_hex(
    const struct view *run, unsigned skip, struct view_mem *m, struct view *out)
{
	size_t high = 0;
	bool half = false;
	int d;

	start(m, out);
	for (size_t i = 0; i < run->n; i++) {
		if ((d = digit(run->p[i])) < 0)
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		if (half)
			put(m, out, digit(run->p[high]) << 4 | d, run, high, i);
		half = !half;
		high = i;
	}
}

/* The six bits of a base64 digit plus one, 0 for what is none (RFC 4648,
 * sections 4 and 5). */
static const uint8_t sixbits[256] = {['A'] = 1,
    ['B'] = 2,
    ['C'] = 3,
    ['D'] = 4,
    ['E'] = 5,
    ['F'] = 6,
    ['G'] = 7,
    ['H'] = 8,
    ['I'] = 9,
    ['J'] = 10,
    ['K'] = 11,
    ['L'] = 12,
    ['M'] = 13,
    ['N'] = 14,
    ['O'] = 15,
    ['P'] = 16,
    ['Q'] = 17,
    ['R'] = 18,
    ['S'] = 19,
    ['T'] = 20,
    ['U'] = 21,
    ['V'] = 22,
    ['W'] = 23,
    ['X'] = 24,
    ['Y'] = 25,
    ['Z'] = 26,
    ['a'] = 27,
    ['b'] = 28,
    ['c'] = 29,
    ['d'] = 30,
    ['e'] = 31,
    ['f'] = 32,
    ['g'] = 33,
    ['h'] = 34,
    ['i'] = 35,
    ['j'] = 36,
    ['k'] = 37,
    ['l'] = 38,
    ['m'] = 39,
    ['n'] = 40,
    ['o'] = 41,
    ['p'] = 42,
    ['q'] = 43,
    ['r'] = 44,
    ['s'] = 45,
    ['t'] = 46,
    ['u'] = 47,
    ['v'] = 48,
    ['w'] = 49,
    ['x'] = 50,
    ['y'] = 51,
    ['z'] = 52,
    ['0'] = 53,
    ['1'] = 54,
    ['2'] = 55,
    ['3'] = 56,
    ['4'] = 57,
    ['5'] = 58,
    ['6'] = 59,
    ['7'] = 60,
    ['8'] = 61,
    ['9'] = 62,
    ['+'] = 63,
    ['-'] = 63,
    ['/'] = 64,
    ['_'] = 64};

/* Lines may be indented, as in YAML. */
static bool
breaks(const struct view *in, size_t i)
{
	int c = in->p[i];

	if (c == '\n' || c == '\r')
		return true;
	return (c == ' ' || c == '\t') && i > 0 &&
	    (in->p[i - 1] == '\n' || in->p[i - 1] == ' ' ||
		in->p[i - 1] == '\t');
}

bool
view_base64_run(const struct view *in, size_t *pos, struct view *run)
{
	size_t i = *pos, first, count;

	while (i < in->n) {
		if (sixbits[in->p[i]] == 0) {
			i++;
			continue;
		}
		first = i;
		for (count = 0; i < in->n; i++)
			if (sixbits[in->p[i]] != 0)
				count++;
			else if (!breaks(in, i))
				break;
		/* The digits of n bytes, of which the outer ones may be in
		 * others' hands: RFC 4648 section 4. */
		if (count >= (8 * VIEW_RUN_BYTES + 5) / 6) {
			cut(in, first, i, run);
			*pos = i;
			return true;
		}
	}
	return false;
}

void
view_base64(
    const struct view *run, unsigned skip, struct view_mem *m, struct view *out)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t last = 0;

	start(m, out);
	for (size_t i = 0; i < run->n; i++) {
		if (sixbits[run->p[i]] == 0)
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		bits = bits << 6 | (sixbits[run->p[i]] - 1U);
		have += 6;
		if (have >= 8) {
			have -= 8;
			/* Begins in the digit before this one. */
			put(m, out, (int)(bits >> have & 0xff), run, last, i);
		}
		last = i;
	}
}
