/*
 * Inspects Python source, or a command, for a management tool. The code is
 * parsed in a runner, never here. It goes the same way as a call (intent row,
 * sealed, held, RUN), but admind itself is the listener and gets the result.
 * The runner's answer is foreign JSON, so admind-check takes it apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "crypto.h"
#include "ending.h"
#include "hold.h"
#include "ids.h"
#include "jobs.h"
#include "log.h"
#include "management_tools.h"
#include "step.h"
#include "version.h"

enum {
	INSPECT_TIMEOUT_MS = 10 * 1000,
	/* queue, start of a runner, its run, and the way back */
	INSPECT_WAIT_MS = QUEUE_MS + INSPECT_TIMEOUT_MS + 10 * 1000,
};

static const struct db_stmt open_row = {"inspect_open",
    "SELECT mcpbox.execution_open($1::uuid, 'inspect', NULL, NULL,"
    " $2::uuid, $3::text, 'admind', $4::text, $5::bytea, '{}', $6::text,"
    " $7::text, $8::timestamptz, $9::timestamptz)",
    DB_FAST};

struct inspect {
	struct job *j;
	struct ipc_id execution, epoch;
	struct ipc_hash args;
	uint64_t created_us;
	char name[EXPOSED_NAME_MAX + 1];
	bool command;
	void (*broken)(struct job *, const char *why); /* of the subject */
	struct buf material; /* the code, or the command's spec and path */
};

static void
inspect_free(struct inspect *in)
{
	buf_free(&in->material);
	free(in);
}

static uint64_t
deadline_us(const struct inspect *in)
{
	return in->created_us + INSPECT_WAIT_MS * UINT64_C(1000);
}

static void
intent_of(const struct inspect *in, struct buf *out)
{
	tlv_puts(out, INTENT_TOOL, in->name);
	tlv_puts(out, INTENT_PRINCIPAL, in->j->principal);
	tlv_put_u64(out, INTENT_LISTENER, LISTENER_ADMIND);
	tlv_put(out, INTENT_ARGS_SHA256, in->args.b, 32);
	tlv_put_u64(out, INTENT_CREATED_US, in->created_us);
	tlv_put_u64(out, INTENT_DEADLINE_US, deadline_us(in));
	tlv_put_u64(out, INTENT_KIND, CONTEXT_INSPECT);
	tlv_puts(out, INTENT_ARGUMENTS, "{}");
}

/* Ends the inspection and the job. closed: sandboxd's record will close the
 * row. */
static void
fail(struct inspect *in, bool closed, enum failure failure, const char *text)
{
	struct job *j = in->j;
	struct ending e = {.id = in->execution,
	    .epoch = in->epoch,
	    .outcome = OUTCOME_REFUSED,
	    .failure = failure,
	    .ended_us = now_us()};
	struct buf intent;

	buf_init(&intent, IPC_FRAME_MAX);
	intent_of(in, &intent);
	if (!intent.failed)
		e.intent = ipc_bytes(intent.p, intent.len);
	if (!closed)
		ending_close(j->a, &e);
	buf_free(&intent);
	if (failure == FAILURE_BAD_CODE && in->broken != NULL) {
		void (*broken)(struct job *, const char *) = in->broken;

		inspect_free(in);
		broken(j, text);
		return;
	}
	inspect_free(in);
	job_fail(j, failure, "%s", text);
}

/* ---- 5: the typed fields ---- */

static void
text_of(struct buf *b, const struct tlv *t)
{
	buf_put(b, t->p, t->n);
}

/* Tells the author enough to mend it: type, message, place, lines. */
static void
broken_code(struct job *j, bool command, struct ipc_bytes fields,
    void (*broken)(struct job *, const char *))
{
	struct tlv_reader r;
	struct tlv f;
	struct buf b;
	uint64_t n;

	buf_init(&b, RESULT_MAX / 4);
	if (broken == NULL)
		buf_puts(&b,
		    command ? "Error: the command cannot be used: "
			    : "Error: the code is broken: ");
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_TYPE, &f) == 1) {
		text_of(&b, &f);
		buf_puts(&b, ": ");
	}
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_MESSAGE, &f) == 1)
		text_of(&b, &f);
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_LINE, &f) == 1 &&
	    tlv_u64(&f, &n) == 0)
		buf_putf(&b, ", line %llu", (unsigned long long)n);
	if (tlv_find(fields.p, fields.n, INSPECT_ERROR_COLUMN, &f) == 1 &&
	    tlv_u64(&f, &n) == 0)
		buf_putf(&b, ", column %llu", (unsigned long long)n);
	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == INSPECT_ERROR_CONTEXT) {
			buf_putc(&b, '\n');
			text_of(&b, &f);
		}
	buf_putc(&b, '\0');
	if (broken != NULL)
		broken(j, b.failed ? "it is broken" : (const char *)b.p);
	else
		job_error(j, FAILURE_BAD_CODE,
		    b.failed ? "Error: the code is broken" : (const char *)b.p,
		    ipc_bytes(NULL, 0));
	buf_free(&b);
}

