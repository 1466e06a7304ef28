/*
 * A balancer's PROXY header, and the list of who may send one. A header is as
 * long as it says and no longer than the bound; a piece of one asks for more or
 * is refused as the whole is; a header with an address has one of IP.
 */
#include <stdlib.h>
#include <string.h>

#include "proxyv2.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct proxyv2_from from;
	struct proxyv2 v, again;
	char text[512];
	struct err e;
	int took, piece;

	took = proxyv2_read(data, n, &v, &e);
	if (took > PROXYV2_MAX || (took > 0 && (size_t)took > n) ||
	    (took == 0 && n >= PROXYV2_MAX))
		abort();
	if (took > 0 && v.client &&
	    (v.local ||
		(v.from.ss_family != AF_INET && v.from.ss_family != AF_INET6)))
		abort();
	for (size_t k = 0; k < n && k < 64; k++) {
		piece = proxyv2_read(data, k, &again, &e);
		if ((took > 0 && k < (size_t)took && piece != 0) ||
		    (took == 0 && piece != 0))
			abort();
	}
	if (n < sizeof(text)) {
		memcpy(text, data, n);
		text[n] = '\0';
		if (proxyv2_from_read(text, &from, &e) == 0 && took > 0 &&
		    v.client)
			(void)proxyv2_from_has(
			    &from, (const struct sockaddr *)(void *)&v.from);
	}
	return 0;
}
