/* See redact.h. */
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "needles.h"
#include "redact.h"
#include "tlv.h"
#include "views.h"

enum {
	SECRET_VALUE_TAG = 2, /* of the SECRETS blob */
	/* Decoders inside each other: a header in a URL, JSON in a repr. */
	DEPTH = 2,
	/* The longest form of one byte: a \u0041 whose backslash is escaped. */
	FORM_GROWTH = 7,
	PLACES_FIRST = 16
};

struct redact {
	struct needles *needles;
	size_t longest; /* value */
	bool blanks;    /* one has a blank, which may be written + */
	bool digits;    /* one is of digits only */
	bool high;      /* one is not ASCII */
	bool failed;    /* memory, in this search */
	bool places;    /* where they are is asked, not only whether */
	bool any;       /* one was seen, when only that is asked */
	struct view_mem mem[DEPTH];
	/* What was found in this search, and from where on by this scan. */
	struct place *found;
	size_t nfound, cap, base;
	const struct view *view; /* being scanned */
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

/* One needle, unless it is too short. 0 or -1 without memory. */
static int
add(struct redact *r, const uint8_t *p, size_t n, size_t least)
{
	size_t i = 0;

	if (n < least)
		return 0;
	if (n > r->longest)
		r->longest = n;
	if (memchr(p, ' ', n) != NULL)
		r->blanks = true;
	for (size_t k = 0; k < n; k++)
		r->high |= p[k] >= 0x80;
	while (i < n && p[i] >= '0' && p[i] <= '9')
		i++;
	if (i == n)
		r->digits = true;
	return needles_add(r->needles, p, n);
}

/*
 * The value; without white space around it, as tools strip it; and its lines,
 * as a log prints them.
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
	for (unsigned i = 0; i < DEPTH; i++)
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

/* Ends rise within one scan: whatever the new place overlaps is last. */
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

static void search(struct redact *, const struct view *, unsigned, bool);

static void
search_escapes(struct redact *r, const struct view *v, unsigned depth,
    enum view_escapes kind)
{
	/* What is decoded here may hold a longer form, to be decoded next. */
	const size_t reach = depth + 1 < DEPTH ? redact_longest(r) : r->longest;
	struct view out;
	size_t pos = 0;

	while (view_escapes(v, &pos, reach, kind, &r->mem[depth], &out))
		search(r, &out, depth + 1, true);
}

/* What stands in runs of hexadecimal digits and of base64. */
static void
search_runs(struct redact *r, const struct view *v, unsigned depth)
{
	struct view run, out;
	size_t pos = 0;

	while (view_hex_run(v, &pos, &run))
		for (unsigned skip = 0; skip < 2; skip++) {
			view_hex(&run, skip, &r->mem[depth], &out);
			search(r, &out, depth + 1, false);
		}
	pos = 0;
	while (view_base64_run(v, &pos, &run))
		for (unsigned skip = 0; skip < 4; skip++) {
			view_base64(&run, skip, &r->mem[depth], &out);
			search(r, &out, depth + 1, false);
		}
}

/*
 * A view, and what it says decoded. The depth is bounded by a constant, and so
 * is the number of views: the time is linear in the text, at worst some 30
 * bytes looked at for each of a text made of nothing but escapes and digits.
 */
static void
search(struct redact *r, const struct view *v, unsigned depth, bool text)
{
	if (v->n < REDACT_MIN || r->any || r->failed)
		return;
	r->base = r->nfound;
	r->view = v;
	needles_scan(r->needles, v->p, v->n, hit, r);
	if (depth == DEPTH || r->any)
		return;
	if (view_mem_reserve(&r->mem[depth], v->n, r->places) != 0) {
		r->failed = true;
		return;
	}
	search_escapes(r, v, depth, VIEW_PERCENT);
	if (r->blanks)
		search_escapes(r, v, depth, VIEW_FORM);
	search_escapes(r, v, depth, VIEW_BACKSLASH);
	if (r->high && memmem(v->p, v->n, "\\x", 2) != NULL)
		search_escapes(r, v, depth, VIEW_POINTS);
	if (text)
		search_runs(r, v, depth);
}

static int
by_from(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Whole UTF-8 sequences: what is left must be text still. */
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

/* All secrets of a text: sorted places that neither touch nor overlap, but
 * for equal neighbours. Their number. */
static size_t
find(struct redact *r, struct ipc_bytes t)
{
	const struct view v = {t.p, NULL, 0, t.n};
	bool sorted = true;
	size_t n = 0;

	r->nfound = 0;
	r->failed = false;
	if (r->needles == NULL || t.n < REDACT_MIN)
		return 0;
	/* Mostly there is nothing: only then it matters where. */
	r->places = r->any = false;
	search(r, &v, 0, true);
	if (!r->any)
		return 0;
	r->places = true;
	r->any = false;
	search(r, &v, 0, true);
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
	for (size_t i = 0, n = find(r, t); i < n; i++)
		if (r->found[i].from < at && r->found[i].to > at)
			return r->found[i].to;
	/* Without memory redact_bytes will let nothing through. */
	return at;
}

/* Appends t without the n places that find() found in it. */
static void
splice(struct redact *r, struct ipc_bytes t, size_t n, struct buf *out)
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
	size_t n = find(r, t);

	if (r->failed) {
		out->failed = true;
		return 1;
	}
	splice(r, t, n, out);
	return n > 0;
}

/* --- JSON. ------------------------------------------------------------- */

static unsigned
hex4(const uint8_t *p)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 4 |
		    (unsigned)(p[i] <= '9' ? p[i] - '0'
					   : (p[i] | 32) - 'a' + 10);
	return v;
}