static void
taken_apart(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct inspect *in = arg;
	struct job *j = in->j;
	void (*broken)(struct job *, const char *) = in->broken;
	bool command = in->command;
	struct ipc_check_errors no;
	struct ipc_check_ok m;
	struct tlv t;
	uint64_t ok = 0;
	struct err err;

	inspect_free(in);
	if (f == NULL || f->type != IPC_CHECK_OK) {
		/* Its errors say which part of the signature is too large. */
		if (f != NULL && f->type == IPC_CHECK_ERRORS &&
		    ipc_decode(f, &no, NULL) == 0)
			err_set(&err, FAILURE_BAD_CODE, "%.*s",
			    no.summary.n < ERR_TEXT_MAX ? (int)no.summary.n : 0,
			    (const char *)no.summary.p);
		else
			answer_err(f, gone, &err);
		if (err.failure == FAILURE_BAD_CODE && broken != NULL)
			broken(j, err.text);
		else
			job_fail(j, err.failure, "%s", err.text);
		return;
	}
	if (ipc_decode(f, &m, &err) == -1 ||
	    tlv_find(m.fields.p, m.fields.n, INSPECT_OK, &t) != 1 ||
	    tlv_u64(&t, &ok) == -1) {
		job_fail(j, FAILURE_INTERNAL, "malformed inspection");
		return;
	}
	if (ok != 1)
		broken_code(j, command, m.fields, broken);
	else if (command !=
	    (tlv_find(m.fields.p, m.fields.n, INSPECT_EXECUTABLE_DIGEST, &t) ==
		1))
		job_fail(j, FAILURE_INTERNAL,
		    "the runner inspected another kind of tool");
	else
		j->next.fields(j, m.fields);
}

/* ---- 4: the inspection ran ---- */

/* Tells the author why it was not inspected, and how to mend that. */
static void
not_inspected(struct inspect *in, enum failure failure)
{
	char text[ERR_TEXT_MAX];
	const char *what = in->command ? "the command" : "the code";

	switch (failure) {
	case FAILURE_TIMEOUT:
		snprintf(text, sizeof(text),
		    "%s could not be inspected: timeout, it did not end within "
		    "%d s. What stands outside main runs then: move slow work "
		    "into main, and try again if the machine was busy",
		    what, INSPECT_TIMEOUT_MS / 1000);
		break;
	case FAILURE_LIMIT:
		snprintf(text, sizeof(text),
		    "%s could not be inspected: it met a limit (memory, CPU "
		    "time, processes or size of its schema). What stands "
		    "outside main runs then: move it into main",
		    what);
		break;
	default:
		snprintf(text, sizeof(text), "%s could not be inspected%s",
		    what,
		    in->command
			? ""
			: ": it must be one Python module with a function "
			  "main, and its import must not end the process");
	}
	if (failure == FAILURE_EXCEPTION || failure == FAILURE_LIMIT ||
	    failure == FAILURE_TIMEOUT)
		failure = FAILURE_BAD_CODE;
	fail(in, true, failure, text);
}

static void
ran(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct inspect *in = arg;
	struct ipc_call_result m;
	struct ipc_check_inspection c = {0};
	enum failure failure;
	struct err err;

	if (f != NULL && f->type == IPC_CALL_EVENT)
		return; /* nobody listens to an inspection's log */
	if (f == NULL || f->type != IPC_CALL_RESULT) {
		answer_err(f, gone, &err);
		if (f == NULL) {
			hold_cancel(in->j->a, &in->execution, FAILURE_KILLED);
			err_set(&err, FAILURE_SANDBOX_UNAVAILABLE,
			    "the sandbox ended during the inspection");
		}
		fail(in, true, err.failure, err.text);
		return;
	}
	if (ipc_decode(f, &m, &err) == -1 || m.body_len > m.body_meta.n) {
		fail(in, true, FAILURE_INTERNAL, "malformed result");
		return;
	}
	if (m.outcome != OUTCOME_DONE) {
		failure = m.failure > 0 && m.failure < FAILURE_COUNT
		    ? (enum failure)m.failure
		    : FAILURE_INTERNAL;
		not_inspected(in, failure);
		return;
	}
	c.json = ipc_bytes(m.body_meta.p, m.body_len);
	if (ask(in->j->a->check, IPC_CHECK_INSPECTION, &c, taken_apart, in,
		&err) == -1)
		fail(in, true, err.failure, err.text);
}

