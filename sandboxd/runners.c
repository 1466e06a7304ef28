/* See runners.h. */
#include <sys/socket.h>

#include <event2/event.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "log.h"
#include "runners.h"

struct runner {
	TAILQ_ENTRY(runner) link;    /* of its profile's waiting */
	TAILQ_ENTRY(runner) sibling; /* of all */
	struct runners *all;
	enum runner_state state;
	struct profile *profile;
	struct pool_slot slot;
	bool has_slot;         /* until it was reaped */
	struct ipc_peer *peer; /* its channel, until it was taken */
	uint64_t since_ms;     /* in this state */
	uint64_t zygote;       /* that forked it */
	const struct runner_owner *owner;
	void *owner_arg;
	struct pool_limits limits;
};

struct runners {
	struct event_base *base;
	struct runners_conf conf;
	struct runners_events events;
	void *arg;
	struct pool *pool;
	struct profiles profiles;
	struct profile *standard;
	struct runner_list all;
	struct event *refill; /* forks what should wait */
	struct demand demand;
	unsigned count[RUNNER_GONE]; /* by state */
	unsigned hungry;
	int backoff_ms;
	uint64_t not_before_ms; /* forks for later */
	struct runners_counts told;
	uint64_t fork_us; /* a moving average */
};

/* --- A runner's states. ------------------------------------------------- */

/* Closes the channel: nothing of it is heard any more. */
static void
hang_up(struct runner *r)
{
	static const struct ipc_handlers nobody;

	if (r->peer == NULL)
		return;
	ipc_peer_handlers(r->peer, &nobody, NULL);
	ipc_peer_close(r->peer);
	r->peer = NULL;
}

/* In this time; 0: as soon as what is going on now is done. */
static void
refill_in(struct runners *rs, int ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	if (ms > 0) {
		(void)evtimer_add(rs->refill, &tv);
		return;
	}
	(void)evtimer_del(rs->refill);
	event_active(rs->refill, EV_TIMEOUT, 0);
}

/*
 * The only function that changes a runner's state: counts, lists, channel and
 * process. GONE frees it.
 */
static void
runner_change(struct runner *r, enum runner_state to)
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
		/* The newest is taken first: what it needs is in the caches. */
		TAILQ_INSERT_HEAD(&r->profile->waiting, r, link);
		r->profile->ready++;
		break;
	case RUNNER_TAKEN:
		r->peer = NULL;
		break;
	case RUNNER_ENDING:
		hang_up(r);
		if (r->has_slot)
			pool_kill(rs->pool, &r->slot);
		break;
	case RUNNER_GONE:
		hang_up(r);
		TAILQ_REMOVE(&rs->all, r, sibling);
		profiles_put(&rs->profiles, r->profile);
		free(r);
		return;
	}
	rs->count[to]++;
}

/* Not needed any more. One that was reaped, but whose channel's end was not
 * read yet, has nothing to wait for. */
static void
dismiss(struct runner *r)
{
	runner_change(r, r->has_slot ? RUNNER_ENDING : RUNNER_GONE);
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
 * One failed that no call had. Those that a call waits for are paid for by
 * that call's failure; those forked for later must not become a storm of
 * forks, so each failure without a success between doubles the pause.
 */
static void
failed(struct runner *r, const char *text)
{
	struct runners *rs = r->all;
	struct profile *p = r->profile;

	rs->told.failed++;
	rs->backoff_ms =
	    rs->backoff_ms == 0 ? RUNNERS_BACKOFF_MIN_MS : rs->backoff_ms * 2;
	if (rs->backoff_ms > RUNNERS_BACKOFF_MAX_MS)
		rs->backoff_ms = RUNNERS_BACKOFF_MAX_MS;
	rs->not_before_ms = now_boot_ms() + (uint64_t)rs->backoff_ms;
	log_event(LOG_LV_ERR, "runner_failed", "%s", text);
	/* The profile outlives its runner in what follows. */
	p->refs++;
	dismiss(r);
	rs->events.failed(rs->arg, p, text);
	profiles_put(&rs->profiles, p);
	refill_in(rs, rs->backoff_ms);
}

/* --- What the channel of one without a call tells. ---------------------- */

/* The runner works: what failed before was something else. */
static bool
is_fresh(const struct runner *r)
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
	runner_change(r, RUNNER_READY);
	/* One that is to be renewed has its successor now. */
	old = TAILQ_LAST(&p->waiting, runner_list);
	if (!is_fresh(old))
		dismiss(old);
	rs->events.look(rs->arg);
	refill_in(rs, 0);
}

