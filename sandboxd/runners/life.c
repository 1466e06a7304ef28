/* One runner: its states, and the events of its channel and the pool. See
 * runners.h. */
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "log.h"
#include "runners_internal.h"

/* --- A runner's states. ------------------------------------------------- */

/* Closes the channel, so no more events of the runner come. */
void
life_hang_up(struct runner *r)
{
	static const struct ipc_handlers nobody;

	if (r->peer == NULL)
		return;
	ipc_peer_handlers(r->peer, &nobody, NULL);
	ipc_peer_close(r->peer);
	r->peer = NULL;
}

/*
 * Changes a runner's state, and with it the counts, the lists, the channel and
 * the process. No other function changes the state. GONE frees the runner.
 */
void
life_change(struct runner *r, enum runner_state to)
{
	struct runners *rs = r->all;
	enum runner_state from = r->state;

	if (from == RUNNER_FORKING)
		r->profile->forking--;
	if (from == RUNNER_READY) {
		TAILQ_REMOVE(&r->profile->waiting, r, link);
		r->profile->ready--;
	}
	rs->count[from]--;
	r->state = to;
	r->since_ms = now_boot_ms();
	switch (to) {
	case RUNNER_NEW:
		return;
	case RUNNER_FORKING:
		r->profile->forking++;
		break;
	case RUNNER_READY:
		/* The oldest waiting runner is taken first, because it has had
		 * time to get its pages ready (runner/life/prefault.c). */
		TAILQ_INSERT_TAIL(&r->profile->waiting, r, link);
		r->profile->ready++;
		break;
	case RUNNER_TAKEN:
		r->peer = NULL;
		break;
	case RUNNER_ENDING:
		life_hang_up(r);
		if (r->has_slot)
			pool_kill(rs->pool, &r->slot);
		break;
	case RUNNER_GONE:
		life_hang_up(r);
		TAILQ_REMOVE(&rs->all, r, sibling);
		profiles_put(&rs->profiles, r->profile);
		free(r);
		return;
	}
	rs->count[to]++;
}

/* Drops a runner that is not needed any more. If the runner was reaped before
 * its channel's end was read, it is freed at once. */
void
life_dismiss(struct runner *r)
{
	life_change(r, r->has_slot ? RUNNER_ENDING : RUNNER_GONE);
}

static void
back_off(struct runners *rs)
{
	rs->told.failed++;
	rs->backoff_ms =
	    rs->backoff_ms == 0 ? RUNNERS_BACKOFF_MIN_MS : rs->backoff_ms * 2;
	if (rs->backoff_ms > RUNNERS_BACKOFF_MAX_MS)
		rs->backoff_ms = RUNNERS_BACKOFF_MAX_MS;
	rs->not_before_ms = now_boot_ms() + (uint64_t)rs->backoff_ms;
}

/*
 * Ends a runner that failed before a call had it. If a call waits for a runner
 * of this profile, that call fails. Each failure doubles the pause before
 * runners are forked ahead of calls, so there is no storm of forks. The pause
 * is short again after a call has taken a runner.
 */
void
life_fail(struct runner *r, const char *text)
{
	struct runners *rs = r->all;
	struct profile *p = r->profile;

	back_off(rs);
	log_event(LOG_LV_ERR, "runner_failed", "%s", text);
	/* The calls below free the runner, but still need its profile. */
	p->refs++;
	life_dismiss(r);
	rs->events.failed(rs->arg, p, text);
	profiles_put(&rs->profiles, p);
	runners_refill_in(rs, rs->backoff_ms);
}

/* --- Messages of a runner without a call. ------------------------------- */

bool
life_fresh(const struct runner *r)
{
	return r->zygote == pool_zygote(r->all->pool) &&
	    now_boot_ms() - r->since_ms < RUNNERS_RENEW_MS;
}

static void
on_ready(struct runner *r)
{
	struct runners *rs = r->all;
	struct profile *p = r->profile;
	uint64_t took_us = (now_boot_ms() - r->since_ms) * 1000;
	struct runner *old;

	rs->fork_us += took_us / 8 - rs->fork_us / 8;
	ipc_peer_set_state(r->peer, IPC_STATE_RUNNING);
	life_change(r, RUNNER_READY);
	/* If the oldest runner is to be renewed, r is its successor. */
	old = TAILQ_FIRST(&p->waiting);
	if (old != r && !life_fresh(old))
		life_dismiss(old);
	rs->events.look(rs->arg);
	runners_refill_in(rs, 0);
}

