/* Shared by admind-http's files. A process has one struct web, and one struct
 * call for each request that waits for another process. */
#ifndef WEB_H
#define WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin_action.h"
#include "admin_filter.h"
#include "bounds.h"
#include "buf.h"
#include "failure.h"
#include "httpd.h"
#include "ids.h"
#include "ipc.h"
#include "ipc_peer.h"

enum {
	DEVICE_TEXT_MAX = 160, /* the vault's text of a known browser */
	PAGE_DEFAULT = 50,     /* items of a list unless ?limit= says
				* otherwise */
	PAGE_MAX = 200,
	ID_TEXT_MAX = 36, /* a uuid; an execution's id has 32 digits */
	/* A login form has at most two passwords of 128 characters. A refusal
	 * has a reason of 2000. Either fits many times, even if escaped. */
	WEB_BODY_MAX = 32 * 1024,
	/* A draft, a call and an OpenAPI document are the arguments of a call,
	 * which a client may send to /mcp, and some members beside them. */
	WEB_LARGE_MAX = ARGUMENTS_MAX + WEB_BODY_MAX,
	/* People send such bodies one after another. So this many are enough,
	 * and hold 9 MiB at most. */
	WEB_LARGE_AT_ONCE = 8,
	/* Enough for a page of a list, for a version, or for the vault's
	 * slowest answer, which waits for a queue of Argon2 hashes. */
	WEB_TIMEOUT_MS = 15000,
	/* Enough for a run in the sandbox that talks to another machine, with
	 * its queue. */
	WEB_SLOW_MS = 100000
};

struct bundle;

struct web {
	struct event_base *base;
	struct ipc_client *admind, *vault;
	struct httpd *httpd;
	bool draining;                 /* the process ends: no new live tail */
	bool ipv6;                     /* we listen on [::1], not 127.0.0.1 */
	struct ipc_hash metrics_token; /* SHA-256 of the metrics token */
	bool have_metrics_token;
	struct bundle *panel; /* NULL: no panel is installed */
	const char *origins;  /* panel_origins, checked; "": none */
};

/* The rights that a route needs. */
enum access {
	ACCESS_PUBLIC, /* anyone */
	/* anyone, also by another site's redirect or link; the handler reads
	 * the query */
	ACCESS_CALLBACK,
	/* as ACCESS_WRITE, for a login that may still wait for its passkey */
	ACCESS_PENDING,
	/* a login, about which admind asks the vault; or a script's key */
	ACCESS_READ,
	/* likewise; we ask the vault, or admind about a key, before we parse a
	 * body */
	ACCESS_WRITE,
	/* as ACCESS_WRITE, for a login with a fresh proof; no script's key */
	ACCESS_PROVEN
};

/* Parameters after '?', checked and decoded; empty if not given. */
struct params {
	char filter[ADMIN_FILTER_COUNT][ADMIN_FILTER_MAX + 1];
	char cursor[ADMIN_CURSOR_MAX + 1];
	unsigned limit;
};

struct call;

struct route {
	enum http1_method method;
	const char *path; /* segments may be {id} or {name} */
	enum access access;
	enum script_scope scope; /* with which a script's key may come */
	void (*handler)(struct call *);
	/* allowed parameters, separated by spaces; name=a|b: only a or b */
	const char *query;
	const char *subject; /* ADMIN_QUERY's `what`, or an action's name */
};

struct call {
	struct web *web;
	struct httpd_req *req; /* NULL once the client went away */
	const struct route *route;
	/* text of the path's {id} or {name}; / between two such texts */
	char id[ADMIN_ID_MAX + 1];
	struct params params;
	/* The login's token, both halves joined: for the vault alone. */
	char token[LOGIN_TEXT + 1];
	/* The token's SHA-256 in base64url, by which admind asks the vault; or
	 * that of a key after its mark, which admind judges itself. */
	char token_hash[SCRIPT_KEY_DIGEST_TEXT + 1];
	bool by_key;             /* a script's key came, and token is empty */
	bool https;              /* it came to a name of panel_origins */
	const char *unreachable; /* name of the process that was asked */
	void (*then)(struct call *, struct ipc_frame *);
	/* For answers that go on (tail.c, export.c): called when the client
	 * went away; frees the call. */
	void (*gone)(struct call *);
	void *data;
	/* Data that a handler keeps between two questions; call_free frees
	 * it. */
	void *work;
	void (*work_free)(void *);
	bool takes_refusals; /* `then` gets REFUSED, too */
	bool slow;           /* an answer may take WEB_SLOW_MS */
	bool large;          /* the body is not here yet: routes_large */
	/* Cache-Control of a file of the panel, set when it is sent; NULL: the
	 * answer is data. */
	const char *cache;
};

/* call.c. Frees a call whose request was answered or whose client went away. */
void call_free(struct call *);

#endif
