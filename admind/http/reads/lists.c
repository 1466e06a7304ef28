#include <string.h>

#include "ask.h"
#include "jsonw.h"
#include "problem.h"
#include "reads.h"
#include "reply.h"
#include "web.h"

static void
page(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

static void
object(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, true);
}

/* Puts the filters as ADMIN_QUERY carries them. kind and state have members of
 * their own in that message. */
void
lists_filters(const struct call *c, struct ipc_admin_query *q, struct buf *b)
{
	/* a list below an object is filtered by the object's {id} */
	if (c->id[0] != '\0' && q->id.n == 0)
		admin_filter_put(b, ADMIN_FILTER_OBJECT, c->id);
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (i != ADMIN_FILTER_KIND && i != ADMIN_FILTER_STATE &&
		    c->params.filter[i][0] != '\0')
			admin_filter_put(
			    b, (enum admin_filter)i, c->params.filter[i]);
	q->filter_kind = ipc_str(c->params.filter[ADMIN_FILTER_KIND]);
	q->filter_state = ipc_str(c->params.filter[ADMIN_FILTER_STATE]);
	q->filters = ipc_bytes(b->p, b->len);
}

static void
ask(struct call *c, struct ipc_admin_query *q,
    void (*then)(struct call *, struct ipc_frame *))
{
	struct buf filters;

	buf_init(&filters, IPC_FRAME_MAX / 2);
	lists_filters(c, q, &filters);
	if (filters.failed)
		problem_send(c, FAILURE_BUSY, "out of memory", NULL);
	else
		ask_admind(c, IPC_ADMIN_QUERY, q, then);
	buf_free(&filters);
}

void
list_get(struct call *c)
{
	struct ipc_admin_query q = {
	    .token = ipc_str(c->token_hash),
	    .what = ipc_str(c->route->subject),
	    .cursor = ipc_str(c->params.cursor),
	    .limit = c->params.limit,
	};

	ask(c, &q, page);
}

/* Turns an execution's id, which clients know as 32 hex digits, into the uuid
 * text that admind needs. Any other id is passed on as it is. */
static void
normalise_id(struct call *c)
{
	struct ipc_id id;

	if (strlen(c->id) == 2 * sizeof(id.b) &&
	    hex_decode(c->id, 2 * sizeof(id.b), id.b) == 0)
		uuid_text(&id, c->id);
}

void
object_get(struct call *c)
{
	struct ipc_admin_query q = {
	    .token = ipc_str(c->token_hash),
	    .what = ipc_str(c->route->subject),
	    .limit = 1,
	};

	normalise_id(c);
	q.id = ipc_str(c->id);
	ask(c, &q, object);
}

/* Tells service managers and people whether this process can serve. It says
 * nothing that a stranger on the machine may not know. */
void
health_get(struct call *c)
{
	bool admind = ipc_client_peer(c->web->admind) != NULL;
	bool vault = ipc_client_peer(c->web->vault) != NULL;
	struct jsonw w;
	struct buf b;

	buf_init(&b, 256);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "status", admind && vault ? "ok" : "degraded");
	jsonw_kv_bool(&w, "admind", admind);
	jsonw_kv_bool(&w, "vault", vault);
	jsonw_obj_end(&w);
	reply_json(c, admind && vault ? 200 : 503, &b);
	buf_free(&b);
}
