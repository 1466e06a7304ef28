/* See views.h. */
#include <stdlib.h>
#include <string.h>

#include "utf8.h"
#include "views.h"
#include "views_internal.h"

/* The most digits of a reference, as many as \U has. A code point has at most
 * six digits, or seven in decimal. */
enum { REFERENCE_DIGITS_MAX = 8 };

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

/* Returns the n hex digits at in[i], or -1. */
static long
digits(const struct view *in, size_t i, unsigned n)
{
	long v = 0;
	int d;

	if (in->n - i < n)
		return -1;
	while (n-- > 0) {
		if ((d = hex_digit(in->p[i++])) < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* Appends the code point, or lone surrogate, that in[first..last] spells. */
static void
put_point(struct view_mem *m, struct view *out, uint32_t c,
    const struct view *in, size_t first, size_t last)
{
	uint8_t utf8[UTF8_MAX];
	size_t n = utf8_encode(c, utf8);

	for (size_t i = 0; i < n; i++)
		view_put(m, out, utf8[i], in, first, last);
}

/* Reads the escape whose backslash is in[i]. *c gets its code point or byte.
 * Returns the length of the escape, 0 if there is none. */
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

/* Reads, as backslash() does, the character reference whose & is in[i] (HTML
 * 13.5, XML 4.1): a number, or a name that XML has. The longest is
 * &#x0010ffff; */
static size_t
reference(const struct view *in, size_t i, uint32_t *c)
{
	static const struct {
		const char *name;
		uint8_t n, c;
	} names[] = {{"&amp;", 5, '&'}, {"&lt;", 4, '<'}, {"&gt;", 4, '>'},
	    {"&quot;", 6, '"'}, {"&apos;", 6, '\''}};
	const size_t first = i;
	unsigned base = 10, n = 0;
	uint32_t v = 0;
	int d;

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (in->n - i >= names[k].n &&
		    memcmp(in->p + i, names[k].name, names[k].n) == 0) {
			*c = names[k].c;
			return names[k].n;
		}
	if (in->n - i < 4 || in->p[i + 1] != '#')
		return 0;
	i += 2;
	if ((in->p[i] | 0x20) == 'x') {
		base = 16;
		i++;
	}
	for (; i < in->n && n < REFERENCE_DIGITS_MAX; i++, n++) {
		if ((d = hex_digit(in->p[i])) < 0 || d >= (int)base)
			break;
		v = v * base + (uint32_t)d;
	}
	if (n == 0 || i == in->n || in->p[i] != ';' || v > 0x10ffff)
		return 0;
	*c = v;
	return i + 1 - first;
}

/* Reads, as backslash() does, quoted-printable (RFC 2045 section 6.7). *none is
 * set for a soft line break, which is no byte. */
static size_t
printable(const struct view *in, size_t i, uint32_t *c, bool *none)
{
	long v;

	if ((v = digits(in, i + 1, 2)) >= 0) {
		*c = (uint32_t)v;
		return 3;
	}
	*none = true;
	if (in->n - i >= 2 && in->p[i + 1] == '\n')
		return 2;
	if (in->n - i >= 3 && in->p[i + 1] == '\r' && in->p[i + 2] == '\n')
		return 3;
	*none = false;
	return 0;
}

/* The result of an escape. */
enum sort {
	POINT, /* a code point */
	BYTE,
	NONE /* nothing: a soft line break */
};

/* Reads, as backslash() does, an escape of the given kind. */
static size_t
escape(const struct view *in, size_t i, enum view_escapes kind, uint32_t *c,
    enum sort *sort)
{
	bool flag = false;
	size_t n;
	long v;

	switch (kind) {
	case VIEW_BACKSLASH:
	case VIEW_POINTS:
		if (in->p[i] != '\\')
			return 0;
		n = backslash(in, i, c, &flag);
		*sort = flag && kind == VIEW_BACKSLASH ? BYTE : POINT;
		return n;
	case VIEW_REFERENCES:
		*sort = POINT;
		return in->p[i] == '&' ? reference(in, i, c) : 0;
	case VIEW_PRINTABLE:
		if (in->p[i] != '=')
			return 0;
		n = printable(in, i, c, &flag);
		*sort = flag ? NONE : BYTE;
		return n;
	case VIEW_PERCENT:
	case VIEW_FORM:
		break;
	}
	*sort = BYTE;
	if (in->p[i] == '%' && (v = digits(in, i + 1, 2)) >= 0) {
		*c = (uint32_t)v;
		return 3;
	}
	*c = ' ';
	return kind == VIEW_FORM && in->p[i] == '+' ? 1 : 0;
}

/* Returns the first escape at or after i, or in->n. */
static size_t
next_escape(const struct view *in, size_t i, enum view_escapes kind)
{
	static const char leads[] = {[VIEW_PERCENT] = '%',
	    [VIEW_FORM] = '%',
	    [VIEW_BACKSLASH] = '\\',
	    [VIEW_POINTS] = '\\',
	    [VIEW_REFERENCES] = '&',
	    [VIEW_PRINTABLE] = '='};
	const uint8_t *p;
	enum sort sort;
	uint32_t c;

	for (; i < in->n; i++) {
		if (kind != VIEW_FORM) {
			p = memchr(in->p + i, leads[kind], in->n - i);
			if (p == NULL)
				return in->n;
			i = (size_t)(p - in->p);
		}
		if (escape(in, i, kind, &c, &sort) != 0)
			return i;
	}
	return in->n;
}

bool
view_escapes(const struct view *in, size_t *pos, size_t reach,
    enum view_escapes kind, struct view_mem *m, struct view *out)
{
	size_t i, n, last;
	enum sort sort;
	uint32_t c;

	if ((last = next_escape(in, *pos, kind)) == in->n)
		return false;
	view_start(m, out);
	/* The bytes from *pos to the escape hold no escape, so no more than
	 * `reach` of these bytes matter. */
	for (i = last > reach ? last - reach : 0;
	    i < in->n && (i <= last || i - last <= reach);) {
		if ((n = escape(in, i, kind, &c, &sort)) == 0) {
			view_put(m, out, in->p[i], in, i, i);
			i++;
			continue;
		}
		if (sort == BYTE)
			view_put(m, out, (int)c, in, i, i + n - 1);
		else if (sort == POINT)
			put_point(m, out, c, in, i, i + n - 1);
		i += n;
		last = i;
	}
	*pos = i;
	return true;
}

void
view_zeros(const struct view *in, struct view_mem *m, struct view *out)
{
	view_start(m, out);
	for (size_t i = 0; i < in->n; i++)
		if (in->p[i] != 0)
			view_put(m, out, in->p[i], in, i, i);
}

void
view_utf16(const struct view *in, unsigned skip, bool big, struct view_mem *m,
    struct view *out)
{
	const size_t high = big ? 0 : 1;
	uint32_t c, low;
	size_t n;

	view_start(m, out);
	for (size_t i = skip; in->n - i >= 2; i += n) {
		n = 2;
		c = (uint32_t)in->p[i + high] << 8 | in->p[i + 1 - high];
		if (c >= 0xd800 && c <= 0xdbff && in->n - i >= 4) {
			low = (uint32_t)in->p[i + 2 + high] << 8 |
			    in->p[i + 3 - high];
			if (low >= 0xdc00 && low <= 0xdfff) {
				c = 0x10000 + ((c - 0xd800) << 10) + low -
				    0xdc00;
				n = 4;
			}
		}
		put_point(m, out, c, in, i, i + n - 1);
	}
}