static void
on_confine_failed(struct runner *r, struct ipc_frame *f)
{
	struct ipc_confine_failed m;
	char *step, *path;
	struct err e, v;

	if (ipc_decode(f, &m, &e) != 0) {
		life_fail(r, "the runner broke the protocol");
		return;
	}
	step = ipc_strdup(m.step);
	path = ipc_strdup(m.path);
	log_event(LOG_LV_ERR, "confine_failed", "%s %s: %s",
	    step != NULL ? step : "?", path != NULL ? path : "",
	    strerror((int)m.error));
	(void)err_set(&v, FAILURE_NONE, "the runner could not be confined");
	/* Only the step `modules` can fail because of the version's own
	 * content, so its error text says more. */
	if (ipc_streq(m.step, "modules"))
		(void)err_set(&v, FAILURE_NONE,
		    "the module with the digest %s, which this version uses, "
		    "can't be mounted from the module store: %s",
		    path != NULL ? path : "?", strerror((int)m.error));
	free(step);
	free(path);
	life_fail(r, v.text);
}

/*
 * Takes the message of a runner without a call: READY, once, or CONFINE_FAILED.
 * Any other message ends the runner, which holds no data of a call yet.
 */
static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	struct runner *r = arg;

	if (r->state == RUNNER_FORKING && f->type == IPC_READY)
		on_ready(r);
	else if (r->state == RUNNER_FORKING && f->type == IPC_CONFINE_FAILED)
		on_confine_failed(r, f);
	else
		life_fail(r, "the runner spoke before it was given a call");
	return 0;
}

static void
on_down(struct ipc_peer *peer, void *arg)
{
	struct runner *r = arg;

	r->peer = NULL; /* the peer is freed after this */
	life_fail(r,
	    r->state == RUNNER_FORKING ? "the runner ended before it was ready"
				       : "a waiting runner ended");
}

const struct ipc_handlers life_handlers = {
    .message = on_message, .down = on_down};

/* --- Events of the pool. ------------------------------------------------- */

static void
on_reported(void *arg)
{
	struct runners *rs = arg;

	rs->events.look(rs->arg);
	runners_refill_in(rs, 0);
}

static void
on_fork_failed(void *owner, const char *step, int error)
{
	struct runner *r = owner;
	struct runners *rs = r->all;

	r->has_slot = false;
	if (r->state == RUNNER_ENDING)
		life_change(r, RUNNER_GONE);
	else
		life_fail(r, "no runner could be forked");
	rs->events.look(rs->arg);
}

/*
 * Takes the report that a runner was reaped. If no call had the runner, its
 * channel may still hold CONFINE_FAILED. So the runner stays until the
 * channel's end is read, which is certain to come.
 */
static void
on_exited(void *owner, const struct ipc_exited *m)
{
	struct runner *r = owner;
	struct runners *rs = r->all;

	r->has_slot = false;
	switch (r->state) {
	case RUNNER_TAKEN:
	case RUNNER_ENDING:
		if (r->owner != NULL)
			r->owner->exited(r->owner_arg, m);
		life_change(r, RUNNER_GONE);
		break;
	default:
		break;
	}
	rs->events.look(rs->arg);
	runners_refill_in(rs, 0);
}

static void
on_lost(void *owner)
{
	struct runner *r = owner;

	/* This fork may have killed the pool. */
	if (r->state == RUNNER_FORKING)
		back_off(r->all);
	r->has_slot = false;
	if (r->owner != NULL)
		r->owner->lost(r->owner_arg);
	life_change(r, RUNNER_GONE);
}

static void
on_limited(void *owner, int error)
{
	struct runner *r = owner;

	if (r->state == RUNNER_TAKEN && r->owner != NULL)
		r->owner->limited(r->owner_arg, error);
}

const struct pool_events runners_pool_events = {
    .reported = on_reported,
    .fork_failed = on_fork_failed,
    .exited = on_exited,
    .lost = on_lost,
    .limited = on_limited,
};
