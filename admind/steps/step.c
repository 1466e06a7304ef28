/* The steps with which management tools are written (step.h). manage.c has the
 * path of a call up to the tool's first step. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "catalogue.h"
#include "crypto.h"
#include "inner.h"
#include "jobs.h"
#include "management_tools.h"
#include "step.h"

/* ---- fields ---- */

int
job_field(const struct job *j, uint8_t tag, struct ipc_bytes *out)
{
	struct tlv t;

	if (tlv_find(j->fields.p, j->fields.len, tag, &t) != 1)
		return 0;
	*out = ipc_bytes(t.p, t.n);
	return 1;
}

uint64_t
job_number(const struct job *j, uint8_t tag, uint64_t absent)
{
	struct tlv t;
	uint64_t v;

	if (tlv_find(j->fields.p, j->fields.len, tag, &t) != 1 ||
	    tlv_u64(&t, &v) == -1)
		return absent;
	return v;
}

int
job_uuid(struct job *j, uint8_t tag, struct ipc_id *out)
{
	struct ipc_bytes b;

	if (job_field(j, tag, &b) == 0 || b.n != sizeof(out->b)) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS, "an id is missing");
		return -1;
	}
	memcpy(out->b, b.p, sizeof(out->b));
	return 0;
}

int
job_object_id(struct job *j, struct ipc_id *out)
{
	static const uint8_t ids[] = {MF_TOOL_ID, MF_PROMPT_ID, MF_RESOURCE_ID};
	struct ipc_bytes f;

	for (size_t i = 0; i < sizeof(ids); i++)
		if (job_field(j, ids[i], &f) == 1)
			return job_uuid(j, ids[i], out);
	return job_uuid(j, MF_TOOL_ID, out);
}

/* ---- the end ---- */

/* Copies the object without its closing brace, which job_done writes. */
void
job_out(struct job *j, struct ipc_bytes object)
{
	buf_clear(&j->out);
	buf_put(&j->out, object.p, object.n > 0 ? object.n - 1 : 0);
	j->json.comma = true;
}

void
job_done(struct job *j)
{
	struct jsonw w;

	jsonw_obj_end(&j->json);
	if (j->out.failed) {
		job_fail(j, FAILURE_LIMIT, "the result would be too large");
		return;
	}
	job_body(j, &w, j->out.p, j->out.len);
	jsonw_kv_raw(&w, "structuredContent", j->out.p, j->out.len);
	jsonw_obj_end(&w);
	if (j->body.failed) {
		job_fail(j, FAILURE_LIMIT, "the result would be too large");
		return;
	}
	job_result(j);
}

static void
announced(void *arg)
{
	job_done(arg);
}

void
job_done_changed(struct job *j)
{
	catalogue_announce(j->a, announced, j);
}

void
json_kv_message(struct job *j, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	jsonw_kv_str(&j->json, "message", text);
}

/*
 * Answers a failure of the platform as REFUSED (a JSON-RPC error), and any
 * other failure as an isError result, which the model can read and act on.
 */
void
job_fail(struct job *j, enum failure failure, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX + 8] = "Error: ";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + 7, sizeof(text) - 7, fmt, ap);
	va_end(ap);
	if (failure_info(failure)->side == FAILURE_PLATFORM) {
		j->is_error = true;
		j->failure = failure;
		job_close(j);
		job_refuse(j, failure, text + 7);
		return;
	}
	job_error(j, failure, text, ipc_bytes(NULL, 0));
}

static void
fail_err(struct job *j, const struct err *err)
{
	job_fail(j, err->failure, "%s", err->text);
}

/* Without this, a client could draft between the look and the act of a person.
 * All that the person leaves as it is would then be the client's content, under
 * the person's name. */
bool
job_seen(struct job *j, struct ipc_bytes newest)
{
	const struct ipc_hash *seen = inner_seen(j);
	struct ipc_hash hash;

	if (seen == NULL)
		return true;
	sha256(newest.p, newest.n, &hash);
	if (memcmp(seen, &hash, sizeof(hash)) == 0)
		return true;
	job_fail(j, FAILURE_HASH_MISMATCH,
	    "another version was made since the one that you read: read it "
	    "first");
	return false;
}

/* ---- steps ---- */

