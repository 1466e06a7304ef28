/*
 * Takes a tools/call of an approved tool through these steps, up to the id with
 * which the gateway may run the call:
 *
 *  lookup -> rates -> (secrets) -> arguments -> intent row -> RUN_ID
 *                                  sealing   -> held
 *
 * If a person must approve the call, the person is asked after the arguments
 * were checked (confirm.c). Such a call is sealed only after its row is
 * committed, because the row and the seal each use the approval up.
 *
 * Mostly the lookup (lookup.c) finds a remembered row (serving.c). The vault
 * seals the context while the arguments are checked. While the intent row is
 * being committed, the sandbox holds the context and may get a runner ready
 * (hold.c says why that is as safe as doing it afterwards).
 *
 * Nothing runs without the intent row. One statement commits the row and checks
 * again that this very version serves. So a revocation that committed before
 * wins, whatever was read earlier. From that commit on the execution ends in
 * exactly one record. A failure before RUN_ID closes the row here as refused.
 * After RUN_ID, sandboxd or the sweep closes it.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "activity.h"
#include "auth.h"
#include "call.h"
#include "context.h"
#include "hold.h"
#include "ids.h"
#include "inner.h"
#include "intent.h"
#include "jobs.h"
#include "limit.h"
#include "limits.h"
#include "log.h"
#include "name.h"
#include "narrow.h"
#include "regrant.h"
#include "tasks.h"
#include "tokens.h"

/* The most lookups of a job. The first may find an outdated remembered row, and
 * the second a row that is replaced just afterwards. So there may be a
 * third. */
enum { LOOKUPS_MAX = 3 };

/* The steps of a call, in order. Each ends the job or leads to the next. */
static void begin(struct job *);
static void admitted(struct job *);
static ipc_answer_cb checked;
static void valid(struct job *);
static void open_intent(struct job *);
static void opened(struct job *, const char *why, const struct err *);
static void held(void *arg, const struct err *);
static void regranted(void *arg, bool told);
static void go(struct job *);

/* Functions that the steps use. */
static bool judged(struct job *);
static void seal_early(struct job *);
static void seal_beside(struct job *);
static void seal(struct job *, bool early);
static void put_limits(struct buf *, const struct job *);
static void have_row(struct job *);
static void not_opened(struct job *, const char *why);
static const char *withdrawn(const struct job *);
static void note_run(const struct job *);

/* ---- 1: permission and rates ---- */

int
call_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_authorise m;
	struct job *j;
	struct err err;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	j = job_new(l, &m, &err);
	if (j == NULL) {
		auth_refused(l, m.tool, err.failure);
		link_refuse(l, m.request, err.failure, err.text);
		return 0;
	}
	if (l->a->started)
		begin(j);
	else
		j->parked = true;
	return 0;
}

void
call_started(struct admind *a)
{
	struct job *j;

	if (a->started)
		return;
	a->started = true;
	do {
		TAILQ_FOREACH(j, &a->jobs, entry)
			if (j->parked)
				break;
		if (j != NULL) {
			j->parked = false;
			begin(j); /* may free this and other jobs */
		}
	} while (j != NULL);
}

static void
begin(struct job *j)
{
	limits_begin(j, admitted);
}

static void
admitted(struct job *j)
{
	struct lack lack;

	if (!name_is_management(j->tool)) {
		if (token_may_call(j->a, j->token, j->listener, &lack) == -1)
			job_refuse_lack(j, &lack);
		else
			lookup_run(j);
	} else if (j->method == CALL_TOOL) {
		j->a->manage(j);
	} else {
		obstacle_unknown(j);
	}
}

/* Takes no rate token for the call, because the request that this call belongs
 * to has taken its tokens. j->known keeps limits_known() from taking more. */
void
call_inner(struct job *j)
{
	j->known = true;
	if (inner_is_person(j) && name_is_management(j->tool))
		j->a->manage(j);
	else
		lookup_run(j);
}

/* ---- 2: the version is known (lookup.c): check the arguments ---- */

