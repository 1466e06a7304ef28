#include <stdbool.h>

#include "cbor.h"

/* Major types (RFC 8949 section 3.1). */
enum {
	UNSIGNED = 0,
	NEGATIVE = 1,
	BYTES = 2,
	TEXT = 3,
	ARRAY = 4,
	MAP = 5,
	TAG = 6,
	SIMPLE = 7
};

void
cbor_open(struct cbor *c, struct ipc_bytes b)
{
	c->p = b.p;
	c->end = b.p + b.n;
}

size_t
cbor_left(const struct cbor *c)
{
	return (size_t)(c->end - c->p);
}

/*
 * Reads an item's head. Additional information 24 to 27 is followed by 1, 2, 4
 * or 8 bytes of number; 28 to 31 are reserved or mean an indefinite length, and
 * are refused. A number that fits a shorter form is refused, except that of a
 * float, whose bytes are no number.
 */
static int
head(struct cbor *c, unsigned *major, uint64_t *value)
{
	unsigned info;
	size_t n;

	if (cbor_left(c) == 0)
		return -1;
	*major = *c->p >> 5;
	info = *c->p++ & 0x1f;
	*value = info;
	if (info < 24)
		return 0;
	if (info > 27)
		return -1;
	n = (size_t)1 << (info - 24);
	if (cbor_left(c) < n)
		return -1;
	*value = 0;
	for (size_t i = 0; i < n; i++)
		*value = *value << 8 | *c->p++;
	if (*major == SIMPLE)
		return n == 1 && *value < 32 ? -1 : 0;
	return *value < (n == 1 ? 24 : (uint64_t)1 << (n * 4)) ? -1 : 0;
}

int
cbor_int(struct cbor *c, int64_t *out)
{
	unsigned major;
	uint64_t v;

	if (head(c, &major, &v) == -1 || v > INT64_MAX || major > NEGATIVE)
		return -1;
	*out = major == UNSIGNED ? (int64_t)v : -1 - (int64_t)v;
	return 0;
}

static int
string(struct cbor *c, unsigned kind, struct ipc_bytes *out)
{
	unsigned major;
	uint64_t n;

	if (head(c, &major, &n) == -1 || major != kind || n > cbor_left(c))
		return -1;
	*out = ipc_bytes(c->p, (size_t)n);
	c->p += n;
	return 0;
}

int
cbor_blob(struct cbor *c, struct ipc_bytes *out)
{
	return string(c, BYTES, out);
}

int
cbor_text(struct cbor *c, struct ipc_bytes *out)
{
	return string(c, TEXT, out);
}

int
cbor_map(struct cbor *c, uint64_t *pairs)
{
	unsigned major;

	return head(c, &major, pairs) == -1 || major != MAP ? -1 : 0;
}

/*
 * Counts the items that are still to come instead of calling itself. Each item
 * has at least one byte, so a number of items above the bytes that are left is
 * a lie, and the sum can't overflow.
 */
int
cbor_skip(struct cbor *c)
{
	uint64_t items = 1, n;
	unsigned major;

	while (items > 0) {
		if (head(c, &major, &n) == -1)
			return -1;
		items--;
		if (major == BYTES || major == TEXT) {
			if (n > cbor_left(c))
				return -1;
			c->p += n;
		} else if (major == ARRAY || major == MAP || major == TAG) {
			if (n > cbor_left(c) && major != TAG)
				return -1;
			items += major == ARRAY ? n : major == MAP ? 2 * n : 1;
		}
		if (items > cbor_left(c))
			return -1;
	}
	return 0;
}
