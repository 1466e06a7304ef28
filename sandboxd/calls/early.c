/* See early.h. */
#include <stdlib.h>

#include "call_internal.h"
#include "early.h"
#include "ids.h"
#include "log.h"

struct early {
	TAILQ_ENTRY(early) link;
	struct calls *all;
	const struct held *held;
	struct profile *profile;
	struct runner *runner;
	struct channel *channel;
	uint64_t until_ms;
	bool told; /* EXECUTE was sent */
};

static void
forget(struct early *e)
{
	struct calls *cs = e->all;

	TAILQ_REMOVE(&cs->early, e, link);
	cs->nearly--;
	runners_profile_done(cs->runners, e->profile);
	free(e);
}

/* Drops e with its runner and channel, which are of no use any more. */
static void
drop(struct early *e)
{
	channel_close(e->channel);
	if (e->runner != NULL)
		runners_discard(e->runner);
	forget(e);
}

/* --- The runner's messages: there should not be any. --------------------- */

static void
on_event(void *arg, uint8_t kind, struct ipc_bytes json)
{
}

/* Is never called: a channel passes no result and no event before
 * channel_start. */
static void
on_result(void *arg, enum failure failure, struct ipc_bytes body)
{
	drop(arg);
}

static void
on_violation(void *arg, enum failure failure, const char *text)
{
	log_event(LOG_LV_WARN, "runner_violation", "%s", text);
	drop(arg);
}

static void
on_hangup(void *arg)
{
	drop(arg);
}

static const struct channel_events channel_events = {
    .event = on_event,
    .result = on_result,
    .violation = on_violation,
    .down = on_hangup,
};

static void
on_exited(void *owner, const struct ipc_exited *m)
{
	struct early *e = owner;

	e->runner = NULL;
	drop(e);
}

static void
on_lost(void *owner)
{
	struct early *e = owner;

	e->runner = NULL;
	drop(e);
}

static void
tell(struct early *e)
{
	if (call_tell(e->all, e->held, e->runner, e->channel) == 0)
		e->told = true;
	else
		drop(e);
}

static void
on_limited(void *owner, int error)
{
	if (error == 0)
		tell(owner);
	else
		drop(owner);
}

/* --- From HELD to RUN. ---------------------------------------------------- */

static struct early *
find(struct calls *cs, const struct held *h)
{
	struct early *e;

	TAILQ_FOREACH(e, &cs->early, link)
		if (e->held == h)
			break;
	return e;
}

/* Tells whether the call's principal has room left in its part of the slots
 * (share.h). */
static bool
may_have_slot(struct calls *cs, const struct held *h)
{
	struct share *s = share_get(cs->shares, h->principal);
	bool may = s != NULL &&
	    share_fits(s, SHARE_SLOTS, 1, pool_counts(cs->pool).slots);

	share_put(s);
	return may;
}

void
early_begin(struct calls *cs, struct held *h)
{
	static const struct runner_owner owner = {
	    .exited = on_exited, .lost = on_lost, .limited = on_limited};
	struct pool_limits limits = calls_limits(cs, h->limit);
	uint64_t now = now_boot_ms();
	struct ipc_peer *peer;
	struct early *e;
	struct err err;

	/* Only an approved version gets a runner early, and only if no call
	 * waits for a runner. The runner of a command has nothing to make
	 * ready. */
	if (h->kind != CONTEXT_TOOL || h->runner != RUNNER_PYTHON ||
	    !may_have_slot(cs, h) || calls_hungry(cs) > 0 ||
	    cs->nearly >= cs->conf.forks || (e = calloc(1, sizeof(*e))) == NULL)
		return;
	e->profile = calls_profile(cs, h, now);
	if (e->profile != NULL)
		e->runner =
		    runners_take(cs->runners, e->profile, &owner, e, &peer);
	if (e->runner == NULL) {
		if (e->profile != NULL)
			runners_profile_done(cs->runners, e->profile);
		free(e);
		return;
	}
	e->all = cs;
	e->held = h;
	e->until_ms = now + EARLY_MS;
	TAILQ_INSERT_TAIL(&cs->early, e, link);
	cs->nearly++;
	e->channel = channel_new(cs->base, peer, h, &channel_events, e, &err);
	if (e->channel == NULL) {
		drop(e);
		return;
	}
	switch (runners_limit(e->runner, &limits)) {
	case 0:
		tell(e);
		break;
	case -1:
		drop(e);
		break;
	default:
		break; /* on_limited follows */
	}
}

void
early_drop(struct calls *cs, const struct held *h)
{
	struct early *e = find(cs, h);

	if (e != NULL)
		drop(e);
}

bool
early_take(struct calls *cs, const struct held *h, struct runner **runner,
    struct channel **channel, bool *told)
{
	struct early *e = find(cs, h);

	if (e == NULL)
		return false;
	*runner = e->runner;
	*channel = e->channel;
	*told = e->told;
	forget(e);
	return true;
}

void
early_sweep(struct calls *cs, uint64_t now_ms)
{
	struct early *e;

	/* The first entry is the oldest. */
	while ((e = TAILQ_FIRST(&cs->early)) != NULL && e->until_ms <= now_ms)
		drop(e);
}

void
early_free(struct calls *cs)
{
	struct early *e;

	while ((e = TAILQ_FIRST(&cs->early)) != NULL) {
		channel_close(e->channel);
		forget(e);
	}
}
