#include <stdio.h>
#include <string.h>

#include "ctl.h"

/*
 * Characters that a reviewer must see though they show nothing, or that change
 * how what follows is shown: Unicode's Default_Ignorable_Code_Point (Unicode
 * 15, DerivedCoreProperties), bidirectional controls, other format and space
 * characters, line separators, private use and noncharacters. Ranges rise.
 */
static const struct {
	uint32_t from, to;
} hidden[] = {
    {0x007f, 0x00a0}, /* DEL, C1 controls, no-break space */
    {0x00ad, 0x00ad}, /* soft hyphen */
    {0x034f, 0x034f}, /* combining grapheme joiner */
    {0x0600, 0x0605}, /* Arabic number signs */
    {0x061c, 0x061c}, /* Arabic letter mark */
    {0x06dd, 0x06dd}, {0x070f, 0x070f}, {0x0890, 0x0891}, {0x08e2, 0x08e2},
    {0x115f, 0x1160},                   /* Hangul fillers */
    {0x1680, 0x1680},                   /* Ogham space */
    {0x17b4, 0x17b5}, {0x180b, 0x180f}, /* Mongolian selectors */
    {0x2000, 0x200f},                   /* spaces, zero width, LRM, RLM */
    {0x2028, 0x202f},                   /* separators, embeddings, overrides */
    {0x205f, 0x206f},                   /* word joiner, isolates, deprecated */
    {0x2800, 0x2800},                   /* braille blank */
    {0x3000, 0x3000},                   /* ideographic space */
    {0x3164, 0x3164},                   /* Hangul filler */
    {0xd800, 0xf8ff},                   /* surrogates, private use */
    {0xfe00, 0xfe0f},                   /* variation selectors */
    {0xfeff, 0xfeff},                   /* byte order mark */
    {0xffa0, 0xffa0}, {0xfff0, 0xffff}, /* annotations, replacement, nonchars */
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x13455}, /* hieroglyph format controls */
    {0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a},  /* musical format controls */
    {0xe0000, 0x10ffff}, /* tags, selectors, private use */
};

static bool
is_hidden(uint32_t c)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].from && c <= hidden[i].to)
			return true;
	return false;
}

/* Bytes of the UTF-8 character at p, and *c; 0 if there is none (utf8_valid
 * decides, on the bytes its first one asks for). */
static size_t
character(const uint8_t *p, size_t n, uint32_t *c)
{
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (len > n || !utf8_valid(p, len))
		return 0;
	*c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++)
		*c = *c << 6 | (p[i] & 0x3f);
	return len;
}

void
show_text(struct buf *out, const void *text, size_t n, enum show_mode mode)
{
	const uint8_t *p = text;
	size_t len;
	uint32_t c = 0;

	for (size_t i = 0; i < n; i += len) {
		if ((len = character(p + i, n - i, &c)) == 0) {
			buf_putf(out, "\\x{%02x}", p[i]);
			len = 1;
		} else if (mode != SHOW_LINE && (c == '\n' || c == '\t')) {
			buf_putc(out, (int)c);
		} else if (c < 0x20 || is_hidden(c) ||
		    (mode == SHOW_CODE && c > 0x7e)) {
			buf_putf(out, "\\u{%x}", c);
		} else {
			buf_put(out, p + i, len);
		}
	}
}

/*
 * In valid JSON, characters outside ASCII and DEL stand only inside strings,
 * where \u escapes mean the same; so the value is unchanged for programs, and
 * a terminal gets nothing but printable ASCII.
 */
void
show_json(struct buf *out, const void *text, size_t n)
{
	const uint8_t *p = text;
	size_t len;
	uint32_t c = 0;

	for (size_t i = 0; i < n; i += len) {
		if ((len = character(p + i, n - i, &c)) == 0) {
			buf_puts(out, "\\ufffd");
			len = 1;
		} else if (c < 0x20) {
			buf_putc(out, ' '); /* white space between tokens */
		} else if (c < 0x7f) {
			buf_putc(out, (int)c);
		} else if (c < 0x10000) {
			buf_putf(out, "\\u%04x", c);
		} else {
			c -= 0x10000;
			buf_putf(out, "\\u%04x\\u%04x", 0xd800 + (c >> 10),
			    0xdc00 + (c & 0x3ff));
		}
	}
}

void
show_out(const struct buf *b)
{
	if (b->len != 0)
		(void)fwrite(b->p, 1, b->len, stdout);
	if (b->failed)
		fputs("\nmcpboxctl: too long to show whole\n", stderr);
}