static void
on_confine_failed(struct runner *r, struct ipc_frame *f)
{
	struct ipc_confine_failed m;
	char *step, *path;
	struct err e, v;

	if (ipc_decode(f, &m, &e) != 0) {
		failed(r, "the runner broke the protocol");
		return;
	}
	step = ipc_strdup(m.step);
	path = ipc_strdup(m.path);
	log_event(LOG_LV_ERR, "confine_failed", "%s %s: %s",
	    step != NULL ? step : "?", path != NULL ? path : "",
	    strerror((int)m.error));
	(void)err_set(&v, FAILURE_NONE, "the runner could not be confined");
	/* The one step that fails for what the call's version asks for. */
	if (ipc_streq(m.step, "modules"))
		(void)err_set(&v, FAILURE_NONE,
		    "the module with the digest %s, which this version uses, "
		    "can't be mounted from the module store: %s",
		    path != NULL ? path : "?", strerror((int)m.error));
	free(step);
	free(path);
	failed(r, v.text);
}

/*
 * A runner that has no call says READY, once, or why it can't. It holds
 * nothing of anybody yet, and whatever else it says ends it.
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
		failed(r, "the runner spoke before it was given a call");
	return 0;
}

static void
on_down(struct ipc_peer *peer, void *arg)
{
	struct runner *r = arg;

	r->peer = NULL; /* it is freed after this */
	failed(r,
	    r->state == RUNNER_FORKING ? "the runner ended before it was ready"
				       : "a waiting runner ended");
}

/* --- What the pool tells. ------------------------------------------------ */

static void
on_reported(void *arg)
{
	struct runners *rs = arg;

	rs->events.look(rs->arg);
	refill_in(rs, 0);
}

static void
on_fork_failed(void *owner, const char *step, int error)
{
	struct runner *r = owner;
	struct runners *rs = r->all;

	r->has_slot = false;
	if (r->state == RUNNER_ENDING)
		runner_change(r, RUNNER_GONE);
	else
		failed(r, "no runner could be forked");
	rs->events.look(rs->arg);
}

/*
 * Reaped. Its channel may still hold what it said last (why it could not be
 * confined): the channel's end, which is certain now, decides then.
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
		runner_change(r, RUNNER_GONE);
		break;
	default:
		break;
	}
	rs->events.look(rs->arg);
	refill_in(rs, 0);
}

static void
on_lost(void *owner)
{
	struct runner *r = owner;

	/* It may be what the pool died of. */
	if (r->state == RUNNER_FORKING)
		back_off(r->all);
	r->has_slot = false;
	if (r->owner != NULL)
		r->owner->lost(r->owner_arg);
	runner_change(r, RUNNER_GONE);
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

/* --- Forking. ------------------------------------------------------------ */

/*
 * No slot is free. If some are held by runners that only wait, the one that
 * has waited longest gives its place up; one at a time, and `look` comes when
 * it was reaped.
 */
static void
make_room(struct runners *rs, const struct profile *wanted)
{
	struct runner *r, *oldest = NULL;

	TAILQ_FOREACH(r, &rs->all, sibling)
	{
		if (r->state == RUNNER_ENDING)
			return;
		if (r->state == RUNNER_READY && r->profile != wanted &&
		    (oldest == NULL || r->since_ms < oldest->since_ms))
			oldest = r;
	}
	if (oldest != NULL)
		dismiss(oldest);
}

static enum runners_fork
fork_one(struct runners *rs, struct profile *p)
{
	static const struct ipc_handlers handlers = {
	    .message = on_message, .down = on_down};
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
	    IPC_ROLE_RUNNER, false, IPC_STATE_WAITING, &handlers, r, NULL);
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
	runner_change(r, r->has_slot ? RUNNER_FORKING : RUNNER_GONE);
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

/* Waiting runners of a profile that need no successor yet. */
static unsigned
fresh_ones(const struct profile *p)
{
	unsigned n = 0;
	struct runner *r;

	TAILQ_FOREACH(r, &p->waiting, link)
	if (is_fresh(r))
		n++;
	return n;
}

