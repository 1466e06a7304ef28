#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"

void
buf_init(struct buf *b, size_t max)
{
	memset(b, 0, sizeof(*b));
	b->max = max;
}

void
buf_free(struct buf *b)
{
	if (b->p != NULL) {
		explicit_bzero(b->p, b->cap);
		free(b->p);
	}
	b->p = NULL;
	b->len = b->cap = 0;
	b->failed = false;
}

void
buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

/*
 * Makes room for n more bytes. The capacity doubles. The old block is wiped
 * because buffers carry secrets. realloc is not used, because it may leave a
 * copy of the old block.
 */
static bool
reserve(struct buf *b, size_t n)
{
	size_t want, cap;
	uint8_t *p;

	if (b->failed)
		return false;
	if (n > b->max - b->len) {
		b->failed = true;
		return false;
	}
	want = b->len + n;
	if (want <= b->cap)
		return true;
	for (cap = b->cap ? b->cap : 256; cap < want; cap *= 2)
		;
	if (cap > b->max)
		cap = b->max;
	if ((p = malloc(cap)) == NULL) {
		b->failed = true;
		return false;
	}
	if (b->p != NULL) {
		memcpy(p, b->p, b->len);
		explicit_bzero(b->p, b->cap);
		free(b->p);
	}
	b->p = p;
	b->cap = cap;
	return true;
}

void
buf_reserve(struct buf *b, size_t n)
{
	reserve(b, n);
}

void
buf_put(struct buf *b, const void *p, size_t n)
{
	if (n == 0 || !reserve(b, n))
		return;
	memcpy(b->p + b->len, p, n);
	b->len += n;
}

void
buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void
buf_putc(struct buf *b, int c)
{
	uint8_t u = (uint8_t)c;

	buf_put(b, &u, 1);
}

void
buf_putf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	buf_put(b, s, (size_t)n);
	free(s);
}

void
buf_put_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, 1);
}

void
buf_put_u16(struct buf *b, uint16_t v)
{
	uint8_t u[2] = {(uint8_t)(v >> 8), (uint8_t)v};

	buf_put(b, u, sizeof(u));
}

void
buf_put_u32(struct buf *b, uint32_t v)
{
	uint8_t u[4];

	for (int i = 0; i < 4; i++)
		u[i] = (uint8_t)(v >> (24 - 8 * i));
	buf_put(b, u, sizeof(u));
}

void
buf_put_u64(struct buf *b, uint64_t v)
{
	uint8_t u[8];

	for (int i = 0; i < 8; i++)
		u[i] = (uint8_t)(v >> (56 - 8 * i));
	buf_put(b, u, sizeof(u));
}

void
buf_drain(struct buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->len - n);
	b->len -= n;
}

uint16_t
get_be16(const uint8_t *p)
{
	return (uint16_t)((p[0] << 8) | p[1]);
}

uint32_t
get_be32(const uint8_t *p)
{
	return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) |
	    ((uint32_t)p[2] << 8) | p[3];
}

uint64_t
get_be64(const uint8_t *p)
{
	return ((uint64_t)get_be32(p) << 32) | get_be32(p + 4);
}
