/*
 * Quarantine of imported tools whose definition at the other server is not the
 * approved one. PostgreSQL decides which tools these are (source_changed,
 * source_discovered). When a record reports another definition, the source is
 * listed here, and sources.c puts the present definitions before a reviewer.
 *
 * The other server can cause a quarantine by another definition, and sandboxd
 * by a record. Each gains only that a tool is not called, which each can cause
 * anyway. A server may change its definition at each call. It still causes one
 * listing only, until a person or a client takes its tool out of quarantine: a
 * tool in quarantine is not called.
 */
#include "log.h"
#include "sources.h"

static const struct db_stmt changed = {
    "quarantine_changed", "SELECT mcpbox.source_changed($1::uuid)", DB_SURE};

static void
listed(void *arg, const struct sources_end *e)
{
	if (e->failure != FAILURE_NONE)
		log_event(LOG_LV_WARN, "quarantine",
		    "the source could not be listed: %s", e->text);
}

static void
quarantined(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct ipc_id source;

	if (err != NULL) {
		log_event(LOG_LV_WARN, "quarantine", "%s", err->text);
		return;
	}
	if (db_null(rows, 0, 0))
		return; /* the version does not serve, or its source is gone */
	source = db_id(rows, 0, 0);
	sources_discover(a, &source, SOURCES_SELF, listed, NULL);
}

void
quarantine_changed(struct admind *a, const struct ipc_id *version)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, version);
	db_query(a->db, &changed, &p, quarantined, a);
}
