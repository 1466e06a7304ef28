/*
 * Acts when a module is recorded: the module's dependencies become requests of
 * the tools that asked for it, and requests that a sealed policy covers are
 * approved. This file only asks for both: SQL makes the requests under its
 * bounds, and the vault approves (policies.c).
 */
#include <stdlib.h>
#include <string.h>

#include "installs.h"
#include "log.h"
#include "op.h"

enum {
	/* The most requests that one round makes, one after the other. A tool
	 * has 32 pending requests at most. */
	NEEDS_MAX = 256
};

static const struct db_stmt need_ask = {
    "installs_needs", "SELECT mcpbox.module_need_ask()", DB_SURE};
static const struct db_stmt waiting = {"installs_waiting",
    "SELECT mcpbox.module_waiting($1::text, $2::text)", DB_SURE};

static struct {
	struct admind *a;
	bool asking, again;
	unsigned made;
} needs;

static void ask_need(void);

static void
asked(void *arg, const struct pg_result *rows, const struct err *err)
{
	needs.asking = false;
	if (err != NULL) {
		if (err->failure != FAILURE_STORAGE_UNAVAILABLE)
			log_event(LOG_LV_WARN, "module_needs", "%s", err->text);
		return;
	}
	if (db_bool(rows, 0, 0)) {
		installs_soon();
		if (++needs.made < NEEDS_MAX)
			ask_need();
	} else if (needs.again) {
		ask_need();
	}
}

static void
ask_need(void)
{
	needs.asking = true;
	needs.again = false;
	db_query(needs.a->db, &need_ask, NULL, asked, NULL);
}

static void
approved(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct err err;

	if (f != NULL && f->type == IPC_OK)
		return;
	answer_err(f, gone, &err);
	log_event(LOG_LV_INFO, "not_automatic", "%s", err.text);
}

static void
waited(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct err e;

	if (err != NULL)
		return;
	for (int i = 0; i < db_nrows(rows); i++) {
		struct ipc_approve_auto m = {.approval = db_id(rows, i, 0)};

		if (ask(a->vault, IPC_APPROVE_AUTO, &m, approved, NULL, &e) ==
		    -1)
			log_event(LOG_LV_INFO, "not_automatic", "%s", e.text);
	}
}

void
installs_recorded(
    struct admind *a, struct ipc_bytes name, struct ipc_bytes version)
{
	struct db_params p;

	needs.a = a;
	needs.made = 0;
	needs.again = true;
	if (!needs.asking)
		ask_need();
	if (version.n == 0)
		return;
	db_params_init(&p);
	db_p_text(&p, name);
	db_p_text(&p, version);
	db_query(a->db, &waiting, &p, waited, a);
}
