#include <stdbool.h>
#include <string.h>

#include "setup_lines.h"

/* The block goes before everything else, because no other place is safe. In
 * pg_hba.conf the first line that matches counts. And a backslash at the end of
 * a line, even of a comment, makes the next line a part of it. */

static const char begin[] = "# BEGIN mcpbox";
static const char end[] = "# END mcpbox";
static const char remark[] =
    " (made by mcpboxctl setup, which leaves these lines as it finds them)\n";

/* True if the line at p begins with this marker. */
static bool
is(const uint8_t *p, size_t n, const char *marker)
{
	size_t len = strlen(marker);

	return n >= len && memcmp(p, marker, len) == 0 &&
	    (n == len || p[len] == ' ' || p[len] == '\n' || p[len] == '\r');
}

enum setup_block
setup_lines_find(const uint8_t *text, size_t n, const char *lines)
{
	const uint8_t *p = text, *line_end, *first = NULL, *last = NULL;
	const uint8_t *stop = text + n;
	int begins = 0, ends = 0;

	for (; p < stop; p = line_end) {
		line_end = memchr(p, '\n', (size_t)(stop - p));
		line_end = line_end != NULL ? line_end + 1 : stop;
		if (is(p, (size_t)(line_end - p), begin)) {
			begins++;
			first = line_end;
		} else if (is(p, (size_t)(line_end - p), end)) {
			ends++;
			last = p;
		}
	}
	if (begins == 0 && ends == 0)
		return SETUP_BLOCK_NONE;
	if (begins != 1 || ends != 1 || last < first)
		return SETUP_BLOCK_BROKEN;
	return (size_t)(last - first) == strlen(lines) &&
		memcmp(first, lines, strlen(lines)) == 0
	    ? SETUP_BLOCK_OURS
	    : SETUP_BLOCK_EDITED;
}

void
setup_lines_put(
    const uint8_t *text, size_t n, const char *lines, struct buf *out)
{
	buf_puts(out, begin);
	buf_puts(out, remark);
	buf_puts(out, lines);
	buf_puts(out, end);
	buf_puts(out, "\n\n");
	buf_put(out, text, n);
}
