/*
 * Tells the targets of the access document which requests wait for a person:
 *
 *  notification_take -> run (own_run.h) -> CHECK_SENT -> notification_end
 *
 * A request leaves a target's queue when the target took a notification with
 * it, or when somebody decided it. In any other case it stays, also if this
 * process dies, when its claim is void. So a target may be told of a request
 * twice. A target is told at most once a minute, since people stop reading
 * frequent texts.
 *
 * A hostile admind that starts such a run can send any text to the targets that
 * an administrator named, with their own secrets, and to no other host: the
 * vault makes the list, and opens no other secret (fetch.c there). It reads no
 * secret. A notification approves nothing: its reader goes to the panel, which
 * shows the content from the database and asks for a proof. So a false one
 * wastes a person's time. The run's answer goes unread to admind-check.
 *
 * Several targets are told at once, since a silent one holds its run for 20 s.
 * Nothing waits for this, but for an administrator's test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "context.h"
#include "ids.h"
#include "log.h"
#include "notify_send.h"
#include "notify_text.h"
#include "own_run.h"
#include "said.h"

enum {
	/* The run itself ends after 20 s. */
	TIMEOUT_MS = 30 * 1000,
	WAIT_MS = QUEUE_MS + TIMEOUT_MS + 10 * 1000,
	RESULT_BYTES = 64 * 1024,
	/* Runs at once. A silent target must not delay the others. A household
	 * has fewer targets, and each run takes a slot of the sandbox. */
	RUNS_MAX = 4,
	WHY_MAX = 320, /* bytes, as notification_targets keeps them */
	MS = 1000
};

static const struct db_stmt follow_rows = {"notification_follow",
    "SELECT mcpbox.notification_follow($1::text[])", DB_SURE};
static const struct db_stmt take_rows = {"notification_take",
    "SELECT * FROM mcpbox.notification_take($1::uuid, $2::int8, $3::text[],"
    " $4::text[], $5::text[])",
    DB_SURE};
static const struct db_stmt end_rows = {"notification_end",
    "SELECT mcpbox.notification_end($1::uuid, $2::text, $3::int8, $4::bool)",
    DB_SURE};
static const struct db_stmt secret_rows = {"notification_secret",
    "SELECT * FROM mcpbox.notification_secret($1::text, $2::text)", DB_SURE};

/* A notification under way. */
struct sending {
	struct admind *a;
	struct ipc_id claim;
	char name[ACCESS_NAME_MAX + 1]; /* of the target */
	notify_cb *cb;                  /* NULL: not a test */
	void *arg;
};

static db_cb followed, took, secret_came, ended;
static own_cb ran;
static ipc_answer_cb checked;

/* Returns a target of the document that holds, or NULL. */
static const struct notify *
find(const struct access *x, struct ipc_bytes name)
{
	for (unsigned i = 0; x->now != NULL && i < x->now->nnotify; i++) {
		const struct notify *n = &x->now->notify[i];

		if (n->name.n == name.n &&
		    memcmp(n->name.p, name.p, name.n) == 0)
			return n;
	}
	return NULL;
}

/* ---- the end of a run ---- */

static void
ended(void *arg, const struct pg_result *rows, const struct err *err)
{
	/* The claim of a failed statement ends in two minutes. */
}

/* Ends it. why empty: the target was told. wait_ms: before the next try, as the
 * target asked; 0: it did not. ours: the target was not reached. */
static void
end(struct sending *x, uint64_t status, struct ipc_bytes why, uint64_t wait_ms,
    bool ours)
{
	struct db_params p;
	struct buf text;

	x->a->access->notify_running--;
	if (x->cb != NULL) {
		x->cb(x->arg, why.n == 0, status, why);
	} else {
		if (why.n > 0)
			log_event(LOG_LV_WARN, "notification", "%s: %.*s",
			    x->name, (int)why.n, (const char *)why.p);
		buf_init(&text, WHY_MAX);
		db_text_clean(&text, why.p, why.n, WHY_MAX);
		db_params_init(&p);
		db_p_id(&p, &x->claim);
		db_p_text(&p, ipc_bytes(text.p, text.len));
		db_p_i64(&p, (int64_t)wait_ms);
		db_p_bool(&p, ours);
		db_query(x->a->db, &end_rows, &p, ended, x->a);
		buf_free(&text);
	}
	free(x);
}

