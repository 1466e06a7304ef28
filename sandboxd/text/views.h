/*
 * Readings of a text: the outputs of decoders for percent-encoding, backslash
 * escapes, character references, quoted-printable, hexadecimal digits, base64,
 * base32, UTF-16. Instead of guessing how a library writes a secret (which
 * bytes it escapes, upper or lower case, line length, alphabet, alignment), the
 * text is decoded as any reader would and searched for the plain value.
 *
 * No I/O. Each reading takes one pass. A view remembers where each of its bytes
 * was in the first text, the one before all decoding.
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
	const struct place *at; /* byte places in the first text, or NULL */
	uint32_t base;          /* if at is NULL: the place of p[0] */
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
/* Makes room for a view of n bytes: no decoded view is longer than its source.
 * 0, or -1 without memory. */
int view_mem_reserve(struct view_mem *, size_t n, bool places);

/* Returns where byte i begins, or ends, in the first text. */
uint32_t view_from(const struct view *, size_t i);
uint32_t view_to(const struct view *, size_t i);

enum view_escapes {
	VIEW_PERCENT,
	VIEW_FORM, /* percent, and `+` is a blank (WHATWG URL, 5.1) */
	/* JSON (RFC 8259 section 7), and what Python's repr adds: \' \a \v \0
	 * \xHH \UHHHHHHHH. */
	VIEW_BACKSLASH,
	VIEW_POINTS, /* \xHH is a code point, as in a str, not a byte */
	/* HTML and XML: &#39; &#x27; &amp; &lt; &gt; &quot; &apos; */
	VIEW_REFERENCES,
	VIEW_PRINTABLE /* quoted-printable (RFC 2045), soft line breaks too */
};

/*
 * Decodes into m the next part of `in`, from *pos on, that holds escapes, with
 * `reach` bytes before and after the escapes. So a value of up to `reach` bytes
 * that is written with an escape lies in one part. An unknown escape stays as
 * it is. *pos moves past the part; false if there is no such part.
 */
bool view_escapes(const struct view *in, size_t *pos, size_t reach,
    enum view_escapes, struct view_mem *m, struct view *out);

enum view_digits {
	VIEW_HEX,    /* pairs may be separated by a colon, blank, hyphen, line
			break */
	VIEW_BASE64, /* either alphabet of RFC 4648, line breaks inside */
	VIEW_BASE32  /* RFC 4648 section 6, all upper or all lower case, line
			breaks inside */
};

/* Finds the next run of digits, at or after *pos, that is long enough for
 * VIEW_RUN_BYTES bytes. *pos moves to the run's end. false: no run. */
enum { VIEW_RUN_BYTES = 8 };
bool view_run(
    const struct view *in, size_t *pos, enum view_digits, struct view *run);
/* Decodes a run, but not its first `skip` digits, which may be other text. */
void view_run_bytes(const struct view *run, enum view_digits, unsigned skip,
    struct view_mem *, struct view *out);
/* Returns how many values of `skip` give different bytes: 2, 4 or 8. */
unsigned view_run_phases(enum view_digits);

/* Drops zero bytes, which turns UTF-16 of Latin-1 text into Latin-1. */
void view_zeros(const struct view *in, struct view_mem *, struct view *out);
/* Decodes UTF-16, high byte first if big, else last, from byte `skip` (0 or 1)
 * on. m must have room for VIEW_UTF16_ROOM bytes, since two bytes may become
 * three. */
#define VIEW_UTF16_ROOM(n) ((n) / 2 * 3)
void view_utf16(const struct view *in, unsigned skip, bool big,
    struct view_mem *m, struct view *out);

#endif
