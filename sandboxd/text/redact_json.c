/* Redaction in the strings and numbers of JSON (redact.h). */
#include <string.h>

#include "json_scan.h"
#include "redact_internal.h"

/* Writes a string with its quotes in its shortest form, never longer than the
 * original. */
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

/* Redacts one string token with its quotes. */
static int
redact_string(struct redact *r, const uint8_t *p, size_t n, struct buf *plain,
    struct buf *clean, struct buf *out)
{
	struct ipc_bytes t = ipc_bytes(p + 1, n - 2);
	size_t found = 0;

	if (t.n >= REDACT_MIN && memchr(t.p, '\\', t.n) != NULL) {
		buf_clear(plain);
		json_unescape_inside(t.p, t.n, plain);
		t = ipc_bytes(plain->p, plain->len);
	}
	if (!plain->failed)
		found = redact_find(r, t);
	if (plain->failed || r->failed) {
		out->failed = true;
		return 1;
	}
	if (found == 0) {
		buf_put(out, p, n);
		return 0;
	}
	buf_clear(clean);
	redact_splice(r, t, found, clean);
	put_string(out, clean->p, clean->len);
	out->failed |= clean->failed;
	return 1;
}

/* Tells whether a number shows a secret: as it is written, or in its digits
 * without the point that a float's form puts between them. */
static bool
number_tells(struct redact *r, const uint8_t *p, size_t n, struct buf *digits)
{
	if (n < REDACT_MIN || !r->digits)
		return false;
	if (redact_find(r, ipc_bytes(p, n)) > 0 || r->failed)
		return true;
	buf_clear(digits);
	for (size_t i = 0; i < n && (p[i] | 32) != 'e'; i++)
		if (p[i] >= '0' && p[i] <= '9')
			buf_putc(digits, p[i]);
	return digits->failed ||
	    redact_find(r, ipc_bytes(digits->p, digits->len)) > 0 || r->failed;
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
				/* shorter than the mark in quotes */
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
