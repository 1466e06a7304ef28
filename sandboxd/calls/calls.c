/* All calls: requests of gateways and admind, and deadlines. See call.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "call_internal.h"
#include "callnet.h"
#include "depot.h"
#include "early.h"
#include "ids.h"
#include "verify.h"

struct search {
	uint64_t now_ms;
	struct ipc_peer *peer;
	struct call *found;
};

static void
find_overdue(struct table_node *n, void *arg)
{
	struct search *s = arg;

	if (s->found == NULL &&
	    TABLE_OBJECT(struct call, node, n)->deadline_ms < s->now_ms - 10)
		s->found = TABLE_OBJECT(struct call, node, n);
}

void
calls_sweep(struct calls *cs, uint64_t now_ms)
{
	struct search s = {.now_ms = now_ms};

	/* A call's timer may free other calls, so each search starts from the
	 * beginning. */
	do {
		s.found = NULL;
		table_each(&cs->by_id, find_overdue, &s);
		if (s.found != NULL) {
			call_timer(-1, 0, s.found);
		}
	} while (s.found != NULL);
	early_sweep(cs, now_ms);
}

/* --- Giving runners to waiting calls. ------------------------------------ */

/*
 * Gives runners to waiting calls, in the order in which the calls came. If no
 * runner of a call's profile waits, a runner is forked, unless enough runners
 * of the profile are being forked already. A fork that can't happen now is
 * tried when on_look is called next.
 */
static void
dispatch(struct calls *cs)
{
	enum runners_fork forked = RUNNERS_FORKED;
	struct call *c, *next;

	TAILQ_FOREACH(c, &cs->queue, link)
		c->profile->claims = 0;
	for (c = TAILQ_FIRST(&cs->queue); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!slot_is_due(c))
			continue; /* other calls pass this one */
		if (call_start(c) || forked == RUNNERS_LATER ||
		    c->profile->claims++ < c->profile->forking)
			continue;
		forked = runners_fork(cs->runners, c->profile);
		if (forked == RUNNERS_FAILED)
			call_finish(c, OUTCOME_REFUSED, FAILURE_BUSY,
			    "out of file descriptors or memory", NULL);
	}
}

unsigned
calls_hungry(const struct calls *cs)
{
	const struct call *c;
	unsigned n = 0;

	TAILQ_FOREACH(c, &cs->queue, link)
		if (slot_is_due(c))
			n++;
	return n;
}

static void
on_look(void *arg)
{
	dispatch(arg);
}

/* Refuses the first call that waits for a runner of this profile, because such
 * a runner failed. */
static void
on_failed(void *arg, struct profile *p, const char *text)
{
	struct calls *cs = arg;
	struct call *c;

	TAILQ_FOREACH(c, &cs->queue, link)
		if (c->profile == p) {
			call_finish(c, OUTCOME_REFUSED,
			    FAILURE_SANDBOX_UNAVAILABLE, text, NULL);
			break;
		}
	dispatch(cs);
}

static void
on_idle(void *arg)
{
	struct calls *cs = arg;

	codecache_work(cs->cache);
}

struct calls *
calls_new(struct event_base *base, const struct calls_conf *conf,
    struct records *records)
{
	static const struct runners_events events = {
	    .look = on_look, .failed = on_failed, .idle = on_idle};
	struct runners_conf rc = {
	    .min = conf->waiting_min,
	    .max = conf->waiting_max,
	    .memory = conf->waiting_memory,
	    .forks = conf->forks,
	    .standard = {.kind = RUNNER_PYTHON,
		.tmp_bytes = conf->limit[LIMIT_TMP_BYTES],
		.tmp_inodes = CALL_TMP_INODES},
	};
	struct calls *cs;

	if ((cs = calloc(1, sizeof(*cs))) == NULL)
		return NULL;
	cs->base = base;
	cs->conf = *conf;
	cs->records = records;
	TAILQ_INIT(&cs->queue);
	TAILQ_INIT(&cs->early);
	rc.limits = calls_limits(cs, conf->limit);
	if (table_init(&cs->by_id, conf->queue + POOL_SLOTS_MAX) != 0 ||
	    (cs->verifies = verify_new(base)) == NULL ||
	    (cs->shares = share_new()) == NULL ||
	    (cs->nets = nets_new(base)) == NULL ||
	    (cs->depot = depot_new(base)) == NULL ||
	    (cs->runners = runners_new(base, &rc, &events, cs)) == NULL ||
	    (cs->cache = codecache_new(base, cs->runners, conf->limit)) ==
		NULL) {
		calls_free(cs);
		return NULL;
	}
	return cs;
}

