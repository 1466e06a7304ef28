/*
 * Calls that a person must approve.
 *
 * The first AUTHORISE puts a request for just this call into the approval queue
 * and is answered with PENDING. After the decision the client calls again. The
 * second AUTHORISE goes on as any other call, or is refused as not_confirmed.
 * The person is shown the pre-image of callreq.h, and the vault seals exactly
 * that pre-image.
 *
 * Why that is safe. A client can name any request it likes, but only an unused
 * request for the same principal, listener, tool and arguments counts. The
 * database checks that again in the transaction that makes the intent row. The
 * vault checks it once more, by itself, from its own seal. The id of a request
 * gives no right, so everybody may know it.
 *
 * A client that asks often gains only rows, up to a fixed number at a time
 * (below), and costs a reviewer time. A refusal lasts as long as an approval
 * would have lasted. So a client can't ask for the same call again and again
 * until a reviewer gives in.
 */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "callreq.h"
#include "ids.h"
#include "intent.h"
#include "jobs.h"
#include "log.h"

enum {
	/* The most requests that wait for a decision, of one principal and of
	 * all principals. A person can't be asked to read more at a time. */
	CALLS_WAIT_OWN = 8,
	CALLS_WAIT_ALL = 256,
	CALLS_SHOWN = 1000, /* bytes of arguments in lists */
	CALLS_POLL_MS = 2000,
	/* People decide slowly, so an immediate retry would be refused
	 * again. */
	CALLS_FULL_RETRY_MS = 30000,
	SWEEP_TICKS = 5
};

static const struct db_stmt ask_row = {"confirm_ask",
    "SELECT what, request, expires, reason, seal FROM mcpbox.call_ask("
    "$1::uuid, nullif($2::uuid, '00000000-0000-0000-0000-000000000000'),"
    " $3::uuid, $4::text, $5::text, $6::text, $7::bytea, $8::text,"
    " $9::bytea, $10::timestamptz, $11::int8, $12::int8)",
    DB_SURE};
/* These two statements take the parameters of call_open() or task_open(), the
 * id of the approved request, and the parameters of intent_marks(). */
static const struct db_stmt open_call = {"confirm_open_call",
    "SELECT mcpbox.execution_marked(mcpbox.call_open_confirmed($1::uuid, "
    "$2::uuid, $3::bytea,"
    " $4::uuid, $5::timestamptz, $6::text, $7::text, $8::text, $9::bytea,"
    " $10::text, $11::text, $12::text, $13::timestamptz, $14::timestamptz,"
    " $15::uuid), $1::uuid, $16::uuid, $17::bytea, $18::uuid)",
    DB_SURE};
static const struct db_stmt open_task = {"confirm_open_task",
    "SELECT mcpbox.execution_marked(mcpbox.task_open_confirmed($1::uuid, "
    "$2::uuid, $3::bytea,"
    " $4::uuid, $5::timestamptz, $6::text, $7::text, $8::text, $9::bytea,"
    " $10::text, $11::text, $12::text, $13::timestamptz, $14::timestamptz,"
    " $15::int4, $16::int8, $17::int8, $18::int8, $19::uuid), $1::uuid,"
    " $20::uuid, $21::bytea, $22::uuid)",
    DB_SURE};
static const struct db_stmt sweep_rows = {
    "confirm_sweep", "SELECT mcpbox.calls_sweep()", DB_SURE};

/* ---- asking ---- */

static void
pending(struct job *j, const struct pg_result *rows)
{
	struct ipc_pending m = {.approval = db_id(rows, 0, 1),
	    .expires_ms = db_time_us(rows, 0, 2) / 1000,
	    .poll_ms = CALLS_POLL_MS};
	char id[UUID_TEXT_LEN + 1];

	uuid_text(&m.approval, id);
	log_call(LOG_LV_INFO, "call_pending", NULL, j->principal, "%s: %s",
	    j->tool, id);
	(void)job_enter(j, JOB_DONE);
	link_answer(j->link, j->request, IPC_PENDING, &m);
	job_free(j);
}

