/*
 * DNS messages (RFC 1035): a runner's question in, the answer out. Pure; the
 * reader is fuzzed.
 */
#ifndef DNS_H
#define DNS_H

#include "address.h"

enum {
	DNS_NAME_MAX = 253, /* text without the final dot */
	DNS_MESSAGE_MAX =
	    512, /* of a question; answers are shorter than it + 16 */
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
	size_t end; /* of the question in the message */
};

/* Reads a question. 0: q is filled. Otherwise the code to answer: DNS_FORMERR,
 * DNS_NOTIMP, or -1: no answer, since m is no question at all (shorter than a
 * header, an answer). */
int dns_question(const uint8_t *m, size_t n, struct dns_question *q);
/*
 * Writes the answer to m: the question again (q NULL: without), the code and,
 * unless a is NULL, one A record. Returns its length, at most DNS_ANSWER_MAX.
 */
size_t dns_answer(const uint8_t *m, const struct dns_question *q,
    enum dns_rcode, const struct address *a, uint8_t *out);

#endif
