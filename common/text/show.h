/*
 * Untrusted text for people: bytes to printable lines, without I/O.
 *
 * A reviewer approves the text that he read, so each form here can be turned
 * back into the text: no two contents print alike
 * (tests/unit/common/text/test_show.c decodes the printed form). An escape is
 * \u{hex} for a character and \x{hh} for a byte that is not UTF-8, in
 * lower-case hexadecimal without leading zeros (\x: two digits). A run of more
 * than SHOW_RUN_MAX equal escapes is \u{hex*count}. A backslash that the text
 * itself has before u{ or x{ is \u{5c}, so that no text can write our escapes;
 * any other backslash is printed as it is. docs/decisions/0065.
 */
#ifndef SHOW_H
#define SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum {
	/* Up to this many equal escapes are written out. More are counted, else
	 * 60000 of them could push the rest of a line out of sight. */
	SHOW_RUN_MAX = 3,
	/* Up to this many blanks are printed as they are: six steps of
	 * indentation. */
	SHOW_BLANKS_MAX = 24,
	/* Up to this many equal lines, empty or not, have a row each. */
	SHOW_EQUAL_MAX = 3,
	/* Columns of a row. Below the minimum, a gutter and the longest word
	 * that is not broken (SHOW_BLANKS_MAX blanks before an escape) would
	 * not fit. Above the maximum, eyes lose the line. */
	SHOW_WIDTH_MIN = 64,
	SHOW_WIDTH = 80, /* unless the caller knows the terminal's */
	SHOW_WIDTH_MAX = 132
};

enum show_mode {
	SHOW_LINE, /* letters of all scripts as they are */
	SHOW_CODE  /* everything outside ASCII escaped: look-alikes, too */
};

/*
 * Appends text as one line: control characters (newline and tab, too),
 * invisible ones, and blanks at the end are escaped.
 */
void show_text(struct buf *, const void *, size_t, enum show_mode);

/*
 * Appends text in rows of at most `width` columns, all ASCII, each ended by a
 * newline. Every line of the text (they end at \n) is after its number; a line
 * that is too long goes on after a + where the number was. More than
 * SHOW_EQUAL_MAX equal lines are counted after the first. Our own words (about
 * a text that does not end in a newline) are in parentheses where a number or +
 * would be, a place that no text can reach.
 *
 *	     1 | def main():
 *	     2 |     return "a long
 *	       +  line"
 *	       (no newline at the end)
 */
void show_block(struct buf *, const void *, size_t, unsigned width);

/*
 * Appends a named value after its name in one row. A longer value goes on after
 * a + as in show_block. A value with newlines is a block, with its size in the
 * name's row.
 */
void show_value(
    struct buf *, const char *name, const void *, size_t, unsigned width);

/*
 * Appends a difference as linediff() writes it, each line after its numbers
 * (before and after) and its mark. Equal lines are counted as in show_block.
 */
void show_diff(struct buf *, const void *, size_t, unsigned width);

/*
 * Appends JSON text in printable ASCII: line ends and tabs as blanks, DEL and
 * all characters outside of ASCII as \uXXXX. A parser reads the same value, so
 * no two values print alike. 0; -1 and nothing appended: no JSON value in
 * UTF-8.
 */
int show_json(struct buf *, const void *, size_t);

/*
 * Tells whether this is a character that must be seen though it shows nothing,
 * or that changes how other characters are shown. All C0 controls but newline
 * and tab count, too.
 */
bool show_hidden(uint32_t c);

/*
 * Decodes the UTF-8 character at p, of at most n > 0 bytes, into *c. Returns
 * its length; 0 if there is none.
 */
size_t show_char(const uint8_t *p, size_t n, uint32_t *c);

/*
 * Appends the next word of a line, which is not broken, to `word` (cleared
 * first). Returns how many of the n > 0 bytes at p the word shows. In the mode
 * SHOW_CODE the word has as many columns as bytes. For show_lines.c.
 */
size_t show_word(struct buf *word, const uint8_t *p, size_t n, enum show_mode);

#endif
