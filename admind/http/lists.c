#include <string.h>

#include "json_grammar.h"
#include "jsonw.h"
#include "web.h"

/*
 * admind's JSON passes on as it is, but only if it is JSON: this process
 * promises the type, whatever admind has become.
 */
static void
pass_on(struct call *c, struct ipc_frame *f)
{
	struct ipc_admin_json answer;
	struct buf b;
	struct err e;

	if (f->type != IPC_ADMIN_JSON || ipc_decode(f, &answer, &e) < 0 ||
	    !utf8_valid(answer.json.p, answer.json.n) ||
	    !json_grammar_valid(answer.json.p, answer.json.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, answer.json.p, answer.json.n);
	reply_json(c, 200, &b);
	buf_free(&b);
}

void
list_get(struct call *c)
{
	struct ipc_admin_query q = {
	    .token = ipc_str(c->token),
	    .what = ipc_str(c->route->subject),
	    .filter_kind =
		ipc_str(c->params.server[0] != '\0' ? c->params.server
						    : c->params.kind),
	    .filter_state = ipc_str(c->params.state),
	    .cursor = ipc_str(c->params.cursor),
	    .limit = c->params.limit,
	};

	ask_admind(c, IPC_ADMIN_QUERY, &q, pass_on);
}

/*
 * Clients know an execution by 32 hex digits (it is no uuid to them); admind
 * asks for uuid text. Other forms pass on, and name nothing.
 */
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
	    .token = ipc_str(c->token),
	    .what = ipc_str(c->route->subject),
	    .limit = 1,
	};

	normalise_id(c);
	q.id = ipc_str(c->id);
	ask_admind(c, IPC_ADMIN_QUERY, &q, pass_on);
}

/*
 * For service managers and people: can this process serve? It says nothing
 * that a stranger on the machine may not know.
 */
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
