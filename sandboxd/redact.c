/* See redact.h. */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "bounds.h"
#include "redact.h"
#include "tlv.h"

enum {
	/* Forms of one secret: itself, 2 JSON, 3 URL, 2 hex, 6 base64. */
	FORMS = 14,
	NEEDLES_MAX = SECRETS_PER_CALL_MAX * FORMS,
	/* The longest form: every byte percent-encoded or \u00xx. */
	FORM_MAX = SECRET_VALUE_MAX * 6,
	SECRET_VALUE_TAG = 2 /* of the SECRETS blob */
};

struct needle {
	uint8_t *p;
	size_t n;
	unsigned next; /* index + 1 of the next with the same start */
};

/* Needles hang off a table indexed by their first two bytes, longest first:
 * one look-up a position, whatever the number of needles. */
struct redact {
	struct needle needle[NEEDLES_MAX];
	unsigned count;
	size_t longest;
	uint16_t head[65536]; /* index + 1 */
};

static unsigned
start_of(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Adds one form, unless it is there already. 0 or -1 without memory. */
static int
add(struct redact *r, const void *bytes, size_t n)
{
	struct needle *nd;
	unsigned i;

	if (n < REDACT_MIN || r->count == NEEDLES_MAX)
		return 0;
	for (i = r->head[start_of(bytes)]; i != 0; i = r->needle[i - 1].next)
		if (r->needle[i - 1].n == n &&
		    memcmp(r->needle[i - 1].p, bytes, n) == 0)
			return 0;
	nd = &r->needle[r->count];
	if ((nd->p = malloc(n)) == NULL)
		return -1;
	memcpy(nd->p, bytes, n);
	nd->n = n;
	r->count++;
	if (n > r->longest)
		r->longest = n;
	return 0;
}

static int
add_buf(struct redact *r, const struct buf *b)
{
	return b->failed ? -1 : add(r, b->p, b->len);
}

/* As Python's json.dumps writes it inside the quotes: all but ASCII as \u. */
static void
json_ascii(struct buf *b, const uint8_t *p, size_t n)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *s;
	uint32_t c;

	for (size_t i = 0; i < n;) {
		unsigned more;

		c = p[i++];
		if (c < 0x80) {
			if (c != 0 && (s = strchr(from, (int)c)) != NULL) {
				buf_putc(b, '\\');
				buf_putc(b, to[s - from]);
			} else if (c < 0x20 || c == 0x7f)
				buf_putf(b, "\\u%04x", c);
			else
				buf_putc(b, (int)c);
			continue;
		}
		more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		c &= 0x3fU >> more;
		while (more-- > 0 && i < n)
			c = c << 6 | (p[i++] & 0x3f);
		if (c > 0xffff)
			buf_putf(b, "\\u%04x\\u%04x",
			    0xd800 + ((c - 0x10000) >> 10),
			    0xdc00 + ((c - 0x10000) & 0x3ff));
		else
			buf_putf(b, "\\u%04x", c);
	}
}

/* RFC 3986 percent-encoding; `slash` and `space` vary between libraries. */
static void
percent(struct buf *b, const uint8_t *p, size_t n, bool slash, bool plus)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t c = p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9') ||
		    (c != 0 && strchr("-._~", c) != NULL) ||
		    (slash && c == '/'))
			buf_putc(b, c);
		else if (plus && c == ' ')
			buf_putc(b, '+');
		else
			buf_putf(b, "%%%02X", c);
	}
}

/*
 * Base64 of the value when `shift` unknown bytes stand before it in the same
 * text: the characters that depend on the value alone. Both alphabets.
 */
static int
add_base64(struct redact *r, const uint8_t *p, size_t n, size_t shift)
{
	size_t first = (8 * shift + 5) / 6, end = 8 * (shift + n) / 6;
	uint8_t *in = calloc(1, n + shift);
	char *text = malloc(4 * ((n + shift) / 3 + 1) + 1);
	int rc = -1;

	if (in == NULL || text == NULL)
		goto out;
	memcpy(in + shift, p, n);
	(void)b64url_encode(in, n + shift, text);
	rc = add(r, text + first, end - first);
	for (size_t i = first; i < end; i++)
		text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
	if (rc == 0)
		rc = add(r, text + first, end - first);
out:
	if (in != NULL)
		explicit_bzero(in, n + shift);
	free(in);
	free(text);
	return rc;
}