static void
refuse(struct job *j, enum failure f, const char *text)
{
	job_error(j, f, text, ipc_bytes(NULL, 0));
}

static void
rejected(struct job *j, struct ipc_bytes reason)
{
	struct buf b;

	buf_init(&b, IPC_FRAME_MAX);
	buf_puts(&b, "Error: an administrator refused this call");
	if (reason.n > 0) {
		buf_puts(&b, ": ");
		buf_put(&b, reason.p, reason.n);
	}
	buf_puts(&b, ". Do not repeat it unchanged.");
	buf_putc(&b, '\0');
	refuse(j, FAILURE_NOT_CONFIRMED,
	    b.failed ? "Error: an administrator refused this call."
		     : (const char *)b.p);
	buf_free(&b);
}

static void
answered(void *arg, const struct pg_result *rows, const struct err *err)
{
	static const struct {
		const char *what;
		enum failure failure;
		const char *text;
	} ends[] = {
	    {"expired", FAILURE_NOT_CONFIRMED,
		"Error: no administrator decided about this call in time. Call "
		"again to ask anew."},
	    {"used", FAILURE_NOT_CONFIRMED,
		"Error: the approval of this call was used by another one. "
		"Call "
		"again to ask for a new one."},
	    {"changed", FAILURE_NOT_CONFIRMED,
		"Error: the tool was changed or withdrawn while this call "
		"waited for approval. Call again to ask anew."},
	    {"none", FAILURE_NOT_CONFIRMED,
		"Error: this call has no such approval. Call again to ask for "
		"one."},
	};
	/* These limits are mcpbox's and not the tool's, so the failure is BUSY.
	 * The request was not stored in the queue. */
	static const struct {
		const char *what, *text;
	} full[] = {
	    {"limit",
		"8 of your calls wait for an administrator's approval, which "
		"is how many may: wait until they are decided"},
	    {"full",
		"256 calls wait for an administrator's approval, which is how "
		"many may: call again later"},
	};
	struct job *j = arg;
	struct ipc_bytes what;

	if (err != NULL) {
		job_refuse(j, err->failure, err->text);
		return;
	}
	what = db_bytes(rows, 0, 0);
	if (ipc_streq(what, "approved")) {
		struct ipc_bytes seal = db_bytes(rows, 0, 4);
		void (*then)(struct job *) = j->next.plain;

		j->confirmed = db_id(rows, 0, 1);
		buf_clear(&j->call_seal);
		buf_put(&j->call_seal, seal.p, seal.n);
		if (j->call_seal.failed)
			job_refuse(j, FAILURE_BUSY, "out of memory");
		else
			then(j);
		return;
	}
	if (ipc_streq(what, "pending")) {
		pending(j, rows);
		return;
	}
	if (ipc_streq(what, "rejected")) {
		rejected(j, db_bytes(rows, 0, 3));
		return;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ipc_streq(what, ends[i].what)) {
			refuse(j, ends[i].failure, ends[i].text);
			return;
		}
	for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++)
		if (ipc_streq(what, full[i].what)) {
			j->retry_ms = CALLS_FULL_RETRY_MS;
			job_refuse(j, FAILURE_BUSY, full[i].text);
			return;
		}
	job_refuse(j, FAILURE_INTERNAL, "internal state");
}
_Static_assert(CALLS_WAIT_OWN == 8 && CALLS_WAIT_ALL == 256, "as said above");

