/*
 * Jobs. A job is one AUTHORISE, from its arrival to its one answer.
 */
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "auth.h"
#include "crypto.h"
#include "ending.h"
#include "endpoint.h"
#include "hold.h"
#include "ids.h"
#include "inner.h"
#include "intent.h"
#include "jobs.h"
#include "lack.h"
#include "limits.h"
#include "log.h"
#include "object.h"
#include "token.h"

static const char *const names[] = {
    "NEW", "LOOKUP", "CHECKING", "INTENT", "SEALING", "WORKING", "DONE"};

/* The states that may follow each state, as bits. Every state may end. */
#define TO(s) (1U << (s))
static const unsigned next_states[] = {
    [JOB_NEW] = TO(JOB_LOOKUP) | TO(JOB_CHECKING) | TO(JOB_DONE),
    [JOB_LOOKUP] = TO(JOB_LOOKUP) | TO(JOB_CHECKING) | TO(JOB_DONE),
    [JOB_CHECKING] = TO(JOB_INTENT) | TO(JOB_DONE),
    /* a new lookup is needed if the remembered row was out of date */
    [JOB_INTENT] =
	TO(JOB_SEALING) | TO(JOB_WORKING) | TO(JOB_LOOKUP) | TO(JOB_DONE),
    [JOB_SEALING] = TO(JOB_DONE),
    [JOB_WORKING] = TO(JOB_DONE),
    [JOB_DONE] = 0,
};
#undef TO

int
job_enter(struct job *j, enum job_state next)
{
	if ((next_states[j->state] & (1U << next)) == 0) {
		log_call(LOG_LV_ERR, "job_state", NULL, j->principal,
		    "%s: %s to %s is not permitted", j->tool, names[j->state],
		    names[next]);
		return -1;
	}
	j->state = next;
	return 0;
}

/*
 * Counts the job against its principal's share. Each share may hold a part of
 * all jobs, and all shares together may hold half of all jobs. So the users of
 * one token, and the tokens of one person, keep neither other users nor local
 * clients from being served. Returns 0, or -1 with FAILURE_BUSY.
 */
static int
take_share(struct job *j, struct token *t, struct err *err)
{
	struct admind *a = j->a;
	struct share *s;

	if (t == NULL)
		return 0;
	s = t->share;
	if (s->jobs >= TOKEN_JOBS_MAX ||
	    s->bytes + j->arguments.len > TOKEN_BYTES_MAX ||
	    a->token_jobs >= TOKENS_JOBS_MAX ||
	    a->token_bytes + j->arguments.len > TOKENS_BYTES_MAX)
		return err_set(err, FAILURE_BUSY,
		    "too many calls of this token are in work");
	j->token = token_ref(t);
	s->jobs++;
	j->token_bytes = j->arguments.len;
	s->bytes += j->token_bytes;
	a->token_jobs++;
	a->token_bytes += j->token_bytes;
	return 0;
}

static void
leave_share(struct job *j)
{
	struct token *t = j->token;

	if (t == NULL)
		return;
	t->share->jobs--;
	t->share->bytes -= j->token_bytes;
	j->a->token_jobs--;
	j->a->token_bytes -= j->token_bytes;
	token_unref(t);
}

/* Makes a job with the members that every job has. Returns NULL without
 * memory. */
