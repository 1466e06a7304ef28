/*
 * OAuth of sources (decision 0051): see oauth.h. Only a run of the source's
 * approved version talks to the authorization server, and the answers come back
 * sealed for the vault. This process sees the URL for the browser with its
 * state, the lifetime of a token, and that a token exists. It also sees the
 * code that the browser brings back. The code is worth nothing without the
 * verifier, which this process does not see.
 *
 *  authorise  run -> URL and state kept, {client, verifier} to the vault
 *  callback   state -> source -> run with the code -> tokens to the vault
 *  refresh    before a call, if the token is about to end, one at a time:
 *             in this process by the list below, among nodes by a row
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "crypto.h"
#include "ids.h"
#include "inner.h"
#include "log.h"
#include "oauth.h"
#include "op.h"

enum {
	/* While another node renews the tokens, this process asks again every
	 * BUSY_MS, at most BUSY_TRIES times. */
	BUSY_MS = 250,
	BUSY_TRIES = 160
};

static const struct db_stmt object = {
    "oauth_object", "SELECT mcpbox.source_object($1::uuid)", DB_FAST};
static const struct db_stmt begun = {"oauth_begun",
    "SELECT o.sealed, o.server, o.key, o.answer"
    " FROM mcpbox.oauth_begun($1::uuid, $2::bytea, $3::text, $4::text) o",
    DB_SURE};
static const struct db_stmt state = {"oauth_state",
    "SELECT o.source, o.name, o.arguments"
    " FROM mcpbox.oauth_state($1::bytea, $2::text, $3::text, $4::text) o",
    DB_SURE};
static const struct db_stmt got = {"oauth_got",
    "SELECT o.sealed, o.server, o.key, o.answer"
    " FROM mcpbox.oauth_got($1::uuid, $2::bytea) o",
    DB_SURE};
static const struct db_stmt stored = {"oauth_stored",
    "SELECT mcpbox.oauth_stored($1::uuid, $2::bytea, $3::text)", DB_SURE};
static const struct db_stmt failed = {"oauth_failed",
    "SELECT mcpbox.oauth_failed($1::uuid, $2::text, $3::text, $4::bytea)",
    DB_SURE};
static const struct db_stmt turn = {
    "oauth_turn", "SELECT mcpbox.oauth_turn($1::uuid)", DB_SURE};

enum step { AUTHORISE, TOKENS, REFRESH };

struct oauth {
	struct admind *a;
	enum step step;
	struct ipc_id source, execution;
	struct ipc_hash version;
	char actor[PRINCIPAL_MAX + 1];
	sources_cb *cb;
	void *arg;
	enum failure failure;
	struct buf text;   /* the redirect URI; after the run, the run's body */
	struct buf answer; /* the answer for the caller */
	/* for REFRESH only */
	TAILQ_ENTRY(oauth) entry;
	struct event *timer;
	unsigned tries;
	struct oauth *behind; /* the next request that waits for this renewal */
};
static TAILQ_HEAD(, oauth) refreshing = TAILQ_HEAD_INITIALIZER(refreshing);

static void
oauth_free(struct oauth *o)
{
	if (o->timer != NULL)
		event_free(o->timer);
	buf_free(&o->text);
	buf_free(&o->answer);
	free(o);
}

static void
tell(struct oauth *o, enum failure f, const char *text, struct ipc_bytes json)
{
	struct sources_end e = {.failure = f, .text = text, .json = json};

	o->cb(o->arg, &e);
}

/* Ends a request, and with it the requests that waited for it. */
static void
end(struct oauth *o, enum failure f, const char *text, struct ipc_bytes json)
{
	struct oauth *next;

	if (o->step == REFRESH)
		TAILQ_REMOVE(&refreshing, o, entry);
	for (; o != NULL; o = next) {
		next = o->behind;
		tell(o, f, text, json);
		oauth_free(o);
	}
}

static void
fail(struct oauth *o, enum failure f, const char *text)
{
	end(o, f, text, ipc_bytes(NULL, 0));
}

static struct oauth *
oauth_new(struct admind *a, enum step step, const char *actor, sources_cb *cb,
    void *arg)
{
	struct sources_end e = {
	    .failure = FAILURE_BUSY, .text = "out of memory"};
	struct oauth *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		cb(arg, &e);
		return NULL;
	}
	o->a = a;
	o->step = step;
	o->cb = cb;
	o->arg = arg;
	memcpy(o->actor, actor, strlen(actor) + 1);
	buf_init(&o->text, IPC_BLOB_MAX);
	buf_init(&o->answer, IPC_BLOB_MAX);
	return o;
}