/* Ends it after a fault of this machine: a full sandbox, a process that is
 * away. Clients may cause that, so it must not keep people from being told for
 * longer. */
static void
failed(struct sending *x, const char *why)
{
	end(x, 0, ipc_str(*why != '\0' ? why : "it was not sent"), 0, true);
}

static void
judge(struct sending *x, const struct said *said)
{
	if (said->sent > 0)
		end(x, said->status, ipc_str(""), 0, false);
	else
		end(x, said->status,
		    said->why.n > 0 ? said->why : ipc_str("it was not sent"),
		    said->retry_s * MS, false);
}

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_check_errors bad;
	struct sending *x = arg;
	struct ipc_check_ok ok;
	struct said said;
	struct err err;

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, &err) == 0)
		end(x, 0,
		    bad.summary.n > 0 ? bad.summary
				      : ipc_str("it was not sent"),
		    0, false);
	else if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &ok, &err) == -1) {
		answer_err(f, gone, &err);
		failed(x, err.text);
	} else if (said_read(ok.fields, &said) == -1)
		failed(x, "admind-check answered with a malformed status");
	else
		judge(x, &said);
}

/* Takes the end of a run. A run that failed says why in its answer, too. */
static void
ran(void *arg, const struct own_end *e)
{
	struct ipc_check_sent q = {.result = e->body};
	struct sending *x = arg;
	struct err err;

	if (e->how != OWN_RAN || e->body.n == 0)
		failed(x, e->text);
	else if (ask(x->a->check, IPC_CHECK_SENT, &q, checked, x, &err) == -1)
		failed(x, err.text);
}

/* ---- its beginning ---- */

/* Starts the run. rows: of notification_take(); NULL: a test. secret: the
 * stored value that the target names, or empty. */
static void
run(struct sending *x, const struct pg_result *rows, struct ipc_bytes secret)
{
	struct access *access = x->a->access;
	const struct notify *to = find(access, ipc_str(x->name));
	struct ipc_id id = x->claim;
	struct own_what own = {.kind = CONTEXT_NOTIFY,
	    .noun = "notification",
	    .tool = "notification",
	    .principal = "notification",
	    .client = "mcpbox",
	    .protocol = "",
	    .timeout_ms = TIMEOUT_MS,
	    .wait_ms = WAIT_MS};
	char kept[ACCESS_NAME_MAX + 64];
	struct buf material, args;

	if (to == NULL) {
		failed(x, "the access document has changed");
		return;
	}
	if (to->key.n > 0 && secret.n == 0) {
		end(x, 0,
		    ipc_str("its secret has no value: mcpboxctl secret set "
			    "SERVER NAME, as the document names them"),
		    0, false);
		return;
	}
	buf_init(&args, ARGUMENTS_MAX);
	buf_init(&material, IPC_BLOB_MAX);
	if (rows != NULL)
		id = db_id(rows, 0, NOTIFY_C_NOTIFICATION);
	notify_text_put(&id, now_us(), access->now->panel, rows, &args);
	own.arguments = ipc_bytes(args.p, args.len);
	/* The record says how many; their records say the rest. */
	snprintf(kept, sizeof(kept), "{\"target\":\"%s\",\"requests\":%lld}",
	    x->name,
	    rows != NULL ? (long long)db_int(rows, 0, NOTIFY_C_TOTAL) : 0LL);
	own.kept = ipc_str(kept);
	tlv_put(&material, CTX_ACCESS_SEAL, access->seal.p, access->seal.len);
	tlv_put(&material, CTX_ACCESS_DOCUMENT, access->document.p,
	    access->document.len);
	tlv_put_u64(&material, CTX_RESULT, RESULT_BYTES);
	tlv_put(&material, CTX_KEYS_URL, to->text.p, to->text.n);
	if (to->key.n > 0) {
		tlv_put(&material, CTX_SECRET_NAME, to->key.p, to->key.n);
		tlv_put(&material, CTX_SECRET_VALUE, secret.p, secret.n);
	}
	own.material = &material;
	if (args.failed || material.failed)
		failed(x, "out of memory");
	else
		own_run(x->a, &own, ran, x);
	buf_free(&material);
	buf_free(&args);
}

