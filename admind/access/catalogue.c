/*
 * Streams the lists of MCP to gateways, and tells them about changes.
 *
 * The order is the same on every node and at every time: tools of users by
 * exposed name (bytewise), then the management tools in their table's order;
 * then prompts, resources and templates by exposed name. Last come the
 * resources that were stopped. No client is shown these. Gateways need them so
 * that no template answers for their URIs (docs/decisions/0092).
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "auth.h"
#include "catalogue.h"
#include "endpoint.h"
#include "item.h"
#include "json_kv.h"
#include "log.h"
#include "management_tools.h"
#include "name.h"
#include "tokens.h"

enum {
	PAGE_ROWS = 64, /* at most 64 x 3 x 64 KiB = 12 MiB of schemas */
	QUEUED_MAX = 2 * 1024 * 1024, /* a page waits until less is queued */
	WAIT_MS = 5,
	CATALOGUE_ACK_MS = 200, /* longest delay of an answer by gateways */
};

#define ITEM(SERVERS)                                                     \
	" v.exposed_name, v.uri, v.hash, v.title, v.description,"         \
	" v.mime_type, v.content_bytes, v.ttl_ms, v.meta, v.icons,"       \
	" CASE v.object WHEN 'tool' THEN v.input_schema END AS schema,"   \
	" v.output_schema, v.annotations, v.arguments, s.name AS server," \
	" t.name AS plain_name FROM mcpbox.tools t"                       \
	" JOIN mcpbox.servers s ON s.id = t.server_id" SERVERS            \
	" JOIN mcpbox.tool_versions v ON v.id = t.serving_version"
#define RUNNING " AND s.status = 'running'"
/* A page of tools, in the order of the index of names. So every page costs the
 * same, even the last page of ten thousand tools. The LIMIT clauses make
 * PostgreSQL use that order. */
static const struct db_stmt tools_page = {"catalogue_tools",
    "SELECT c.revision, x.* FROM mcpbox.catalogue c LEFT JOIN"
    " (SELECT i.* FROM mcpbox.tool_names n CROSS JOIN LATERAL (SELECT" ITEM(
	RUNNING) " AND v.exposed_name = n.exposed_name WHERE t.id = n.tool_id"
		 " AND t.enabled AND t.object = $3::text LIMIT 1) i"
		 " WHERE n.exposed_name > $1::text ORDER BY n.exposed_name"
		 " LIMIT $2::int8) x ON true ORDER BY x.exposed_name",
    DB_FAST};
/* A page of prompts, resources or templates. They are rarer than tools, so the
 * query finds them by their kind and sorts them. */
static const struct db_stmt page = {"catalogue_page",
    "SELECT c.revision, x.* FROM mcpbox.catalogue c LEFT JOIN"
    " (SELECT" ITEM(
	RUNNING) " WHERE t.enabled AND v.exposed_name > $1::text"
		 " AND t.object = $3::text AND t.object <> 'tool'"
		 " AND t.serving_version IS NOT NULL"
		 " ORDER BY v.exposed_name LIMIT $2::int8) x ON true"
		 " ORDER BY x.exposed_name",
    DB_FAST};
/* A page of objects that are disabled, or of a stopped server. In both cases
 * the SQL function call_stopped() makes the text that a client gets. */
static const struct db_stmt stopped_page = {"catalogue_stopped",
    "SELECT c.revision, x.* FROM mcpbox.catalogue c LEFT JOIN"
    " (SELECT" ITEM("") " WHERE (NOT t.enabled OR s.status <> 'running')"
			" AND v.exposed_name > $1::text AND t.object = $3::text"
			" AND t.object <> 'tool'"
			" AND t.serving_version IS NOT NULL"
			" ORDER BY v.exposed_name LIMIT $2::int8) x ON true"
			" ORDER BY x.exposed_name",
    DB_FAST};
/* Finds the lists that changed since revision $1. */
static const struct db_stmt read_revision = {"catalogue_revision",
    "SELECT revision, (tools > $1::int8)::int + 2 * (prompts >"
    " $1::int8)::int + 4 * (resources > $1::int8)::int + 8 * (templates >"
    " $1::int8)::int FROM mcpbox.catalogue",
    DB_FAST};

enum {
	LISTS = MCP_LIST_STOPPED + 1,
	ALL_LISTS = (1 << (MCP_LIST_TEMPLATES + 1)) - 1
};

static const char *const objects[LISTS] = {[MCP_LIST_TOOLS] = "tool",
    [MCP_LIST_PROMPTS] = "prompt",
    [MCP_LIST_RESOURCES] = "resource",
    [MCP_LIST_TEMPLATES] = "template",
    [MCP_LIST_STOPPED] = "resource"};

/* ---- streaming ---- */

struct stream {
	struct op *op;
	struct event *wait;
	struct token *token; /* filters the items; NULL: a local client */
	enum mcp_list list;  /* the list being sent */
	uint64_t revision;   /* of the first page */
	uint32_t count;
	char last[EXPOSED_NAME_MAX + 1];
};