void
calls_admind(struct calls *cs, struct ipc_peer *admind)
{
	verify_peer(cs->verifies, admind);
}

struct depot *
calls_depot(struct calls *cs)
{
	return cs->depot;
}

struct nets *
calls_nets(struct calls *cs)
{
	return cs->nets;
}

static void
regrant(struct table_node *n, void *arg)
{
	struct call *c = TABLE_OBJECT(struct call, node, n);

	if (held_take_grants(c->held, arg))
		callnet_regrant(c);
}

void
calls_regrant(struct calls *cs, const struct regrant *r)
{
	struct regrant copy = *r; /* shallow: the list stays r's */

	table_each(&cs->by_id, regrant, &copy);
}

struct runners *
calls_runners(struct calls *cs)
{
	return cs->runners;
}

void
calls_pool(struct calls *cs, struct pool *pool)
{
	cs->pool = pool;
	runners_pool(cs->runners, pool);
	codecache_pool(cs->cache, pool);
	nets_pool(cs->nets, pool);
}

static void
free_node(struct table_node *n, void *arg)
{
	struct calls *cs = arg;

	table_del(&cs->by_id, n);
	call_free(TABLE_OBJECT(struct call, node, n));
}

void
calls_free(struct calls *cs)
{
	if (cs == NULL)
		return;
	early_free(cs);
	if (cs->by_id.bucket != NULL)
		table_each(&cs->by_id, free_node, cs);
	table_free(&cs->by_id);
	nets_free(cs->nets);
	depot_free(cs->depot);
	verify_free(cs->verifies);
	codecache_free(cs->cache);
	runners_free(cs->runners);
	share_free(cs->shares);
	free(cs);
}

/* Returns the number of slots that no call has, with those in which a runner
 * waits or is being forked. For each such slot one call in the queue does not
 * count as waiting. */
static unsigned
free_slots(const struct calls *cs)
{
	struct runners_counts n = runners_counts(cs->runners);
	unsigned slots = pool_counts(cs->pool).slots;

	if (!pool_ready(cs->pool) || slots < n.taken + n.ending)
		return 0;
	return slots - n.taken - n.ending;
}

/* Tells whether the call, which is in the queue already, may stay there: a
 * principal may use only a part of the queue. As many of the principal's calls
 * as can get a free slot do not count as waiting. */
static bool
may_wait(const struct calls *cs, const struct call *c)
{
	size_t slots = pool_counts(cs->pool).slots;
	size_t part = share_part(c->share, SHARE_SLOTS, slots);
	size_t used = share_has(c->share, SHARE_SLOTS);
	size_t left = used < part ? part - used : 0;
	size_t can = free_slots(cs);

	if (left < can)
		can = left;
	return share_has(c->share, SHARE_QUEUE) <= can ||
	    share_fits(c->share, SHARE_QUEUE, 0, cs->conf.queue + can);
}

struct profile *
calls_profile(struct calls *cs, const struct held *h, uint64_t now_ms)
{
	const struct pool_profile profile = {
	    .kind = h->runner,
	    .network = held_connects(h),
	    .tmp_bytes = h->limit[LIMIT_TMP_BYTES],
	    .tmp_inodes = CALL_TMP_INODES,
	    .modules = ipc_bytes(h->modules.p, h->modules.len),
	};

	return runners_profile(cs->runners, &profile, now_ms);
}

int
calls_run(struct calls *cs, struct ipc_peer *peer, uint64_t request,
    struct held *h, struct ipc_bytes arguments)
{
	struct ipc_id id = h->id;
	struct call *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return -1;
	c->all = cs;
	buf_init(&c->arguments, arguments.n);
	buf_put(&c->arguments, arguments.p, arguments.n);
	c->timer = evtimer_new(cs->base, call_timer, c);
	c->run_ms = now_boot_ms();
	c->profile = calls_profile(cs, h, c->run_ms);
	c->share = share_get(cs->shares, h->principal);
	if (c->arguments.failed || c->timer == NULL || c->profile == NULL ||
	    c->share == NULL) {
		call_free(c);
		return -1;
	}
	c->id = h->id;
	c->held = h;
	c->peer = peer;
	c->request = request;
	c->run_us = now_us();
	table_add(&cs->by_id, &c->node, &c->id, sizeof(c->id));
	call_change(c, CALL_WAITING);
	dispatch(cs);
	/* The call may be gone by now. If it still waits, it is the last in the
	 * queue. */
	if ((c = TAILQ_LAST(&cs->queue, call_queue)) == NULL ||
	    memcmp(&c->id, &id, sizeof(id)) != 0)
		return 0;
	runners_missed(cs->runners, c->profile);
	if (cs->queued > cs->conf.queue + free_slots(cs))
		call_finish(c, OUTCOME_REFUSED, FAILURE_BUSY,
		    "too many calls wait for a slot", NULL);
	else if (!may_wait(cs, c))
		call_finish(c, OUTCOME_REFUSED, FAILURE_BUSY,
		    "too many calls of this client wait for a slot", NULL);
	return 0;
}

