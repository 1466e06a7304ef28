/*
 * The layout of foreign text: rows that no text can leave or forge. show.c
 * makes the characters.
 *
 * A row of ours can't be forged, for this reason. No row holds a newline of the
 * text, and none is longer than the width, so a terminal of that width begins
 * no row of its own inside the text. Each row of a text begins with a gutter:
 * its number and a bar, or a + where the number would be. A text is after its
 * gutter whatever it holds, and our own words begin with a name of ours or a
 * parenthesis in the place of the gutter.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "show.h"

#define MORE "       + " /* a line goes on */
#define OURS "       "   /* before a parenthesis */

enum {
	GUTTER = sizeof(MORE) - 1,
	NAME = 19, /* a name and its blank */
	/* "\u{10ffff*4194304}", the longest escape of IPC_BLOB_MAX bytes */
	ESCAPE_MAX = 18
};

static_assert(NAME + SHOW_BLANKS_MAX + ESCAPE_MAX <= SHOW_WIDTH_MIN,
    "a word and its gutter fit a row");

static unsigned
columns(unsigned width)
{
	return width < SHOW_WIDTH_MIN ? SHOW_WIDTH_MIN
	    : width > SHOW_WIDTH_MAX  ? SHOW_WIDTH_MAX
				      : width;
}

/* Appends one line of a text and a newline. The line's first row has `used`
 * columns already. `more` is the prefix of each further row. */
static void
put_line(struct buf *out, const uint8_t *p, size_t n, size_t used,
    const char *more, unsigned width)
{
	size_t at = used, least = used;
	struct buf word;

	buf_init(&word, 2 * SHOW_WIDTH_MIN);
	for (size_t i = 0; i < n;) {
		i += show_word(&word, p + i, n - i, SHOW_CODE);
		if (at + word.len > width && at > least) {
			buf_putc(out, '\n');
			buf_puts(out, more);
			at = least = strlen(more);
		}
		buf_put(out, word.p, word.len);
		at += word.len;
	}
	buf_putc(out, '\n');
	out->failed |= word.failed;
	buf_free(&word);
}

/*
 * Returns how many lines from p on are equal to the first, whose newline is at
 * nl, or 1 if they are so few that each has a row. Thousands of equal lines,
 * empty or of one blank, would push later lines out of sight.
 */
static size_t
equal_lines(const uint8_t *p, const uint8_t *nl, const uint8_t *end)
{
	size_t len = (size_t)(nl - p) + 1, n = 1;

	if (nl == end)
		return 1;
	for (const uint8_t *q = p + len;
	    (size_t)(end - q) >= len && memcmp(p, q, len) == 0; q += len)
		n++;
	return n > SHOW_EQUAL_MAX ? n : 1;
}

void
show_block(struct buf *out, const void *text, size_t n, unsigned width)
{
	const uint8_t *p = text, *end = p + n, *nl;
	unsigned long line = 1;
	char gutter[32];
	size_t equal;

	width = columns(width);
	while (p < end) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		equal = equal_lines(p, nl, end);
		(void)snprintf(gutter, sizeof(gutter), "%6lu | ", line);
		buf_puts(out, gutter);
		put_line(out, p, (size_t)(nl - p), strlen(gutter), MORE, width);
		if (equal > 1)
			buf_putf(out,
			    OURS "(lines %lu to %lu are equal to line %lu)\n",
			    line + 1, line + equal - 1, line);
		if (nl == end)
			buf_puts(out, OURS "(no newline at the end)\n");
		line += equal;
		p = nl == end ? end : p + equal * ((size_t)(nl - p) + 1);
	}
}

void
show_value(struct buf *out, const char *name, const void *text, size_t n,
    unsigned width)
{
	char more[NAME + 1];
	size_t used = strlen(name) + 1;

	width = columns(width);
	if (n > 0 && memchr(text, '\n', n) != NULL) {
		buf_putf(out, "%s (%zu bytes):\n", name, n);
		show_block(out, text, n, width);
		return;
	}
	buf_putf(out, "%-*s ", NAME - 1, name);
	(void)snprintf(more, sizeof(more), "%*s", NAME, "+ ");
	put_line(out, text, n, used < NAME ? NAME : used, more, width);
}

/* Takes the numbers of a hunk's first lines and appends them as a row; false:
 * not a hunk. */
static bool
hunk(struct buf *out, const uint8_t *p, size_t n, unsigned long *a,
    unsigned long *b)
{
	char text[96];
	unsigned long na = 1, nb = 1;

	if (n < 2 || n >= sizeof(text) || memcmp(p, "@@", 2) != 0)
		return false;
	memcpy(text, p, n);
	text[n] = '\0';
	if (sscanf(text, "@@ -%lu,%lu", a, &na) < 1)
		return false;
	if (strchr(text, '+') == NULL ||
	    sscanf(strchr(text, '+'), "+%lu,%lu", b, &nb) < 1)
		return false;
	buf_putf(out, OURS "(@@ -%lu,%lu +%lu,%lu @@)\n", *a, na, *b, nb);
	/* an empty range names the line before it */
	*a += na == 0;
	*b += nb == 0;
	return true;
}

void
show_diff(struct buf *out, const void *text, size_t n, unsigned width)
{
	/* an empty text may have no address to add to */
	const uint8_t *p = text, *end = n > 0 ? p + n : p, *nl;
	unsigned long a = 0, b = 0;
	char gutter[64], na[24], nb[24];
	size_t equal;

	width = columns(width);
	for (; p < end; p = nl == end ? end : nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if (hunk(out, p, (size_t)(nl - p), &a, &b))
			continue;
		if (*p == '\\') {
			buf_puts(out, OURS "(no newline at the end)\n");
			continue;
		}
		na[0] = nb[0] = '\0';
		equal = equal_lines(p, nl, end);
		if (*p != '+') {
			(void)snprintf(na, sizeof(na), "%lu", a);
			a += equal;
		}
		if (*p != '-') {
			(void)snprintf(nb, sizeof(nb), "%lu", b);
			b += equal;
		}
		(void)snprintf(gutter, sizeof(gutter), "%6s %6s |%c", na, nb,
		    p < nl ? *p : ' ');
		buf_puts(out, gutter);
		put_line(out, p + 1, (size_t)(nl - p) - (p < nl),
		    strlen(gutter), "              > ", width);
		if (equal > 1) {
			buf_putf(
			    out, OURS "(and %zu more such lines)\n", equal - 1);
			nl = p + equal * ((size_t)(nl - p) + 1) - 1;
		}
	}
}
