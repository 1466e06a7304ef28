#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bounds.h"
#include "report.h"

enum { SENTENCE_MAX = 1024, POINTER_MAX = 2048 };

void
report_open(struct report *r, struct buf *json)
{
	memset(r, 0, sizeof(*r));
	r->json = json;
	if (json != NULL) {
		jsonw_open(&r->w, json);
		jsonw_arr(&r->w);
	}
}

static void
put_pointer(struct buf *b, const struct path *p)
{
	if (p == NULL)
		return;
	put_pointer(b, p->up);
	buf_putc(b, '/');
	if (p->name == NULL) {
		buf_putf(b, "%u", p->index);
		return;
	}
	for (size_t i = 0; i < p->len; i++) {
		if (p->name[i] == '~')
			buf_puts(b, "~0");
		else if (p->name[i] == '/')
			buf_puts(b, "~1");
		else
			buf_putc(b, p->name[i]);
	}
}

void
report_add(struct report *r, const struct path *at, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	struct buf pointer;
	va_list ap;

	r->n++;
	if (r->json == NULL ? r->n > 1 : r->n > REPORT_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* If the pointer is too long for its buffer, the root is shown instead,
	 * because the sentence matters more. */
	buf_init(&pointer, POINTER_MAX);
	if (r->prefix != NULL)
		buf_puts(&pointer, r->prefix);
	put_pointer(&pointer, at);
	if (pointer.failed)
		buf_clear(&pointer);
	if (r->n == 1) {
		int cut = (int)sizeof(r->first) / 2 - 2;

		/* Half of the room is for the place, half for the sentence. */
		snprintf(r->first, sizeof(r->first), "%.*s%s%.*s",
		    (int)pointer.len < cut ? (int)pointer.len : cut,
		    pointer.len > 0 ? (const char *)pointer.p : "",
		    pointer.len > 0 ? " " : "", cut, text);
	}
	if (r->json != NULL) {
		jsonw_obj(&r->w);
		jsonw_kv_strn(&r->w, "pointer",
		    pointer.len > 0 ? pointer.p : (const uint8_t *)"",
		    pointer.len);
		jsonw_kv_strn(&r->w, "message", text, strlen(text));
		jsonw_obj_end(&r->w);
	}
	buf_free(&pointer);
}

void
report_close(struct report *r)
{
	if (r->json != NULL)
		jsonw_arr_end(&r->w);
}

int
report_cut(const uint8_t *p, size_t n)
{
	if (n > REPORT_QUOTE) {
		n = REPORT_QUOTE;
		while (n > 0 && (p[n] & 0xc0) == 0x80)
			n--;
	}
	return (int)n;
}
