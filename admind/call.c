/*
 * tools/call of an approved tool, up to the id that lets it run:
 *
 *	lookup -> rates -> (secrets) -> arguments -> intent row      -> RUN_ID
 *	                                             sealing -> held
 *
 * A call that a person must have said yes to is asked about behind arguments
 * (confirm.c), and sealed behind its row: the yes is used up by both.
 *
 * The lookup is mostly remembered (serving.c). While the intent row is being
 * committed the vault seals, the sandbox holds and may get a runner ready
 * (hold.c says why that is as safe as doing it afterwards).
 *
 * Nothing runs without the intent row: it is committed by one statement that
 * checks again that this very version serves, so a revocation that committed
 * before wins, whatever was read earlier. From that commit on the execution
 * ends in exactly one record: any failure before RUN_ID closes it here as
 * refused, after it sandboxd or the sweep does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admind.h"
#include "context.h"
#include "ids.h"
#include "inner.h"
#include "limit.h"
#include "limits.h"
#include "log.h"
#include "oauth.h"
#include "tasks.h"
#include "tokens.h"

/* The version's own limit, else its server's, else 0: the configured one. */
#define LIMIT_SQL(SYMBOL, name, unit, min, max, context, version, reason) \
	", coalesce(v." name ", l." name ", 0)"

/* Columns of lookup; limits from C_LIMITS on, in the table's order. */
enum {
	C_ID,
	C_HASH,
	C_PREIMAGE,
	C_SCHEMA,
	C_SEAL,
	C_CALLABLE,
	C_SECRETS,
	C_REVOKED,
	C_MISSING, /* a grant, as a sentence */
	C_TASK,
	C_OBJECT,
	C_STATIC,
	C_REQUIRED,
	C_CONFIRM,
	C_LIMITS_AT,
	C_SERVER,
	C_NAME,
	C_GRANTS, /* material of the context; null: it needs no host */
	C_LIMITS
};

/* A remembered row, one that was just replaced, and one more. */
enum { LOOKUPS_MAX = 3 };

static const struct db_stmt lookup = {"call_lookup",
    "SELECT v.id, v.hash, v.preimage, v.input_schema, a.seal,"
    " s.status = 'running' AND t.enabled,"
    " cardinality(v.secrets), (SELECT x.state = 'revoked'"
    " FROM mcpbox.tool_versions x WHERE x.tool_id = t.id"
    " ORDER BY x.version_no DESC LIMIT 1),"
    " CASE WHEN v.modules <> '{}' OR v.requires <> '{}' THEN"
    " mcpbox.grant_missing(s.id, t.id, v.modules, v.requires) END,"
    " v.task, t.object,"
    " v.kind = 'static', (SELECT bit_or(CASE c WHEN 'elicitation' THEN 1"
    " WHEN 'elicitation.url' THEN 2 WHEN 'sampling' THEN 4"
    " WHEN 'sampling.tools' THEN 8 WHEN 'roots' THEN 16"
    " WHEN 'tasks' THEN 32 END) FROM unnest(v.client_capabilities) c),"
    " mcpbox.call_confirms(v.confirm, t.object, v.annotations),"
    " CASE WHEN v.requires = '{}' THEN l.updated_at"
    " ELSE mcpbox.limits_at(l.updated_at, s.id, v.requires) END,"
    " s.name, t.name,"
    " CASE WHEN v.requires <> '{}' THEN"
    " mcpbox.network_material(s.id, v.requires) END" LIMITS(LIMIT_SQL,
	LIMIT_SQL) " FROM mcpbox.tool_names n JOIN mcpbox.tools t ON t.id = "
		   "n.tool_id"
		   " JOIN mcpbox.servers s ON s.id = t.server_id"
		   " LEFT JOIN mcpbox.tool_versions v ON v.id = "
		   "t.serving_version"
		   " AND v.exposed_name = n.exposed_name"
		   " LEFT JOIN mcpbox.approval_seals a ON a.subject = v.id"
		   " LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id"
		   " WHERE n.exposed_name = $1::text",
    DB_FAST};
