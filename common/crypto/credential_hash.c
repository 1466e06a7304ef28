/*
 * The header is a part of the digest because it is a part of the proof: a
 * signed token is good only in the header of its issuer. With digests of the
 * text alone, a token that was good in one header would be remembered as good
 * in the other. Two credentials never have one digest: a field's value has no
 * byte as small as via (http1.h), so no bearer token begins with it.
 */
#include "credential_hash.h"
#include "crypto.h"

void
credential_hash(uint8_t via, const void *text, size_t n, struct ipc_hash *out)
{
	if (via == 0)
		sha256(text, n, out);
	else
		sha256_2(&via, sizeof(via), text, n, out);
}
