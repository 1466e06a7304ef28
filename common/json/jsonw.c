#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "utf8.h"

void
jsonw_open(struct jsonw *w, struct buf *out)
{
	memset(w, 0, sizeof(*w));
	w->out = out;
}

/*
 * Writes the separator before a value: nothing after a name or at the start of
 * a container, a comma otherwise. One flag is enough for all levels, since a
 * container that just ended was itself a value of the level above.
 */
static void
before(struct jsonw *w)
{
	if (w->named)
		w->named = false;
	else if (w->comma)
		buf_putc(w->out, ',');
	w->comma = true;
}

static void
begin(struct jsonw *w, int c)
{
	before(w);
	buf_putc(w->out, c);
	w->depth++;
	w->comma = false;
}

static void
end(struct jsonw *w, int c)
{
	assert(w->depth > 0 && !w->named);
	w->depth--;
	buf_putc(w->out, c);
	w->comma = true;
}

void
jsonw_obj(struct jsonw *w)
{
	begin(w, '{');
}

void
jsonw_obj_end(struct jsonw *w)
{
	end(w, '}');
}

void
jsonw_arr(struct jsonw *w)
{
	begin(w, '[');
}

void
jsonw_arr_end(struct jsonw *w)
{
	end(w, ']');
}

/*
 * Writes a quoted string: the two characters JSON reserves, all controls and
 * DEL are escaped. Each byte that is not part of valid UTF-8 becomes U+FFFD, so
 * that the output is valid UTF-8 for every input.
 */
static void
quote(struct buf *b, const uint8_t *p, size_t n)
{
	char escape[6] = {'\\', 'u', '0', '0'};
	size_t i = 0, from = 0, len;
	uint8_t c;

	buf_putc(b, '"');
	/* Input that no longer fits is not looked at: it could be long. */
	while (i < n && !b->failed) {
		c = p[i];
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
			i++;
			continue;
		}
		if (c >= 0x80) {
			len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
			if (len <= n - i && utf8_valid(p + i, len)) {
				i += len;
				continue;
			}
		}
		buf_put(b, p + from, i - from);
		if (c == '"' || c == '\\') {
			buf_putc(b, '\\');
			buf_putc(b, c);
		} else if (c == '\n')
			buf_puts(b, "\\n");
		else if (c == '\r')
			buf_puts(b, "\\r");
		else if (c == '\t')
			buf_puts(b, "\\t");
		else if (c < 0x80) {
			/* no printf, for speed: a text may hold many of
			 * these */
			escape[4] = hex_char(c >> 4);
			escape[5] = hex_char(c);
			buf_put(b, escape, sizeof(escape));
		} else
			buf_puts(b, "\xef\xbf\xbd");
		from = ++i;
	}
	if (n > from) /* an empty text has no address to add to */
		buf_put(b, p + from, n - from);
	buf_putc(b, '"');
}

void
jsonw_name(struct jsonw *w, const char *name)
{
	assert(w->depth > 0 && !w->named);
	before(w);
	quote(w->out, (const uint8_t *)name, strlen(name));
	buf_putc(w->out, ':');
	w->named = true;
}

void
jsonw_strn(struct jsonw *w, const void *p, size_t n)
{
	before(w);
	quote(w->out, p, n);
}

void
jsonw_str(struct jsonw *w, const char *s)
{
	jsonw_strn(w, s, strlen(s));
}

void
jsonw_int(struct jsonw *w, int64_t v)
{
	before(w);
	buf_putf(w->out, "%" PRId64, v);
}

void
jsonw_u64(struct jsonw *w, uint64_t v)
{
	before(w);
	buf_putf(w->out, "%" PRIu64, v);
}

void
jsonw_bool(struct jsonw *w, bool v)
{
	before(w);
	buf_puts(w->out, v ? "true" : "false");
}

void
jsonw_null(struct jsonw *w)
{
	before(w);
	buf_puts(w->out, "null");
}

void
jsonw_raw(struct jsonw *w, const void *p, size_t n)
{
	before(w);
	buf_put(w->out, p, n);
}

void
jsonw_kv_str(struct jsonw *w, const char *name, const char *value)
{
	jsonw_name(w, name);
	jsonw_str(w, value);
}

void
jsonw_kv_strn(struct jsonw *w, const char *name, const void *p, size_t n)
{
	jsonw_name(w, name);
	jsonw_strn(w, p, n);
}

void
jsonw_kv_int(struct jsonw *w, const char *name, int64_t v)
{
	jsonw_name(w, name);
	jsonw_int(w, v);
}

void
jsonw_kv_bool(struct jsonw *w, const char *name, bool v)
{
	jsonw_name(w, name);
	jsonw_bool(w, v);
}

void
jsonw_kv_raw(struct jsonw *w, const char *name, const void *p, size_t n)
{
	jsonw_name(w, name);
	jsonw_raw(w, p, n);
}

void
jsonw_ascii(struct buf *out, const uint8_t *p, size_t n)
{
	size_t i = 0, from = 0;
	uint32_t c;
	unsigned more;

	while (i < n) {
		if (p[i] < 0x80) {
			i++;
			continue;
		}
		buf_put(out, p + from, i - from);
		if (p[i] >= 0xf0) {
			c = p[i] & 7;
			more = 3;
		} else if (p[i] >= 0xe0) {
			c = p[i] & 15;
			more = 2;
		} else {
			c = p[i] & 31;
			more = 1;
		}
		for (i++; more > 0; more--)
			c = c << 6 | (p[i++] & 63);
		if (c >= 0x10000) {
			c -= 0x10000;
			buf_putf(out, "\\u%04x\\u%04x", 0xd800 + (c >> 10),
			    0xdc00 + (c & 0x3ff));
		} else
			buf_putf(out, "\\u%04x", c);
		from = i;
	}
	buf_put(out, p + from, n - from);
}