/* Every secret the version names, with its stored (encrypted) value. */
static const struct db_stmt secrets = {"call_secrets",
    "SELECT k.key, x.value, (SELECT e.id FROM mcpbox.external_sources e"
    " WHERE e.server_id = v.server_id AND e.auth_type = 'oauth'"
    " AND e.auth_secret_name = k.key AND e.oauth_refreshable"
    " AND e.oauth_expires_at < clock_timestamp() + interval '60 seconds')"
    " FROM mcpbox.tool_versions v,"
    " unnest(v.secrets) AS k (key)"
    " LEFT JOIN mcpbox.server_secrets x"
    " ON x.key = k.key AND x.server_id ="
    " (SELECT server_id FROM mcpbox.tool_versions WHERE id = $1::uuid)"
    " WHERE v.id = $1::uuid ORDER BY k.key COLLATE \"C\"",
    DB_FAST};

/* ---- 4: held: the gateway may run it ---- */

/* Why a job was marked as revoked, for its client. */
static const char *
withdrawn(const struct job *j)
{
	return j->revoked_why == FAILURE_KILLED ? "the token was revoked"
						: "the tool was withdrawn";
}

static void go(void *arg);

static void
held(void *arg, const struct err *err)
{
	struct job *j = arg;

	j->hold = NULL;
	if (err != NULL) {
		job_refuse(j, err->failure, err->text);
		return;
	}
	/* Held, so sandboxd will answer for it: its record closes the row,
	 * and only the cancel decides how. */
	j->has_intent = false;
	limits_under_way(j);
	/* Sealed behind its row: perhaps behind a REGRANT that it needs. */
	if (j->connects && j->confirm && j->regrants != j->a->regrants)
		regrant_run(j->a, go, j);
	else
		go(j);
}

static void
go(void *arg)
{
	struct job *j = arg;
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

/* ---- 3: the intent row; meanwhile, sealed for this sandbox and held ---- */

/* What the version sets itself the vault takes from the version, whatever
 * stands here: this is for those that come from the server. */
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
seal(struct job *j)
{
	struct buf material, intent;

	buf_init(&material, IPC_BLOB_MAX);
	buf_init(&intent, IPC_FRAME_MAX);
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
	/* A task is run by admind: no gateway could, had it the id. */
	if (!material.failed && !intent.failed)
		j->hold = hold_seal(j->a, &j->execution, &j->epoch,
		    j->task ? LISTENER_ADMIND : j->listener, CONTEXT_TOOL,
		    ipc_bytes(material.p, material.len), held, j);
	buf_free(&material);
	buf_free(&intent);
}

static void look_up(struct job *);

/* No row was made. What was remembered, the server's limits, or which version
 * serves may have changed since: then once more, from the lookup on. */
static void
not_opened(struct job *j, const char *why)
{
	bool stale = strcmp(why, "stale") == 0;
	enum failure f;

	hold_drop(j->hold);
	j->hold = NULL;
	serving_drop(&j->a->serving, j->tool);
	f = stale ? FAILURE_BUSY : failure_by_name(why);
	if ((j->remembered || stale || f == FAILURE_NOT_APPROVED) &&
	    j->lookups < LOOKUPS_MAX) {
		look_up(j);
		return;
	}
	if (f == FAILURE_NOT_CONFIRMED)
		job_error(j, f,
		    "Error: the approval of this call was used by another one, "
		    "or has expired. Call again to ask for a new one.",
		    ipc_bytes(NULL, 0));
	else if (f == FAILURE_MISSING_GRANT)
		job_error(j, f, "a module was withdrawn just now",
		    ipc_bytes(NULL, 0));
	else if (f == FAILURE_LIMIT)
		job_error(j, f,
		    "Error: you have as many tasks as tasks_active lets work, "
		    "or tasks_kept lets be kept: let some end, or cancel them.",
		    ipc_bytes(NULL, 0));
	else
		job_refuse(j, f, "the tool can't be called now");
}

/* The row is committed: from here on the execution ends in one record. */
static void
have_row(struct job *j)
{
	j->has_intent = true;
	/* The vault lets a yes be used once: not for a row that may have to be
	 * tried again. */
	if (j->confirm && !j->is_static && !j->revoked)
		seal(j);
	if (j->revoked)
		job_refuse(j, j->revoked_why, withdrawn(j));
	else if (j->is_static)
		job_result(j);
	else if (j->hold == NULL)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else if (job_enter(j, JOB_SEALING) == -1)
		job_refuse(j, FAILURE_INTERNAL, "internal state");
	else
		hold_go(j->hold); /* last: may run held, which frees j */
}

static void
opened(struct job *j, const char *why, const struct err *err)
{
	if (err != NULL) {
		/* The commit may have happened. */
		j->has_intent = err->failure == FAILURE_STORAGE_UNAVAILABLE;
		job_refuse(j, err->failure, err->text);
	} else if (strcmp(why, "ok") == 0) {
		have_row(j);
	} else {
		not_opened(j, why);
	}
}

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
	/* Not even sent: so there is no doubt whether a row was made. */
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
	j->epoch = a->sandbox_epoch;
	if (j->confirm)
		confirm_open(j, opened);
	else if (j->task)
		tasks_open(j, opened);
	else
		intent_open(j, opened);
	if (!j->confirm)
		seal(j);
}

