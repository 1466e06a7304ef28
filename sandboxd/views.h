/*
 * What a text says to somebody who decodes it: percent-encoding, backslash
 * escapes, hexadecimal digits, base64. Instead of guessing how a library
 * writes a secret (which bytes it escapes, upper or lower case, line length,
 * alphabet, alignment), the text is decoded as any reader would and the plain
 * value is looked for.
 *
 * No I/O, one pass each; a view remembers where each of its bytes came from.
 */
#ifndef VIEWS_H
#define VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Half-open range of the first text. */
struct place {
	uint32_t from, to;
};

struct view {
	const uint8_t *p;
	const struct place *at; /* of each byte, or NULL: */
	uint32_t base;          /* the first byte's place in the first text */
	size_t n;
};

/* Memory of one view, kept between uses. Zeroed is empty. */
struct view_mem {
	uint8_t *p;
	struct place *at;
	size_t cap, at_cap;
	bool places; /* false: views have none, which is quicker */
};

void view_mem_free(struct view_mem *); /* wipes */
/* Room for a view of n bytes: no decoded view is longer than what it was made
 * of. 0, or -1 without memory. */
int view_mem_reserve(struct view_mem *, size_t n, bool places);

/* Where byte i begins and ends in the first text. */
uint32_t view_from(const struct view *, size_t i);
uint32_t view_to(const struct view *, size_t i);

enum view_escapes {
	VIEW_PERCENT,
	VIEW_FORM, /* and `+` is a blank (WHATWG URL, 5.1) */
	/* JSON (RFC 8259 section 7), and what Python's repr adds to it: \' \a
	 * \v
	 * \0 \xHH \UHHHHHHHH. */
	VIEW_BACKSLASH,
	VIEW_POINTS /* \xHH is a code point, as in a str, not a byte */
};

/*
 * The next part of `in`, from *pos on, that holds escapes, decoded into m, with
 * `reach` bytes before and behind: a value of so many bytes that is written
 * with an escape stands in one of the parts. An unknown escape stays as it is.
 * *pos moves behind; false if there is none.
 */
bool view_escapes(const struct view *in, size_t *pos, size_t reach,
    enum view_escapes, struct view_mem *m, struct view *out);

/* The next run, at or behind *pos, of hexadecimal digits (pairs may be
 * separated by one colon, blank, hyphen or line break) or of base64 (either
 * alphabet, line breaks inside) that could hold VIEW_RUN_BYTES bytes. *pos
 * moves behind it. */
enum { VIEW_RUN_BYTES = 8 };
bool view_hex_run(const struct view *in, size_t *pos, struct view *run);
bool view_base64_run(const struct view *in, size_t *pos, struct view *run);
/* A run decoded when the first `skip` digits (hex 0 to 1, base64 0 to 3)
 * belong to something else. */
void view_hex(
    const struct view *run, unsigned skip, struct view_mem *, struct view *out);
void view_base64(
    const struct view *run, unsigned skip, struct view_mem *, struct view *out);

#endif
