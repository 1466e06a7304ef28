/*
 * `mcpboxctl doctor` and the status object: the state of this process, the
 * database, and every connected process, as this process sees it.
 */
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "ids.h"
#include "json_kv.h"
#include "layer.h"
#include "migrate.h"

static void
row(struct jsonw *w, const char *process, const char *layer, size_t n,
    const char *state, size_t nstate, const char *detail, const char *fix)
{
	jsonw_obj(w);
	jsonw_kv_str(w, "process", process);
	jsonw_kv_strn(w, "layer", layer, n);
	jsonw_kv_strn(w, "state", state, nstate);
	jsonw_kv_str(w, "detail", detail);
	jsonw_kv_str(w, "fix", fix);
	jsonw_obj_end(w);
}

static const char *
fix_of(const char *layer, size_t nlayer, const char *state, size_t n)
{
	if (n == 8 && memcmp(state, "enforced", 8) == 0)
		return "";
	return layer_fix(layer, nlayer);
}

/* Writes rows for "name=state" lines, as a HELLO carries them. */
static void
rows_of(struct jsonw *w, const char *process, const char *layers)
{
	const char *eq, *end;

	for (; layers != NULL && *layers != '\0';
	    layers = *end != '\0' ? end + 1 : end) {
		end = strchrnul(layers, '\n');
		eq = memchr(layers, '=', (size_t)(end - layers));
		if (eq == NULL)
			continue;
		row(w, process, layers, (size_t)(eq - layers), eq + 1,
		    (size_t)(end - eq - 1), "",
		    fix_of(layers, (size_t)(eq - layers), eq + 1,
			(size_t)(end - eq - 1)));
	}
}

static void
simple(struct jsonw *w, const char *process, const char *layer, bool good,
    const char *detail, const char *fix)
{
	const char *state = good ? "enforced" : "missing";

	row(w, process, layer, strlen(layer), state, strlen(state),
	    good ? "" : detail, good ? "" : fix);
}

static void
client_rows(struct jsonw *w, struct ipc_client *c, const char *process)
{
	struct ipc_peer *peer = ipc_client_peer(c);

	simple(w, process, "reachable", peer != NULL,
	    "admind has no connection to it",
	    "Start the process; its own log says why it ended.");
	if (peer != NULL)
		rows_of(w, process, ipc_peer_layers(peer));
}

struct gateway_rows {
	struct jsonw *w;
	const char *process;
	unsigned n;
};

static void
gateway_row(struct ipc_peer *peer, void *arg)
{
	struct gateway_rows *g = arg;

	if (g->n++ == 0 && g->w != NULL)
		rows_of(g->w, g->process, ipc_peer_layers(peer));
}

static unsigned
server_rows(struct jsonw *w, struct ipc_server *s, const char *process)
{
	struct gateway_rows g = {w, process, 0};

	ipc_server_each(s, gateway_row, &g);
	return g.n;
}

/* Writes an array of rows: every process, every layer. */
static void
report(struct admind *a, struct jsonw *w)
{
	jsonw_arr(w);
	rows_of(w, "admind", a->layers);
	simple(w, "admind", "database", db_is_up(a->db),
	    "PostgreSQL is not reachable",
	    "Start PostgreSQL; check admind's setting `database`, "
	    "mcpbox.conf(5).");
	simple(w, "admind", "sandbox_epoch", a->sandbox_ready,
	    "no sandbox has named its executions yet",
	    "Start sandboxd; its log says why it does not connect.");
	client_rows(w, a->check, "admind-check");
	client_rows(w, a->vault, "admind-vault");
	client_rows(w, a->sandboxd, "sandboxd");
	simple(w, "gatewayd-local", "reachable",
	    server_rows(w, a->gw_local, "gatewayd-local") > 0,
	    "no gateway of the local listener is connected",
	    "Start mcpbox-gatewayd for the local listener.");
	(void)server_rows(w, a->gw_tunnel, "gatewayd-tunnel");
	(void)server_rows(w, a->http, "admind-http");
	jsonw_arr_end(w);
}

int
doctor_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_doctor_report r = {0};
	struct ipc_doctor m;
	struct jsonw w;
	struct buf b;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	report(l->a, &w);
	r.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		link_refuse(l, m.request, FAILURE_BUSY, "out of memory");
	else
		link_answer(l, m.request, IPC_DOCTOR_REPORT, &r);
	buf_free(&b);
	return 0;
}

/* Writes members of the health object: whether the suite is well, and the state
 * of each layer. The suite is well if everything that calls need is there. A
 * layer that the kernel lacks does not change that; doctor reports it. */
void
doctor_json(struct admind *a, struct jsonw *w)
{
	bool well = db_is_up(a->db) && a->sandbox_ready &&
	    ipc_client_peer(a->check) != NULL &&
	    ipc_client_peer(a->vault) != NULL &&
	    server_rows(NULL, a->gw_local, "") > 0;

	jsonw_kv_str(w, "status", well ? "ok" : "degraded");
	jsonw_kv_str(w, "version", MCPBOX_VERSION);
	jsonw_kv_str(w, "node", a->node);
	json_kv_time(w, "started_at", a->started_us);
	jsonw_name(w, "layers");
	report(a, w);
}

/* Writes the members of the status object that need no database. */
void
doctor_status_json(struct admind *a, struct jsonw *w)
{
	jsonw_kv_str(w, "version", MCPBOX_VERSION);
	jsonw_kv_str(w, "node", a->node);
	jsonw_name(w, "mcp_url");
	if (strcmp(a->mcp_url, "-") != 0)
		jsonw_str(w, a->mcp_url);
	else
		jsonw_null(w);
	jsonw_kv_bool(w, "database", db_is_up(a->db));
	jsonw_kv_bool(w, "sandbox", a->sandbox_ready);
	jsonw_kv_bool(w, "vault", ipc_client_peer(a->vault) != NULL);
	jsonw_kv_bool(w, "check", ipc_client_peer(a->check) != NULL);
	jsonw_kv_int(w, "gateways_local", server_rows(NULL, a->gw_local, ""));
	jsonw_kv_int(w, "gateways_tunnel", server_rows(NULL, a->gw_tunnel, ""));
	jsonw_kv_int(w, "calls_in_work", a->njobs);
	jsonw_kv_int(w, "records_waiting", a->ncloses);
	jsonw_kv_int(w, "needed_schema", migrations_count);
	json_kv_id(w, "epoch", &a->epoch);
	jsonw_name(w, "sandbox_epoch");
	if (a->sandbox_ready) {
		char text[UUID_TEXT_LEN + 1];

		uuid_text(&a->sandbox_epoch, text);
		jsonw_str(w, text);
	} else {
		jsonw_null(w);
	}
}
