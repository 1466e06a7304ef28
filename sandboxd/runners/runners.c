/* All runners: when and for which profile they are forked. See runners.h. */
#include <sys/socket.h>

#include <event2/event.h>

#include <stdlib.h>
#include <unistd.h>

#include "ids.h"
#include "runners_internal.h"
#include "waits.h"

/* Refills the waiting runners after ms; 0: after the loop's current work. */
void
runners_refill_in(struct runners *rs, int ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	if (ms > 0) {
		(void)evtimer_add(rs->refill, &tv);
		return;
	}
	(void)evtimer_del(rs->refill);
	event_active(rs->refill, EV_TIMEOUT, 0);
}

/* --- Forking. ------------------------------------------------------------ */

/*
 * Makes room when no slot is free: ends the runner of another profile that has
 * waited longest, unless a runner is ENDING already. The event `look` follows
 * when that runner was reaped.
 */
static void
make_room(struct runners *rs, const struct profile *wanted)
{
	struct runner *r, *oldest = NULL;

	TAILQ_FOREACH(r, &rs->all, sibling) {
		if (r->state == RUNNER_ENDING)
			return;
		if (r->state == RUNNER_READY && r->profile != wanted &&
		    (oldest == NULL || r->since_ms < oldest->since_ms))
			oldest = r;
	}
	if (oldest != NULL)
		life_dismiss(oldest);
}

static enum runners_fork
fork_one(struct runners *rs, struct profile *p)
{
	struct runner *r;
	int sv[2];

	if (!pool_ready(rs->pool) ||
	    rs->count[RUNNER_FORKING] >= rs->conf.forks)
		return RUNNERS_LATER;
	if ((r = calloc(1, sizeof(*r))) == NULL)
		return RUNNERS_FAILED;
	if (pool_take(rs->pool, r, &r->slot) != 0) {
		free(r);
		return RUNNERS_LATER;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0) {
		pool_untake(rs->pool, &r->slot);
		free(r);
		return RUNNERS_FAILED;
	}
	r->peer = ipc_peer_adopt(rs->base, sv[0], "runner", IPC_ROLE_SANDBOXD,
	    IPC_ROLE_RUNNER, false, IPC_STATE_WAITING, &life_handlers, r, NULL);
	if (r->peer == NULL) {
		close(sv[0]);
		close(sv[1]);
		pool_untake(rs->pool, &r->slot);
		free(r);
		return RUNNERS_FAILED;
	}
	r->all = rs;
	r->profile = p;
	p->refs++;
	r->zygote = pool_zygote(rs->pool);
	r->limits = rs->conf.limits;
	TAILQ_INSERT_TAIL(&rs->all, r, sibling);
	rs->count[RUNNER_NEW]++;
	r->has_slot =
	    pool_fork(rs->pool, &r->slot, &p->is, &r->limits, sv[1]) == 0;
	close(sv[1]);
	if (!r->has_slot) {
		/* The pool is dying, and the loop must run to notice it.
		 * Another attempt now would keep the loop from running. */
		life_change(r, RUNNER_GONE);
		return RUNNERS_LATER;
	}
	life_change(r, RUNNER_FORKING);
	return RUNNERS_FORKED;
}

enum runners_fork
runners_fork(struct runners *rs, struct profile *p)
{
	enum runners_fork rc = fork_one(rs, p);

	if (rc == RUNNERS_LATER && pool_ready(rs->pool) &&
	    rs->count[RUNNER_FORKING] < rs->conf.forks)
		make_room(rs, p);
	return rc;
}

/* Counts a profile's waiting runners that need not be renewed yet. */
static unsigned
fresh_ones(const struct profile *p)
{
	unsigned n = 0;
	struct runner *r;

	TAILQ_FOREACH(r, &p->waiting, link)
		if (life_fresh(r))
			n++;
	return n;
}

/* Returns the profile that should have one more runner waiting, or NULL. */
static struct profile *
wanting(struct runners *rs)
{
	struct profile *p, *found = NULL;
	uint64_t now = now_boot_ms();
	unsigned others = 0;

	if (fresh_ones(rs->standard) + rs->standard->forking <
	    rs->demand.target)
		return rs->standard;
	TAILQ_FOREACH(p, &rs->profiles.list, link) {
		if (p == rs->standard)
			continue;
		others += p->ready + p->forking;
		if (found == NULL && p->ready + p->forking == 0 &&
		    p->used_ms != 0 && now - p->used_ms < RUNNERS_OTHERS_MS)
			found = p;
	}
	/* If no runner of the standard profile may wait, no runner of another
	 * profile may wait, either. */
	return others < RUNNERS_OTHERS && rs->conf.max > 0 ? found : NULL;
}

