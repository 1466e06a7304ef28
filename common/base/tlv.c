#include <string.h>

#include "tlv.h"

void
tlv_put(struct buf *b, uint8_t tag, const void *p, size_t n)
{
	if (n > UINT32_MAX) {
		b->failed = true;
		return;
	}
	buf_put_u8(b, tag);
	buf_put_u32(b, (uint32_t)n);
	buf_put(b, p, n);
}

void
tlv_puts(struct buf *b, uint8_t tag, const char *s)
{
	tlv_put(b, tag, s, strlen(s));
}

void
tlv_put_u64(struct buf *b, uint8_t tag, uint64_t v)
{
	buf_put_u8(b, tag);
	buf_put_u32(b, 8);
	buf_put_u64(b, v);
}

void
tlv_open(struct tlv_reader *r, const void *p, size_t n)
{
	/* An empty list may be NULL. In C not even 0 may be added to NULL. */
	r->p = p;
	r->end = n > 0 ? r->p + n : r->p;
}

int
tlv_next(struct tlv_reader *r, struct tlv *out)
{
	size_t n;

	if (r->p == r->end)
		return 0;
	if (r->end - r->p < 5)
		return -1;
	n = get_be32(r->p + 1);
	if (n > (size_t)(r->end - r->p) - 5)
		return -1;
	out->tag = r->p[0];
	out->p = r->p + 5;
	out->n = n;
	r->p += 5 + n;
	return 1;
}

int
tlv_find(const void *p, size_t n, uint8_t tag, struct tlv *out)
{
	struct tlv_reader r;
	struct tlv f;
	int rc, found = 0;

	tlv_open(&r, p, n);
	while ((rc = tlv_next(&r, &f)) == 1)
		if (f.tag == tag && !found) {
			*out = f;
			found = 1;
		}
	return rc < 0 ? -1 : found;
}

int
tlv_u64(const struct tlv *f, uint64_t *v)
{
	if (f->n != 8)
		return -1;
	*v = get_be64(f->p);
	return 0;
}