static struct job *
make(struct link *l, struct ipc_bytes tool, struct ipc_bytes arguments,
    struct ipc_bytes client, struct ipc_bytes protocol)
{
	struct admind *a = l->a;
	struct job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	j->a = a;
	a->njobs++;
	TAILQ_INSERT_TAIL(&a->jobs, j, entry);
	j->link = link_ref(l);
	j->listener = l->listener;
	j->created_us = now_us();
	id_random(&j->execution);
	memcpy(j->tool, tool.p, tool.n);
	buf_init(&j->arguments, ARGUMENTS_MAX);
	buf_init(&j->kept, ARGUMENTS_KEPT);
	buf_init(&j->inner_kept, ARGUMENTS_KEPT);
	buf_init(&j->preimage, IPC_BLOB_MAX);
	buf_init(&j->schema, SCHEMA_MAX);
	buf_init(&j->seal, IPC_BLOB_MAX);
	buf_init(&j->secrets, IPC_BLOB_MAX);
	buf_init(&j->grants, IPC_BLOB_MAX);
	buf_init(&j->call_seal, IPC_FRAME_MAX);
	buf_init(&j->fields, IPC_BLOB_MAX);
	/* A management tool's result has its object twice: once as it is, and
	 * once escaped. A third of RESULT_MAX leaves room for both. */
	buf_init(&j->out, RESULT_MAX / 3);
	buf_init(&j->body, RESULT_MAX);
	buf_put(&j->arguments, arguments.p, arguments.n);
	a->job_bytes += j->arguments.len;
	sha256(arguments.p, arguments.n, &j->args_sha256);
	/* A client may give itself any name. A name that is too long is left
	 * out. */
	j->client = ipc_strdup(
	    ipc_bytes(client.p, client.n < PRINCIPAL_MAX ? client.n : 0));
	j->protocol = ipc_strdup(
	    ipc_bytes(protocol.p, protocol.n < PRINCIPAL_MAX ? protocol.n : 0));
	if (j->client == NULL || j->protocol == NULL || j->arguments.failed) {
		job_free(j);
		return NULL;
	}
	return j;
}

/*
 * Finds the tool that a client of an endpoint means. Its record, its approval
 * and its rights are those of the tool's own name; a name that the endpoint
 * gave to another tool is unknown. A call by mcpbox_call_tool needs that tool,
 * which gatewayd has taken apart already.
 */
static int
go_to(struct job *j, bool by_name, const struct token *t, struct err *err)
{
	struct ipc_bytes own;
	const char *sentence;
	enum failure f;

	if (t == NULL || t->endpoint == NULL)
		return 0;
	if (j->method != CALL_TOOL)
		return 0;
	own = endpoint_own(t->endpoint, ipc_str(j->tool));
	if (own.n == 0 || own.n > EXPOSED_NAME_MAX ||
	    (by_name &&
		permit_management(&t->permit, t->permit.scopes,
		    PERMIT_CALL_TOOL, &sentence) != FAILURE_NONE)) {
		f = object_unknown(j->method, &sentence);
		return err_set(err, f, "%s", sentence);
	}
	if (own.p != (const uint8_t *)j->tool) {
		memcpy(j->tool, own.p, own.n);
		j->tool[own.n] = '\0';
	}
	return 0;
}

/*
 * Makes a job from a gateway's request. The frame's bytes are copied: they live
 * only until the handler returns.
 */
struct job *
job_new(struct link *l, const struct ipc_authorise *m, struct err *err)
{
	struct admind *a = l->a;
	const char *sentence;
	struct job *j = NULL;
	struct auth who;
	enum failure f;

	if (a->njobs >= JOBS_MAX || ending_full(a) ||
	    a->job_bytes > JOBS_BYTES_MAX) {
		err_set(err, FAILURE_BUSY, "too many calls are in work");
		return NULL;
	}
	if (m->arguments.n > ARGUMENTS_MAX) {
		err_set(err, FAILURE_TOO_LARGE,
		    "arguments may have at most %d bytes", ARGUMENTS_MAX);
		return NULL;
	}
	if (m->method > CALL_RESOURCE) {
		err_set(err, FAILURE_INVALID_REQUEST, "unknown method");
		return NULL;
	}
	if (m->tool.n == 0 || m->tool.n > EXPOSED_NAME_MAX) {
		f = object_unknown((enum call_method)m->method, &sentence);
		err_set(err, f, "%s", sentence);
		return NULL;
	}
	j = make(l, m->tool, m->arguments, m->client, m->protocol);
	if (j == NULL)
		goto memory;
	j->request = m->request;
	j->task_wish = m->task;
	j->declared = m->declared;
	j->approval = m->approval;
	j->session = m->session;
	j->alike = m->alike;
	j->method = (enum call_method)m->method;
	(void)trace_parse(m->trace.p, m->trace.n, &j->trace);
	if (auth_principal(a, l->listener, m->via, m->credential, m->endpoint,
		&who, err) == -1 ||
	    go_to(j, m->by_name != 0, who.token, err) == -1 ||
	    take_share(j, who.token, err) == -1) {
		job_free(j);
		return NULL;
	}
	memcpy(j->principal, who.principal, sizeof(j->principal));
	return j;
memory:
	err_set(err, FAILURE_BUSY, "out of memory");
	return NULL;
}

