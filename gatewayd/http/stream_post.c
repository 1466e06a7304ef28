/*
 * Answers on event streams of legacy sessions: their events have ids and are
 * kept, so a client that was cut off, or told to come back, gets the later
 * events by a GET with Last-Event-ID (MCP 2025-11-25, Resumability and
 * Redelivery).
 *
 * The exchange lives on without a connection, as it does for any legacy client
 * that leaves; its messages go to the store. A GET then gives it a connection
 * again. An id is looked up only in the session of the request that names it.
 * So the client is of the same principal and listener.
 */
#include <string.h>

#include "ids.h"
#include "json.h"
#include "log.h"
#include "stream_internal.h"

void
stream_post_begin(struct exchange *ex)
{
	struct stream_session *r;
	char id[STREAM_STORE_ID_MAX];

	if (ex->post != NULL || ex->m.modern || !ex->has_session)
		return;
	r = stream_store_take(
	    ex->gw->streams->store, &ex->session.id, &ex->session.principal);
	if (r == NULL || (ex->post = stream_store_open(r, ex)) == NULL)
		return; /* the answer can't be resumed then */
	/* Clients of older revisions take an event without data for a broken
	 * message. */
	if (ex->session.rev >= MCP_REV_2025_11_25) {
		stream_store_id(r, ex->post->number, 0, id);
		httpd_sse_prime(ex->req, id, 0);
	}
}

bool
stream_post_event(struct exchange *ex, const void *json, size_t n, bool last)
{
	static const char large[] =
	    ",\"error\":{\"code\":-32603,\"message\":\"The result was too "
	    "large to be kept for a client that comes back.\",\"data\":{"
	    "\"failure_mode\":\"too_large\"}}}";
	char id[STREAM_STORE_ID_MAX];
	const char *shown = NULL;
	struct buf b;

	if (ex->post != NULL) {
		shown = id;
		if (last && n > STREAM_STORE_BYTES_MAX / 2) {
			buf_init(&b, MCP_ID_MAX + sizeof(large) + 64);
			buf_puts(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
			buf_put(&b, ex->m.id.p, ex->m.id.n);
			buf_puts(&b, large);
			stream_store_add(ex->post, b.p, b.failed ? 0 : b.len,
			    last, now_boot_ms(), id);
			buf_free(&b);
		} else {
			stream_store_add(
			    ex->post, json, n, last, now_boot_ms(), id);
		}
	}
	return ex->req == NULL || httpd_sse_event(ex->req, shown, json, n);
}

bool
stream_post_kept(const struct exchange *ex)
{
	return ex->post != NULL;
}

void
stream_post_end(struct exchange *ex)
{
	if (ex->post != NULL)
		stream_store_close(ex->post);
	ex->post = NULL;
}

/* Reads the member `retry` of a tool's hint (mcpbox.pause_stream):
 * milliseconds, STREAM_RETRY_MAX_MS at most; STREAM_RETRY_MS if absent. */
static unsigned
retry_of(struct ipc_bytes json)
{
	static const char *const path[] = {"retry", NULL};
	const uint8_t *p;
	unsigned ms = 0;
	size_t i, n;

	if (json_scan(json.p, json.n, NULL) < 0 ||
	    json_slice(json.p, json.n, path, &p, &n) != 1)
		return STREAM_RETRY_MS;
	for (i = 0;
	    i < n && p[i] >= '0' && p[i] <= '9' && ms < STREAM_RETRY_MAX_MS;
	    i++)
		ms = ms * 10 + (unsigned)(p[i] - '0');
	return ms < STREAM_RETRY_MAX_MS ? ms : STREAM_RETRY_MAX_MS;
}

/* Only clients of 2025-11-25 know that a stream may end before its answer. */
void
stream_post_pause(struct exchange *ex, struct ipc_bytes json)
{
	struct httpd_req *req;

	if (ex->m.modern || !ex->has_session || ex->members.array ||
	    !ex->accepts_sse || ex->req == NULL ||
	    ex->session.rev < MCP_REV_2025_11_25)
		return;
	if (!ex->streaming)
		exchange_stream(ex);
	if (ex->post == NULL || ex->req == NULL)
		return;
	req = ex->req;
	httpd_sse_retry(req, retry_of(json));
	httpd_set_data(req, NULL);
	ex->req = NULL;
	httpd_stream_end(req);
}

void
stream_post_resume(struct exchange *ex, struct stream_post *p, uint32_t number)
{
	struct exchange *owner = p->owner;
	const struct stream_event *e;
	char id[STREAM_STORE_ID_MAX];
	struct httpd_req *req, *old;
	bool ok = true;

	req = exchange_release(ex);
	exchange_stream_head(req);
	for (; (e = stream_store_next(p, number)) != NULL; number = e->number) {
		stream_store_id(p->session, p->number, e->number, id);
		ok = httpd_sse_event(req, id, e->data, e->n);
	}
	if (owner == NULL) {
		httpd_stream_end(req);
		return;
	}
	/* By this GET the client says that the old connection is lost, even if
	 * that connection looks open from here. */
	old = owner->req;
	if (old != NULL) {
		httpd_set_data(old, NULL);
		httpd_stream_end(old);
	}
	exchange_attach(owner, req, !ok);
}
