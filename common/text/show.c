#include "show.h"

#include <string.h>

#include "json_grammar.h"
#include "utf8.h"

/*
 * Characters that a reviewer must see though they show nothing, or that change
 * how later characters are shown: Unicode's Default_Ignorable_Code_Point
 * (Unicode 15, DerivedCoreProperties), bidirectional controls, other format and
 * space characters, line separators, private use and noncharacters. The ranges
 * ascend.
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
    {0xfdd0, 0xfdef},                   /* noncharacters */
    {0xfe00, 0xfe0f},                   /* variation selectors */
    {0xfeff, 0xfeff},                   /* byte order mark */
    {0xffa0, 0xffa0}, {0xfff0, 0xffff}, /* annotations, replacement, nonchars */
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x13455}, /* hieroglyph format controls */
    {0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a},  /* musical format controls */
    {0xe0000, 0x10ffff}, /* tags, selectors, private use */
};

bool
show_hidden(uint32_t c)
{
	if (c < 0x20)
		return c != '\n' && c != '\t';
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].from && c <= hidden[i].to)
			return true;
	return (c & 0xfffe) == 0xfffe; /* noncharacters of every plane */
}

/* Any first byte gives a length here: utf8_valid() then refuses wrong bytes. */
size_t
show_char(const uint8_t *p, size_t n, uint32_t *c)
{
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (len > n || !utf8_valid(p, len))
		return 0;
	*c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++)
		*c = *c << 6 | (p[i] & 0x3f);
	return len;
}

/* Counts how often the first `len` bytes at p occur there one after another. */
static size_t
run_of(const uint8_t *p, size_t n, size_t len)
{
	size_t r = 1;

	while ((r + 1) * len <= n && memcmp(p, p + r * len, len) == 0)
		r++;
	return r;
}

/*
 * Appends one escape for the character of `len` bytes at p (0: for a byte that
 * is not UTF-8), and for all equal ones after it if they are more than
 * SHOW_RUN_MAX. Returns the number of bytes that the escape shows.
 */
static size_t
put_escape(struct buf *out, const uint8_t *p, size_t n, size_t len, uint32_t c)
{
	size_t run = run_of(p, n, len == 0 ? 1 : len);

	if (run <= SHOW_RUN_MAX)
		run = 1;
	if (len == 0)
		buf_putf(out, "\\x{%02x", p[0]);
	else
		buf_putf(out, "\\u{%x", c);
	if (run > 1)
		buf_putf(out, "*%zu", run);
	buf_putc(out, '}');
	return run * (len == 0 ? 1 : len);
}

/*
 * The printed form can be turned back into the text, for this reason. Left to
 * right, each step below appends either characters of the text as they are or
 * one escape. An escape begins with a backslash and u{ or x{; a backslash of
 * the text that is followed by either is not appended as it is. So a reader who
 * sees \u{ or \x{ knows that the escape is ours and which character it means,
 * and all other characters are the text's. The count of a run is inside the
 * braces, because a digit of the text could follow them.
 */
size_t
show_word(struct buf *word, const uint8_t *p, size_t n, enum show_mode mode)
{
	size_t len, run = 0;
	uint32_t c = 0;

	buf_clear(word);
	if (p[0] == ' ') {
		run = run_of(p, n, 1);
		if (run == n || run > SHOW_BLANKS_MAX) {
			buf_puts(word, "\\u{20");
			if (run > 1)
				buf_putf(word, "*%zu", run);
			buf_putc(word, '}');
			return run;
		}
		/* Blanks are kept together with the text after them: blanks at
		 * the end of a row would not be seen. */
		buf_put(word, p, run);
		p += run;
		n -= run;
	}
	len = show_char(p, n, &c);
	if (len == 0 || c < 0x20 || show_hidden(c) ||
	    (mode == SHOW_CODE && c > 0x7e))
		return run + put_escape(word, p, n, len, c);
	if (c == '\\' && n > 2 && (p[1] == 'u' || p[1] == 'x') && p[2] == '{')
		buf_puts(word, "\\u{5c}");
	else
		buf_put(word, p, len);
	return run + len;
}

void
show_text(struct buf *out, const void *text, size_t n, enum show_mode mode)
{
	const uint8_t *p = text;
	struct buf word;

	/* the longest word: SHOW_BLANKS_MAX and an escape with its count */
	buf_init(&word, 2 * SHOW_WIDTH_MIN);
	for (size_t i = 0; i < n;) {
		i += show_word(&word, p + i, n - i, mode);
		buf_put(out, word.p, word.len);
	}
	out->failed |= word.failed;
	buf_free(&word);
}

/*
 * In valid JSON, characters outside ASCII and DEL occur only inside strings,
 * where \u escapes mean the same. Control characters occur only between tokens,
 * where a blank means the same. So the value is unchanged, and a terminal gets
 * nothing but printable ASCII. Bytes that are not JSON are refused: if they
 * were changed to something printable, two texts could become one.
 */
int
show_json(struct buf *out, const void *text, size_t n)
{
	const uint8_t *p = text;
	size_t len;
	uint32_t c = 0;

	if (!utf8_valid(p, n) || !json_grammar_valid(p, n))
		return -1;
	for (size_t i = 0; i < n; i += len) {
		len = show_char(p + i, n - i, &c);
		if (c < 0x20) {
			buf_putc(out, ' ');
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
	return 0;
}