static void
held(void *arg, const struct err *err)
{
	struct inspect *in = arg;
	struct ipc_peer *peer = ipc_client_peer(in->j->a->sandboxd);
	struct ipc_run m = {
	    .execution = in->execution, .arguments = ipc_str("{}")};
	uint64_t id;

	if (err != NULL) {
		fail(in, false, err->failure, err->text);
		return;
	}
	if (peer == NULL ||
	    ipc_request(peer, IPC_RUN, &m, INSPECT_WAIT_MS, ran, in, &id) == -1)
		fail(in, true, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
}

/* ---- 3: sealed ---- */

static void
seal(struct inspect *in)
{
	struct job *j = in->j;
	struct buf material, intent;

	buf_init(&material, IPC_BLOB_MAX);
	buf_init(&intent, IPC_FRAME_MAX);
	intent_of(in, &intent);
	buf_put(&material, in->material.p, in->material.len);
	tlv_puts(&material, CTX_NAME, in->name);
	tlv_put(&material, CTX_ARGS_SHA256, in->args.b, 32);
	tlv_put_u64(&material, CTX_TIMEOUT_MS, INSPECT_TIMEOUT_MS);
	tlv_put_u64(&material, CTX_HOLD_UNTIL_MS, HOLD_MS);
	tlv_put(&material, CTX_INTENT, intent.p, intent.len);
	if (in->material.failed || material.failed || intent.failed)
		fail(in, false, FAILURE_BUSY, "out of memory");
	else
		hold_start(j->a, &in->execution, &in->epoch, LISTENER_ADMIND,
		    CONTEXT_INSPECT, ipc_bytes(material.p, material.len), held,
		    in);
	buf_free(&material);
	buf_free(&intent);
}

/* ---- 2: the row ---- */

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct inspect *in = arg;
	char why[32];

	if (err != NULL) {
		fail(in, err->failure != FAILURE_STORAGE_UNAVAILABLE,
		    err->failure, err->text);
		return;
	}
	if (!db_text(rows, 0, 0, why, sizeof(why)) || strcmp(why, "ok") != 0) {
		fail(in, true, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is restarting");
		return;
	}
	seal(in);
}

/* ---- 1 ---- */

void
job_inspect(struct job *j, const struct subject *what, const char *name,
    void (*next)(struct job *, struct ipc_bytes))
{
	uint8_t module[MODULES_PER_CALL_MAX][32];
	struct inspect *in;
	struct db_params p;
	size_t nmodules;
	struct err e;

	j->next.fields = next;
	if (what->code.n > CODE_MAX) {
		job_fail(
		    j, FAILURE_LIMIT, "code has at most %d bytes", CODE_MAX);
		return;
	}
	if (!j->a->sandbox_ready) {
		job_fail(j, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
		return;
	}
	/* Modules that the code imports when it is read must be mounted then,
	 * too. */
	if (version_modules(what->modules.p, what->modules.n, module, &nmodules,
		&e) == -1) {
		job_fail(j, e.failure, "%s", e.text);
		return;
	}
	in = calloc(1, sizeof(*in));
	if (in == NULL) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	in->j = j;
	in->epoch = j->a->sandbox_epoch;
	in->created_us = now_us();
	id_random(&in->execution);
	j->inspection = in->execution;
	sha256("{}", 2, &in->args);
	snprintf(in->name, sizeof(in->name), "%s", name);
	in->command = what->command;
	in->broken = what->broken;
	buf_init(&in->material, IPC_BLOB_MAX);
	for (size_t i = 0; i < nmodules; i++)
		tlv_put(&in->material, CTX_MODULE, module[i], 32);
	if (what->command) {
		tlv_puts(&in->material, CTX_KIND, "command");
		tlv_put(&in->material, CTX_SPEC, what->code.p, what->code.n);
		tlv_put(&in->material, CTX_EXECUTABLE, what->executable.p,
		    what->executable.n);
	} else {
		tlv_put(&in->material, CTX_CODE, what->code.p, what->code.n);
	}
	db_params_init(&p);
	db_p_id(&p, &in->execution);
	db_p_id(&p, &in->epoch);
	db_p_str(&p, j->principal);
	db_p_str(&p, in->name);
	db_p_hash(&p, &in->args);
	db_p_str(&p, j->client);
	db_p_str(&p, j->protocol);
	db_p_time_us(&p, in->created_us);
	db_p_time_us(&p, deadline_us(in));
	db_query(j->a->db, &open_row, &p, opened, in);
}
