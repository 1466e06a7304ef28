/* Shared by admind-http's files. One struct web a process, one struct call a
 * request that waits for another process. */
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
	/* A login form has at most two passwords of 128 characters, a refusal
	 * a reason of 2000; both fit many times, escaped or not. */
	WEB_BODY_MAX = 32 * 1024,
	/* Enough for a page of a list, a shown version, or the vault's slowest
	 * answer, a queue of Argon2 hashes. */
	WEB_TIMEOUT_MS = 15000,
	/* Enough for a run in the sandbox that talks to another machine, with
	 * its queue. */
	WEB_SLOW_MS = 100000
};

struct web {
	struct event_base *base;
	struct ipc_client *admind, *vault;
	struct httpd *httpd;
	bool draining;                 /* the process ends: no new live tail */
	bool ipv6;                     /* we listen on [::1], not 127.0.0.1 */
	struct ipc_hash metrics_token; /* SHA-256 of metrics_token_file's */
	bool have_metrics_token;
};

/* The rights that a route needs. */
enum access {
	ACCESS_PUBLIC, /* anyone */
	/* anyone, also by another site's redirect or link; reads its own
	 * query */
	ACCESS_CALLBACK,
	ACCESS_READ, /* a login: both halves; admind asks the vault about it */
	ACCESS_WRITE /* the same, asked here before the body is read */
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
	void (*handler)(struct call *);
	/* its parameters, space between; name=a|b: with closed values */
	const char *query;
	const char *subject; /* ADMIN_QUERY's `what`, or an action's name */
};

struct call {
	struct web *web;
	struct httpd_req *req; /* NULL once the client went away */
	const struct route *route;
	/* the path's {id} or {name}, two with / between */
	char id[ADMIN_ID_MAX + 1];
	struct params params;
	/* The login's token, both halves joined: for the vault alone. */
	char token[LOGIN_TEXT + 1];
	/* Its SHA-256 in base64url, by which admind asks the vault. */
	char token_hash[LOGIN_HASH_TEXT + 1];
	const char *unreachable; /* the asked process, for its failure */
	void (*then)(struct call *, struct ipc_frame *);
	/* For answers that go on (tail.c): the client went away; frees c. */
	void (*gone)(struct call *);
	void *data;
	/* Data that a handler keeps between two questions; call_free frees
	 * it. */
	void *work;
	void (*work_free)(void *);
	bool takes_refusals; /* `then` hears REFUSED, too */
	bool slow;           /* an answer may take WEB_SLOW_MS */
};

/* routes.c */
/* Takes every complete request. */
void routes_request(struct httpd_req *, void *web);
/* Notes that the client closed early: the answer that arrives later is
 * dropped. */
void routes_gone(struct httpd_req *, void *web);
/* Returns the route for a path, NULL if none. *allow gets the methods that the
 * path has ("GET, HEAD"), *id (ADMIN_ID_MAX + 1 bytes) the texts that match
 * {id} and {name}. For dispatch and tests. */
const struct route *routes_find(
    enum http1_method, const char *path, char *allow, size_t len, char *id);

/* Reads both halves of a login's token into c. -1: one is missing or malformed,
 * and the request is answered. */
int routes_token(struct call *);

/* ask.c: requests to the other two processes */
/* then(call, frame) runs with the final answer unless it is REFUSED, which is
 * answered as a problem. If the client went away it doesn't run. */
void ask_vault(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));
void ask_admind(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));
/* Ends a call, whose request was answered: nothing may use the call
 * afterwards. */
void call_free(struct call *);

/* problem.c: answers. Each ends the call. */
/* Returns REST's status for a failure: 404 where MCP says 200, and so on. */
int problem_status(enum failure);
/* Writes the body (RFC 9457). fix: NULL for the table's. */
void problem_body(struct buf *, int status, enum failure, const char *detail,
    const char *fix, uint64_t retry_after_ms);
void problem_send(
    struct call *, enum failure, const char *detail, const char *fix);
void problem_retry(
    struct call *, enum failure, const char *detail, uint64_t retry_after_ms);
/* Answers 503 for a process that is away, and says that it is to be waited
 * for. admind's failure is the storage's, but the text does not mean
 * PostgreSQL then. */
void problem_away(struct call *, bool vault, const char *detail);
void problem_status_send(struct call *, int status, enum failure,
    const char *detail, const char *fix);
/* Answers with admind's JSON as it is, if it is JSON; tagged: with its SHA-256
 * as ETag. */
void reply_admind(struct call *, struct ipc_frame *, bool tagged);
void reply_json(struct call *, int status, const struct buf *);
void reply_empty(struct call *, int status);
void security_headers(struct httpd_req *);

/* secrets.c */
void secret_put(struct call *);

/* sources.c */
void source_discover_post(struct call *);
void source_import_post(struct call *);
void openapi_post(struct call *);
void source_authorise_post(struct call *);
void oauth_callback_get(struct call *);

/* login.c */
void login_post(struct call *);
void logout_post(struct call *);
void password_post(struct call *);
void me_get(struct call *);

/* admins.c */
void admin_post(struct call *);
void admin_role_put(struct call *);
void admin_password_post(struct call *);
void admin_delete_post(struct call *);
void logins_get(struct call *);
void login_delete(struct call *);
void admin_logins_delete(struct call *);

/* lists.c */
void list_get(struct call *);
/* Puts the request's filters into q and b (initialised; must outlive q). */
void lists_filters(const struct call *, struct ipc_admin_query *, struct buf *);
void object_get(struct call *);
void health_get(struct call *);

/* action.c */
void action_write(struct call *); /* all of admin_action.def */

/* export.c */
void export_get(struct call *);

/* tail.c */
void tail_get(struct call *);
void tail_end_all(void); /* ends all open tails in order */

/* page.c */
void page_get(struct call *);

/* metrics.c */
int metrics_load(struct web *, const char *path, struct err *);
void metrics_get(struct call *);

/* approvals.c */
void approval_get(struct call *);
void approve_post(struct call *);
void approval_diff_get(struct call *); /* diff.c */
void policies_get(struct call *);      /* review.c */
void policies_put(struct call *);
void bulk_post(struct call *); /* bulk.c */
void reject_post(struct call *);

/* transfer.c */
void export_post(struct call *);
void import_post(struct call *);

/* limits.c */
void limits_get(struct call *);
void limits_put(struct call *);
void expose_put(struct call *);

/* tokens.c */
void tokens_post(struct call *);
void token_revoke_post(struct call *);

#endif