void
call_check(struct job *j)
{
	struct ipc_check_arguments m = {0};
	struct buf both;
	struct err err;

	/* The request over REST ends long before a person answers. */
	if (j->confirm && inner_is_person(j)) {
		job_error(j, FAILURE_FORBIDDEN,
		    "each call of this tool waits for an approval, and a call "
		    "from the panel can't wait",
		    ipc_bytes(NULL, 0));
		return;
	}
	if (judged(j)) {
		j->a->metrics->remembered++;
		if (job_enter(j, JOB_CHECKING) == -1)
			job_refuse(j, FAILURE_INTERNAL, "internal state");
		else
			valid(j);
		return;
	}
	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, j->schema.p, j->schema.len);
	buf_put(&both, j->arguments.p, j->arguments.len);
	m.schema_len = (uint32_t)j->schema.len;
	m.schema_arguments = ipc_bytes(both.p, both.len);
	if (both.failed || job_enter(j, JOB_CHECKING) == -1)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else if (ask(j->a->check, IPC_CHECK_ARGUMENTS, &m, checked, j, &err) ==
	    -1)
		job_refuse(j, err.failure, err.text);
	else
		seal_early(j);
	buf_free(&both);
}

/*
 * Returns whether these arguments were found valid before (verdicts.h). If so,
 * the row can be sent at once, while the vault seals. Returns false if
 * admind-check is not connected: a remembered verdict counts only while
 * admind-check itself could be asked.
 */
static bool
judged(struct job *j)
{
	struct admind *a = j->a;

	j->judge_once = ipc_client_peer(a->check) != NULL &&
	    verdicts_key(j->principal, &j->version_hash,
		ipc_bytes(j->schema.p, j->schema.len), j->arguments.len,
		&j->args_sha256, &j->verdict);
	buf_clear(&j->kept);
	return j->judge_once &&
	    verdicts_find(&a->verdicts, &j->verdict, &j->kept);
}

/*
 * Seals the context while the arguments are checked. The vault and admind-check
 * work side by side, so a runner can be got ready sooner. A call that waits for
 * a person is not sealed before the person's answer. Any other call is sealed
 * later if a service that it needs is missing now.
 */
static void
seal_early(struct job *j)
{
	struct admind *a = j->a;

	if (j->is_static || j->confirm || j->task || !a->sandbox_ready ||
	    !db_is_up(a->db) || ipc_client_peer(a->vault) == NULL)
		return;
	j->epoch = a->sandbox_epoch;
	seal(j, true);
}

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct job *j = arg;
	struct ipc_check_errors m;
	struct ipc_check_ok ok;
	struct err err;
	char *summary;

	if (f != NULL && f->type == IPC_CHECK_OK &&
	    ipc_decode(f, &ok, &err) == 0) {
		buf_clear(&j->kept);
		buf_put(&j->kept, ok.kept.p, ok.kept.n);
		j->a->metrics->judged++;
		if (j->judge_once)
			verdicts_add(&j->a->verdicts, &j->verdict, ok.kept);
		valid(j);
		return;
	}
	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &m, &err) == 0) {
		summary = ipc_strdup(m.summary);
		job_error(j, FAILURE_INVALID_ARGUMENTS,
		    summary != NULL ? summary : "invalid arguments", m.json);
		free(summary);
		return;
	}
	answer_err(f, gone, &err);
	job_refuse(j, err.failure, err.text);
}

/* Goes on after the arguments were found valid. j->kept is filled. */
static void
valid(struct job *j)
{
	if (j->kept.failed)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else if (j->confirm)
		confirm_start(j, open_intent);
	else
		open_intent(j);
}

/* ---- 3: the intent row is committed, the context sealed and held ---- */

