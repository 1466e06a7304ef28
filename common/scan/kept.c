/*
 * See kept.h. One pass over the text, which builds nothing. A string is a name
 * if a colon is after it.
 */
#include <string.h>

#include "json_scan.h"
#include "kept.h"
#include "walk.h"

enum where { ANYWHERE, END, WHOLE, BUT };

struct row {
	enum where where;
	const char *name;
	size_t n;
};

static const struct row rows[] = {
#define K(where, name) {where, name, sizeof(name) - 1},
#include "kept_names.def"
#undef K
};

enum {
	NROWS = sizeof(rows) / sizeof(rows[0]),
	SHORTEST = 3, /* bytes of the shortest name, "pin" */
	/* A string that may be JSON and is longer than this is not searched for
	 * members to remove, so only its length is kept. Little of its text
	 * would have been left. */
	NESTED_MAX = 128 * 1024,
	/* A string that is this many times longer than the whole kept form is
	 * not searched, either. Otherwise callers could cause much work with
	 * long arguments. */
	NESTED_TIMES = 4,
	/* The kept form can be this many times longer than its text: a value of
	 * one byte may become KEPT_MARK. */
	GROWS = 4
};

/* ---- names ---- */

/* Writes the letters and digits of a name, in lower case. */
static size_t
plain_name(const uint8_t *p, size_t n, char *out)
{
	const uint8_t *end = p + n;
	size_t len = 0;

	while (p < end && len < KEPT_NAME_MAX) {
		uint32_t c = *p;

		if (c >= 0x80 || c == '\\')
			c = json_slice_point(&p);
		else
			p++;
		if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			out[len++] = (char)c;
	}
	return len;
}

static bool
ends(const char *s, size_t n, const struct row *r)
{
	return n >= r->n && memcmp(s + n - r->n, r->name, r->n) == 0;
}

bool
kept_hides(const uint8_t *name, size_t n)
{
	char s[KEPT_NAME_MAX];
	bool hides = false;
	size_t len;

	if (n < SHORTEST)
		return false;
	len = plain_name(name, n, s);
	for (size_t i = 0; i < NROWS; i++) {
		const struct row *r = &rows[i];

		switch (r->where) {
		case ANYWHERE:
			if (len >= r->n && memmem(s, len, r->name, r->n))
				return true;
			break;
		case END:
			hides = hides || ends(s, len, r);
			break;
		case WHOLE:
			hides = hides || (len == r->n && ends(s, len, r));
			break;
		case BUT:
			if (ends(s, len, r))
				return false;
			break;
		}
	}
	return hides;
}

/* ---- values ---- */

struct form {
	const uint8_t *p, *end;
	struct buf *out;
	size_t base, max; /* length of out at the start, most bytes added */
	bool cut;         /* strings are cut */
	bool inside;      /* the text was a string of another JSON text */
	bool changed;
};

/* Returns the end of the string that begins at p. */
static const uint8_t *
string_end(const uint8_t *p, const uint8_t *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p < end ? p + 1 : end;
}

/* Returns the end of the value that begins at p. */
static const uint8_t *
value_end(const uint8_t *p, const uint8_t *end)
{
	size_t depth = 0;

	for (; p < end; p++) {
		if (*p == '"') {
			p = string_end(p, end) - 1;
		} else if (*p == '{' || *p == '[') {
			depth++;
			continue;
		} else if (*p == '}' || *p == ']') {
			if (depth == 0)
				return p; /* a scalar and its container end */
			depth--;
		} else if (depth > 0) {
			continue;
		} else if (*p == ',' || walk_space(*p)) {
			return p;
		} else {
			continue;
		}
		if (depth == 0)
			return p + 1;
	}
	return end;
}

/* Room for n more bytes? */
static bool
fits(const struct form *f, size_t n)
{
	return f->out->len - f->base + n <= f->max;
}

/* Writes a byte as part of a JSON string. */
static void
put_escaped(struct buf *out, uint8_t c)
{
	if (c == '"' || c == '\\') {
		buf_putc(out, '\\');
		buf_putc(out, (char)c);
	} else if (c < 0x20) {
		buf_putf(out, "\\u%04x", c);
	} else {
		buf_putc(out, (char)c);
	}
}

/* Returns where to cut the inside of a string so that about KEPT_STRING_MAX
 * bytes stay: never inside an escape or a character. */
static const uint8_t *
string_cut(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *start = p, *last = p;

	while (p < end && (size_t)(p - start) <= KEPT_STRING_MAX) {
		last = p;
		(void)json_slice_point(&p);
	}
	return p < end ? last : p;
}

static void
put_string(struct form *f, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *to = end;

	if (f->cut && end - p > KEPT_STRING_MAX)
		to = string_cut(p, end);
	buf_putc(f->out, '"');
	buf_put(f->out, p, (size_t)(to - p));
	if (to < end) {
		buf_puts(f->out, KEPT_CUT);
		f->changed = true;
	}
	buf_putc(f->out, '"');
}