static void got_page(void *, const struct pg_result *, const struct err *);

static void
stream_free(struct stream *s)
{
	if (s->wait != NULL)
		event_free(s->wait);
	token_unref(s->token);
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
	/* A slow gateway delays only its own list, and can't fill our
	 * memory. */
	if (ipc_peer_queued(s->op->link->peer) > QUEUED_MAX) {
		evtimer_add(s->wait, &tv);
		return;
	}
	db_params_init(&p);
	db_p_str(&p, s->last);
	db_p_i64(&p, PAGE_ROWS);
	db_p_str(&p, objects[s->list]);
	db_query(s->op->a->db,
	    s->list == MCP_LIST_TOOLS         ? &tools_page
		: s->list == MCP_LIST_STOPPED ? &stopped_page
					      : &page,
	    &p, got_page, s);
}

static void
on_wait(evutil_socket_t fd, short what, void *arg)
{
	next_page(arg);
}

/* Sends one item. Its schemas are the stored bytes, so clients see the bytes
 * that were hashed. 0, or -1 without memory. */
static int
send_item(struct stream *s, const struct pg_result *rows, int i)
{
	struct ipc_catalogue_item m = {.list = (uint8_t)s->list,
	    .name = db_bytes(rows, i, C_NAME),
	    .uri = db_bytes(rows, i, C_URI)};
	struct ipc_bytes hash = db_bytes(rows, i, C_HASH);
	const struct endpoint_rename *rename = NULL;
	struct jsonw w;
	struct buf b;
	int rv = -1;

	if (s->list == MCP_LIST_TOOLS)
		m.name = token_shown(s->token, m.name, &rename);

	if (hash.n == sizeof(m.version.b))
		memcpy(m.version.b, hash.p, hash.n);
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	if (s->list == MCP_LIST_STOPPED)
		buf_puts(&b, "{}");
	else
		item_put(&w, s->list, rows, i, m.name, rename);
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

/* Returns whether the list shows this management tool. */
static bool
manages(const struct stream *s, const char *name)
{
	const char *sentence;

	if (s->token != NULL && s->token->permit.at == PERMIT_AT_SEARCH &&
	    strcmp(name, PERMIT_SEARCH_TOOL) != 0 &&
	    strcmp(name, PERMIT_CALL_TOOL) != 0)
		return false;
	return s->token == NULL ||
	    permit_management(&s->token->permit,
		token_scopes(s->op->a, s->token, s->op->link->listener), name,
		&sentence) == FAILURE_NONE;
}

/* Returns whether the list shows this object. It shows only objects that the
 * client's token permits by name, even if the token has no scope to call them.
 */
static bool
shows(const struct stream *s, const struct pg_result *rows, int i)
{
	const struct endpoint_rename *rename;
	char name[EXPOSED_NAME_MAX + 1];

	if (s->token == NULL)
		return true;
	/* Tools that an endpoint does not list, or that lost their names. */
	if (s->list == MCP_LIST_TOOLS &&
	    (s->token->permit.at == PERMIT_AT_SEARCH ||
		token_shown(s->token, db_bytes(rows, i, C_NAME), &rename).n ==
		    0))
		return false;
	return (s->token->permit.scopes & PERMIT_READ) != 0 &&
	    db_text(rows, i, C_NAME, name, sizeof(name)) &&
	    token_permits(s->token, name, db_bytes(rows, i, C_SERVER),
		db_bytes(rows, i, C_PLAIN_NAME));
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
		if (!manages(s, t[i].name))
			continue;
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
	/* The stream has the revision of its first page, because a later change
	 * is announced anyway. */
	if (s->last[0] == '\0' && s->list == MCP_LIST_TOOLS)
		s->revision = (uint64_t)db_int(rows, 0, 0);
	if (n == 1 && db_null(rows, 0, 1))
		n = 0;
	for (int i = 0; i < n; i++)
		if (shows(s, rows, i) && send_item(s, rows, i) == -1) {
			op_refuse(s->op, FAILURE_BUSY, "out of memory");
			stream_free(s);
			return;
		}
	if (n == PAGE_ROWS &&
	    db_text(rows, n - 1, 1, s->last, sizeof(s->last))) {
		next_page(s);
		return;
	}
	if (s->list == MCP_LIST_TOOLS)
		send_management(s);
	if (s->list != MCP_LIST_STOPPED) {
		s->list++;
		s->last[0] = '\0';
		next_page(s);
		return;
	}
	end.revision = s->revision;
	end.count = s->count;
	op_answer(s->op, IPC_CATALOGUE_END, &end);
	stream_free(s);
}

int
catalogue_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_catalogue_get m;
	struct token *t;
	struct stream *s;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	/* Local clients without a token see everything. Other clients need a
	 * live token of this listener with this very permission set, or be
	 * remembered with it. */
	t = auth_of_set(l->a, l->listener, m.permission_set);
	/* The name has the form of a set. Its people may have been remembered
	 * when the gateway heard it, and pushed out since. The gateway asks
	 * again about its client's credential. Then the set is known, or the
	 * client is refused. The answer is the same for a set that never
	 * was. */
	if (t == NULL && m.permission_set.n == TOKEN_SET_LEN) {
		link_refuse(l, m.request, FAILURE_BUSY,
		    "this permission set is not known now");
		return 0;
	}
	if (t == NULL &&
	    (l->listener != LISTENER_LOCAL ||
		!ipc_streq(m.permission_set, NAME_LOCAL))) {
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
	s->token = token_ref(t);
	next_page(s);
	return 0;
}

/* ---- announcing ---- */

/* One CATALOGUE_CHANGED on its way to all gateways. */
struct announce {
	TAILQ_ENTRY(announce) entry;
	struct admind *a;
	uint64_t revision;
	unsigned lists; /* mask of 1 << enum mcp_list */
	/* outstanding acknowledgements, plus one while still sending */
	unsigned waiting;
	SLIST_HEAD(, waiter) waiters;
};

/* A caller that waits until all gateways dropped their caches. */
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
	/* Any outcome (OK, gone, late) counts as an acknowledgement. A gateway
	 * that is gone has no cache any more, and a late gateway must not delay
	 * the administrator. */
	settle(arg);
}