static void
open_intent(struct job *j)
{
	struct admind *a = j->a;

	if (j->is_static) {
		content_start(j, opened);
		return;
	}
	if (!a->sandbox_ready) {
		job_refuse(j, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
		return;
	}
	/* The INSERT is not sent, so it is certain that no row was made. */
	if (!db_is_up(a->db)) {
		job_refuse(j, FAILURE_STORAGE_UNAVAILABLE,
		    "the database is not reachable");
		return;
	}
	if (ipc_client_peer(a->vault) == NULL) {
		job_refuse(
		    j, FAILURE_VAULT_UNAVAILABLE, "the vault is not reachable");
		return;
	}
	if (job_enter(j, JOB_INTENT) == -1) {
		job_refuse(j, FAILURE_INTERNAL, "internal state");
		return;
	}
	/* If the sandbox restarted, it has a new key. Drop the context that was
	 * sealed for the old key. */
	if (j->hold != NULL &&
	    memcmp(&j->epoch, &a->sandbox_epoch, sizeof(j->epoch)) != 0) {
		hold_drop(j->hold);
		j->hold = NULL;
	}
	j->epoch = a->sandbox_epoch;
	if (j->confirm)
		confirm_open(j, opened);
	else if (j->task)
		tasks_open(j, opened);
	else
		intent_open(j, opened);
	if (!j->confirm)
		seal_beside(j);
}

/* Called when the row was sent: the context that was sealed early may go to
 * sandboxd now. If memory runs out for the arguments, the context is dropped,
 * and have_row() then refuses the job. */
static void
seal_beside(struct job *j)
{
	struct buf text;

	if (j->hold == NULL) {
		seal(j, false);
		return;
	}
	buf_init(&text, ARGUMENTS_KEPT);
	intent_arguments(j, &text);
	if (text.failed) {
		hold_drop(j->hold);
		j->hold = NULL;
	} else {
		hold_may(j->hold, ipc_bytes(text.p, text.len));
	}
	buf_free(&text);
}

/* Seals the job's context. early: the arguments are still being checked, so the
 * form in which records keep the arguments is not known yet. */
static void
seal(struct job *j, bool early)
{
	struct buf material, intent;

	buf_init(&material, IPC_BLOB_MAX);
	buf_init(&intent, IPC_FRAME_MAX);
	if (early)
		intent_tlv_bare(j, &intent);
	else
		intent_tlv(j, &intent);
	tlv_put(&material, CTX_PREIMAGE, j->preimage.p, j->preimage.len);
	tlv_put(&material, CTX_APPROVAL, j->seal.p, j->seal.len);
	buf_put(&material, j->secrets.p, j->secrets.len);
	buf_put(&material, j->grants.p, j->grants.len);
	tlv_put(&material, CTX_ARGS_SHA256, j->args_sha256.b, 32);
	tlv_put_u64(&material, CTX_TIMEOUT_MS, j->timeout_ms);
	put_limits(&material, j);
	tlv_put_u64(&material, CTX_HOLD_UNTIL_MS, HOLD_MS);
	tlv_put(&material, CTX_INTENT, intent.p, intent.len);
	if (j->task)
		tlv_put_u64(&material, CTX_TASK, 1);
	if (j->confirm)
		tlv_put(&material, CTX_CALL_APPROVAL, j->call_seal.p,
		    j->call_seal.len);
	/* A task is run by admind, so its context is sealed for admind's
	 * listener. No gateway could run the task, even with the id. */
	if (!material.failed && !intent.failed)
		j->hold = hold_seal(j->a, &j->execution, &j->epoch,
		    j->task ? LISTENER_ADMIND : j->listener, CONTEXT_TOOL,
		    ipc_bytes(material.p, material.len), held, j);
	if (early && j->hold != NULL)
		hold_wait(j->hold);
	buf_free(&material);
	buf_free(&intent);
}

/* Writes the job's limits. If the version sets a limit, the vault takes the
 * version's value, whatever is written here. */
static void
put_limits(struct buf *out, const struct job *j)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *t = limit_info((enum limit)i);

		if (t->context != 0 && t->context != CTX_TIMEOUT_MS &&
		    j->limits[i] != 0)
			tlv_put_u64(out, (uint8_t)t->context, j->limits[i]);
	}
}

static void
opened(struct job *j, const char *why, const struct err *err)
{
	if (err != NULL) {
		/* After STORAGE_UNAVAILABLE the row may have been committed, so
		 * it must be closed. */
		j->has_intent = err->failure == FAILURE_STORAGE_UNAVAILABLE;
		job_refuse(j, err->failure, err->text);
	} else if (strcmp(why, "ok") == 0) {
		have_row(j);
	} else {
		not_opened(j, why);
	}
}

/* Goes on after the row was committed. From now on the execution ends in one
 * record. */
static void
have_row(struct job *j)
{
	j->has_intent = true;
	/* The vault lets an approval be used once. So a confirmed call is
	 * sealed only now: a seal made earlier would spend the approval on a
	 * row that may have to be tried again. */
	if (j->confirm && !j->is_static && !j->revoked)
		seal(j, false);
	if (j->revoked)
		job_refuse(j, j->revoked_why, withdrawn(j));
	else if (j->is_static)
		job_result(j);
	else if (j->hold == NULL)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else if (job_enter(j, JOB_SEALING) == -1)
		job_refuse(j, FAILURE_INTERNAL, "internal state");
	else
		hold_go(j->hold); /* comes last: held() may be called, and may
				   * free j */
}

/* Goes on if no row was made. The remembered row may be out of date: the
 * server's limits or the serving version may have changed. If so, starts again
 * from the lookup. */
