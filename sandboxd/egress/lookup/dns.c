#include "dns.h"

#include <string.h>

#include "buf.h"

enum {
	HEADER = 12,
	FLAG_QR = 0x8000,
	OPCODE = 0x7800,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	LABEL_MAX = 63,
	CLASS_IN = 1,
	/* Seconds. Any time would do: a name keeps its address during the call,
	 * and the runner ends with its call. */
	TTL = 60
};

/*
 * Reads the labels of the question. A pointer (RFC 1035, 4.1.4) is an error,
 * because a question has nothing to point to. If a label has a byte that no
 * host name has, the name becomes "", which is answered as a name that does not
 * exist. Returns the position after the labels, or 0.
 */
static size_t
take_name(const uint8_t *m, size_t n, char name[DNS_NAME_MAX + 1])
{
	size_t at = HEADER, len = 0;
	bool host = true;

	for (;;) {
		unsigned label;

		if (at >= n)
			return 0;
		label = m[at++];
		if (label == 0)
			break;
		if (label > LABEL_MAX || label > n - at)
			return 0;
		if (len + (len != 0) + label > DNS_NAME_MAX)
			return 0;
		if (len != 0)
			name[len++] = '.';
		for (unsigned i = 0; i < label; i++) {
			uint8_t c = m[at++];

			if (c >= 'A' && c <= 'Z')
				c += 'a' - 'A';
			if (!(c >= 'a' && c <= 'z') &&
			    !(c >= '0' && c <= '9') && c != '-' && c != '_')
				host = false;
			name[len++] = (char)c;
		}
	}
	name[host ? len : 0] = '\0';
	return at;
}

int
dns_question(const uint8_t *m, size_t n, struct dns_question *q)
{
	struct dns_question r;
	uint16_t flags;

	if (n < HEADER)
		return -1;
	flags = get_be16(m + 2);
	if ((flags & FLAG_QR) != 0)
		return -1;
	if ((flags & OPCODE) != 0)
		return DNS_NOTIMP;
	/* There must be one question. An OPT record after it is ignored. */
	if (n > DNS_MESSAGE_MAX || get_be16(m + 4) != 1 ||
	    get_be16(m + 6) != 0 || get_be16(m + 8) != 0)
		return DNS_FORMERR;
	if ((r.end = take_name(m, n, r.name)) == 0 || n - r.end < 4)
		return DNS_FORMERR;
	r.type = get_be16(m + r.end);
	r.class = get_be16(m + r.end + 2);
	r.end += 4;
	if (r.class != CLASS_IN)
		return DNS_NOTIMP;
	*q = r;
	return 0;
}

static uint8_t *
put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

size_t
dns_answer(const uint8_t *m, const struct dns_question *q, enum dns_rcode rcode,
    const struct address *a, uint8_t *out)
{
	uint8_t *p = out;

	memcpy(p, m, 2);
	p = put16(p + 2,
	    FLAG_QR | FLAG_RA | (get_be16(m + 2) & (OPCODE | FLAG_RD)) |
		(unsigned)rcode);
	p = put16(p, q != NULL);
	p = put16(p, q != NULL && a != NULL);
	p = put16(p, 0);
	p = put16(p, 0);
	if (q == NULL)
		return (size_t)(p - out);
	memcpy(p, m + HEADER, q->end - HEADER);
	p += q->end - HEADER;
	if (a == NULL)
		return (size_t)(p - out);
	p = put16(p, 0xc000 | HEADER); /* the question's name */
	p = put16(p, DNS_TYPE_A);
	p = put16(p, CLASS_IN);
	p = put16(p, 0);
	p = put16(p, TTL);
	p = put16(p, 4);
	memcpy(p, a->b, 4);
	return (size_t)(p + 4 - out);
}