void
calls_refuse_held(struct calls *cs, struct held *h, enum outcome outcome,
    enum failure failure)
{
	struct record *r = h->record;

	early_drop(cs, h);
	h->record = NULL;
	held_free(h);
	r->outcome = outcome;
	r->failure = failure;
	r->ended_us = now_us();
	records_add(cs->records, r);
}

static void
find_unended(struct table_node *n, void *arg)
{
	struct search *s = arg;

	if (TABLE_OBJECT(struct call, node, n)->state != CALL_ENDING)
		s->found = TABLE_OBJECT(struct call, node, n);
}

/*
 * Ends a call for a restart. A client that reads `upgrading` calls again, so
 * only a call of which no code ran gets `upgrading`. A tool that is stopped
 * while it runs may have had effects, so its call gets `killed`, and the reason
 * as text, which the record keeps.
 */
static void
stop(struct call *c)
{
	switch (c->state) {
	case CALL_RUNNING:
	case CALL_PARKED:
		if (c->reaped)
			call_crashed(c);
		else
			call_finish(c, OUTCOME_KILLED, FAILURE_KILLED,
			    "The sandbox was stopped for a restart and did not "
			    "wait longer for the tool, which may have had "
			    "effects.",
			    NULL);
		break;
	case CALL_CHECKING:
		verify_expired(c);
		break;
	case CALL_REPORTING:
		callnet_expired(c);
		break;
	default:
		call_finish(c, OUTCOME_REFUSED, FAILURE_UPGRADING,
		    "the sandbox is being restarted", NULL);
		break;
	}
}

void
calls_stop(struct calls *cs)
{
	struct search s = {0};

	/* A call that ends may start or free other calls, so each search starts
	 * from the beginning. */
	do {
		s.found = NULL;
		table_each(&cs->by_id, find_unended, &s);
		if (s.found != NULL)
			stop(s.found);
	} while (s.found != NULL);
}

bool
calls_cancel(struct calls *cs, const struct ipc_id *id, struct ipc_peer *by,
    enum failure failure)
{
	struct call *c = TABLE_OBJECT(struct call, node,
	    table_find(&cs->by_id, id, sizeof(struct ipc_id)));

	if (c == NULL || c->state == CALL_ENDING ||
	    (by != NULL && c->peer != by))
		return false;
	call_finish(c, OUTCOME_KILLED, failure, answer_reason(failure), NULL);
	return true;
}

bool
calls_attach(struct calls *cs, const struct ipc_id *id, struct ipc_peer *peer,
    uint64_t request)
{
	struct call *c = TABLE_OBJECT(struct call, node,
	    table_find(&cs->by_id, id, sizeof(struct ipc_id)));

	if (c == NULL || !c->held->task || c->state == CALL_ENDING)
		return false;
	c->peer = peer;
	c->request = request;
	if (c->state == CALL_PARKED)
		park_again(c);
	return true;
}

static void
forget_peer(struct table_node *n, void *arg)
{
	struct call *c = TABLE_OBJECT(struct call, node, n);

	if (c->peer != arg)
		return;
	c->peer = NULL;
	if (c->state == CALL_PARKED)
		park_orphaned(c);
}

void
calls_peer_gone(struct calls *cs, struct ipc_peer *peer)
{
	table_each(&cs->by_id, forget_peer, peer);
}

void
calls_memory_layer(const struct calls *cs, char *out, size_t len)
{
	const struct calls_conf *c = &cs->conf;
	uint32_t n = call_processes(
	    cs, c->limit[LIMIT_PROCESSES], c->limit[LIMIT_MEMORY_BYTES]);

	if (pool_memory_bound(cs->pool)) {
		(void)snprintf(out, len, "call_memory=enforced");
		return;
	}
	(void)snprintf(out, len,
	    "call_memory=degraded each process is held to memory, not their "
	    "sum: memory_budget leaves a call %u of %llu processes of %llu MiB",
	    (unsigned)n, (unsigned long long)c->limit[LIMIT_PROCESSES],
	    (unsigned long long)c->limit[LIMIT_MEMORY_BYTES] >> 20);
}