static void
took(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct sending *x = arg;

	if (err != NULL || db_nrows(rows) == 0 ||
	    !db_text(rows, 0, NOTIFY_C_TARGET, x->name, sizeof(x->name))) {
		x->a->access->notify_running--;
		free(x);
		return;
	}
	/* Another target may be due, too. */
	notify_send_tick(x->a);
	run(x, rows, db_bytes(rows, 0, NOTIFY_C_SECRET));
}

static void
secret_came(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct sending *x = arg;

	if (err != NULL)
		failed(x, err->text);
	else
		run(x, NULL,
		    db_nrows(rows) > 0 ? db_bytes(rows, 0, 0)
				       : ipc_bytes(NULL, 0));
}

static struct sending *
begin(struct admind *a)
{
	struct sending *x = calloc(1, sizeof(*x));

	if (x != NULL) {
		x->a = a;
		id_random(&x->claim);
		a->access->notify_running++;
	}
	return x;
}

int
notify_send_test(struct admind *a, struct ipc_bytes name, notify_cb *cb,
    void *arg, struct err *err)
{
	const struct notify *to;
	struct db_params p;
	struct sending *x;

	if (document_ready(a, err) == -1)
		return -1;
	if ((to = find(a->access, name)) == NULL)
		return err_set(err, FAILURE_NOT_FOUND,
		    "the access document has no target of this name in "
		    "\"notifications\"");
	if (!a->sandbox_ready)
		return err_set(err, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is away: try again when mcpboxctl health "
		    "shows it");
	if (a->access->notify_running >= RUNS_MAX)
		return err_set(err, FAILURE_BUSY,
		    "%d notifications are under way: try again in a minute",
		    RUNS_MAX);
	if ((x = begin(a)) == NULL)
		return err_set(err, FAILURE_BUSY, "out of memory");
	memcpy(x->name, to->name.p, to->name.n);
	x->cb = cb;
	x->arg = arg;
	db_params_init(&p);
	db_p_text(&p, to->server);
	db_p_text(&p, to->key);
	db_query(a->db, &secret_rows, &p, secret_came, x);
	return 0;
}

/* ---- the document ---- */

static void
followed(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct access *x = ((struct admind *)arg)->access;

	x->notify_following = false;
	if (err != NULL)
		x->notify_follows = false;
}

/* Adds the names of the targets, and of their secrets. */
static void
put_names(struct access *x, struct db_array *names, struct db_array *servers,
    struct db_array *keys)
{
	for (unsigned i = 0; x->now != NULL && i < x->now->nnotify; i++) {
		const struct notify *n = &x->now->notify[i];

		db_a_bytes(names, n->name.p, n->name.n);
		db_a_bytes(servers, n->server.p, n->server.n);
		db_a_bytes(keys, n->key.p, n->key.n);
	}
}

/* Takes the notification that is due. After a change of the document, tells the
 * database its targets first. */
void
notify_send_tick(struct admind *a)
{
	struct db_array names, servers, keys;
	struct access *x = a->access;
	struct sending *sending;
	struct db_params p;
	bool follows;

	/* Nothing leaves while it is not certain which document holds. */
	if (x == NULL || !x->ready || x->notify_following ||
	    x->notify_running >= RUNS_MAX)
		return;
	follows = x->notify_follows && x->notify_generation == x->generation;
	if (follows &&
	    (x->now == NULL || x->now->nnotify == 0 || !a->sandbox_ready))
		return;
	db_array_init(&names, DB_TEXT, IPC_FRAME_MAX);
	db_array_init(&servers, DB_TEXT, IPC_FRAME_MAX);
	db_array_init(&keys, DB_TEXT, IPC_FRAME_MAX);
	put_names(x, &names, &servers, &keys);
	db_params_init(&p);
	if (!follows) {
		x->notify_following = x->notify_follows = true;
		x->notify_generation = x->generation;
		db_p_array(&p, &names);
		db_query(a->db, &follow_rows, &p, followed, a);
	} else if ((sending = begin(a)) != NULL) {
		db_p_id(&p, &sending->claim);
		db_p_i64(&p, NOTIFY_LINES_MAX);
		db_p_array(&p, &names);
		db_p_array(&p, &servers);
		db_p_array(&p, &keys);
		db_query(a->db, &take_rows, &p, took, sending);
	}
	db_array_free(&names);
	db_array_free(&servers);
	db_array_free(&keys);
}