/*
 * Forks runners ahead of their calls, with at most half of the forks that may
 * be under way at once: the other half is for calls that wait. While calls
 * wait, no runner is forked ahead.
 */
static void
on_refill(evutil_socket_t fd, short what, void *arg)
{
	struct runners *rs = arg;
	uint64_t now = now_boot_ms();
	struct profile *p;

	if (!pool_ready(rs->pool) || rs->hungry > 0)
		return;
	if (now < rs->not_before_ms) {
		runners_refill_in(rs, (int)(rs->not_before_ms - now));
		return;
	}
	while ((p = wanting(rs)) != NULL &&
	    rs->count[RUNNER_FORKING] < (rs->conf.forks + 1) / 2)
		if (fork_one(rs, p) != RUNNERS_FORKED)
			return;
	if (p == NULL && rs->count[RUNNER_FORKING] == 0)
		rs->events.idle(rs->arg);
}

/* --- What calls ask for. -------------------------------------------------- */

struct runner *
runners_take(struct runners *rs, struct profile *p,
    const struct runner_owner *owner, void *arg, struct ipc_peer **channel)
{
	struct runner *r;

	/* Skips a runner that was reaped although the end of its channel was
	 * not read yet. */
	TAILQ_FOREACH(r, &p->waiting, link)
		if (r->has_slot)
			break;
	if (r == NULL)
		return NULL;
	rs->told.hits++;
	*channel = r->peer;
	r->owner = owner;
	r->owner_arg = arg;
	life_change(r, RUNNER_TAKEN);
	rs->backoff_ms = 0;
	if (p == rs->standard)
		demand_taken(&rs->demand, p->ready);
	if (!evtimer_pending(rs->refill, NULL))
		runners_refill_in(rs, RUNNERS_REFILL_MS);
	return r;
}

void
runners_owner(struct runner *r, const struct runner_owner *owner, void *arg)
{
	r->owner = owner;
	r->owner_arg = arg;
}

void
runners_missed(struct runners *rs, struct profile *p)
{
	rs->told.misses++;
	if (p == rs->standard)
		demand_missed(&rs->demand);
}

void
runners_hungry(struct runners *rs, unsigned calls)
{
	bool fed = rs->hungry > 0 && calls == 0;

	rs->hungry = calls;
	if (fed)
		runners_nudge(rs);
}

void
runners_end(struct runner *r)
{
	struct runners *rs = r->all;

	if (r->state != RUNNER_TAKEN)
		return;
	life_change(r, RUNNER_ENDING);
	runners_refill_in(rs, 0);
}

void
runners_discard(struct runner *r)
{
	r->owner = NULL;
	runners_end(r);
}

int
runners_limit(struct runner *r, const struct pool_limits *limits)
{
	struct pool *pool = r->all->pool;

	if (!pool_memory_bound(pool) ||
	    (limits->memory_bytes == r->limits.memory_bytes &&
		limits->processes == r->limits.processes &&
		limits->cpu_percent == r->limits.cpu_percent))
		return 0;
	r->limits = *limits;
	return pool_limit(pool, &r->slot, limits) == 0 ? 1 : -1;
}

void
runners_nudge(struct runners *rs)
{
	if (!evtimer_pending(rs->refill, NULL))
		runners_refill_in(rs, RUNNERS_REFILL_MS);
}

uint64_t
runners_zygote(const struct runner *r)
{
	return r->zygote;
}

uint64_t
runners_net(const struct runner *r)
{
	return r->slot.generation;
}

bool
runners_spare(const struct runners *rs)
{
	return rs->hungry == 0 && rs->standard->ready > 0 &&
	    rs->standard->ready >= rs->demand.target;
}

struct profile *
runners_profile(
    struct runners *rs, const struct pool_profile *is, uint64_t now_ms)
{
	struct profile *p = profiles_get(&rs->profiles, is);

