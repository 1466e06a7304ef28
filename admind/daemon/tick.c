/*
 * Runs once a second. Sends endings that wait, stores epochs that are not
 * stored yet, closes rows that no process will close any more, and signs the
 * audit head.
 */
#include <event2/event.h>

#include "access.h"
#include "activity.h"
#include "audit.h"
#include "auth.h"
#include "call.h"
#include "catalogue.h"
#include "daemon.h"
#include "ending.h"
#include "identities.h"
#include "ids.h"
#include "installs.h"
#include "key_fetch.h"
#include "limits.h"
#include "notify_send.h"
#include "records.h"
#include "regrant.h"
#include "signin.h"
#include "tasks.h"
#include "telemetry_send.h"
#include "tokens.h"

enum {
	TICK_MS = 1000,
	SIGN_TICKS = 60,
	/* After so many ticks, each node notes that it is alive, and looks for
	 * rows of nodes that are gone. */
	NODE_TICKS = 10,
	/* Ticks between two readings of an access document, if a process that
	   must judge it is away. */
	ACCESS_TICKS = 2,
};

/* Called when the database is back. The database may have lost the row of our
 * epoch, but only by a restore, since the row was committed synchronously.
 * Also, notifications of changes may have been missed while there was no
 * connection. */
void
tick_db_up(struct admind *a)
{
	sweep_own_epoch(a);
	records_store_epoch(a);
	catalogue_announce(a, NULL, NULL);
	withdraw_calls(a);
	regrant_run(a, NULL, NULL);
	ending_retry(a);
	task_run_resume(a);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct timeval tv = {TICK_MS / 1000, 0};
	struct admind *a = arg;

	evtimer_add(a->tick, &tv);
	a->ticks++;
	call_started(a);
	activity_tick(a);
	follow_tick(a);
	identities_tick(a);
	if (!db_is_up(a->db))
		return;
	upkeep_tick(a);
	if (!a->epoch_stored)
		sweep_own_epoch(a);
	if (!a->sandbox_ready)
		records_store_epoch(a);
	if (!a->have_session_key)
		auth_vault_up(a);
	ending_retry(a);
	sweep_run(a);
	tokens_tick(a);
	identities_retry(a);
	identities_runs_tick(a);
	if (a->ticks % ACCESS_TICKS == 0)
		document_retry(a, false);
	tasks_tick(a);
	confirm_tick(a);
	limits_tick(a);
	installs_tick(a);
	key_fetch_tick(a);
	ends_tell(a);
	telemetry_send_tick(a);
	notify_send_tick(a);
	if (a->announce_again)
		catalogue_announce(a, NULL, NULL);
	if (a->regrant_again)
		regrant_run(a, NULL, NULL);
	if (a->ticks % NODE_TICKS == 1)
		sweep_nodes(a);
	if (a->ticks % SIGN_TICKS == 1)
		audit_sign(a);
}

int
tick_start(struct admind *a, struct err *err)
{
	struct timeval tv = {TICK_MS / 1000, 0};

	a->started_us = now_us();
	a->tick = evtimer_new(a->proc.base, on_tick, a);
	if (a->tick == NULL || evtimer_add(a->tick, &tv) == -1)
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	return 0;
}
