/* Ends a call: its exchange sends the answer. While the client is away (because
 * it was asked something), the end is kept for the client. */
#include <stdlib.h>
#include <string.h>

#include "call_internal.h"
#include "log.h"

void
call_end_forget(struct call *c)
{
	struct call_kept *k = c->kept;

	if (k == NULL)
		return;
	c->gw->kept_bytes -= k->bytes;
	share_drop(c->share, k->bytes);
	buf_free(&k->body);
	buf_free(&k->meta);
	free(k);
	c->kept = NULL;
}

/* Ends the call; the exchange sends the answer. */
void
call_end_answer(struct call *c, int status, struct buf *b)
{
	struct exchange *ex = c->ex;

	call_set_state(c, CALL_ENDED);
	free(c);
	exchange_answer(ex, status, b);
}

/* Keeps the end of a call whose client is away, until the client is back or its
 * requestState expires. A result beyond the bounds on kept results is lost.
 * If there is no memory, the client is later told that its requestState is not
 * valid. */
static void
keep(struct call *c, const struct refusal *r, enum failure f,
    struct ipc_bytes body, struct ipc_bytes meta)
{
	struct call_kept *k = calloc(1, sizeof(*k));

	c->request = 0;
	if (k == NULL) {
		call_drop(c);
		return;
	}
	buf_init(&k->body, body.n + 1);
	buf_init(&k->meta, meta.n + 1);
	if (r == NULL &&
	    c->gw->kept_bytes + body.n + meta.n <= KEPT_BYTES_MAX &&
	    share_keep(c->share, body.n + meta.n, KEPT_BYTES_MAX)) {
		buf_put(&k->body, body.p, body.n);
		buf_put(&k->meta, meta.p, meta.n);
		k->bytes = body.n + meta.n;
	}
	k->failure = f;
	k->refused =
	    r != NULL || k->body.len == 0 || k->body.failed || k->meta.failed;
	if (r != NULL)
		k->refusal = *r;
	else if (k->refused)
		refusal_set(&k->refusal, FAILURE_LOST, 0,
		    "The call ended while its client was away, and its result "
		    "could not be kept.");
	c->gw->kept_bytes += k->bytes;
	c->kept = k;
	call_set_state(c, CALL_KEPT);
}

void
call_end_refused(struct call *c, const struct refusal *r)
{
	struct exchange *ex = c->ex;

	if (ex == NULL) {
		keep(c, r, r->failure, ipc_bytes(NULL, 0), ipc_bytes(NULL, 0));
		return;
	}
	call_set_state(c, CALL_ENDED);
	free(c);
	ex->call = NULL;
	exchange_refuse(ex, r);
}

void
call_end_failure(
    struct call *c, enum failure f, uint64_t retry_ms, const char *text)
{
	struct refusal r;

	refusal_set(&r, f, retry_ms, text);
	call_end_refused(c, &r);
}

void
call_end_away(struct call *c, bool sandboxd)
{
	struct refusal r;

	refusal_away(&r, c->gw, sandboxd);
	call_end_refused(c, &r);
}

void
call_end_result(struct call *c, enum failure f, struct ipc_bytes body,
    struct ipc_bytes meta)
{
	struct answer_to to;
	enum call_method method;
	struct buf b;
	int rc;

	if (c->ex == NULL) {
		keep(c, NULL, f, body, meta);
		return;
	}
	to = exchange_to(c->ex);
	method = exchange_call_method(c->ex);
	buf_init(&b, ANSWER_MAX);
	if (f != FAILURE_NONE &&
	    (method != CALL_TOOL || f == FAILURE_TOOL_PROTOCOL))
		rc = answer_failed_call(&b, &to, f, body, meta, c->ex->m.uri);
	else if (method == CALL_RESOURCE)
		rc = answer_resource(&b, &to, body, meta, c->ex->m.uri,
		    ipc_bytes(c->ex->mime.p, c->ex->mime.len), c->ex->ttl_ms);
	else
		rc = answer_call(&b, &to, body, meta);
	if (rc == 0) {
		call_end_answer(c, 200, &b);
		return;
	}
	buf_free(&b);
	log_event(LOG_LV_ERR, "bad_result",
	    "the result of %s is not what a result may be", c->tool);
	call_end_failure(c, FAILURE_INTERNAL, 0,
	    "The result is not a JSON object that can be passed on.");
}

void
call_end_kept(struct call *c)
{
	struct call_kept k = *c->kept;
	struct refusal r = k.refusal;

	/* The kept end is taken out of c first, because the functions below
	 * free c and all that c has. */
	c->gw->kept_bytes -= k.bytes;
	share_drop(c->share, k.bytes);
	free(c->kept);
	c->kept = NULL;
	if (k.refused)
		call_end_refused(c, &r);
	else
		call_end_result(c, k.failure, ipc_bytes(k.body.p, k.body.len),
		    ipc_bytes(k.meta.p, k.meta.len));
	buf_free(&k.body);
	buf_free(&k.meta);
}
