/*
 * Tells the sandbox the network grants of a server while the server's calls
 * run. The message is REGRANT, which the vault seals as it seals contexts.
 * REGRANT applies to the next connect of those calls. It contains the whole
 * list of grants, not a change. So whatever is lost or doubled on the way, the
 * last REGRANT is right.
 *
 * Order. The statement `servers` uses the connection of the intent rows. So it
 * comes after the rows that were sent before the notification of the change,
 * and sees them. A call that the statement does not see is made from the
 * present grants, or its INSERT refuses the call (limits_at() in
 * sql/schema/limits.sql). The vault was asked for the contexts of the seen rows
 * when their INSERT was sent, and the vault and sandboxd handle requests in
 * order. So a REGRANT comes after the HELD of every call that was made from
 * older grants. A confirmed call is sealed after its row. So call.c asks for a
 * REGRANT of its own if grants changed after that call's grants were read.
 *
 * Failures are safe. If the vault or the sandbox can't be asked about a server,
 * that server's calls are cancelled, because they might go on to connect to
 * hosts that are no longer granted. Without memory, or if the database fails,
 * no call is told or cancelled. Then done() hears so, and the next tick with a
 * database tries again (tick.c).
 */
#include <stdlib.h>

#include "context.h"
#include "hold.h"
#include "ids.h"
#include "log.h"
#include "op.h"
#include "regrant.h"

static const struct db_stmt servers = {"regrant_servers",
    "SELECT server_id, material FROM mcpbox.network_regrants($1::uuid)",
    DB_FAST};
static const struct db_stmt calls = {"regrant_calls",
    "SELECT mcpbox.network_calls($1::uuid, $2::uuid)", DB_FAST};

struct regrant {
	struct admind *a;
	unsigned left; /* servers without an outcome, plus one until all are
			* begun */
	bool told;     /* no server was left out so far */
	void (*done)(void *, bool);
	void *arg;
};

/* The regrant of one server. */
struct regrant_one {
	struct regrant *all;
	struct ipc_id server;
};

static void
settle(struct regrant *r)
{
	if (--r->left > 0)
		return;
	if (r->done != NULL)
		r->done(r->arg, r->told);
	free(r);
}

/* Notes that calls keep their earlier grants for now. The next tick tries
 * again. */
static void
left_out(struct regrant *r)
{
	r->told = false;
	r->a->regrant_again = true;
}

static void
one_done(struct regrant_one *o)
{
	struct regrant *r = o->all;

	free(o);
	settle(r);
}

static void
got_calls(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct regrant_one *o = arg;
	struct ipc_id id;

	if (err != NULL)
		left_out(o->all);
	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		id = db_id(rows, i, 0);
		hold_cancel(o->all->a, &id, FAILURE_REVOKED);
	}
	one_done(o);
}

static void
cancel(struct regrant_one *o, const struct err *err)
{
	struct admind *a = o->all->a;
	char id[UUID_TEXT_LEN + 1];
	struct db_params p;

	uuid_text(&o->server, id);
	log_event(LOG_LV_WARN, "regrant",
	    "server %s: %s; its calls that may connect are cancelled", id,
	    err->text);
	db_params_init(&p);
	db_p_id(&p, &a->sandbox_epoch);
	db_p_id(&p, &o->server);
	db_query(a->db, &calls, &p, got_calls, o);
}

static void
told(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct regrant_one *o = arg;
	struct err err;

	if (f != NULL && f->type == IPC_OK) {
		one_done(o);
	} else {
		answer_err(f, gone, &err);
		cancel(o, &err);
	}
}

static void
sealed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct regrant_one *o = arg;
	struct ipc_regrant m = {.server = o->server};
	struct ipc_sealed s = {0};
	struct err err;

	if (f == NULL || f->type != IPC_SEALED) {
		answer_err(f, gone, &err);
	} else if (ipc_decode(f, &s, &err) == 0) {
		m.context = s.context;
		if (ask(o->all->a->sandboxd, IPC_REGRANT, &m, told, o, &err) ==
		    0)
			return;
	}
	cancel(o, &err);
}

static void
begin(struct regrant *r, const struct ipc_id *server, struct ipc_bytes grants)
{
	struct regrant_one *o = malloc(sizeof(*o));
	struct ipc_seal_context m = {.execution = *server,
	    .epoch = r->a->sandbox_epoch,
	    .listener = LISTENER_ADMIND,
	    .kind = CONTEXT_GRANTS};
	struct buf material;
	struct err err;

	if (o == NULL) {
		log_event(LOG_LV_ERR, "memory", "regrant");
		left_out(r);
		return;
	}
	o->all = r;
	o->server = *server;
	r->left++;
	buf_init(&material, IPC_BLOB_MAX);
	tlv_put(&material, CTX_SERVER_ID, server->b, sizeof(server->b));
	buf_put(&material, grants.p, grants.n);
	m.material = ipc_bytes(material.p, material.len);
	if (material.failed) {
		err_set(&err, FAILURE_TOO_LARGE, "too many grants");
		cancel(o, &err);
	} else if (ask(r->a->vault, IPC_SEAL_CONTEXT, &m, sealed, o, &err) ==
	    -1) {
		cancel(o, &err);
	}
	buf_free(&material);
}

static void
got_servers(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct regrant *r = arg;
	struct ipc_id server;

	if (err != NULL)
		left_out(r);
	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		server = db_id(rows, i, 0);
		begin(r, &server, db_bytes(rows, i, 1));
	}
	settle(r);
}

void
regrant_run(struct admind *a, void (*done)(void *, bool), void *arg)
{
	const bool calls_open = a->live.count > 0 || a->njobs > 0;
	struct regrant *r = calls_open ? calloc(1, sizeof(*r)) : NULL;
	struct db_params p;

	a->regrants++;
	a->regrant_again = false;
	if (r == NULL) {
		if (calls_open)
			log_event(LOG_LV_ERR, "memory", "regrant");
		a->regrant_again = calls_open;
		if (done != NULL)
			done(arg, !calls_open);
		return;
	}
	r->a = a;
	r->left = 1;
	r->told = true;
	r->done = done;
	r->arg = arg;
	db_params_init(&p);
	db_p_id(&p, &a->sandbox_epoch);
	db_query(a->db, &servers, &p, got_servers, r);
}
