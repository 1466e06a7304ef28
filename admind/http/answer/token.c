#include <string.h>
#include <strings.h>

#include "ask.h"
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
static int
login_read(struct call *c)
{
	const struct http1_request *r = httpd_request(c->req);
	const char *cookie, *half;
	struct ipc_hash hash;
	unsigned count;

	cookie = http1_field(r, "cookie", &count);
	if (cookie == NULL || count != 1 ||
	    guard_cookie(cookie, c->https, c->token) != 1) {
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

/*
 * A script's key comes as `Authorization: Bearer mbk_...` and in no other way.
 * No browser adds that field by itself, and a page of another origin can't set
 * it without a preflight, which is answered 405. So a key needs no second half;
 * Host and Origin were judged before (guard.c).
 *
 * A request with a key and a login would have two actors, so it is refused. The
 * key itself goes no further than this function: admind gets its SHA-256, and
 * the vault gets nothing (ask.c).
 */
static int
key_read(struct call *c, const char *key)
{
	const struct http1_request *r = httpd_request(c->req);
	size_t mark = strlen(SCRIPT_KEY_MARK);
	char half[LOGIN_HALF + 1];
	struct ipc_hash hash;
	const char *cookie;
	unsigned count;

	c->by_key = true;
	cookie = http1_field(r, "cookie", &count);
	if ((cookie != NULL &&
		(count != 1 || guard_cookie(cookie, c->https, half) != 0)) ||
	    http1_field(r, "x-csrf-token", &count) != NULL) {
		problem_send(c, FAILURE_INVALID_REQUEST,
		    "a key and a login came together",
		    "Send the key alone, without cookie and X-CSRF-Token; or "
		    "the login alone.");
		return -1;
	}
	if (!script_key_form(key, strlen(key))) {
		problem_send(c, FAILURE_UNAUTHENTICATED,
		    "this has not the form of a key", NULL);
		return -1;
	}
	if (c->route->scope == SCRIPT_NEVER) {
		problem_send(c, FAILURE_FORBIDDEN,
		    "no key may do this: a person does it, with a login", NULL);
		return -1;
	}
	sha256(key, strlen(key), &hash);
	memcpy(c->token_hash, SCRIPT_KEY_MARK, mark);
	b64url_encode(&hash, sizeof(hash), c->token_hash + mark);
	return 0;
}

/* Tells whether a key was sent as a half of a login. */
static bool
key_astray(const struct http1_request *r)
{
	static const char *const fields[] = {"cookie", "x-csrf-token"};
	const char *text;
	unsigned count;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		text = http1_field(r, fields[i], &count);
		if (text != NULL && script_key_inside(text))
			return true;
	}
	return false;
}

int
token_read(struct call *c)
{
	const struct http1_request *r = httpd_request(c->req);
	static const char scheme[] = "Bearer ";
	const char *text;
	unsigned count;

	text = http1_field(r, "authorization", &count);
	if (text != NULL && count != 1) {
		problem_send(c, FAILURE_INVALID_REQUEST,
		    "Authorization is there twice", "Send one Authorization.");
		return -1;
	}
	if (text != NULL &&
	    strncasecmp(text, scheme, sizeof(scheme) - 1) == 0) {
		text += sizeof(scheme) - 1;
		if (strncmp(text, SCRIPT_KEY_PREFIX,
			strlen(SCRIPT_KEY_PREFIX)) == 0)
			return key_read(c, text);
	}
	if (key_astray(r)) {
		c->by_key = true;
		problem_send(c, FAILURE_UNAUTHENTICATED,
		    "a key is no login: what needs a login, such as an "
		    "approval, needs a person",
		    NULL);
		return -1;
	}
	return login_read(c);
}

void
token_key_check(struct call *c, void (*then)(struct call *, struct ipc_frame *))
{
	struct ipc_script_key_check m = {.token = ipc_str(c->token_hash),
	    .scope = ipc_str(script_scope_name(c->route->scope))};

	ask_admind(c, IPC_SCRIPT_KEY_CHECK, &m, then);
}
