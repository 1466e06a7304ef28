#include <stdlib.h>
#include <string.h>

#include "sse.h"

void
sse_init(struct sse *s, size_t max)
{
	memset(s, 0, sizeof(*s));
	buf_init(&s->line, max);
	buf_init(&s->data, max);
}

void
sse_free(struct sse *s)
{
	buf_free(&s->line);
	buf_free(&s->data);
}

static bool
is_field(const struct buf *line, const char *name, size_t colon)
{
	return colon == strlen(name) && memcmp(line->p, name, colon) == 0;
}

/* Takes one line without its end. Unknown fields and comments are ignored. */
static void
take_line(struct sse *s)
{
	const uint8_t *colon;
	const char *value;
	size_t name, n;

	if (s->line.len == 0 || s->line.p[0] == ':')
		return;
	colon = memchr(s->line.p, ':', s->line.len);
	name = colon != NULL ? (size_t)(colon - s->line.p) : s->line.len;
	value = (const char *)s->line.p + name + (colon != NULL);
	n = s->line.len - name - (colon != NULL);
	if (n > 0 && *value == ' ') {
		value++;
		n--;
	}
	if (is_field(&s->line, "data", name)) {
		if (s->has_data)
			buf_putc(&s->data, '\n');
		s->has_data = true;
		buf_put(&s->data, value, n);
	} else if (is_field(&s->line, "id", name)) {
		if (n <= SSE_ID_MAX && memchr(value, '\0', n) == NULL) {
			memcpy(s->id, value, n);
			s->id[n] = '\0';
		}
	} else if (is_field(&s->line, "retry", name)) {
		char digits[12];

		if (n > 0 && n < sizeof(digits)) {
			memcpy(digits, value, n);
			digits[n] = '\0';
			if (strspn(digits, "0123456789") == n)
				s->retry_ms = strtoul(digits, NULL, 10);
		}
	}
}

int
sse_feed(struct sse *s, const void *bytes, size_t n, sse_event *cb, void *arg)
{
	const uint8_t *p = bytes, *end = p + n;

	for (; p < end; p++) {
		if (*p == '\n' && s->cr) {
			s->cr = false;
			continue;
		}
		s->cr = *p == '\r';
		if (*p != '\n' && *p != '\r') {
			buf_putc(&s->line, *p);
			if (s->line.failed)
				return -1;
			continue;
		}
		if (s->line.len > 0) {
			take_line(s);
			buf_clear(&s->line);
		} else {
			if (s->has_data && s->data.len > 0 && !s->data.failed)
				cb(arg, s->data.p, s->data.len);
			s->has_data = false;
			buf_clear(&s->data);
		}
		if (s->data.failed)
			return -1;
	}
	return 0;
}