/* ---- for AUTHORISE, TOKENS and REFRESH: a run, and its sealed result ---- */

static void
noted(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct oauth *o = arg;
	char text[ERR_TEXT_MAX];

	if (err != NULL || !db_text(rows, 0, 0, text, sizeof(text)))
		fail(o, o->failure, failure_info(o->failure)->fix);
	else
		fail(o, o->failure, text);
}

static void
note(struct oauth *o, enum failure f, const char *text, struct ipc_bytes body)
{
	struct db_params p;

	o->failure = f;
	db_params_init(&p);
	db_p_id(&p, &o->source);
	db_p_str(&p, failure_info(f)->name);
	db_p_str(&p, text != NULL ? text : "");
	db_p_bytes(&p, body.p, body.n);
	db_query(o->a->db, &failed, &p, noted, o);
}

static void
finished(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct oauth *o = arg;

	(void)rows;
	if (err != NULL)
		fail(o, err->failure, err->text);
	else
		end(o, FAILURE_NONE, NULL,
		    ipc_bytes(o->answer.p, o->answer.len));
}

static void
kept(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct oauth *o = arg;
	struct db_params p;
	struct err err;

	if (f == NULL || f->type != IPC_OK) {
		answer_err(f, gone, &err);
		note(o, err.failure, err.text, ipc_bytes(NULL, 0));
		return;
	}
	/* The vault has committed the tokens by now, so the database may note
	 * that they exist. o->text still has the body of the run, which
	 * describes them. */
	db_params_init(&p);
	db_p_id(&p, &o->source);
	db_p_bytes(&p, o->text.p, o->text.len);
	db_p_str(&p, o->actor);
	db_query(o->a->db, &stored, &p, finished, o);
}

/* Takes the columns {sealed, server, key, answer}, read from the run's
 * result. */
static void
brought(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct oauth *o = arg;
	struct ipc_credential_store m = {0};
	struct ipc_bytes answer;
	struct err e;

	if (err != NULL) {
		note(o, err->failure, err->text, ipc_bytes(NULL, 0));
		return;
	}
	m.execution = o->execution;
	m.version = o->version;
	m.sealed = db_bytes(rows, 0, 0);
	m.server = db_bytes(rows, 0, 1);
	m.key = db_bytes(rows, 0, 2);
	answer = db_bytes(rows, 0, 3);
	buf_put(&o->answer, answer.p, answer.n);
	if (o->answer.failed)
		fail(o, FAILURE_BUSY, "out of memory");
	else if (ask(o->a->vault, IPC_CREDENTIAL_STORE, &m, kept, o, &e) == -1)
		note(o, FAILURE_VAULT_UNAVAILABLE, e.text, ipc_bytes(NULL, 0));
}

static void
ran(void *arg, const struct inner_end *e)
{
	struct oauth *o = arg;
	struct db_params p;
	struct buf redirect;

	o->execution = e->execution;
	o->version = e->version;
	if (e->failure != FAILURE_NONE) {
		note(o, e->failure, e->text, e->body);
		return;
	}
	redirect = o->text;
	buf_init(&o->text, IPC_BLOB_MAX);
	buf_put(&o->text, e->body.p, e->body.n);
	if (o->text.failed) {
		buf_free(&redirect);
		fail(o, FAILURE_BUSY, "out of memory");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &o->source);
	db_p_bytes(&p, e->body.p, e->body.n);
	if (o->step == AUTHORISE) {
		db_p_text(&p, ipc_bytes(redirect.p, redirect.len));
		db_p_str(&p, o->actor);
	}
	db_query(
	    o->a->db, o->step == AUTHORISE ? &begun : &got, &p, brought, o);
	buf_free(&redirect);
}

/* ---- authorise ---- */

static void
named(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct oauth *o = arg;
	char name[EXPOSED_NAME_MAX + 1];
	struct jsonw w;
	struct buf args;

	if (err != NULL) {
		fail(o, err->failure, err->text);
		return;
	}
	if (!db_text(rows, 0, 0, name, sizeof(name))) {
		fail(o, FAILURE_NOT_FOUND, "there is no such source");
		return;
	}
	buf_init(&args, IPC_FRAME_MAX);
	jsonw_open(&w, &args);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "op", "authorise");
	jsonw_kv_strn(&w, "redirect_uri", o->text.p, o->text.len);
	jsonw_obj_end(&w);
	if (args.failed)
		fail(o, FAILURE_BUSY, "out of memory");
	else
		inner_call(o->a, name, o->actor, INNER_TOKENS,
		    ipc_bytes(args.p, args.len), ran, o);
	buf_free(&args);
}

