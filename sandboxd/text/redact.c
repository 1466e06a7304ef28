/* See redact.h. */
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "needles.h"
#include "redact.h"
#include "redact_internal.h"
#include "tlv.h"

enum {
	SECRET_VALUE_TAG = 2, /* of the SECRETS blob */
	/* Bytes of the longest form that two encoders of libraries make of one
	 * byte: &#x0041; in a URL has 14 (%26%23x0041%3B). */
	FORM_GROWTH = 16,
	/* A value in UTF-16 is twice as long. UTF-16 is looked for in the text
	 * that is left when the forms of both encoders are decoded. */
	WIDE_GROWTH = 2,
	PLACES_FIRST = 16
};

/* --- The values. ------------------------------------------------------- */

static bool
is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void
trim(const uint8_t **p, size_t *n)
{
	while (*n > 0 && is_space((*p)[*n - 1]))
		--*n;
	while (*n > 0 && is_space(**p)) {
		++*p;
		--*n;
	}
}

/* Adds a needle, unless it is shorter than `least`. 0, or -1 without memory. */
static int
needle(struct redact *r, const uint8_t *p, size_t n, size_t least)
{
	if (n < least)
		return 0;
	if (n > r->longest)
		r->longest = n;
	return needles_add(r->needles, p, n);
}

/*
 * Adds a value, or a part of a value, and notes which searches it needs. If all
 * its characters are in Latin-1, the value is also added in Latin-1, which is
 * UTF-16 without the zeros. Any other value is found in UTF-16 by decoding.
 */
static int
add(struct redact *r, const uint8_t *p, size_t n, size_t least)
{
	size_t digits = 0, high = 0, wide = 0, len = 0;
	uint8_t *latin;
	int rc;

	if (n < least)
		return 0;
	for (size_t i = 0; i < n; i++) {
		digits += p[i] >= '0' && p[i] <= '9';
		high += p[i] >= 0x80;
		wide += p[i] > 0xc3; /* leads a character above U+00FF */
	}
	r->blanks |= memchr(p, ' ', n) != NULL;
	r->digits |= digits == n;
	r->high |= high > 0;
	r->wide |= wide > 0;
	r->bare |= high == n && wide > 0;
	if (needle(r, p, n, least) != 0)
		return -1;
	if (high == 0 || wide > 0)
		return 0;
	if ((latin = malloc(n)) == NULL)
		return -1;
	for (size_t i = 0; i < n; i++) {
		latin[len] = p[i];
		if (p[i] >= 0xc2 && i + 1 < n) {
			latin[len] =
			    (uint8_t)((p[i] & 0x03) << 6 | (p[i + 1] & 0x3f));
			i++;
		}
		len++;
	}
	rc = needle(r, latin, len, least);
	explicit_bzero(latin, n);
	free(latin);
	return rc;
}

/*
 * Adds the forms that libraries write of a value in hexadecimal digits, such as
 * keys and UUIDs: its letters in the other case, and the bytes that the digits
 * mean. These bytes are found in digits of either case, with any marks between
 * the digits, and in base64.
 */