/* ---- 2: arguments ---- */

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
		if (j->kept.failed) {
			job_refuse(j, FAILURE_BUSY, "out of memory");
			return;
		}
		if (j->confirm)
			confirm_start(j, open_intent);
		else
			open_intent(j);
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

static void
check(struct job *j)
{
	struct ipc_check_arguments m = {0};
	struct buf both;
	struct err err;

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
	buf_free(&both);
}

/* ---- 1: which version serves ---- */

static void within_limits(struct job *);

/* The tokens are new now, or it could not be: the call that uses them will
 * say so better. */
static void
refreshed(void *arg, const struct sources_end *e)
{
	(void)e;
	within_limits(arg);
}

static void
got_secrets(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	struct ipc_bytes name, value;
	char text[400];

	if (err != NULL) {
		job_refuse(j, err->failure, err->text);
		return;
	}
	for (int i = 0; i < db_nrows(rows) && !j->fresh_tokens; i++)
		if (!db_null(rows, i, 2)) {
			struct ipc_id source = db_id(rows, i, 2);

			j->fresh_tokens = true;
			oauth_refresh(j->a, &source, refreshed, j);
			return;
		}
	for (int i = 0; i < db_nrows(rows); i++) {
		name = db_bytes(rows, i, 0);
		value = db_bytes(rows, i, 1);
		if (value.n == 0 && inner_may_lack_secrets(j))
			continue;
		if (value.n == 0) {
			snprintf(text, sizeof(text),
			    "The secret %.*s that this tool needs has no value "
			    "yet; an administrator sets it.",
			    (int)name.n, (const char *)name.p);
			job_error(
			    j, FAILURE_MISSING_GRANT, text, ipc_bytes(NULL, 0));
			return;
		}
		tlv_put(&j->secrets, CTX_SECRET_NAME, name.p, name.n);
		tlv_put(&j->secrets, CTX_SECRET_VALUE, value.p, value.n);
	}
	if (j->secrets.failed)
		job_refuse(j, FAILURE_BUSY, "out of memory");
	else
		check(j);
}

static void
take(struct buf *b, struct ipc_bytes from)
{
	buf_put(b, from.p, from.n);
}

/* It may be called, and not too often. */
static void
within_limits(struct job *j)
{
	struct db_params p;

	if (!j->has_secrets) {
		check(j);
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &j->version_id);
	db_query(j->a->db, &secrets, &p, got_secrets, j);
}

