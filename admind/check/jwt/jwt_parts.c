#include <string.h>

#include "ids.h"
#include "jwt_parts.h"

enum { PARTS = 3, PARTS_ENCRYPTED = 5 /* RFC 7516 section 7.1 */ };

/* Each token has one spelling: base64url without padding, white space or spare
 * bits. So no second text of a token has another hash than the first. */
int
jwt_parts_cut(struct jwt_parts *p, struct ipc_bytes token, struct err *e)
{
	static const char *const names[PARTS] = {
	    "header", "claims", "signature"};
	struct ipc_bytes *part[PARTS] = {&p->header, &p->claims, &p->signature};
	const uint8_t *at = token.p, *end = token.p + token.n, *dot;
	uint8_t *out = p->room;
	size_t n, dots = 0;
	long len;

	if (token.n > JWT_MAX)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token has %zu bytes, and at most %d are read", token.n,
		    JWT_MAX);
	for (size_t i = 0; i < token.n; i++)
		dots += token.p[i] == '.';
	if (dots + 1 == PARTS_ENCRYPTED)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token is encrypted: its issuer must only sign it");
	if (dots + 1 != PARTS)
		return err_set(e, FAILURE_UNAUTHENTICATED,
		    "the token must have three parts with a dot between two");
	for (int i = 0; i < PARTS; i++) {
		dot = i < PARTS - 1 ? memchr(at, '.', (size_t)(end - at)) : end;
		n = (size_t)(dot - at);
		if (n == 0)
			return err_set(e, FAILURE_UNAUTHENTICATED,
			    "the token has no %s", names[i]);
		if ((len = b64url_decode((const char *)at, n, out)) < 0)
			return err_set(e, FAILURE_UNAUTHENTICATED,
			    "the token's %s must be base64url without padding",
			    names[i]);
		*part[i] = ipc_bytes(out, (size_t)len);
		out += len;
		if (i == 1)
			p->text = ipc_bytes(token.p, (size_t)(dot - token.p));
		at = dot + 1;
	}
	return 0;
}