static void
not_opened(struct job *j, const char *why)
{
	bool stale = strcmp(why, "stale") == 0;
	enum failure f;

	hold_drop(j->hold);
	j->hold = NULL;
	serving_drop(&j->a->serving, j->tool);
	f = stale ? FAILURE_BUSY : failure_by_name(why);
	/* A new lookup reads the version that serves now. After FAILURE_STOPPED
	 * it also finds out who stopped the tool. */
	if ((j->remembered || stale || f == FAILURE_NOT_APPROVED ||
		f == FAILURE_STOPPED) &&
	    j->lookups < LOOKUPS_MAX) {
		lookup_run(j);
		return;
	}
	if (f == FAILURE_NOT_CONFIRMED)
		job_error(j, f,
		    "Error: the approval of this call was used by another one, "
		    "or has expired. Call again to ask for a new one.",
		    ipc_bytes(NULL, 0));
	else if (f == FAILURE_MISSING_GRANT)
		job_error(j, f,
		    "Error: a module or a host that the tool needs was "
		    "withdrawn just now; mcpbox_get_tool_status says which.",
		    ipc_bytes(NULL, 0));
	else if (f == FAILURE_LIMIT)
		/* This limit is not the tool's but mcpbox's, so the failure is
		 * BUSY. */
		job_refuse(j, FAILURE_BUSY,
		    "you have as many tasks as tasks_active lets work, or "
		    "tasks_kept lets be kept: let some end, or cancel them");
	else
		job_refuse(j, f, "the tool can't be called now");
}

/* ---- 4: sandboxd holds the call: the gateway may run it ---- */

/* Notes the run of an endpoint's client, so that it ends when its endpoint
 * loses something. Before this moment the job itself is found. A call that was
 * refused takes no place from a run. */
static void
note_run(const struct job *j)
{
	if (j->token != NULL && j->token->endpoint != NULL)
		narrow_ran(
		    j->a->access->narrowed, &j->execution, j->token->endpoint);
}

static void
held(void *arg, const struct err *err)
{
	struct job *j = arg;

	j->hold = NULL;
	if (err != NULL) {
		job_refuse(j, err->failure, err->text);
		return;
	}
	/* sandboxd holds the call and answers for it from now on. sandboxd's
	 * record closes the row; from here only a cancel can change how the
	 * call ends. */
	j->has_intent = false;
	note_run(j);
	limits_under_way(j);
	/* A confirmed call is sealed after its row. Its grants may have changed
	 * since the lookup read them, so sandboxd gets the present grants. */
	if (j->connects && j->confirm && j->regrants != j->a->regrants)
		regrant_run(j->a, regranted, j);
	else
		go(j);
}

/* Goes on if the sandbox has the present grants. Otherwise the call would run
 * with hosts that may have been withdrawn, so it ends here. */
static void
regranted(void *arg, bool told)
{
	struct job *j = arg;

	if (told || j->revoked) {
		go(j);
		return;
	}
	hold_cancel(j->a, &j->execution, FAILURE_KILLED);
	job_refuse(j, FAILURE_BUSY,
	    "the tool's hosts changed, and the sandbox could not be told; "
	    "call again");
}

static void
go(struct job *j)
{
	struct ipc_run_id m = {
	    .execution = j->execution, .timeout_ms = j->timeout_ms};
	char id[UUID_TEXT_LEN + 1];

	if (j->revoked) {
		hold_cancel(j->a, &j->execution, j->revoked_why);
		job_refuse(j, j->revoked_why, withdrawn(j));
		return;
	}
	if (j->inner != NULL) {
		inner_run(j);
		return;
	}
	if (j->link->peer == NULL) {
		hold_cancel(j->a, &j->execution, FAILURE_KILLED);
		job_refuse(j, FAILURE_KILLED, "the gateway went away");
		return;
	}
	if (j->task) {
		task_run_start(j);
		return;
	}
	uuid_text(&j->execution, id);
	log_call(LOG_LV_DEBUG, "authorised", id, j->principal, "%s", j->tool);
	(void)job_enter(j, JOB_DONE);
	link_answer(j->link, j->request, IPC_RUN_ID, &m);
	job_free(j);
}

/* Returns why a job was marked as revoked, for its client. */
static const char *
withdrawn(const struct job *j)
{
	if (j->revoked_why != FAILURE_KILLED)
		return "the tool was withdrawn";
	if (inner_is_person(j))
		return "the login that made this call has ended";
	return strncmp(j->principal, "oidc:", 5) == 0
	    ? "your rights were withdrawn or changed"
	    : "the token was revoked";
}
