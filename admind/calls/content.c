/*
 * Static prompts and resources: the approved content is the answer itself, so
 * no runner is needed.
 *
 *  (rendered) -> result made -> intent row -> RESULT, row closed
 *
 * The bytes come from the pre-image of the serving version. The INSERT of the
 * row checks again that this version serves, so content that was withdrawn
 * before is not sent. The vault is not asked. It guards code that runs with
 * secrets in the sandbox. Asking it about content would not help: an attacker
 * who has taken over this process can send a gateway any RESULT anyway.
 */
#include "call.h"
#include "intent.h"
#include "jobs.h"
#include "json_kv.h"
#include "version.h"

static const struct db_stmt open_row = {"content_open",
    "SELECT mcpbox.execution_marked(mcpbox.static_open($1::uuid, $2::uuid,"
    " $3::bytea, $4::uuid, $5::text, $6::text, $7::text, $8::bytea, $9::text,"
    " $10::text, $11::text, $12::timestamptz, $13::timestamptz), $1::uuid,"
    " $14::uuid, $15::bytea, $16::uuid)",
    DB_FAST};

/* Returns a field of the version, or empty if the version lacks it. */
static struct ipc_bytes
field(const struct job *j, uint8_t tag)
{
	const uint8_t *list;
	struct tlv t;
	size_t n;

	if (version_check(j->preimage.p, j->preimage.len, &list, &n, NULL) ==
		-1 ||
	    tlv_find(list, n, tag, &t) != 1)
		return ipc_bytes(NULL, 0);
	return ipc_bytes(t.p, t.n);
}

/* ---- 2: the row ---- */

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	char why[32] = "";

	if (err == NULL)
		(void)db_text(rows, 0, 0, why, sizeof(why));
	j->intent_cb(j, why, err);
}

static void
open_intent(struct job *j)
{
	struct db_params p;
	struct buf text;

	if (j->body.failed) {
		job_error(j, FAILURE_LIMIT, "the result would be too large",
		    ipc_bytes(NULL, 0));
		return;
	}
	if (!j->a->epoch_stored || !db_is_up(j->a->db)) {
		job_refuse(j, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
		return;
	}
	if (job_enter(j, JOB_INTENT) == -1) {
		job_refuse(j, FAILURE_INTERNAL, "internal state");
		return;
	}
	j->epoch = j->a->epoch;
	buf_init(&text, ARGUMENTS_KEPT);
	intent_arguments(j, &text);
	db_params_init(&p);
	db_p_id(&p, &j->execution);
	db_p_id(&p, &j->version_id);
	db_p_hash(&p, &j->version_hash);
	db_p_id(&p, &j->epoch);
	db_p_str(&p, j->principal);
	db_p_str(&p, listener_name(j->listener));
	db_p_str(&p, j->tool);
	db_p_hash(&p, &j->args_sha256);
	db_p_bytes(&p, text.p, text.len);
	db_p_str(&p, j->client);
	db_p_str(&p, j->protocol);
	db_p_time_us(&p, j->created_us);
	db_p_time_us(
	    &p, j->created_us + MANAGEMENT_DEADLINE_MS * UINT64_C(1000));
	intent_marks(j, &p);
	db_query(j->a->db, &open_row, &p, opened, j);
	buf_free(&text);
}

/* ---- 1: the result ---- */

/* Makes the result of a resource. The gateway, which knows the requested URI,
 * adds the URI. */
static void
resource(struct job *j)
{
	struct ipc_bytes mime = field(j, VERSION_MIME_TYPE);
	struct ipc_bytes text = field(j, VERSION_TEXT);
	struct ipc_bytes blob = field(j, VERSION_BLOB);
	struct jsonw w;

	buf_clear(&j->body);
	jsonw_open(&w, &j->body);
	jsonw_obj(&w);
	jsonw_name(&w, "contents");
	jsonw_arr(&w);
	jsonw_obj(&w);
	if (mime.n > 0)
		json_kv_bytes(&w, "mimeType", mime);
	if (blob.p != NULL)
		json_kv_bytes(&w, "blob", blob);
	else
		json_kv_bytes(&w, "text", text);
	jsonw_obj_end(&w);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	open_intent(j);
}

static void
rendered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct job *j = arg;
	struct ipc_bytes about = field(j, VERSION_DESCRIPTION);
	struct ipc_check_errors no;
	struct ipc_check_ok m;
	struct jsonw w;
	struct err err;

	if (f == NULL || f->type != IPC_CHECK_OK) {
		answer_err(f, gone, &err);
		if (f != NULL && f->type == IPC_CHECK_ERRORS &&
		    ipc_decode(f, &no, NULL) == 0)
			err_set(&err,
			    no.failure == FAILURE_LIMIT ? FAILURE_LIMIT
							: FAILURE_INTERNAL,
			    "the prompt cannot be made: %.*s",
			    no.summary.n < ERR_TEXT_MAX / 2 ? (int)no.summary.n
							    : 0,
			    (const char *)no.summary.p);
		job_refuse(j, err.failure, err.text);
		return;
	}
	/* m.fields is {"messages":[...]}. If the prompt has a description, it
	 * is put as the first member. */
	if (ipc_decode(f, &m, NULL) == -1 || m.fields.n < 2) {
		job_refuse(j, FAILURE_INTERNAL, "malformed prompt");
		return;
	}
	buf_clear(&j->body);
	if (about.n > 0) {
		buf_puts(&j->body, "{\"description\":");
		jsonw_open(&w, &j->body);
		jsonw_strn(&w, about.p, about.n);
		buf_putc(&j->body, ',');
		buf_put(&j->body, m.fields.p + 1, m.fields.n - 1);
	} else {
		buf_put(&j->body, m.fields.p, m.fields.n);
	}
	open_intent(j);
}

static void
prompt(struct job *j)
{
	struct ipc_bytes text = field(j, VERSION_TEXT);
	struct ipc_check_render m = {.text_len = (uint32_t)text.n};
	struct buf both;
	struct err err;

	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, text.p, text.n);
	buf_put(&both, j->arguments.p, j->arguments.len);
	m.text_arguments = ipc_bytes(both.p, both.len);
	if (both.failed)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else if (ask(j->a->check, IPC_CHECK_RENDER, &m, rendered, j, &err) ==
	    -1)
		job_refuse(j, err.failure, err.text);
	buf_free(&both);
}

void
content_start(struct job *j, intent_cb *cb)
{
	j->intent_cb = cb;
	if (j->method == CALL_PROMPT)
		prompt(j);
	else
		resource(j);
}
