#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "changes.h"
#include "crypto.h"
#include "guard.h"
#include "log.h"
#include "panel.h"
#include "problem.h"
#include "reads.h"
#include "reviews.h"
#include "routes.h"
#include "token.h"
#include "web.h"

static const struct route routes[] = {
#define R(method, path, access, scope, handler, query, subject)          \
	{HTTP1_##method, path, ACCESS_##access, SCRIPT_##scope, handler, \
	    query, subject},
#include "routes.def"
#undef R
#define A(name, role, scope, method, path, seen, members, doc)                 \
	{HTTP1_##method, path, ACCESS_WRITE, SCRIPT_##scope, action_write, "", \
	    #name},
#define U(name, members, doc)
#include "admin_action.def"
#undef A
#undef U
};

enum { NROUTES = sizeof(routes) / sizeof(routes[0]) };

static const char id_chars[] = "0123456789abcdefABCDEF-";
static const char name_chars[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-";

/* Takes one placeholder of a form. Returns how many bytes of path match the
 * placeholder; 0: no match. */
static size_t
take(const char **form, const char *path)
{
	bool name = strncmp(*form, "{name", 5) == 0;
	size_t n = strspn(path, name ? name_chars : id_chars);

	*form = strchr(*form, '}') + 1;
	/* clients resolve "." and ".." in a path, so these are no names */
	if (name && (strncmp(path, ".", n) == 0 || strncmp(path, "..", n) == 0))
		return 0;
	return n <= (name ? (size_t)ADMIN_NAME_MAX : (size_t)ID_TEXT_MAX) ? n
									  : 0;
}

/*
 * Compares path with the route's form. Returns the number of its placeholders,
 * or -1. {id} (or {id2}) matches 1 to ID_TEXT_MAX hex digits and dashes, {name}
 * 1 to ADMIN_NAME_MAX characters of names; the matched texts are copied into
 * id. Nothing is decoded: an address has one spelling.
 */
static int
matches(const char *form, const char *path, char *id)
{
	size_t n, used = 0;
	int count = 0;

	id[0] = '\0';
	while (*form != '\0') {
		if (*form != '{') {
			if (*form++ != *path++)
				return -1;
			continue;
		}
		n = take(&form, path);
		if (n == 0 || used + n + 1 > ADMIN_ID_MAX)
			return -1;
		if (count++ > 0)
			id[used++] = '/';
		memcpy(id + used, path, n);
		used += n;
		id[used] = '\0';
		path += n;
	}
	return *path == '\0' ? count : -1;
}

const struct route *
routes_find(enum http1_method method, const char *path, char *allow, size_t len,
    char *id)
{
	const struct route *found = NULL;
	char one[ADMIN_ID_MAX + 1];
	int count, best = 0;
	size_t used = 0;

	allow[0] = '\0';
	if (method == HTTP1_HEAD)
		method = HTTP1_GET;
	for (size_t i = 0; i < NROUTES; i++) {
		count = matches(routes[i].path, path, one);
		if (count == -1)
			continue;
		if (used < len)
			used += (size_t)snprintf(allow + used, len - used,
			    "%s%s", used > 0 ? ", " : "",
			    routes[i].method == HTTP1_GET
				? "GET, HEAD"
				: http1_method_name(routes[i].method));
		/* /x/all fits the form /x/{name}, too: the route with fewest
		 * placeholders is taken */
		if (routes[i].method == method &&
		    (found == NULL || count < best)) {
			found = &routes[i];
			best = count;
			memcpy(id, one, strlen(one) + 1);
		}
	}
	return found;
}

/* Tells whether bodies over WEB_BODY_MAX may come here. All of these routes
 * take a login, and no script's key. */
static bool
takes_large(const struct route *route)
{
	return route->handler == drafts_post || route->handler == calls_post ||
	    route->handler == openapi_post;
}

/* Goes on with a request that may be done: lets its large body in, or handles
 * it. The request comes again once the body is here, and the login is judged
 * again. */
static void
go_on(struct call *c)
{
	struct httpd_req *req = c->req;

	if (!c->large) {
		c->route->handler(c);
		return;
	}
	call_free(c);
	httpd_take_body(req);
}

/* Goes on with a write whose key may do it. */
static void
key_known(struct call *c, struct ipc_frame *f)
{
	if (f->type != IPC_OK)
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
	else
		go_on(c);
}

/*
 * Goes on with a write whose login is known. A write's body is parsed only for
 * a logged-in client, since any program on this machine may connect. Handlers
 * ask again with the same token, so a login that ends in between can change
 * nothing.
 *
 * API tokens and keys outlive the login that makes them, and the vault has no
 * part in them. So the fresh proof of ACCESS_PROVEN is asked for here: a thief
 * of a login, without its password, makes none. It does not stop a taken-over
 * admind-http or admind, and need not. The first sees passwords and keys that
 * people show it. The second does without a token or a key all that one opens
 * (docs/decisions/0103, 0106).
 */
static void
login_known(struct call *c, struct ipc_frame *f)
{
	struct ipc_session_info info;
	struct err e;

	if (f->type != IPC_SESSION_INFO || ipc_decode(f, &info, &e) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
		return;
	}
	if (c->route->access == ACCESS_PROVEN &&
	    info.proof_until_ms <= now_us() / 1000) {
		problem_send(c, FAILURE_PROOF_REQUIRED,
		    "this needs a proof at most five minutes old that you are "
		    "there",
		    NULL);
		return;
	}
	go_on(c);
}

static void
begin(struct httpd_req *req, void *arg, bool large)
{
	const struct http1_request *r = httpd_request(req);
	struct ipc_whoami who = {0};
	const struct route *route;
	char allow[64];
	struct call *c;
	struct err e;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		httpd_reply(req, 503, "", NULL, 0);
		return;
	}
	c->web = arg;
	c->req = req;
	c->large = large;
	httpd_set_data(req, c);

	route = routes_find(r->method, r->path, allow, sizeof(allow), c->id);
	if (guard_request(r, c->web->origins,
		route != NULL && route->access == ACCESS_CALLBACK, &c->https,
		&e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
		return;
	}
	if (route == NULL && allow[0] != '\0') {
		httpd_header(req, "Allow", allow);
		problem_status_send(c, 405, FAILURE_METHOD_NOT_FOUND,
		    "this address does not have that method",
		    "Use a method that Allow lists.");
		return;
	}
	if (route == NULL) {
		problem_send(c, FAILURE_NOT_FOUND, "no such address",
		    "See docs/openapi.yaml for all addresses.");
		return;
	}
	/* An address is kept in logs and histories. */
	if (script_key_inside(r->path) ||
	    (r->query != NULL && script_key_inside(r->query))) {
		problem_send(c, FAILURE_INVALID_REQUEST,
		    "a key is in the address",
		    "Revoke this key; send another as Authorization: Bearer.");
		return;
	}
	c->route = route;
	if (large && !takes_large(route)) {
		problem_send(c, FAILURE_TOO_LARGE, "body is too large",
		    "Send at most 32 KiB to this address.");
		return;
	}
	if (route->access == ACCESS_CALLBACK) {
		route->handler(c);
		return;
	}
	if (route->access != ACCESS_PUBLIC && token_read(c) < 0)
		return;
	if (guard_query(r->query, route->query, &c->params, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
		return;
	}
	if (route->access == ACCESS_WRITE && c->by_key) {
		token_key_check(c, key_known);
		return;
	}
	if (route->access == ACCESS_WRITE || route->access == ACCESS_PROVEN ||
	    route->access == ACCESS_PENDING) {
		who.token = ipc_str(c->token);
		who.pending = route->access == ACCESS_PENDING;
		ask_vault(c, IPC_WHOAMI, &who, login_known);
		return;
	}
	route->handler(c);
}

void
routes_request(struct httpd_req *req, void *arg)
{
	begin(req, arg, false);
}

/*
 * Judges a request whose body is larger than WEB_BODY_MAX, from its head alone.
 *
 * Any program of this machine may connect, up to max_connections times. If each
 * connection could make this process hold a megabyte, strangers could fill the
 * memory in which logins are judged. So for a stranger the process holds no
 * more than WEB_BODY_MAX, as before: a large body stays in the kernel's buffers
 * until the vault has said that the login lives, and has its fresh proof where
 * the route needs one. The vault's answer takes a moment that a stranger can't
 * prolong. Then at most WEB_LARGE_AT_ONCE bodies come in, each within
 * body_timeout. A logged-in person can send that many slowly. That keeps large
 * bodies of other people out, but no other request.
 */
void
routes_large(struct httpd_req *req, void *arg)
{
	begin(req, arg, true);
}

void
routes_gone(struct httpd_req *req, void *arg)
{
	struct call *c = httpd_data(req);

	(void)arg;
	if (c == NULL)
		return;
	c->req = NULL;
	if (c->gone != NULL)
		c->gone(c);
}