static void
put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80)
		buf_putc(b, (int)c);
	else if (c < 0x800) {
		buf_putc(b, (int)(0xc0 | c >> 6));
		buf_putc(b, (int)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_putc(b, (int)(0xe0 | c >> 12));
		buf_putc(b, (int)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(b, (int)(0x80 | (c & 0x3f)));
	} else {
		buf_putc(b, (int)(0xf0 | c >> 18));
		buf_putc(b, (int)(0x80 | (c >> 12 & 0x3f)));
		buf_putc(b, (int)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(b, (int)(0x80 | (c & 0x3f)));
	}
}

/* What a reader makes of the string between the quotes p..end; the escapes
 * are well formed, json_scan saw to that. */
static void
unescape(const uint8_t *p, const uint8_t *end, struct buf *b)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const uint8_t *slash;
	const char *s;
	uint32_t c;

	while (p < end) {
		slash = memchr(p, '\\', (size_t)(end - p));
		if (slash == NULL)
			slash = end;
		buf_put(b, p, (size_t)(slash - p));
		if ((p = slash) == end)
			break;
		p++;
		if (*p != 'u') {
			s = strchr(from, *p);
			buf_putc(b, s != NULL ? to[s - from] : *p);
			p++;
			continue;
		}
		c = hex4(p + 1);
		p += 5;
		if (c >= 0xd800 && c < 0xdc00) {
			c = 0x10000 + ((c - 0xd800) << 10) + hex4(p + 2) -
			    0xdc00;
			p += 6;
		}
		put_utf8(b, c);
	}
}

/* A string with its quotes in its shortest form: never longer than it came. */
static void
put_string(struct buf *out, const uint8_t *p, size_t n)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	size_t at = 0;
	const char *s;

	buf_putc(out, '"');
	for (size_t i = 0; i < n; i++) {
		if (p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
			continue;
		buf_put(out, p + at, i - at);
		at = i + 1;
		if (p[i] != 0 && (s = strchr(from, p[i])) != NULL) {
			buf_putc(out, '\\');
			buf_putc(out, to[s - from]);
		} else
			buf_putf(out, "\\u%04x", p[i]);
	}
	if (n > at)
		buf_put(out, p + at, n - at);
	buf_putc(out, '"');
}

/* One string token with its quotes. */
static int
redact_string(struct redact *r, const uint8_t *p, size_t n, struct buf *plain,
    struct buf *clean, struct buf *out)
{
	struct ipc_bytes t = ipc_bytes(p + 1, n - 2);
	size_t found = 0;

	if (t.n >= REDACT_MIN && memchr(t.p, '\\', t.n) != NULL) {
		buf_clear(plain);
		unescape(t.p, t.p + t.n, plain);
		t = ipc_bytes(plain->p, plain->len);
	}
	if (!plain->failed)
		found = find(r, t);
	if (plain->failed || r->failed) {
		out->failed = true;
		return 1;
	}
	if (found == 0) {
		buf_put(out, p, n);
		return 0;
	}
	buf_clear(clean);
	splice(r, t, found, clean);
	put_string(out, clean->p, clean->len);
	out->failed |= clean->failed;
	return 1;
}

/* Does a number show a secret: as it is written, or with the point that a
 * float's form puts into the digits? */
static bool
number_tells(struct redact *r, const uint8_t *p, size_t n, struct buf *digits)
{
	if (n < REDACT_MIN || !r->digits)
		return false;
	if (find(r, ipc_bytes(p, n)) > 0 || r->failed)
		return true;
	buf_clear(digits);
	for (size_t i = 0; i < n && (p[i] | 32) != 'e'; i++)
		if (p[i] >= '0' && p[i] <= '9')
			buf_putc(digits, p[i]);
	return digits->failed ||
	    find(r, ipc_bytes(digits->p, digits->len)) > 0 || r->failed;
}

int
redact_json(struct redact *r, struct ipc_bytes t, struct buf *out)
{
	const uint8_t *p = t.p, *end = t.p + t.n, *s;
	struct buf plain, clean;
	int any = 0;

	if (r->needles == NULL) {
		buf_put(out, t.p, t.n);
		return 0;
	}
	buf_init(&plain, t.n);
	buf_init(&clean, t.n);
	while (p < end) {
		s = p;
		if (*p == '"') {
			for (p++; p < end && *p != '"'; p++)
				if (*p == '\\')
					p++;
			p++;
			any |= redact_string(
			    r, s, (size_t)(p - s), &plain, &clean, out);
		} else if (*p == '-' || (*p >= '0' && *p <= '9')) {
			while (p < end && strchr("+-.0123456789eE", *p) != NULL)
				p++;
			if (number_tells(r, s, (size_t)(p - s), &clean)) {
				/* Not the mark: with quotes it would be longer.
				 */
				buf_puts(out, "null");
				any = 1;
			} else
				buf_put(out, s, (size_t)(p - s));
		} else {
			buf_putc(out, *p++);
		}
	}
	buf_free(&plain);
	buf_free(&clean);
	return any;
}