	if (p != NULL)
		p->used_ms = now_ms;
	return p;
}

void
runners_profile_done(struct runners *rs, struct profile *p)
{
	profiles_put(&rs->profiles, p);
}

struct profile *
runners_standard(struct runners *rs)
{
	return rs->standard;
}

struct runners_counts
runners_counts(const struct runners *rs)
{
	struct runners_counts c = rs->told;

	c.waiting = rs->count[RUNNER_READY];
	c.target = rs->demand.target;
	c.max = rs->demand.max;
	c.forking = rs->count[RUNNER_FORKING];
	c.taken = rs->count[RUNNER_TAKEN];
	c.ending = rs->count[RUNNER_ENDING];
	c.fork_ms = (unsigned)(rs->fork_us / 1000);
	return c;
}

/* --- Time. ---------------------------------------------------------------- */

/* Acts if the deadline of a runner's state has passed. Returns true if the
 * runner's state changed. */
static bool
overdue(struct runner *r, uint64_t now_ms)
{
	struct runners *rs = r->all;
	uint64_t age = now_ms > r->since_ms ? now_ms - r->since_ms : 0;

	switch (r->state) {
	case RUNNER_FORKING:
		if (age < (uint64_t)wait_ms(RUNNERS_START_MS))
			return false;
		life_fail(r, "the runner did not get ready in time");
		return true;
	case RUNNER_READY:
		/* Runners of the standard profile are not ended here:
		 * on_ready() ends an old one when its successor is ready. */
		if (r->profile == rs->standard ||
		    (life_fresh(r) &&
			now_ms - r->profile->used_ms < RUNNERS_OTHERS_MS))
			return false;
		life_dismiss(r);
		return true;
	case RUNNER_ENDING:
		if (age < RUNNERS_REAP_MS)
			return false;
		/* All runners are gone after this. */
		pool_restart(rs->pool, "a killed runner was not reaped");
		return true;
	default:
		return false;
	}
}

void
runners_sweep(struct runners *rs, uint64_t now_ms)
{
	struct runner *r;

	/* Acting on one runner may free others, so each search starts from the
	 * beginning. */
	do {
		TAILQ_FOREACH(r, &rs->all, sibling)
			if (overdue(r, now_ms))
				break;
	} while (r != NULL);
	demand_tick(&rs->demand, rs->standard->ready, now_ms);
	/* If more runners wait than should, each sweep ends one of them. */
	if (rs->hungry == 0 && rs->standard->ready > rs->demand.target &&
	    (r = TAILQ_FIRST(&rs->standard->waiting)) != NULL)
		life_dismiss(r);
	if (wanting(rs) != NULL)
		runners_nudge(rs);
}

struct runners *
runners_new(struct event_base *base, const struct runners_conf *conf,
    const struct runners_events *events, void *arg)
{
	uint64_t most = conf->memory / RUNNERS_WAITING_BYTES;
	unsigned min = conf->min, max = conf->max;
	struct runners *rs;

	if ((rs = calloc(1, sizeof(*rs))) == NULL)
		return NULL;
	rs->base = base;
	rs->conf = *conf;
	rs->events = *events;
	rs->arg = arg;
	if (rs->conf.forks == 0)
		rs->conf.forks = 1;
	profiles_init(&rs->profiles);
	TAILQ_INIT(&rs->all);
	min = min < most ? min : (unsigned)most;
	max = max < most ? max : (unsigned)most;
	demand_init(&rs->demand, min, max, now_boot_ms());
	rs->conf.max = rs->demand.max;
	rs->standard = profiles_get(&rs->profiles, &conf->standard);
	rs->refill = evtimer_new(base, on_refill, rs);
	if (rs->standard == NULL || rs->refill == NULL) {
		runners_free(rs);
		return NULL;
	}
	return rs;
}

void
runners_pool(struct runners *rs, struct pool *pool)
{
	rs->pool = pool;
}

void
runners_free(struct runners *rs)
{
	struct runner *r;

	if (rs == NULL)
		return;
	while ((r = TAILQ_FIRST(&rs->all)) != NULL) {
		life_hang_up(r);
		TAILQ_REMOVE(&rs->all, r, sibling);
		free(r);
	}
	profiles_clear(&rs->profiles);
	if (rs->refill != NULL)
		event_free(rs->refill);
	free(rs);
}
