#include <stdio.h>
#include <string.h>

#include "jsonw.h"
#include "problem.h"
#include "web.h"

enum {
	/* A sentence has far less. All errors of an access document together
	 * have up to 8 KiB, and more once they are escaped. */
	PROBLEM_MAX = 64 * 1024,
	AWAY_MS = 1000 /* a restart takes about as long */
};

/* Returns the HTTP status. The failure table's statuses are those of /mcp,
 * where most failures travel in a 200. In REST the status tells the failure. */
int
problem_status(enum failure f)
{
	switch (f) {
	case FAILURE_NOT_FOUND:
	case FAILURE_UNKNOWN_TOOL:
	case FAILURE_UNKNOWN_PROMPT:
	case FAILURE_UNKNOWN_RESOURCE:
	case FAILURE_UNKNOWN_TASK:
		return 404;
	case FAILURE_CONFLICT:
	case FAILURE_MISSING_GRANT: /* a module that is not recorded yet */
	/* A person decides about the tool, or has decided. The request can
	 * succeed once the tool's state is another (RFC 9110 section
	 * 15.5.10). The caller has the right to call, so 403 is wrong. */
	case FAILURE_NOT_APPROVED:
	case FAILURE_REVOKED:
	case FAILURE_STOPPED:
	case FAILURE_NOT_CONFIRMED:
	case FAILURE_CONFIRMATION_PENDING:
	case FAILURE_UPSTREAM_CHANGED:
	case FAILURE_KILLED: /* such as by a stop, or with its login */
		return 409;
	case FAILURE_INVALID_ARGUMENTS:
	case FAILURE_INVALID_PARAMS:
	case FAILURE_LIMIT:
	case FAILURE_BAD_CODE:
	case FAILURE_BAD_STATE:
		return 400;
	default:
		break;
	}
	if (failure_info(f)->http_status == 200)
		return 500;
	return failure_info(f)->http_status;
}

void
problem_body(struct buf *b, int status, enum failure f, const char *detail,
    const char *fix, uint64_t retry_after_ms)
{
	const struct failure_info *info = failure_info(f);
	struct jsonw w;

	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "about:blank");
	jsonw_kv_str(&w, "title", http1_reason(status));
	jsonw_kv_int(&w, "status", status);
	jsonw_kv_str(&w, "detail", detail);
	jsonw_kv_str(&w, "failure_mode", info->name);
	jsonw_kv_str(&w, "fix",
	    fix != NULL ? fix : failure_fix(f, detail, strlen(detail)));
	if (retry_after_ms > 0) {
		jsonw_name(&w, "retry_after_ms");
		jsonw_u64(&w, retry_after_ms);
	}
	jsonw_obj_end(&w);
}

static void
send_problem(struct call *c, int status, enum failure f, const char *detail,
    const char *fix, uint64_t retry_after_ms)
{
	struct buf b;
	char text[32];

	buf_init(&b, PROBLEM_MAX);
	problem_body(&b, status, f, detail, fix, retry_after_ms);
	if (status == 401)
		httpd_header(c->req, "WWW-Authenticate",
		    c->by_key ? "Bearer realm=\"mcpbox\""
			      : "Session realm=\"mcpbox\"");
	if (retry_after_ms > 0) {
		/* Whole seconds, rounded up (RFC 9110 section 10.2.3). */
		snprintf(text, sizeof(text), "%llu",
		    (unsigned long long)(retry_after_ms + 999) / 1000);
		httpd_header(c->req, "Retry-After", text);
	}
	/* If memory for a body ran out, the status alone is the answer. */
	if (b.failed)
		httpd_reply(c->req, status, "", NULL, 0);
	else
		httpd_reply(
		    c->req, status, "application/problem+json", b.p, b.len);
	buf_free(&b);
	call_free(c);
}

void
problem_send(
    struct call *c, enum failure f, const char *detail, const char *fix)
{
	if (f == FAILURE_UNAUTHENTICATED && fix == NULL && c->by_key)
		fix = "Send a live key as Authorization: Bearer mbk_...; "
		      "mcpboxctl keys lists keys and makes them.";
	if (f == FAILURE_FORBIDDEN && fix == NULL && c->by_key)
		fix = "Use a key with this scope if the address takes one (the "
		      "table is in docs/ADMINISTRATION.md), else a login.";
	if (f == FAILURE_UNAUTHENTICATED && fix == NULL)
		fix = "Sign in again with POST /api/login; send its cookie, "
		      "and its csrf_token as X-CSRF-Token.";
	send_problem(c, problem_status(f), f, detail, fix, 0);
}

void
problem_retry(
    struct call *c, enum failure f, const char *detail, uint64_t retry_after_ms)
{
	send_problem(c, problem_status(f), f, detail, NULL, retry_after_ms);
}

/* Answers for a process that is away. No failure mode says that admind is away:
 * clients of /mcp get the failure of the storage instead. The failure table's
 * fix is about PostgreSQL, which may be well, so another fix is sent. */
void
problem_away(struct call *c, bool vault, const char *detail)
{
	enum failure f =
	    vault ? FAILURE_VAULT_UNAVAILABLE : FAILURE_STORAGE_UNAVAILABLE;

	send_problem(c, problem_status(f), f, detail,
	    vault ? NULL : "Call again in a moment; admind is restarting.",
	    AWAY_MS);
}

void
problem_status_send(struct call *c, int status, enum failure f,
    const char *detail, const char *fix)
{
	send_problem(c, status, f, detail, fix, 0);
}
