/*
 * GET /api/executions/export, /api/audit/export: sends all items of the route
 * that the filters let through, one JSON object per line.
 *
 * The items are read page by page. The next page is asked for when the client
 * has taken most of the present page. So neither this process nor admind ever
 * holds more than a page of an export. The login is checked for each page. If a
 * page can't be read, the last line says so ("event": "export_failed"), since
 * the status has been sent.
 */
#include <stdlib.h>
#include <string.h>

#include "httpd_stream.h"
#include "json.h"
#include "json_grammar.h"
#include "jsonw.h"
#include "problem.h"
#include "reads.h"
#include "web.h"

enum { EXPORT_PAGE = 100 };

struct export
{
	struct call *call;
	char cursor[ADMIN_CURSOR_MAX + 1];
	uint64_t request;
	struct ipc_peer *asked; /* admind while a page is awaited, or NULL */
	bool begun;
};

static void ask_page(struct export *);

static void
export_free(struct export *x)
{
	call_free(x->call);
	free(x);
}

static void
gone(struct call *c)
{
	struct export *x = c->data;

	if (x->asked != NULL)
		ipc_forget(x->asked, x->request);
	export_free(x);
}

static void
end(struct export *x)
{
	httpd_stream_end(x->call->req);
	export_free(x);
}

static void
fail(struct export *x, enum failure f, const char *text)
{
	struct jsonw w;
	struct buf b;

	if (!x->begun) {
		problem_retry(x->call, f, text, 0);
		free(x); /* the answer freed the call */
		return;
	}
	buf_init(&b, 4096);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "event", "export_failed");
	jsonw_kv_str(&w, "failure_mode", failure_info(f)->name);
	jsonw_kv_str(&w, "error", text);
	jsonw_obj_end(&w);
	buf_putc(&b, '\n');
	if (!b.failed)
		(void)httpd_stream_write(x->call->req, b.p, b.len);
	buf_free(&b);
	end(x);
}

/* Returns the end of the object that begins at p, in text that is valid
 * JSON. */
static const uint8_t *
object_end(const uint8_t *p, const uint8_t *stop)
{
	int depth = 0;

	for (; p < stop; p++) {
		if (*p == '"') {
			for (p++; p < stop && *p != '"'; p++)
				if (*p == '\\')
					p++;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if ((*p == '}' || *p == ']') && --depth == 0) {
			return p + 1;
		}
	}
	return stop;
}

/* Writes the array's items as lines, in one write. */
static void
put_items(struct export *x, const uint8_t *p, size_t n)
{
	const uint8_t *stop = p + n, *e;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX + EXPORT_PAGE);
	for (p++; p < stop; p = e) {
		while (p < stop && *p != '{')
			p++;
		if (p == stop)
			break;
		e = object_end(p, stop);
		buf_put(&b, p, (size_t)(e - p));
		buf_putc(&b, '\n');
	}
	if (b.len > 0 && !b.failed)
		(void)httpd_stream_write(x->call->req, b.p, b.len);
	buf_free(&b);
}

static void
drained(struct httpd_req *req, void *arg)
{
	httpd_on_drained(req, NULL, NULL);
	ask_page(arg);
}

/* Takes the cursor of the next page; false: this was the last. */
static bool
next_cursor(struct export *x, const struct ipc_bytes *json)
{
	static const char *const path[] = {"next_cursor", NULL};
	const uint8_t *p;
	size_t n;

	if (json_slice(json->p, json->n, path, &p, &n) != 1 || n < 3 ||
	    p[0] != '"' || n - 2 > ADMIN_CURSOR_MAX)
		return false;
	memcpy(x->cursor, p + 1, n - 2);
	x->cursor[n - 2] = '\0';
	return true;
}

static void
got_page(void *arg, struct ipc_frame *f, enum failure why)
{
	static const char *const items[] = {"items", NULL};
	struct export *x = arg;
	struct ipc_admin_json m;
	struct ipc_refused r;
	const uint8_t *p;
	char *message;
	size_t n;

	x->asked = NULL;
	if (f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &r, NULL) == 0 &&
	    (message = ipc_strdup(r.message)) != NULL) {
		fail(x, (enum failure)r.failure, message);
		free(message);
		return;
	}
	if (f == NULL || f->type != IPC_ADMIN_JSON ||
	    ipc_decode(f, &m, NULL) == -1 || !utf8_valid(m.json.p, m.json.n) ||
	    !json_grammar_valid(m.json.p, m.json.n) ||
	    json_slice(m.json.p, m.json.n, items, &p, &n) != 1 || p[0] != '[') {
		fail(x, FAILURE_STORAGE_UNAVAILABLE, "admind is not reachable");
		return;
	}
	if (!x->begun) {
		x->begun = true;
		httpd_stream_begin(x->call->req, 200, "application/x-ndjson");
	}
	if (httpd_request(x->call->req)->method == HTTP1_HEAD) {
		end(x);
		return;
	}
	put_items(x, p, n);
	if (!next_cursor(x, &m.json))
		end(x);
	else if (httpd_stream_slow(x->call->req))
		httpd_on_drained(x->call->req, drained, x);
	else
		ask_page(x);
}

static void
ask_page(struct export *x)
{
	struct call *c = x->call;
	struct ipc_peer *peer = ipc_client_peer(c->web->admind);
	struct ipc_admin_query q = {
	    .token = ipc_str(c->token_hash),
	    .what = ipc_str(c->route->subject),
	    .cursor = ipc_str(x->cursor),
	    .limit = EXPORT_PAGE,
	};
	struct buf filters;

	buf_init(&filters, IPC_FRAME_MAX / 2);
	lists_filters(c, &q, &filters);
	if (filters.failed) {
		fail(x, FAILURE_BUSY, "out of memory");
	} else if (peer == NULL ||
	    ipc_request(peer, IPC_ADMIN_QUERY, &q, WEB_TIMEOUT_MS, got_page, x,
		&x->request) < 0) {
		fail(x, FAILURE_STORAGE_UNAVAILABLE, "admind is not reachable");
	} else {
		x->asked = peer;
	}
	buf_free(&filters);
}

void
export_get(struct call *c)
{
	struct export *x = calloc(1, sizeof(*x));

	if (x == NULL) {
		problem_retry(c, FAILURE_BUSY, "out of memory", 1000);
		return;
	}
	x->call = c;
	c->data = x;
	c->gone = gone;
	ask_page(x);
}