void
confirm_start(struct job *j, void (*then)(struct job *))
{
	struct callreq r = {.version = j->version_hash,
	    .tool = ipc_str(j->tool),
	    .principal = ipc_str(j->principal),
	    .arguments = ipc_bytes(j->arguments.p, j->arguments.len),
	    .listener = j->listener};
	struct buf preimage, text;
	struct db_params p;
	struct err err;

	if (j->arguments.len > CALLREQ_ARGUMENTS_MAX) {
		refuse(j, FAILURE_LIMIT,
		    "Error: a person must approve this call, and can't be "
		    "asked to read more than 65536 bytes of arguments.");
		return;
	}
	uuid_v7(&r.request);
	r.expires_ms = now_us() / 1000 +
	    (uint64_t)conf_int(j->a->proc.conf, "confirm_wait");
	buf_init(&preimage, CALLREQ_MAX);
	buf_init(&text, CALLS_SHOWN);
	if (callreq_write(&r, &preimage, &err) == -1) {
		buf_free(&preimage);
		job_refuse(j, err.failure, err.text);
		return;
	}
	db_text_clean(&text, j->arguments.p, j->arguments.len, CALLS_SHOWN);
	db_params_init(&p);
	db_p_id(&p, &r.request);
	db_p_id(&p, &j->approval);
	db_p_id(&p, &j->version_id);
	db_p_str(&p, j->principal);
	db_p_str(&p, listener_name(j->listener));
	db_p_str(&p, j->tool);
	db_p_hash(&p, &j->args_sha256);
	db_p_bytes(&p, text.p, text.len);
	db_p_bytes(&p, preimage.p, preimage.len);
	db_p_time_us(&p, r.expires_ms * 1000);
	db_p_i64(&p, CALLS_WAIT_OWN);
	db_p_i64(&p, CALLS_WAIT_ALL);
	j->next.plain = then;
	if (text.failed)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else
		db_query(j->a->db, &ask_row, &p, answered, j);
	buf_free(&preimage);
	buf_free(&text);
}

/* ---- using ---- */

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	char why[32] = "";

	if (err == NULL)
		(void)db_text(rows, 0, 0, why, sizeof(why));
	j->intent_cb(j, err == NULL ? why : NULL, err);
}

void
confirm_open(struct job *j, intent_cb *cb)
{
	const struct conf *c = j->a->proc.conf;
	struct db_params p;
	struct buf text;

	buf_init(&text, ARGUMENTS_KEPT);
	intent_params(j, &p, &text);
	if (j->task) {
		db_p_i32(&p, (int32_t)j->declared);
		db_p_i64(&p, (int64_t)conf_int(c, "task_ttl"));
		db_p_i64(&p, (int64_t)conf_int(c, "tasks_active"));
		db_p_i64(&p, (int64_t)conf_int(c, "tasks_kept"));
	}
	db_p_id(&p, &j->confirmed);
	intent_marks(j, &p);
	j->intent_cb = cb;
	db_query(j->a->db, j->task ? &open_task : &open_call, &p, opened, j);
	buf_free(&text);
}

/* ---- telling ---- */

static void
tell(struct ipc_peer *peer, void *arg)
{
	(void)ipc_send(peer, IPC_DECIDED, arg);
}

/* Parses the payload: "policy", "uuid 1" (approved) or "uuid 0". Tells all
 * gateways. A gateway ignores an id that none of its clients waits for. A
 * client that missed a message asks again by itself. */
void
confirm_notified(struct admind *a, const char *payload)
{
	struct ipc_decided m = {0};

	if (strcmp(payload, "policy") == 0) {
		serving_clear(&a->serving);
		return;
	}
	if (strlen(payload) != UUID_TEXT_LEN + 2 ||
	    uuid_parse(payload, UUID_TEXT_LEN, &m.approval) == -1)
		return;
	m.approved = payload[UUID_TEXT_LEN + 1] == '1';
	ipc_server_each(a->gw_local, tell, &m);
	ipc_server_each(a->gw_tunnel, tell, &m);
}

static void
swept(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;

	a->sweeping_calls = false;
	if (err == NULL && db_int(rows, 0, 0) > 0)
		log_event(LOG_LV_INFO, "calls_expired",
		    "nobody decided about %lld calls in time",
		    (long long)db_int(rows, 0, 0));
}

void
confirm_tick(struct admind *a)
{
	if (a->sweeping_calls || a->ticks % SWEEP_TICKS != 0)
		return;
	a->sweeping_calls = true;
	db_query(a->db, &sweep_rows, NULL, swept, a);
}