/* All forms of one value. */
static int
add_forms(struct redact *r, const uint8_t *p, size_t n)
{
	static const char hex[] = "0123456789abcdef0123456789ABCDEF";
	struct jsonw w;
	struct buf b;
	int rc;

	buf_init(&b, FORM_MAX + 2);
	rc = add(r, p, n);
	json_ascii(&b, p, n);
	rc |= add_buf(r, &b);
	buf_clear(&b);
	/* Raw UTF-8, only what must be escaped; without the quotes. */
	jsonw_open(&w, &b);
	jsonw_strn(&w, p, n);
	rc |= b.failed ? -1 : add(r, b.p + 1, b.len - 2);
	for (int form = 0; form < 3; form++) {
		buf_clear(&b);
		percent(&b, p, n, form == 1, form == 2);
		rc |= add_buf(r, &b);
	}
	for (int upper = 0; upper < 2; upper++) {
		buf_clear(&b);
		for (size_t i = 0; i < n; i++) {
			buf_putc(&b, hex[16 * upper + (p[i] >> 4)]);
			buf_putc(&b, hex[16 * upper + (p[i] & 15)]);
		}
		rc |= add_buf(r, &b);
	}
	for (size_t shift = 0; shift < 3; shift++)
		rc |= add_base64(r, p, n, shift);
	buf_free(&b);
	return rc == 0 ? 0 : -1;
}

static int
longest_first(const void *a, const void *b)
{
	const struct needle *x = a, *y = b;

	return x->n > y->n ? -1 : x->n < y->n;
}

/* (Re)builds the table so that a chain has its longest needle first. */
static void
link_needles(struct redact *r)
{
	qsort(r->needle, r->count, sizeof(r->needle[0]), longest_first);
	memset(r->head, 0, sizeof(r->head));
	for (unsigned i = r->count; i-- > 0;) {
		uint16_t *h = &r->head[start_of(r->needle[i].p)];

		r->needle[i].next = *h;
		*h = (uint16_t)(i + 1);
	}
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
	while (tlv_next(&rd, &t) == 1)
		if (t.tag == SECRET_VALUE_TAG && t.n >= REDACT_MIN &&
		    t.n <= SECRET_VALUE_MAX && add_forms(r, t.p, t.n) != 0) {
			redact_free(r);
			return NULL;
		}
	link_needles(r);
	return r;
}

void
redact_free(struct redact *r)
{
	if (r == NULL)
		return;
	for (unsigned i = 0; i < r->count; i++) {
		explicit_bzero(r->needle[i].p, r->needle[i].n);
		free(r->needle[i].p);
	}
	free(r);
}

size_t
redact_longest(const struct redact *r)
{
	return r->longest;
}

/* Length of the longest needle that starts at p, or 0. */
static size_t
match(const struct redact *r, const uint8_t *p, size_t left)
{
	for (unsigned i = r->head[start_of(p)]; i != 0;
	    i = r->needle[i - 1].next)
		if (r->needle[i - 1].n <= left &&
		    memcmp(r->needle[i - 1].p, p, r->needle[i - 1].n) == 0)
			return r->needle[i - 1].n;
	return 0;
}

/* Walks as redact_bytes does, so that it sees the same secrets. */
size_t
redact_cut(const struct redact *r, struct ipc_bytes t, size_t at)
{
	size_t i = 0, n;

	if (t.n <= at)
		return t.n;
	while (r->count > 0 && i < at && i + REDACT_MIN <= t.n)
		i += (n = match(r, t.p + i, t.n - i)) != 0 ? n : 1;
	return i > at ? i : at;
}

int
redact_bytes(const struct redact *r, struct ipc_bytes t, struct buf *out)
{
	size_t i = 0, from = 0, n;
	int any = 0;

	while (r->count > 0 && i + REDACT_MIN <= t.n) {
		if ((n = match(r, t.p + i, t.n - i)) == 0) {
			i++;
			continue;
		}
		buf_put(out, t.p + from, i - from);
		buf_puts(out, REDACT_MARK);
		i += n;
		from = i;
		any = 1;
	}
	if (t.n > from) /* an empty text has no address to add to */
		buf_put(out, t.p + from, t.n - from);
	return any;
}

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
	const char *s;
	uint32_t c;

	while (p < end) {
		if (*p != '\\') {
			buf_putc(b, *p++);
			continue;
		}
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

/* One string token with its quotes. */
static int
redact_string(const struct redact *r, const uint8_t *p, size_t n,
    struct buf *plain, struct buf *clean, struct buf *out)
{
	struct jsonw w;

	buf_clear(plain);
	buf_clear(clean);
	unescape(p + 1, p + n - 1, plain);
	if (!redact_bytes(r, ipc_bytes(plain->p, plain->len), clean) &&
	    !plain->failed) {
		buf_put(out, p, n);
		return 0;
	}
	if (plain->failed || clean->failed) {
		/* Without memory nothing is let through. */
		out->failed = true;
		return 1;
	}
	jsonw_open(&w, out);
	jsonw_strn(&w, clean->p, clean->len);
	return 1;
}

int
redact_json(const struct redact *r, struct ipc_bytes t, struct buf *out)
{
	const uint8_t *p = t.p, *end = t.p + t.n, *s;
	struct buf plain, clean;
	int any = 0;

	if (r->count == 0) {
		buf_put(out, t.p, t.n);
		return 0;
	}
	buf_init(&plain, t.n);
	buf_init(&clean, t.n + REDACT_MIN);
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
			buf_clear(&clean);
			if (redact_bytes(
				r, ipc_bytes(s, (size_t)(p - s)), &clean)) {
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