static int
add_digits(struct redact *r, const uint8_t *p, size_t n)
{
	const struct view whole = {p, NULL, 0, n};
	struct view run, bytes;
	struct view_mem *m = &r->mem[0];
	uint8_t *copy;
	size_t pos = 0;
	int rc = 0;

	if (n > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		pos = 2;
	if (view_run(&whole, &pos, VIEW_HEX, &run) && run.p + run.n == p + n &&
	    (run.p == p || run.p == p + 2)) {
		if (view_mem_reserve(m, run.n, false) != 0)
			return -1;
		view_run_bytes(&run, VIEW_HEX, 0, m, &bytes);
		rc = needle(r, bytes.p, bytes.n, REDACT_MIN);
	}
	for (pos = 0; pos < n; pos++)
		if (strchr("0123456789abcdefABCDEFxX:-", p[pos]) == NULL ||
		    p[pos] == '\0')
			return rc;
	if (rc != 0 || (copy = malloc(n)) == NULL)
		return -1;
	for (unsigned bit = 0; bit <= 0x20 && rc == 0; bit += 0x20) {
		for (size_t i = 0; i < n; i++)
			copy[i] = p[i] < 'A' ? p[i]
					     : (uint8_t)((p[i] & ~0x20U) | bit);
		rc = needle(r, copy, n, REDACT_MIN);
	}
	explicit_bzero(copy, n);
	free(copy);
	return rc;
}

/*
 * Adds the value; the value without white space around it, as tools strip it;
 * its other spellings if it is of hexadecimal digits; and its lines, as a log
 * prints them.
 */
static int
add_value(struct redact *r, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n, *line, *next;
	size_t len = n;

	if (add(r, p, n, REDACT_MIN) != 0)
		return -1;
	line = p;
	trim(&line, &len);
	if (len < n && add(r, line, len, REDACT_MIN) != 0)
		return -1;
	if (add_digits(r, line, len) != 0)
		return -1;
	if (memchr(p, '\n', n) == NULL)
		return 0;
	for (line = p; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (next == NULL)
			next = end;
		len = (size_t)(next - line);
		p = line;
		trim(&p, &len);
		if (add(r, p, len, REDACT_LINE_MIN) != 0)
			return -1;
	}
	return 0;
}

struct redact *
redact_new(const void *tlv, size_t n)
{
	struct tlv_reader rd;
	struct redact *r;
	struct tlv t;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	tlv_open(&rd, tlv, n);
	while (tlv_next(&rd, &t) == 1) {
		if (t.tag != SECRET_VALUE_TAG || t.n < REDACT_MIN ||
		    t.n > SECRET_VALUE_MAX)
			continue;
		if (r->needles == NULL && (r->needles = needles_new()) == NULL)
			goto fail;
		if (add_value(r, t.p, t.n) != 0)
			goto fail;
	}
	if (r->needles == NULL || needles_ready(r->needles) == 0)
		return r;
fail:
	redact_free(r);
	return NULL;
}

void
redact_free(struct redact *r)
{
	if (r == NULL)
		return;
	needles_free(r->needles);
	for (unsigned i = 0; i <= REDACT_DEPTH; i++)
		view_mem_free(&r->mem[i]);
	free(r->found);
	free(r);
}

bool
redact_any(const struct redact *r)
{
	return r->needles != NULL;
}

size_t
redact_longest(const struct redact *r)
{
	return r->longest * FORM_GROWTH;
}

/* --- Finding them. ----------------------------------------------------- */

/* Notes a place. Within one scan the ends of places rise, so the places that
 * the new place overlaps are the last ones. */
static bool
hit(void *arg, size_t from, size_t to)
{
	struct redact *r = arg;
	struct place pl, *more;
	size_t cap;

	if (!r->places) {
		r->any = true;
		return false;
	}
	pl.from = view_from(r->view, from);
	pl.to = view_to(r->view, to - 1);
	/* No text may grow, so a place that is shorter than the mark is
	 * skipped: a value of three ideographs has nine bytes, but only six in
	 * UTF-16. */
	if (pl.to - pl.from < strlen(REDACT_MARK))
		return true;
	while (r->nfound > r->base && r->found[r->nfound - 1].to > pl.from) {
		if (r->found[r->nfound - 1].from < pl.from)
			pl.from = r->found[r->nfound - 1].from;
		r->nfound--;
	}
	if (r->nfound == r->cap) {
		cap = r->cap != 0 ? 2 * r->cap : PLACES_FIRST;
		more = realloc(r->found, cap * sizeof(*more));
		if (more == NULL) {
			r->failed = true;
			return false;
		}
		r->found = more;
		r->cap = cap;
	}
	r->found[r->nfound++] = pl;
	return true;
}

static void search(struct redact *, const struct view *, unsigned);

static void
search_escapes(struct redact *r, const struct view *v, unsigned depth,
    enum view_escapes kind)
{
	/* If the decoded text is decoded once more, it must hold a longer form.
	 */
	const size_t reach = depth + 1 < REDACT_DEPTH
	    ? redact_longest(r)
	    : r->longest * WIDE_GROWTH;
	struct view out;
	size_t pos = 0;

	while (view_escapes(v, &pos, reach, kind, &r->mem[depth], &out))
		search(r, &out, depth + 1);
}

static void
search_runs(struct redact *r, const struct view *v, unsigned depth,
    enum view_digits kind)
{
	const unsigned phases = view_run_phases(kind);
	struct view run, out;
	size_t pos = 0;

	while (view_run(v, &pos, kind, &run))
		for (unsigned skip = 0; skip < phases; skip++) {
			view_run_bytes(&run, kind, skip, &r->mem[depth], &out);
			search(r, &out, depth + 1);
		}
}

/*
 * Searches UTF-16, in either order of bytes and from any beginning. UTF-16
 * without its zero bytes may be Latin-1. UTF-16 of other characters must be
 * decoded.
 */
static void
search_wide(struct redact *r, const struct view *v, unsigned depth)
{
	const bool zeros = memchr(v->p, 0, v->n) != NULL;
	struct view out;

	if (zeros) {
		view_zeros(v, &r->mem[depth], &out);
		search(r, &out, depth + 1);
	}
	if (!r->bare && !(zeros && r->wide))
		return;
	for (unsigned i = 0; i < 4; i++) {
		view_utf16(v, i >> 1, (i & 1) != 0, &r->mem[depth], &out);
		search(r, &out, depth + 1);
	}
}

/*
 * Searches a view and its decoded readings. A constant bounds the depth and the
 * number of readings of each view, so the time is linear in the text. A text
 * with more readings than any library writes is not let through. UTF-16 is
 * looked for inside the deepest reading, too.
 */
static void
search(struct redact *r, const struct view *v, unsigned depth)
{
	const size_t room = r->wide ? VIEW_UTF16_ROOM(v->n) : v->n;

	if (v->n < REDACT_MIN || r->any || r->failed)
		return;
	if (r->work < v->n) {
		r->failed = true;
		return;
	}
	r->work -= v->n;
	r->base = r->nfound;
	r->view = v;
	needles_scan(r->needles, v->p, v->n, hit, r);
	if (depth > REDACT_DEPTH || r->any)
		return;
	if (view_mem_reserve(
		&r->mem[depth], room > v->n ? room : v->n, r->places) != 0) {
		r->failed = true;
		return;
	}
	search_wide(r, v, depth);
	if (depth == REDACT_DEPTH)
		return;
	search_escapes(r, v, depth, VIEW_PERCENT);
	if (r->blanks)
		search_escapes(r, v, depth, VIEW_FORM);
	search_escapes(r, v, depth, VIEW_BACKSLASH);
	if (r->high && memmem(v->p, v->n, "\\x", 2) != NULL)
		search_escapes(r, v, depth, VIEW_POINTS);
	search_escapes(r, v, depth, VIEW_REFERENCES);
	search_escapes(r, v, depth, VIEW_PRINTABLE);
	search_runs(r, v, depth, VIEW_HEX);
	search_runs(r, v, depth, VIEW_BASE64);
	search_runs(r, v, depth, VIEW_BASE32);
}

static int
by_from(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Widens a place to whole UTF-8 sequences, so that the rest is still text. */
static void
whole(struct ipc_bytes t, struct place *pl)
{
	for (int i = 0; i < 3 && pl->from > 0 && (t.p[pl->from] & 0xc0) == 0x80;
	    i++)
		pl->from--;
	for (int i = 0; i < 3 && pl->to < t.n && (t.p[pl->to] & 0xc0) == 0x80;
	    i++)
		pl->to++;
}

size_t
redact_find(struct redact *r, struct ipc_bytes t)
{
	const struct view v = {t.p, NULL, 0, t.n};
	bool sorted = true;
	size_t n = 0;

	r->nfound = 0;
	r->failed = false;
	if (r->needles == NULL || t.n < REDACT_MIN)
		return 0;
	/* Most texts hold no secret, so the first search only tells whether
	 * there is one. The second search finds the places. */
	r->places = r->any = false;
	r->work = REDACT_WORK_MIN + REDACT_WORK * t.n;
	search(r, &v, 0);
	if (!r->any)
		return 0;
	r->places = true;
	r->any = false;
	r->work = REDACT_WORK_MIN + REDACT_WORK * t.n;
	search(r, &v, 0);
	if (r->nfound == 0)
		return 0;
	for (size_t i = 0; i < r->nfound; i++) {
		whole(t, &r->found[i]);
		if (i > 0 && r->found[i].from < r->found[i - 1].from)
			sorted = false;
	}
	if (!sorted)
		qsort(r->found, r->nfound, sizeof(r->found[0]), by_from);
	for (size_t i = 1; i < r->nfound; i++)
		if (r->found[i].from >= r->found[n].to)
			r->found[++n] = r->found[i];
		else if (r->found[i].to > r->found[n].to)
			r->found[n].to = r->found[i].to;
	return r->nfound = n + 1;
}

/* --- Texts. ------------------------------------------------------------ */

size_t
redact_cut(struct redact *r, struct ipc_bytes t, size_t at)
{
	if (t.n <= at)
		return t.n;
	for (size_t i = 0, n = redact_find(r, t); i < n; i++)
		if (r->found[i].from < at && r->found[i].to > at)
			return r->found[i].to;
	/* If memory ran out, redact_bytes will let no text through. */
	return at;
}

void
redact_splice(struct redact *r, struct ipc_bytes t, size_t n, struct buf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		buf_put(out, t.p + at, r->found[i].from - at);
		buf_puts(out, REDACT_MARK);
		at = r->found[i].to;
	}
	if (t.n > at) /* an empty text has no address to add to */
		buf_put(out, t.p + at, t.n - at);
}

int
redact_bytes(struct redact *r, struct ipc_bytes t, struct buf *out)
{
	size_t n = redact_find(r, t);

	if (r->failed) {
		out->failed = true;
		return 1;
	}
	redact_splice(r, t, n, out);
	return n > 0;
}