static void
found(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct job *j = arg;
	struct ipc_bytes hash;

	if (err != NULL) {
		job_refuse(j, err->failure, err->text);
		return;
	}
	/* What a token may not see is not there for it: no answer tells the
	 * two apart. */
	if (db_nrows(rows) != 1 ||
	    !(j->inner != NULL
		    ? ipc_streq(db_bytes(rows, 0, C_OBJECT), "source")
		    : object_fits(db_bytes(rows, 0, C_OBJECT), j->method)) ||
	    !token_permits(j->token, j->tool, db_bytes(rows, 0, C_SERVER),
		db_bytes(rows, 0, C_NAME))) {
		obstacle_unknown(j);
		return;
	}
	if (!db_bool(rows, 0, C_CALLABLE)) {
		job_refuse(j, FAILURE_STOPPED,
		    "the tool's server is stopped, or the tool disabled");
		return;
	}
	hash = db_bytes(rows, 0, C_HASH);
	if (db_null(rows, 0, C_ID) || hash.n != sizeof(j->version_hash.b)) {
		if (db_bool(rows, 0, C_REVOKED))
			job_refuse(j, FAILURE_REVOKED,
			    "the tool's approval was withdrawn");
		else
			job_refuse(j, FAILURE_NOT_APPROVED,
			    "no version of this tool is approved");
		return;
	}
	j->version_id = db_id(rows, 0, C_ID);
	memcpy(j->version_hash.b, hash.p, hash.n);
	take(&j->preimage, db_bytes(rows, 0, C_PREIMAGE));
	take(&j->schema, db_bytes(rows, 0, C_SCHEMA));
	take(&j->seal, db_bytes(rows, 0, C_SEAL));
	take(&j->grants, db_bytes(rows, 0, C_GRANTS));
	j->connects = !db_null(rows, 0, C_GRANTS);
	j->regrants = j->a->regrants;
	for (int i = 0, column = C_LIMITS; i < LIMIT_COUNT; i++)
		if (limit_info((enum limit)i)->version != 0)
			j->limits[i] = (uint64_t)db_int(rows, 0, column++);
	j->is_static = db_bool(rows, 0, C_STATIC);
	j->confirm = db_bool(rows, 0, C_CONFIRM);
	j->limits_at = db_time_us(rows, 0, C_LIMITS_AT);
	j->timeout_ms = j->limits[LIMIT_TIMEOUT_MS];
	if (j->timeout_ms == 0)
		j->timeout_ms =
		    (uint64_t)conf_int(j->a->proc.conf, "call_timeout");
	if (j->limits[LIMIT_ARGUMENT_BYTES] == 0)
		j->limits[LIMIT_ARGUMENT_BYTES] =
		    (uint64_t)conf_int(j->a->proc.conf, "argument_bytes");
	/* A server's limit may have been raised since it was remembered, and no
	 * INSERT will say so of a call that is refused here. */
	if (j->remembered &&
	    j->arguments.len > j->limits[LIMIT_ARGUMENT_BYTES]) {
		serving_drop(&j->a->serving, j->tool);
		look_up(j);
		return;
	}
	if (obstacle_mendable(j, db_bytes(rows, 0, C_MISSING)) ||
	    obstacle_undeclared(j,
		db_null(rows, 0, C_REQUIRED)
		    ? 0
		    : (uint32_t)db_int(rows, 0, C_REQUIRED)))
		return;
	if (j->preimage.failed || j->schema.failed || j->seal.failed ||
	    j->grants.failed) {
		job_refuse(j, FAILURE_BUSY, "out of memory");
		return;
	}
	if (tasks_decide(j, db_bytes(rows, 0, C_TASK)) == -1)
		return;
	if (!j->remembered)
		serving_add(&j->a->serving, j->tool, rows,
		    sizeof(*j) + j->preimage.len + j->schema.len +
			j->seal.len + j->grants.len);
	j->has_secrets = db_int(rows, 0, C_SECRETS) > 0;
	limits_known(j, within_limits);
}

static void
look_up(struct job *j)
{
	const struct pg_result *row = NULL;
	struct db_params p;

	if (job_enter(j, JOB_LOOKUP) == -1) {
		job_refuse(j, FAILURE_INTERNAL, "internal state");
		return;
	}
	buf_clear(&j->preimage);
	buf_clear(&j->schema);
	buf_clear(&j->seal);
	buf_clear(&j->grants);
	buf_clear(&j->secrets);
	/* Only at first: what comes back from the INSERT is read anew. */
	if (j->lookups++ == 0)
		row = serving_find(&j->a->serving, j->tool);
	j->remembered = row != NULL;
	if (j->remembered) {
		found(j, row, NULL);
		return;
	}
	db_params_init(&p);
	db_p_str(&p, j->tool);
	db_query(j->a->db, &lookup, &p, found, j);
}

static void
admitted(struct job *j)
{
	struct err err;

	/* The prefix is reserved: no tool of a user can have such a name. */
	if (strncmp(j->tool, "mcpbox_", 7) != 0) {
		if (token_may_call(j->a, j->token, j->listener, &err) == -1)
			job_refuse(j, err.failure, err.text);
		else
			look_up(j);
	} else if (j->method == CALL_TOOL) {
		manage_start(j);
	} else {
		obstacle_unknown(j);
	}
}

static void
begin(struct job *j)
{
	limits_begin(j, admitted);
}

/* Nobody's token and nobody's rate: whose request it belongs to was counted
 * itself. */
void
call_inner(struct job *j)
{
	j->known = true;
	look_up(j);
}

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
			begin(j); /* may free it, and others */
		}
	} while (j != NULL);
}
