/*
 * The intent is the announcement that a call is about to run. It has two forms:
 * a row and a TLV.
 *
 * One INSERT makes the row. It checks again in the database everything that
 * lets the call run, and relies neither on a remembered row nor on a row read a
 * moment ago. So a withdrawal that committed before wins.
 */
#include <string.h>

#include "context.h"
#include "ending.h"
#include "intent.h"

/*
 * Makes the intent row if this very version serves under these very limits. The
 * conditions are those of call_open(), which is asked for the reason if no row
 * was made. A row of the table `callable` fulfils all these conditions.
 * Triggers maintain it: the transaction that withdraws a version deletes the
 * row (sql/schema/callable.sql). Most of a call's waiting is for this
 * statement, and mostly the backend's caches are cold. So the statement reads
 * one small table and calls no function.
 */
static const struct db_stmt insert_row = {"call_insert",
    "INSERT INTO mcpbox.intents (id, kind, owner_epoch, principal, listener,"
    " tool, version_id, version_hash, args_sha256, arguments, client,"
    " protocol, created_at, deadline, trace_id, span_id, session_id)"
    " SELECT $1::uuid, 'tool', c.epoch, $6::text, $7::text, c.exposed_name,"
    " c.version_id, c.hash, $9::bytea, $10::text, $11::text, $12::text,"
    " $13::timestamptz, $14::timestamptz, $15::uuid, $16::bytea, $17::uuid"
    " FROM mcpbox.callable c"
    " WHERE c.version_id = $2::uuid AND c.epoch = $4::uuid"
    " AND c.hash = $3::bytea AND c.exposed_name = $8::text"
    " AND c.limits_at IS NOT DISTINCT FROM $5::timestamptz"
    " RETURNING true",
    DB_FAST};
static const struct db_stmt open_row = {"call_open",
    "SELECT mcpbox.execution_marked(mcpbox.call_open($1::uuid, $2::uuid,"
    " $3::bytea, $4::uuid, $5::timestamptz, $6::text, $7::text, $8::text,"
    " $9::bytea, $10::text, $11::text, $12::text, $13::timestamptz,"
    " $14::timestamptz), $1::uuid, $15::uuid, $16::bytea, $17::uuid)",
    DB_FAST};

static uint64_t
deadline_us(const struct job *j)
{
	if (j->manage != NULL || j->is_static)
		return j->created_us + MANAGEMENT_DEADLINE_MS * UINT64_C(1000);
	return j->created_us +
	    (HOLD_MS + QUEUE_MS + j->timeout_ms) * UINT64_C(1000);
}

void
intent_arguments(const struct job *j, struct buf *text)
{
	const struct buf *b = j->kept.len > 0 ? &j->kept : &j->arguments;

	db_text_clean(text, b->p, b->len, ARGUMENTS_KEPT);
}

static bool
none(const struct ipc_id *id)
{
	static const struct ipc_id zero;

	return memcmp(id, &zero, sizeof(zero)) == 0;
}

void
intent_marks(const struct job *j, struct db_params *p)
{
	if (none(&j->trace.id)) {
		db_p_null(p);
		db_p_null(p);
	} else {
		db_p_id(p, &j->trace.id);
		db_p_bytes(p, j->trace.span, sizeof(j->trace.span));
	}
	if (none(&j->session))
		db_p_null(p);
	else
		db_p_id(p, &j->session);
}

void
intent_tlv_bare(const struct job *j, struct buf *out)
{
	if (j->manage == NULL) {
		tlv_put(out, INTENT_VERSION_ID, j->version_id.b, 16);
		tlv_put(out, INTENT_VERSION_HASH, j->version_hash.b, 32);
	}
	tlv_puts(out, INTENT_TOOL, j->tool);
	tlv_puts(out, INTENT_PRINCIPAL, j->principal);
	tlv_put_u64(out, INTENT_LISTENER, j->listener);
	tlv_put(out, INTENT_ARGS_SHA256, j->args_sha256.b, 32);
	tlv_put_u64(out, INTENT_CREATED_US, j->created_us);
	tlv_put_u64(out, INTENT_DEADLINE_US, deadline_us(j));
	tlv_put_u64(out, INTENT_KIND,
	    j->manage == NULL && !j->is_static ? CONTEXT_TOOL
					       : INTENT_KIND_MANAGEMENT);
	if (j->task)
		tlv_put_u64(out, INTENT_TASK, 1);
}

void
intent_tlv(const struct job *j, struct buf *out)
{
	struct buf text;

	buf_init(&text, ARGUMENTS_KEPT);
	intent_tlv_bare(j, out);
	intent_arguments(j, &text);
	tlv_put(out, INTENT_ARGUMENTS, text.p, text.len);
	if (text.failed)
		out->failed = true;
	buf_free(&text);
}

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	char why[32] = "";

	if (err != NULL) {
		j->intent_cb(j, NULL, err);
		return;
	}
	(void)db_text(rows, 0, 0, why, sizeof(why));
	j->intent_cb(j, why, NULL);
}

static void send_intent(struct job *, const struct db_stmt *, db_cb *);

static void
inserted(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;

	if (err != NULL)
		j->intent_cb(j, NULL, err);
	else if (db_nrows(rows) == 1)
		j->intent_cb(j, "ok", NULL);
	else
		send_intent(j, &open_row, opened);
}

void
intent_params(const struct job *j, struct db_params *p, struct buf *text)
{
	intent_arguments(j, text);
	db_params_init(p);
	db_p_id(p, &j->execution);
	db_p_id(p, &j->version_id);
	db_p_hash(p, &j->version_hash);
	db_p_id(p, &j->epoch);
	db_p_time_us(p, j->limits_at);
	db_p_str(p, j->principal);
	db_p_str(
	    p, listener_name(j->inner != NULL ? LISTENER_ADMIND : j->listener));
	db_p_str(p, j->tool);
	db_p_hash(p, &j->args_sha256);
	db_p_bytes(p, text->p, text->len);
	db_p_str(p, j->client);
	db_p_str(p, j->protocol);
	db_p_time_us(p, j->created_us);
	db_p_time_us(p, deadline_us(j));
}

static void
send_intent(struct job *j, const struct db_stmt *stmt, db_cb *cb)
{
	struct db_params p;
	struct buf text;

	buf_init(&text, ARGUMENTS_KEPT);
	intent_params(j, &p, &text);
	intent_marks(j, &p);
	db_query(j->a->db, stmt, &p, cb, j);
	buf_free(&text);
}

void
intent_open(struct job *j, intent_cb *cb)
{
	j->intent_cb = cb;
	send_intent(j, &insert_row, inserted);
}
