/*
 * Ends calls that may no longer be made, wherever they are: jobs under way are
 * marked and refused at their next step; running and held calls are cancelled.
 */
#include <string.h>

#include "hold.h"
#include "job.h"
#include "regrant.h"

/* Finds open runs that may no longer run: calls of tools that are no longer
 * callable, and test runs of deleted tools. A withdrawn host ends no call,
 * since the next connect can't reach that host (regrant.c). */
static const struct db_stmt withdrawn = {"call_withdrawn",
    "SELECT e.id, v.state = 'revoked' OR g.missing"
    " FROM mcpbox.executions e"
    " JOIN mcpbox.tool_versions v ON v.id = e.version_id"
    " JOIN mcpbox.tools t ON t.id = v.tool_id"
    " JOIN mcpbox.servers s ON s.id = t.server_id,"
    " LATERAL (SELECT v.modules <> '{}' AND mcpbox.module_missing(t.id,"
    " v.modules) IS NOT NULL) g (missing)"
    " WHERE e.state = 'open' AND CASE e.kind"
    " WHEN 'tool' THEN v.state = 'revoked' OR s.status = 'stopped'"
    "  OR NOT t.enabled OR g.missing"
    " WHEN 'test' THEN t.deleted_at IS NOT NULL ELSE false END",
    DB_FAST};

static void
got_open(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct ipc_id id;
	enum failure why;
	struct job *j;

	if (err != NULL)
		return; /* the database is down; when it is back, this runs
			 * again */
	for (int i = 0; i < db_nrows(rows); i++) {
		id = db_id(rows, i, 0);
		why = db_bool(rows, i, 1) ? FAILURE_REVOKED : FAILURE_STOPPED;
		TAILQ_FOREACH(j, &a->jobs, entry)
			if (memcmp(&j->execution, &id, sizeof(id)) == 0) {
				j->revoked = true;
				j->revoked_why = why;
			}
		hold_cancel(a, &id, why);
	}
}

void
withdraw_calls(struct admind *a)
{
	serving_clear(&a->serving);
	/* This query uses the connection of the intent rows. So a call that the
	 * query does not see comes after the withdrawal, and the call's INSERT
	 * refuses it. */
	db_query(a->db, &withdrawn, NULL, got_open, a);
}