void
oauth_authorise(struct admind *a, const struct ipc_id *source,
    const char *actor, struct ipc_bytes redirect, sources_cb *cb, void *arg)
{
	struct oauth *o = oauth_new(a, AUTHORISE, actor, cb, arg);
	struct db_params p;

	if (o == NULL)
		return;
	o->source = *source;
	buf_put(&o->text, redirect.p, redirect.n);
	if (o->text.failed) {
		fail(o, FAILURE_BUSY, "out of memory");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, source);
	db_query(a->db, &object, &p, named, o);
}

/* ---- callback ---- */

static void
matched(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct oauth *o = arg;
	char name[EXPOSED_NAME_MAX + 1], said[ERR_TEXT_MAX];

	if (err != NULL) {
		fail(o, err->failure, err->text);
		return;
	}
	if (db_nrows(rows) == 1 && db_null(rows, 0, 0) &&
	    db_text(rows, 0, 2, said, sizeof(said))) {
		fail(o, FAILURE_UPSTREAM, said);
		return;
	}
	if (db_nrows(rows) != 1 || db_null(rows, 0, 0) ||
	    !db_text(rows, 0, 1, name, sizeof(name))) {
		fail(o, FAILURE_NOT_FOUND,
		    "nobody waits for this, or not any more: begin the "
		    "authorisation again");
		return;
	}
	o->source = db_id(rows, 0, 0);
	inner_call(
	    o->a, name, o->actor, INNER_TOKENS, db_bytes(rows, 0, 2), ran, o);
}

void
oauth_callback(struct admind *a, const struct ipc_oauth_callback *m,
    sources_cb *cb, void *arg)
{
	struct oauth *o = oauth_new(a, TOKENS, "oauth", cb, arg);
	struct ipc_hash hash;
	struct db_params p;

	if (o == NULL)
		return;
	sha256(m->state.p, m->state.n, &hash);
	db_params_init(&p);
	db_p_hash(&p, &hash);
	db_p_text(&p, m->code);
	db_p_text(&p, m->iss);
	db_p_text(&p, m->error);
	db_query(a->db, &state, &p, matched, o);
}

/* ---- refresh ---- */

static void take_turn(struct oauth *);

static void
again(evutil_socket_t fd, short what, void *arg)
{
	take_turn(arg);
}

/* Takes the answer of oauth_turn(): "done", "busy", or "run " and the name of
 * the source to run. */
static void
turned(void *arg, const struct pg_result *rows, const struct err *err)
{
	static const struct timeval pause = {.tv_usec = BUSY_MS * 1000};
	struct oauth *o = arg;
	char name[EXPOSED_NAME_MAX + 8];

	if (err != NULL) {
		fail(o, err->failure, err->text);
	} else if (!db_text(rows, 0, 0, name, sizeof(name)) ||
	    strcmp(name, "done") == 0) {
		end(o, FAILURE_NONE, NULL, ipc_bytes(NULL, 0));
	} else if (strncmp(name, "run ", 4) == 0) {
		inner_call(o->a, name + 4, o->actor, INNER_TOKENS,
		    ipc_str("{\"op\":\"refresh\"}"), ran, o);
	} else if (++o->tries > BUSY_TRIES ||
	    (o->timer == NULL &&
		(o->timer = evtimer_new(o->a->proc.base, again, o)) == NULL) ||
	    evtimer_add(o->timer, &pause) == -1) {
		fail(o, FAILURE_BUSY, "another node renews the tokens");
	}
}

static void
take_turn(struct oauth *o)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &o->source);
	db_query(o->a->db, &turn, &p, turned, o);
}

void
oauth_refresh(
    struct admind *a, const struct ipc_id *source, sources_cb *cb, void *arg)
{
	struct oauth *o = oauth_new(a, REFRESH, "oauth", cb, arg), *first;

	if (o == NULL)
		return;
	o->source = *source;
	TAILQ_FOREACH(first, &refreshing, entry)
		if (memcmp(&first->source, source, sizeof(*source)) == 0) {
			o->behind = first->behind;
			first->behind = o;
			return;
		}
	TAILQ_INSERT_TAIL(&refreshing, o, entry);
	take_turn(o);
}
