/*
 * A runner's DNS message: whatever it is, what is answered fits, names the same
 * question, and a name that is taken is of a host's characters.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t bytes[4] = {240, 0, 0, 1};
	const struct address a = address_v4(bytes);
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_question q, back;
	int rc = dns_question(data, n, &q);
	size_t len;

	if (rc < 0)
		return 0;
	if (rc > 0) {
		if (dns_answer(data, NULL, (enum dns_rcode)rc, NULL, out) != 12)
			abort();
		return 0;
	}
	if (q.end > n || strlen(q.name) > DNS_NAME_MAX ||
	    strspn(q.name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") !=
		strlen(q.name))
		abort();
	len = dns_answer(data, &q, DNS_NOERROR, &a, out);
	if (len != q.end + 16 || len > sizeof(out))
		abort();
	/* The question in it is the question, once it is no answer any more. */
	out[2] &= 0x7f;
	memset(out + 6, 0, 6);
	if (dns_question(out, len, &back) != 0 || back.end != q.end ||
	    strcmp(back.name, q.name) != 0 || back.type != q.type)
		abort();
	return 0;
}
