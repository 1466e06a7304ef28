#include "crypto.h"
#include "guard.h"
#include "ids.h"
#include "problem.h"
#include "token.h"

/*
 * Half of a login's token comes in a cookie, which a browser sends to every
 * port of this host. Any program that listens on such a port may have this
 * half, and a page that the program serves is of our own site. The other half
 * is said once, in the answer to login. Clients send it in a field that no page
 * of another origin can set (that would need a preflight, which is answered
 * 405).
 *
 * The halves are joined here and the vault judges them as one. So neither half
 * opens any route, a route that is added later needs no check of its own, and
 * no answer tells which half was wrong (docs/decisions/0067).
 */
int
token_read(struct call *c)
{
	const struct http1_request *r = httpd_request(c->req);
	const char *cookie, *half;
	struct ipc_hash hash;
	unsigned count;

	cookie = http1_field(r, "cookie", &count);
	if (cookie == NULL || count != 1 ||
	    guard_cookie(cookie, c->token) != 1) {
		problem_send(c, FAILURE_UNAUTHENTICATED,
		    "the cookie mcpbox_session is missing, malformed or there "
		    "twice",
		    NULL);
		return -1;
	}
	half = http1_field(r, "x-csrf-token", &count);
	if (half == NULL || count != 1 ||
	    !guard_half(half, c->token + LOGIN_HALF)) {
		problem_send(c, FAILURE_UNAUTHENTICATED,
		    "X-CSRF-Token is missing or malformed; the cookie alone is "
		    "no login",
		    NULL);
		return -1;
	}
	sha256(c->token, LOGIN_TEXT, &hash);
	b64url_encode(&hash, sizeof(hash), c->token_hash);
	return 0;
}
