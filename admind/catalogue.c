/*
 * What tools/list shows, streamed to gateways, and telling them when it
 * changed.
 *
 * The order is the same on every node and at every time: tools of users by
 * exposed name (bytewise), then the management tools in their table's order.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "admind.h"
#include "log.h"
#include "management_tools.h"

enum {
	PAGE_ROWS = 64, /* at most 64 x 3 x 64 KiB = 12 MiB of schemas */
	QUEUED_MAX = 2 * 1024 * 1024, /* a page goes out only below this */
	WAIT_MS = 5,
	CATALOGUE_ACK_MS = 200, /* an answer waits for gateways no longer */
};

static const struct db_stmt page = {"catalogue_page",
    "SELECT c.revision, x.* FROM mcpbox.catalogue c LEFT JOIN"
    " (SELECT v.exposed_name, v.title, v.description, v.icons, v.meta,"
    " v.input_schema, v.output_schema, v.annotations"
    " FROM mcpbox.tools t"
    " JOIN mcpbox.servers s ON s.id = t.server_id AND s.status = 'running'"
    " JOIN mcpbox.tool_versions v ON v.id = t.serving_version"
    " WHERE t.enabled AND v.exposed_name > $1::text"
    " ORDER BY v.exposed_name LIMIT $2::int8) x ON true"
    " ORDER BY x.exposed_name",
    DB_FAST};
static const struct db_stmt read_revision = {
    "catalogue_revision", "SELECT revision FROM mcpbox.catalogue", DB_FAST};

/* ---- streaming ---- */

struct stream {
	struct op *op;
	struct event *wait;
	uint64_t revision;
	uint32_t count;
	char last[EXPOSED_NAME_MAX + 1];
};

static void got_page(void *, const struct pg_result *, const struct err *);

static void
stream_free(struct stream *s)
{
	if (s->wait != NULL)
		event_free(s->wait);
	free(s);
}

static void
next_page(struct stream *s)
{
	struct timeval tv = {0, WAIT_MS * 1000};
	struct db_params p;

	if (s->op->link->peer == NULL) {
		op_free(s->op);
		stream_free(s);
		return;
	}
	/* A slow gateway slows its own list, not our memory. */
	if (ipc_peer_queued(s->op->link->peer) > QUEUED_MAX) {
		evtimer_add(s->wait, &tv);
		return;
	}
	db_params_init(&p);
	db_p_str(&p, s->last);
	db_p_i64(&p, PAGE_ROWS);
	db_query(s->op->a->db, &page, &p, got_page, s);
}

static void
on_wait(evutil_socket_t fd, short what, void *arg)
{
	next_page(arg);
}

/* The schemas are the stored bytes: what was hashed is what is shown. */
static int
send_tool(struct stream *s, const struct pg_result *rows, int i)
{
	static const char *const raw[] = {
	    "icons", "_meta", "inputSchema", "outputSchema", "annotations"};
	struct ipc_catalogue_item m = {0};
	struct jsonw w;
	struct buf b;
	int rv = -1;

	buf_init(&b, IPC_BLOB_MAX);
	m.name = db_bytes(rows, i, 1);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	json_kv_bytes(&w, "name", m.name);
	if (!db_null(rows, i, 2))
		json_kv_bytes(&w, "title", db_bytes(rows, i, 2));
	if (!db_null(rows, i, 3))
		json_kv_bytes(&w, "description", db_bytes(rows, i, 3));
	for (int c = 0; c < 5; c++) {
		struct ipc_bytes v = db_bytes(rows, i, 4 + c);

		if (v.n > 0)
			jsonw_kv_raw(&w, raw[c], v.p, v.n);
	}
	jsonw_obj_end(&w);
	if (!b.failed) {
		m.json = ipc_bytes(b.p, b.len);
		link_answer(
		    s->op->link, s->op->request, IPC_CATALOGUE_ITEM, &m);
		s->count++;
		rv = 0;
	}
	buf_free(&b);
	return rv;
}

static void
send_management(struct stream *s)
{
	struct ipc_catalogue_item m = {0};
	const struct management_tool *t;
	struct buf b;
	size_t n;

	t = management_tools(&n);
	for (size_t i = 0; i < n; i++) {
		buf_init(&b, IPC_FRAME_MAX);
		management_tool_json(&t[i], &b);
		m.name = ipc_str(t[i].name);
		m.json = ipc_bytes(b.p, b.len);
		if (!b.failed) {
			link_answer(s->op->link, s->op->request,
			    IPC_CATALOGUE_ITEM, &m);
			s->count++;
		}
		buf_free(&b);
	}
}

static void
got_page(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct stream *s = arg;
	struct ipc_catalogue_end end = {0};
	int n;

	if (err != NULL) {
		op_refuse_err(s->op, err);
		stream_free(s);
		return;
	}
	n = db_nrows(rows);
	/* The first page's revision: a later change is announced anyway. */
	if (s->last[0] == '\0')
		s->revision = (uint64_t)db_int(rows, 0, 0);
	if (n == 1 && db_null(rows, 0, 1))
		n = 0;
	for (int i = 0; i < n; i++)
		if (send_tool(s, rows, i) == -1) {
			op_refuse(s->op, FAILURE_BUSY, "out of memory");
			stream_free(s);
			return;
		}
	if (n == PAGE_ROWS &&
	    db_text(rows, n - 1, 1, s->last, sizeof(s->last))) {
		next_page(s);
		return;
	}
	send_management(s);
	end.revision = s->revision;
	end.count = s->count;
	op_answer(s->op, IPC_CATALOGUE_END, &end);
	stream_free(s);
}

