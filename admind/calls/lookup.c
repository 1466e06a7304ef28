/*
 * The lookup of a call. It finds the version that serves under this name, its
 * limits, grants and secrets, and the obstacles to calling it. Mostly a
 * remembered row is used (serving.c). A remembered row does not decide that a
 * call may run, since the intent's INSERT checks again (call.c).
 */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "context.h"
#include "inner.h"
#include "jobs.h"
#include "limit.h"
#include "limits.h"
#include "oauth.h"
#include "object.h"
#include "tasks.h"
#include "token.h"

/* Takes the version's limit, else its server's limit, else 0, which means the
 * configured default. */
#define LIMIT_SQL(SYMBOL, name, unit, min, max, context, version, reason) \
	", coalesce(v." name ", l." name ", 0)"

/* Columns of the statement `lookup`. The limits begin at C_LIMITS, in the order
 * of enum limit. */
enum {
	C_ID,
	C_HASH,
	C_PREIMAGE,
	C_SCHEMA,
	C_SEAL,
	C_STOPPED, /* a sentence that names the stop; null: not stopped */
	C_SECRETS,
	C_REVOKED,
	C_QUARANTINE, /* a sentence that says why no version serves */
	C_MISSING,    /* a sentence that names a missing grant */
	C_TASK,
	C_OBJECT,
	C_STATIC,
	C_REQUIRED,
	C_CONFIRM,
	C_LIMITS_AT,
	C_SERVER,
	C_NAME,
	C_GRANTS, /* material of the context; null: the version needs no host */
	C_LIMITS
};

static const struct db_stmt lookup = {"call_lookup",
    "SELECT v.id, v.hash, v.preimage, v.input_schema, a.seal,"
    " CASE WHEN s.status <> 'running' OR NOT t.enabled THEN"
    " mcpbox.call_stopped(s.id, t.id) END,"
    " cardinality(v.secrets), (SELECT x.state = 'revoked'"
    " FROM mcpbox.tool_versions x WHERE x.tool_id = t.id"
    " ORDER BY x.version_no DESC LIMIT 1),"
    " CASE WHEN v.id IS NULL THEN mcpbox.quarantine_words(t.id) END,"
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
/* Reads every secret that the version names, with its stored (encrypted) value.
 * The third column is a source whose OAuth tokens end soon, or null. */
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

static void within_limits(struct job *);

/* Goes on even if the tokens could not be renewed, because the call that uses
 * them will report the failure better. */
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
			    "yet; an administrator sets it, or authorises the "
			    "source whose tokens it is for (mcpboxctl sources "
			    "authorise).",
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
		call_check(j);
}

static void
take(struct buf *b, struct ipc_bytes from)
{
	buf_put(b, from.p, from.n);
}

/* Called when the call is permitted and within its rates. Reads its secrets, if
 * any. */
static void
within_limits(struct job *j)
{
	struct db_params p;

	if (!j->has_secrets) {
		call_check(j);
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
	struct ipc_bytes hash, stopped;
	char text[ERR_TEXT_MAX];

	if (err != NULL) {
		job_refuse(j, err->failure, err->text);
		return;
	}
	/* To a token, an object that it may not see looks the same as an object
	 * that does not exist: no answer tells the two apart. */
	if (db_nrows(rows) != 1 ||
	    !(j->inner != NULL && !inner_is_person(j)
		    ? ipc_streq(db_bytes(rows, 0, C_OBJECT), "source")
		    : object_fits(db_bytes(rows, 0, C_OBJECT), j->method)) ||
	    !token_permits(j->token, j->tool, db_bytes(rows, 0, C_SERVER),
		db_bytes(rows, 0, C_NAME))) {
		obstacle_unknown(j);
		return;
	}
	/* SQL call_stopped() wrote this sentence: who stopped the tool, and who
	 * may start it again. It names a management tool only if a client
	 * stopped the tool, because no management tool undoes another stop. */
	if (!db_null(rows, 0, C_STOPPED)) {
		stopped = db_bytes(rows, 0, C_STOPPED);
		snprintf(text, sizeof(text), "%.*s", (int)stopped.n,
		    (const char *)stopped.p);
		job_refuse(j, FAILURE_STOPPED, text);
		return;
	}
	hash = db_bytes(rows, 0, C_HASH);
	if (db_null(rows, 0, C_ID) || hash.n != sizeof(j->version_hash.b)) {
		if (!db_null(rows, 0, C_QUARANTINE))
			obstacle_quarantine(j, db_bytes(rows, 0, C_QUARANTINE));
		else if (db_bool(rows, 0, C_REVOKED))
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
	/* The server's limit may have been raised since the row was remembered.
	 * The INSERT would find that out, but a call that is refused here makes
	 * no INSERT. So the row is read again first. */
	if (j->remembered &&
	    j->arguments.len > j->limits[LIMIT_ARGUMENT_BYTES]) {
		serving_drop(&j->a->serving, j->tool);
		lookup_run(j);
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
		    sizeof(*j) + j->preimage.len + j->schema.len + j->seal.len +
			j->grants.len);
	j->has_secrets = db_int(rows, 0, C_SECRETS) > 0;
	limits_known(j, within_limits);
}

void
lookup_run(struct job *j)
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
	/* Only the first lookup of a job may use a remembered row. A job that
	 * comes back because its INSERT made no row reads the database. */
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