void
calls_took(struct calls *cs, uint64_t ms)
{
	cs->took_us += ms * 1000 / 8;
	cs->took_us -= cs->took_us / 8;
}

/*
 * Estimates the time until a new call gets a slot: the number of waiting calls,
 * with the new one, multiplied by the time between two ends of calls. That time
 * is the usual time of a call divided by the number of slots, but at least the
 * time of a fork divided by the forks at once.
 */
uint64_t
calls_retry_ms(const struct calls *cs)
{
	struct runners_counts n = runners_counts(cs->runners);
	struct pool_counts p = pool_counts(cs->pool);
	uint64_t each_us = cs->took_us / (p.slots > 0 ? p.slots : 1);
	uint64_t fork_us =
	    (uint64_t)n.fork_ms * 1000 / (cs->conf.forks + !cs->conf.forks);
	uint64_t ms;

	if (each_us < fork_us)
		each_us = fork_us;
	ms = (cs->queued + 1) * each_us / 1000;
	if (ms < CALL_RETRY_MIN_MS)
		return CALL_RETRY_MIN_MS;
	return ms < CALL_RETRY_MAX_MS ? ms : CALL_RETRY_MAX_MS;
}

/*
 * Returns the limits of a call's cgroup. The cgroup counts a call's processes
 * and its /tmp, which is memory, too. The call may use both limits in full, so
 * the cgroup's limit is their sum.
 */
struct pool_limits
calls_limits(const struct calls *cs, const uint64_t limit[LIMIT_COUNT])
{
	return (struct pool_limits){
	    .memory_bytes = limit[LIMIT_MEMORY_BYTES] + limit[LIMIT_TMP_BYTES],
	    .processes = (uint32_t)limit[LIMIT_PROCESSES],
	    .cpu_percent = cs->conf.cpu_percent,
	};
}

void
calls_layers(const struct calls *cs, struct buf *out)
{
	struct runners_counts n = runners_counts(cs->runners);
	struct codecache_counts k = codecache_counts(cs->cache);
	struct pool_counts p = pool_counts(cs->pool);

	buf_putf(out,
	    "runners=%s %u wait, %u should (at most %u), %u are being made, "
	    "%u run a call, %u end; %u of %u slots are in use, %u calls wait; "
	    "%llu forks at %u ms, %llu failed, %llu zygotes replaced; "
	    "%llu calls found one waiting, %llu did not\n",
	    pool_ready(cs->pool) ? "enforced" : "missing", n.waiting, n.target,
	    n.max, n.forking, n.taken, n.ending, p.busy, p.slots, cs->queued,
	    (unsigned long long)p.forks, n.fork_ms,
	    (unsigned long long)n.failed, (unsigned long long)p.recycles,
	    (unsigned long long)n.hits, (unsigned long long)n.misses);
	buf_putf(out,
	    "code_cache=enforced %u versions in %llu KiB; %llu hits, %llu "
	    "misses, %llu compiled, %llu differed\n",
	    k.entries, (unsigned long long)k.bytes >> 10,
	    (unsigned long long)k.hits, (unsigned long long)k.misses,
	    (unsigned long long)k.made, (unsigned long long)k.differed);
}

void
calls_status(const struct calls *cs, char *out, size_t len, const char *more)
{
	struct runners_counts n = runners_counts(cs->runners);
	struct pool_counts p = pool_counts(cs->pool);

	if (!pool_ready(cs->pool))
		(void)snprintf(out, len, "waiting for a pool");
	else
		(void)snprintf(out, len,
		    "%u runners wait, %u run a call, %u of %u slots in use%s",
		    n.waiting, n.taken, p.busy, p.slots, more);
}

size_t
calls_count(const struct calls *cs)
{
	return cs->by_id.count;
}

uint64_t
calls_ended(const struct calls *cs)
{
	return cs->ended;
}

bool
calls_has(const struct calls *cs, const struct ipc_id *id)
{
	return table_find(&cs->by_id, id, sizeof(struct ipc_id)) != NULL;
}

void
calls_each(struct calls *cs, void (*f)(struct table_node *, void *), void *arg)
{
	table_each(&cs->by_id, f, arg);
}