static void
query_done(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;

	if (err != NULL)
		fail_err(j, err);
	else
		j->next.rows(j, rows);
}

void
job_query(struct job *j, const struct db_stmt *stmt, const struct db_params *p,
    void (*next)(struct job *, const struct pg_result *))
{
	j->next.rows = next;
	db_query(j->a->db, stmt, p, query_done, j);
}

/* Answers the client with the errors of CHECK_ERRORS as a result, and with any
 * other unexpected frame as a failure. */
void
job_check_failed(struct job *j, struct ipc_frame *f, enum failure gone)
{
	struct ipc_check_errors m;
	char text[ERR_TEXT_MAX];
	struct err err;

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &m, &err) == 0) {
		snprintf(text, sizeof(text), "Error: %.*s",
		    m.summary.n < ERR_TEXT_MAX ? (int)m.summary.n : 0,
		    (const char *)m.summary.p);
		job_error(j, FAILURE_INVALID_ARGUMENTS, text, m.json);
		return;
	}
	answer_err(f, gone, &err);
	fail_err(j, &err);
}

static void
schema_checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct job *j = arg;
	struct ipc_check_ok m;

	if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &m, NULL) == -1) {
		job_check_failed(j, f, gone);
		return;
	}
	buf_clear(&j->inner_kept);
	buf_put(&j->inner_kept, m.kept.p, m.kept.n);
	if (j->inner_kept.failed)
		job_fail(j, FAILURE_BUSY, "out of memory");
	else
		j->next.plain(j);
}

void
job_check_command(struct job *j, struct ipc_bytes spec, struct ipc_bytes schema,
    void (*next)(struct job *))
{
	struct ipc_check_command m = {.spec_len = (uint32_t)spec.n};
	struct buf both;
	struct err err;

	j->next.plain = next;
	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, spec.p, spec.n);
	buf_put(&both, schema.p, schema.n);
	m.spec_schema = ipc_bytes(both.p, both.len);
	if (both.failed)
		job_fail(j, FAILURE_LIMIT, "the command is too large");
	else if (ask(j->a->check, IPC_CHECK_COMMAND, &m, schema_checked, j,
		     &err) == -1)
		fail_err(j, &err);
	buf_free(&both);
}

static void
http_checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct job *j = arg;
	struct ipc_check_ok m;

	if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &m, NULL) == -1)
		job_check_failed(j, f, gone);
	else
		j->next.fields(j, m.fields);
}

void
job_check_http(struct job *j, struct ipc_bytes spec, uint8_t confirm,
    void (*next)(struct job *, struct ipc_bytes))
{
	struct ipc_check_http m = {.confirm = confirm, .spec = spec};
	struct err err;

	j->next.fields = next;
	if (ask(j->a->check, IPC_CHECK_HTTP, &m, http_checked, j, &err) == -1)
		fail_err(j, &err);
}

void
job_check_arguments(struct job *j, struct ipc_bytes schema,
    struct ipc_bytes arguments, void (*next)(struct job *))
{
	struct ipc_check_arguments m = {.schema_len = (uint32_t)schema.n};
	struct buf both;
	struct err err;

	j->next.plain = next;
	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, schema.p, schema.n);
	buf_put(&both, arguments.p, arguments.n);
	m.schema_arguments = ipc_bytes(both.p, both.len);
	if (both.failed)
		job_fail(j, FAILURE_LIMIT, "the arguments are too large");
	else if (ask(j->a->check, IPC_CHECK_ARGUMENTS, &m, schema_checked, j,
		     &err) == -1)
		fail_err(j, &err);
	buf_free(&both);
}

void
job_check_render(struct job *j, struct ipc_bytes text,
    struct ipc_bytes arguments, void (*next)(struct job *))
{
	struct ipc_check_render m = {.text_len = (uint32_t)text.n};
	struct buf both;
	struct err err;

	j->next.plain = next;
	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, text.p, text.n);
	buf_put(&both, arguments.p, arguments.n);
	m.text_arguments = ipc_bytes(both.p, both.len);
	if (both.failed)
		job_fail(j, FAILURE_LIMIT, "the prompt is too large");
	else if (ask(j->a->check, IPC_CHECK_RENDER, &m, schema_checked, j,
		     &err) == -1)
		fail_err(j, &err);
	buf_free(&both);
}
