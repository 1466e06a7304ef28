/*
 * See ended.h.
 *
 * A run that is not seen here is of a job that was marked: the query for runs
 * uses the connection on which intents are written, so a run that the query
 * does not see is written after it.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "ended.h"
#include "endpoint.h"
#include "hold.h"
#include "ids.h"
#include "job.h"
#include "log.h"
#include "narrow.h"
#include "token.h"

enum {
	TELL_MS = 1000,    /* a gateway that takes longer hangs */
	TELL_EARLY_MS = 20 /* libevent's clock is coarse */
};

/* Finds the open runs of principals, in any sandbox. */
static const struct db_stmt running = {"ended_running",
    "SELECT id FROM mcpbox.executions WHERE state = 'open'"
    " AND kind IN ('tool', 'test', 'inspect')"
    " AND principal = ANY ($1::text[])",
    DB_FAST};

/* ---- work ---- */

void
ended_jobs(struct admind *a, const char *principal)
{
	struct job *j;

	TAILQ_FOREACH(j, &a->jobs, entry)
		if (strcmp(j->principal, principal) == 0) {
			j->revoked = true;
			j->revoked_why = FAILURE_KILLED;
		}
}

/* ---- endpoints ---- */

static bool
is_named(const struct endpoint *e, struct ipc_bytes name)
{
	return e->name.n == name.n && memcmp(e->name.p, name.p, name.n) == 0;
}

static const struct endpoint *
endpoint_named(const struct compiled *c, struct ipc_bytes name)
{
	for (unsigned i = 0; c != NULL && i < c->nendpoints; i++)
		if (is_named(c->endpoint[i], name))
			return c->endpoint[i];
	return NULL;
}

/* Returns whether an endpoint's set keeps all its rights. */
static bool
set_covers(const struct compiled *from, const struct compiled *to,
    const struct endpoint *was)
{
	const struct access_set *a, *b;
	struct permit is, had;

	if (was->set.n == 0)
		return true;
	a = rules_set_named(to, was->set);
	b = rules_set_named(from, was->set);
	if (a == NULL || b == NULL)
		return false;
	is = (struct permit){a->scopes, a->allow, a->deny, PERMIT_WHOLE};
	had = (struct permit){b->scopes, b->allow, b->deny, PERMIT_WHOLE};
	return permit_covers(&is, &had);
}

static void
cancel_run(void *arg, const struct ipc_id *id)
{
	hold_cancel(arg, id, FAILURE_KILLED);
}

/* A token that keeps all rights elsewhere loses them at this endpoint alone, so
 * only work that came by the endpoint ends. Gateways end its streams when they
 * hear of the endpoints. A job may have begun under a document before `from`,
 * which had another object for the endpoint, so names are compared. */
void
ended_endpoints(
    struct admind *a, const struct compiled *from, const struct compiled *to)
{
	struct job *j;

	for (unsigned i = 0; from != NULL && i < from->nendpoints; i++) {
		const struct endpoint *was = from->endpoint[i];
		const struct endpoint *is = endpoint_named(to, was->name);

		if (is != NULL && endpoint_covers(is, was) &&
		    set_covers(from, to, was))
			continue;
		log_event(LOG_LV_INFO, "endpoint",
		    "%.*s lost something by another document", (int)was->name.n,
		    (const char *)was->name.p);
		TAILQ_FOREACH(j, &a->jobs, entry)
			if (j->token != NULL && j->token->endpoint != NULL &&
			    is_named(j->token->endpoint, was->name)) {
				j->revoked = true;
				j->revoked_why = FAILURE_KILLED;
			}
		narrow_runs(a->access->narrowed, was->name, cancel_run, a);
	}
}

static void
got_running(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = arg;
	struct ipc_id id;

	/* If the database is gone, no run is found here. Then no admind accepts
	 * any credential, and runs end by their own time limit. */
	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		id = db_id(rows, i, 0);
		hold_cancel(a, &id, FAILURE_KILLED);
	}
}

void
ended_runs(struct admind *a, struct db_array *principals)
{
	struct db_params p;

	db_params_init(&p);
	db_p_array(&p, principals);
	db_query(a->db, &running, &p, got_running, a);
}

void
ended_runs_of(struct admind *a, const char *principal)
{
	struct db_array one;

	db_array_init(&one, DB_TEXT, IPC_FRAME_MAX);
	db_a_str(&one, principal);
	ended_runs(a, &one);
	db_array_free(&one);
}

/* ---- gateways ---- */

struct telling {
	struct ended_told told;
	unsigned waiting; /* missing answers; one more while asking */
	uint64_t since_ms;
	struct ipc_credential_ended m;
	ended_told_cb *cb;
	void *arg;
};

static void
settle(struct telling *x)
{
	if (--x->waiting > 0)
		return;
	if (x->told.late > 0)
		log_event(LOG_LV_ERR, "gateway_late",
		    "%u of %u gateways did not say that they dropped %.*s",
		    x->told.late, x->told.gateways, (int)x->m.principal.n,
		    (const char *)x->m.principal.p);
	if (x->cb != NULL)
		x->cb(x->arg, &x->told);
	free(x);
}

/* Counts a gateway as late only if it was silent until the time was over. A
 * link that ended earlier gives the same failure, but its gateway is not late:
 * a gateway forgets the credential when its link ends. */
static void
acknowledged(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct telling *x = arg;

	if (f == NULL && now_boot_ms() - x->since_ms >= TELL_MS - TELL_EARLY_MS)
		x->told.late++;
	settle(x);
}

static void
tell_one(struct ipc_peer *peer, void *arg)
{
	struct telling *x = arg;
	uint64_t id;

	x->told.gateways++;
	if (ipc_request(peer, IPC_CREDENTIAL_ENDED, &x->m, TELL_MS,
		acknowledged, x, &id) == 0)
		x->waiting++;
	else /* The gateway was not told, so its link is cut: then it forgets
	      * the credential. */
		ipc_peer_close(peer);
}

void
ended_tell(struct admind *a, const struct ipc_hash *credential,
    const char *principal, ended_told_cb *cb, void *arg)
{
	size_t n = strlen(principal);
	struct telling *x = calloc(1, sizeof(*x) + n + 1);
	struct ended_told none = {0, 1};

	if (x == NULL) {
		/* The gateways forget within IDENTITY_CACHE_MS anyway. */
		log_event(LOG_LV_ERR, "memory", "the end of %s", principal);
		if (cb != NULL)
			cb(arg, &none);
		return;
	}
	memcpy(x + 1, principal, n + 1);
	x->m.credential = *credential;
	x->m.principal = ipc_str((const char *)(x + 1));
	x->cb = cb;
	x->arg = arg;
	x->waiting = 1;
	x->since_ms = now_boot_ms();
	ipc_server_each(a->gw_local, tell_one, x);
	ipc_server_each(a->gw_tunnel, tell_one, x);
	settle(x);
}