/* Makes a job whose link has no peer, as if the gateway had gone: no process
 * waits for an answer. */
struct job *
job_inner(struct admind *a, const char *tool, const char *principal,
    struct ipc_bytes arguments, struct err *err)
{
	struct link *l = NULL;
	struct job *j = NULL;

	if (a->njobs >= JOBS_MAX || ending_full(a) ||
	    a->job_bytes > JOBS_BYTES_MAX) {
		err_set(err, FAILURE_BUSY, "too many calls are in work");
		return NULL;
	}
	if (strlen(tool) > EXPOSED_NAME_MAX || arguments.n > ARGUMENTS_MAX ||
	    strlen(principal) > PRINCIPAL_MAX) {
		err_set(err, FAILURE_INTERNAL, "malformed call");
		return NULL;
	}
	l = calloc(1, sizeof(*l));
	if (l != NULL) {
		l->a = a;
		l->listener = LISTENER_ADMIND;
		l->refs = 1;
		j = make(l, ipc_str(tool), arguments, ipc_str("mcpbox"),
		    ipc_str(""));
		link_unref(l);
	}
	if (j == NULL) {
		err_set(err, FAILURE_BUSY, "out of memory");
		return NULL;
	}
	j->method = CALL_TOOL;
	memcpy(j->principal, principal, strlen(principal) + 1);
	return j;
}

void
job_free(struct job *j)
{
	if (j == NULL)
		return;
	TAILQ_REMOVE(&j->a->jobs, j, entry);
	j->a->njobs--;
	j->a->job_bytes -= j->arguments.len;
	leave_share(j);
	link_unref(j->link);
	hold_drop(j->hold);
	if (j->free_data != NULL)
		j->free_data(j->data);
	free(j->client);
	free(j->protocol);
	buf_free(&j->arguments);
	buf_free(&j->kept);
	buf_free(&j->inner_kept);
	buf_free(&j->preimage);
	buf_free(&j->schema);
	buf_free(&j->grants);
	buf_free(&j->seal);
	buf_free(&j->secrets);
	buf_free(&j->call_seal);
	buf_free(&j->fields);
	buf_free(&j->out);
	buf_free(&j->body);
	free(j);
}

/* Closes the job's row. A crash of PostgreSQL may have lost the row, so the
 * ending has everything that is needed to write the row again. */
static void
close_row(struct job *j, struct ending *e)
{
	struct buf intent;

	buf_init(&intent, IPC_FRAME_MAX);
	intent_tlv(j, &intent);
	if (!intent.failed)
		e->intent = ipc_bytes(intent.p, intent.len);
	ending_close(j->a, e);
	buf_free(&intent);
	j->has_intent = false;
}

/* Closes the row of a job that this process answers, if the job has one. */
void
job_close(struct job *j)
{
	struct ending e = {.id = j->execution,
	    .epoch = j->epoch,
	    .outcome = j->is_error ? OUTCOME_FAILED : OUTCOME_DONE,
	    .failure = j->is_error ? j->failure : FAILURE_NONE,
	    .delivered = j->link->peer != NULL || inner_is_person(j),
	    .started_us = j->created_us,
	    .ended_us = now_us(),
	    .result = ipc_bytes(j->body.p, j->body.len)};

	if (j->result_elsewhere)
		e.result = ipc_bytes(NULL, 0);
	if (j->has_intent)
		close_row(j, &e);
}

/* Begins the body: {"content":[{"type":"text","text":TEXT}]. The caller adds
 * further members and closes the object. */
void
job_body(struct job *j, struct jsonw *w, const void *text, size_t n)
{
	buf_clear(&j->body);
	jsonw_open(w, &j->body);
	jsonw_obj(w);
	jsonw_name(w, "content");
	jsonw_arr(w);
	jsonw_obj(w);
	jsonw_kv_str(w, "type", "text");
	jsonw_kv_strn(w, "text", text, n);
	jsonw_obj_end(w);
	jsonw_arr_end(w);
}

/* Notes in the activity log a job that was refused before it had a row. */
static void
refused(const struct job *j, enum failure failure)
{
	if (failure == FAILURE_NONE || j->has_intent)
		return;
	activity_note(j->a, ACTIVITY_CALL_REFUSED, j->principal, j->listener,
	    j->tool, failure, 1);
	j->a->metrics->refused[failure]++;
}