int
catalogue_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_catalogue_get m;
	struct stream *s;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	/* One set until per-principal permissions exist; the tunnel has no
	 * principal yet, so no set either. */
	if (l->listener != LISTENER_LOCAL ||
	    !ipc_streq(m.permission_set, "local")) {
		link_refuse(l, m.request, FAILURE_FORBIDDEN,
		    "no such permission set on this listener");
		return 0;
	}
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	s = calloc(1, sizeof(*s));
	if (s != NULL)
		s->wait = evtimer_new(l->a->proc.base, on_wait, s);
	if (s == NULL || s->wait == NULL) {
		free(s);
		op_refuse(op, FAILURE_BUSY, "out of memory");
		return 0;
	}
	s->op = op;
	next_page(s);
	return 0;
}

/* ---- announcing ---- */

/* One CATALOGUE_CHANGED on its way to all gateways. */
struct announce {
	TAILQ_ENTRY(announce) entry;
	struct admind *a;
	uint64_t revision;
	unsigned waiting; /* gateways, and one while it is being sent */
	SLIST_HEAD(, waiter) waiters;
};

/* Who wants to know when all gateways dropped their caches. */
struct waiter {
	SLIST_ENTRY(waiter) entry;
	struct admind *a;
	void (*cb)(void *);
	void *arg;
};

static void
settle(struct announce *an)
{
	struct waiter *w;

	if (--an->waiting > 0)
		return;
	TAILQ_REMOVE(&an->a->announces, an, entry);
	while ((w = SLIST_FIRST(&an->waiters)) != NULL) {
		SLIST_REMOVE_HEAD(&an->waiters, entry);
		w->cb(w->arg);
		free(w);
	}
	free(an);
}

static void
acknowledged(void *arg, struct ipc_frame *f, enum failure gone)
{
	/* OK, gone or late: a gateway that is gone has no cache any more, one
	 * that is late must not hold up the administrator. */
	settle(arg);
}

static void
tell(struct ipc_peer *peer, void *arg)
{
	struct announce *an = arg;
	struct ipc_catalogue_changed m = {.revision = an->revision};
	uint64_t id;

	if (ipc_request(peer, IPC_CATALOGUE_CHANGED, &m, CATALOGUE_ACK_MS,
		acknowledged, an, &id) == 0)
		an->waiting++;
}

/* Announces `revision` unless that was done; w may be NULL. */
static void
announce(struct admind *a, uint64_t revision, struct waiter *w)
{
	struct announce *an;

	TAILQ_FOREACH(an, &a->announces, entry)
	if (an->revision >= revision)
		break;
	if (an == NULL && revision > a->revision) {
		an = calloc(1, sizeof(*an));
		if (an == NULL) {
			log_event(LOG_LV_ERR, "memory", "catalogue change");
			if (w != NULL) {
				w->cb(w->arg);
				free(w);
			}
			return;
		}
		a->revision = revision;
		an->a = a;
		an->revision = revision;
		an->waiting = 1;
		SLIST_INIT(&an->waiters);
		TAILQ_INSERT_TAIL(&a->announces, an, entry);
		if (w != NULL)
			SLIST_INSERT_HEAD(&an->waiters, w, entry);
		log_event(LOG_LV_INFO, "catalogue", "revision %llu",
		    (unsigned long long)revision);
		ipc_server_each(a->gw_local, tell, an);
		ipc_server_each(a->gw_tunnel, tell, an);
		settle(an);
	} else if (an != NULL) {
		if (w != NULL)
			SLIST_INSERT_HEAD(&an->waiters, w, entry);
	} else if (w != NULL) {
		w->cb(w->arg);
		free(w);
	}
}

static void
got_revision(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct waiter *w = arg;
	struct admind *a = w->a;

	/* The change is committed whatever happens here: without the database
	 * the NOTIFY is lost too, and the next connection announces. */
	if (err != NULL) {
		if (w->cb != NULL)
			w->cb(w->arg);
		free(w);
		return;
	}
	if (w->cb == NULL) {
		free(w);
		w = NULL;
	}
	/* A database restored to an earlier state: what gateways hold is of a
	 * future that did not happen. */
	if ((uint64_t)db_int(rows, 0, 0) < a->revision)
		a->revision = 0;
	announce(a, (uint64_t)db_int(rows, 0, 0), w);
}

void
catalogue_announce(struct admind *a, void (*cb)(void *), void *arg)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		if (cb != NULL)
			cb(arg);
		return;
	}
	w->a = a;
	w->cb = cb;
	w->arg = arg;
	db_query(a->db, &read_revision, NULL, got_revision, w);
}

void
catalogue_notified(struct admind *a, const char *payload)
{
	char *end;
	unsigned long long r = strtoull(payload, &end, 10);

	if (*payload != '\0' && *end == '\0')
		announce(a, r, NULL);
}