static void
tell(struct ipc_peer *peer, void *arg)
{
	struct announce *an = arg;
	struct ipc_catalogue_changed m = {
	    .revision = an->revision, .lists = (uint8_t)an->lists};
	uint64_t id;

	if (ipc_request(peer, IPC_CATALOGUE_CHANGED, &m, CATALOGUE_ACK_MS,
		acknowledged, an, &id) == 0)
		an->waiting++;
	else /* The gateway was not told, so its link is cut: then it forgets
	      * its lists. */
		ipc_peer_close(peer);
}

/* Announces `revision`, in which these lists changed, unless `revision` was
 * announced already. w may be NULL. */
static void
announce(struct admind *a, uint64_t revision, unsigned lists, struct waiter *w)
{
	struct announce *an;

	TAILQ_FOREACH(an, &a->announces, entry)
		if (an->revision >= revision)
			break;
	if (an == NULL && revision > a->revision) {
		an = calloc(1, sizeof(*an));
		if (an == NULL) {
			log_event(LOG_LV_ERR, "memory", "catalogue change");
			a->announce_again = true;
			if (w != NULL) {
				w->cb(w->arg);
				free(w);
			}
			return;
		}
		a->revision = revision;
		an->a = a;
		an->revision = revision;
		an->lists = lists;
		an->waiting = 1;
		SLIST_INIT(&an->waiters);
		TAILQ_INSERT_TAIL(&a->announces, an, entry);
		if (w != NULL)
			SLIST_INSERT_HEAD(&an->waiters, w, entry);
		log_event(LOG_LV_INFO, "catalogue", "revision %llu, lists %u",
		    (unsigned long long)revision, lists);
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
	unsigned lists;

	/* The change is committed in any case. If the database is gone, the
	 * NOTIFY is lost, too, and the change is announced after the next
	 * connection to the database. */
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
	/* A lower revision means that the database was restored to an earlier
	 * state. The gateways' lists are newer than that state, so all lists
	 * count as changed. */
	lists = (unsigned)db_int(rows, 0, 1);
	if ((uint64_t)db_int(rows, 0, 0) < a->revision) {
		a->revision = 0;
		lists = ALL_LISTS;
	}
	/* If another change was announced in between, the mask may name lists
	 * that were announced already. That costs a client only one needless
	 * reading of a list. */
	announce(a, (uint64_t)db_int(rows, 0, 0), lists, w);
}

void
catalogue_announce(struct admind *a, void (*cb)(void *), void *arg)
{
	struct waiter *w = calloc(1, sizeof(*w));
	struct db_params p;

	a->announce_again = false;
	if (w == NULL) {
		log_event(LOG_LV_ERR, "memory", "catalogue change");
		a->announce_again = true;
		if (cb != NULL)
			cb(arg);
		return;
	}
	w->a = a;
	w->cb = cb;
	w->arg = arg;
	db_params_init(&p);
	db_p_i64(&p, (int64_t)a->revision);
	db_query(a->db, &read_revision, &p, got_revision, w);
}

void
catalogue_notified(struct admind *a, const char *payload)
{
	unsigned long long r, lists;
	char *end;

	/* The payload is "revision mask". Mask 0: no list changed, but the set
	 * of callable versions did. */
	r = strtoull(payload, &end, 10);
	if (end == payload || *end != ' ' || r > INT64_MAX)
		return;
	lists = strtoull(end + 1, &end, 10);
	if (*end != '\0' || lists == 0)
		return;
	/* Notifications come in order. After a gap in the revisions the mask is
	 * incomplete, so all lists are announced. */
	announce(
	    a, r, r == a->revision + 1 ? (unsigned)lists : ALL_LISTS, NULL);
}