/* Answers RESULT with the body and ends the job. */
void
job_result(struct job *j)
{
	struct ipc_result r = {.is_error = j->is_error,
	    .failure = (uint16_t)(j->is_error ? j->failure : 0),
	    .fix = ipc_str(j->is_error ? j->fix : ""),
	    .body = ipc_bytes(j->body.p, j->body.len)};
	char id[UUID_TEXT_LEN + 1];

	refused(j, j->is_error ? j->failure : FAILURE_NONE);
	uuid_text(&j->execution, id);
	log_call(LOG_LV_INFO, "answered", id, j->principal, "%s: %s", j->tool,
	    j->is_error ? failure_info(j->failure)->name : "done");
	limits_ended(j, j->is_error ? j->failure : FAILURE_NONE);
	job_close(j);
	(void)job_enter(j, JOB_DONE);
	link_answer(j->link, j->request, IPC_RESULT, &r);
	inner_answered(j);
	inner_refused(j, j->failure, "it did not run");
	job_free(j);
}

/* Refuses a job of prompts/get or resources/read, whose results have no
 * isError. The list becomes the member `errors` of the error's data. */
static void
refuse_with_list(struct job *j, enum failure failure, const char *summary,
    struct ipc_bytes list)
{
	struct buf data;

	buf_init(&data, RESULT_MAX);
	if (list.n > 0) {
		buf_puts(&data, "\"errors\":");
		buf_put(&data, list.p, list.n);
	}
	buf_putc(&data, '\0');
	if (failure == FAILURE_INVALID_ARGUMENTS)
		failure = FAILURE_INVALID_PARAMS;
	job_refuse_data(
	    j, failure, summary, data.failed ? "" : (const char *)data.p);
	buf_free(&data);
}

/*
 * Answers an isError result, for failures that the client, or its model, can
 * mend. list is JSON text (all errors of a check), shown after the summary.
 */
void
job_error(struct job *j, enum failure failure, const char *summary,
    struct ipc_bytes list)
{
	struct buf text;
	struct jsonw w;

	if (j->method != CALL_TOOL) {
		refuse_with_list(j, failure, summary, list);
		return;
	}
	if (j->inner != NULL && !inner_is_person(j)) {
		job_refuse(j, failure, summary);
		return;
	}
	buf_init(&text, RESULT_MAX / 2);
	buf_puts(&text, summary);
	if (list.n > 0) {
		buf_putc(&text, '\n');
		buf_put(&text, list.p, list.n);
	}
	j->is_error = true;
	j->failure = failure;
	j->fix = failure_fix(failure, summary, strlen(summary));
	job_body(j, &w, text.p, text.len);
	jsonw_kv_bool(&w, "isError", true);
	jsonw_obj_end(&w);
	if (text.failed || j->body.failed) {
		buf_clear(&j->body);
		job_close(j);
		job_refuse(j, failure, summary);
	} else {
		job_result(j);
	}
	buf_free(&text);
}

/*
 * Ends a job whose call did not run. If the job has a row, the row is closed as
 * refused before the client is told.
 */
void
job_refuse_data(
    struct job *j, enum failure failure, const char *message, const char *data)
{
	char id[UUID_TEXT_LEN + 1];

	refused(j, failure);
	uuid_text(&j->execution, id);
	log_call(LOG_LV_INFO, "refused", id, j->principal, "%s: %s: %s",
	    j->tool, failure_info(failure)->name, message);
	limits_ended(j, failure);
	if (j->has_intent) {
		struct ending e = {.id = j->execution,
		    .epoch = j->epoch,
		    .outcome = OUTCOME_REFUSED,
		    .failure = failure,
		    .ended_us = now_us()};

		close_row(j, &e);
	}
	(void)job_enter(j, JOB_DONE);
	if (j->lack != NULL)
		link_refuse_lack(j->link, j->request, j->lack);
	else
		link_refuse_later(
		    j->link, j->request, failure, message, j->retry_ms, data);
	inner_refused(j, failure, message);
	job_free(j);
}

void
job_refuse(struct job *j, enum failure failure, const char *message)
{
	job_refuse_data(j, failure, message, "");
}

void
job_refuse_lack(struct job *j, const struct lack *lack)
{
	j->lack = lack;
	job_refuse(j, FAILURE_FORBIDDEN, lack->text);
}