/* Tells whether this string may be JSON text: it begins with `{` or `[`, after
 * white space or its escapes. */
static bool
looks_nested(const uint8_t *p, const uint8_t *end)
{
	while (p < end &&
	    (walk_space(*p) ||
		(*p == '\\' && end - p > 1 &&
		    (p[1] == 'n' || p[1] == 'r' || p[1] == 't'))))
		p += *p == '\\' ? 2 : 1;
	return p < end && (*p == '{' || *p == '[');
}

static int pass(struct form *);

/* If the string is JSON text of which a part must be removed, puts the kept
 * form of the string and returns true. If there is no memory to look at the
 * string, f->out fails. */
static bool
put_nested(struct form *f, const uint8_t *p, const uint8_t *end)
{
	struct buf text, kept;
	struct form in = {
	    .out = &kept, .inside = true, .cut = f->cut, .max = SIZE_MAX / 2};
	size_t n = (size_t)(end - p);
	bool done = false;
	struct err e;

	if (n > NESTED_MAX || n > NESTED_TIMES * f->max) {
		buf_putf(f->out, "\"[%zu bytes]" KEPT_CUT "\"", n);
		f->changed = true;
		return true;
	}
	buf_init(&text, n + 1);
	buf_init(&kept, GROWS * n + 1);
	json_unescape_inside(p, (size_t)(end - p), &text);
	if (text.failed) {
		f->out->failed = true;
		goto out;
	}
	if (json_scan(text.p, text.len, &e) == -1) {
		if (e.failure != FAILURE_PARSE)
			f->out->failed = true;
		goto out;
	}
	in.p = text.p;
	in.end = text.p + text.len;
	if (pass(&in) == -1) {
		f->out->failed = true;
		goto out;
	}
	if (!in.changed)
		goto out;
	buf_putc(f->out, '"');
	for (size_t i = 0; i < kept.len; i++)
		put_escaped(f->out, kept.p[i]);
	buf_putc(f->out, '"');
	f->changed = done = true;
out:
	buf_free(&text);
	buf_free(&kept);
	return done;
}

/* Handles the string at f->p, a name or a value. */
static void
string(struct form *f)
{
	const uint8_t *p = f->p, *end = string_end(p, f->end), *v = end;

	f->p = end;
	while (v < f->end && walk_space(*v))
		v++;
	if (v == f->end || *v != ':') {
		if (f->inside || !looks_nested(p + 1, end - 1) ||
		    !put_nested(f, p + 1, end - 1))
			put_string(f, p + 1, end - 1);
		return;
	}
	for (v++; v < f->end && walk_space(*v);)
		v++;
	buf_put(f->out, p, (size_t)(v - p));
	f->p = v;
	if (v == f->end || *v == 'n' || *v == 't' || *v == 'f' ||
	    !kept_hides(p + 1, (size_t)(end - p) - 2))
		return;
	f->p = value_end(v, f->end);
	buf_puts(f->out, KEPT_MARK);
	f->changed = true;
}

/* Copies the whole text; -1 as soon as out holds more than it may. */
static int
pass(struct form *f)
{
	while (f->p < f->end) {
		const uint8_t *p = f->p;

		while (p < f->end && *p != '"')
			p++;
		buf_put(f->out, f->p, (size_t)(p - f->p));
		f->p = p;
		if (p < f->end)
			string(f);
		if (f->out->failed || !fits(f, 0))
			return -1;
	}
	return 0;
}

/* Shortens the text after f->base to f->max bytes, not inside a character. */
static void
end_cut(struct form *f)
{
	size_t n = f->base + f->max - (sizeof(KEPT_CUT) - 1);

	if (f->out->len < n)
		return;
	while (n > f->base && (f->out->p[n] & 0xc0) == 0x80)
		n--;
	f->out->len = n;
	buf_puts(f->out, KEPT_CUT);
}

int
kept_form(const uint8_t *text, size_t n, size_t max, struct buf *out)
{
	struct form f = {.out = out, .base = out->len, .max = max};
	struct buf room;
	int rc = 0;

	/* room is for more than max bytes, because a string is put as a whole
	 * before its length counts, and a nested string is escaped again. */
	buf_init(&room, max + 2 * GROWS * n + 64);
	f.out = &room;
	f.base = 0;
	for (int i = 0; i < 2; i++) {
		buf_clear(&room);
		f.p = text;
		f.end = text + n;
		f.cut = i > 0;
		f.changed = false;
		if ((rc = pass(&f)) == 0 || room.failed)
			break;
	}
	if (rc == -1 && !room.failed) {
		end_cut(&f);
		f.changed = true;
	}
	if (room.failed)
		out->failed = true;
	else if (f.changed)
		buf_put(out, room.p, room.len);
	buf_free(&room);
	return out->failed ? -1 : f.changed ? 1 : 0;
}
