/*
 * DNS messages (RFC 1035): reads a runner's question and writes the answer. No
 * I/O; the reader is fuzzed.
 */
#ifndef DNS_H
#define DNS_H

#include "address.h"

enum {
	DNS_NAME_MAX = 253, /* text without the final dot */
	DNS_MESSAGE_MAX =
	    512, /* of a question; an answer is at most 16 longer */
	DNS_ANSWER_MAX = DNS_MESSAGE_MAX + 16,
	DNS_TYPE_A = 1,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_PTR = 12
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4
};

struct dns_question {
	char name[DNS_NAME_MAX + 1]; /* lower case, no final dot; "" unless its
				      * labels are letters, digits, - and _ */
	uint16_t type, class;
	size_t end; /* where the question ends in the message */
};

/* Reads a question. 0: q is filled. DNS_FORMERR or DNS_NOTIMP: the code to
 * answer with. -1: m gets no answer, since it is no question (but an answer, or
 * shorter than a header). */
int dns_question(const uint8_t *m, size_t n, struct dns_question *q);
/*
 * Writes the answer to m into out: the code, the question unless q is NULL, and
 * one A record unless a is NULL. Returns its length, at most DNS_ANSWER_MAX.
 */
size_t dns_answer(const uint8_t *m, const struct dns_question *q,
    enum dns_rcode, const struct address *a, uint8_t *out);

#endif