/* The profile that should have one more runner waiting, or NULL. */
static struct profile *
wanting(struct runners *rs)
{
	struct profile *p, *found = NULL;
	uint64_t now = now_boot_ms();
	unsigned others = 0;

	if (fresh_ones(rs->standard) + rs->standard->forking <
	    rs->demand.target)
		return rs->standard;
	TAILQ_FOREACH(p, &rs->profiles.list, link)
	{
		if (p == rs->standard)
			continue;
		others += p->ready + p->forking;
		if (found == NULL && p->ready + p->forking == 0 &&
		    p->used_ms != 0 && now - p->used_ms < RUNNERS_OTHERS_MS)
			found = p;
	}
	/* Where nothing is to wait at all, nothing of any profile does. */
	return others < RUNNERS_OTHERS && rs->conf.max > 0 ? found : NULL;
}

/*
 * Forks what should wait, at most half of what may be under way at once: the
 * rest of the machine is for calls. While calls wait, runners are theirs.
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
		refill_in(rs, (int)(rs->not_before_ms - now));
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

	/* One that was reaped, but whose channel's end was not read yet, is
	 * none. */
	TAILQ_FOREACH(r, &p->waiting, link)
	if (r->has_slot)
		break;
	if (r == NULL)
		return NULL;
	rs->told.hits++;
	*channel = r->peer;
	r->owner = owner;
	r->owner_arg = arg;
	runner_change(r, RUNNER_TAKEN);
	rs->backoff_ms = 0;
	if (p == rs->standard)
		demand_taken(&rs->demand, p->ready);
	if (!evtimer_pending(rs->refill, NULL))
		refill_in(rs, RUNNERS_REFILL_MS);
	return r;
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
	runner_change(r, RUNNER_ENDING);
	refill_in(rs, 0);
}

void
runners_discard(struct runner *r)
{
	r->owner = NULL;
	runners_end(r);
}

bool
runners_limit(struct runner *r, const struct pool_limits *limits)
{
	struct pool *pool = r->all->pool;

	if (!pool_memory_bound(pool) ||
	    (limits->memory_bytes == r->limits.memory_bytes &&
		limits->processes == r->limits.processes &&
		limits->cpu_percent == r->limits.cpu_percent))
		return false;
	r->limits = *limits;
	return pool_limit(pool, &r->slot, limits) == 0;
}

void
runners_nudge(struct runners *rs)
{
	if (!evtimer_pending(rs->refill, NULL))
		refill_in(rs, RUNNERS_REFILL_MS);
}

uint64_t
runners_zygote(const struct runner *r)
{
	return r->zygote;
}

unsigned
runners_forking(const struct runners *rs)
{
	return rs->count[RUNNER_FORKING];
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

/* What a runner's own deadline asks for. true: it was moved. */
static bool
overdue(struct runner *r, uint64_t now_ms)
{
	struct runners *rs = r->all;
	uint64_t age = now_ms > r->since_ms ? now_ms - r->since_ms : 0;

	switch (r->state) {
	case RUNNER_FORKING:
		if (age < RUNNERS_START_MS)
			return false;
		failed(r, "the runner did not get ready in time");
		return true;
	case RUNNER_READY:
		/* Of the standard profile: on_ready ends the old ones. */
		if (r->profile == rs->standard ||
		    (is_fresh(r) &&
			now_ms - r->profile->used_ms < RUNNERS_OTHERS_MS))
			return false;
		dismiss(r);
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

	/* Moving one may free others, so each search starts anew. */
	do {
		TAILQ_FOREACH(r, &rs->all, sibling)
		if (overdue(r, now_ms))
			break;
	} while (r != NULL);
	demand_tick(&rs->demand, rs->standard->ready, now_ms);
	/* More than should wait: one goes at a time. */
	if (rs->hungry == 0 && rs->standard->ready > rs->demand.target &&
	    (r = TAILQ_LAST(&rs->standard->waiting, runner_list)) != NULL)
		dismiss(r);
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
		hang_up(r);
		TAILQ_REMOVE(&rs->all, r, sibling);
		free(r);
	}
	profiles_clear(&rs->profiles);
	if (rs->refill != NULL)
		event_free(rs->refill);
	free(rs);
}
