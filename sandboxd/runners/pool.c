/* See pool.h. */
#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "layer.h"
#include "log.h"
#include "pool_internal.h"

static void
timer_in(struct pool *p, int ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	(void)evtimer_add(p->timer, &tv);
}

/* Starts a pool after a pause, which grows until a pool has lived for
 * POOL_STEADY_MS. */
static void
start_later(struct pool *p)
{
	if (p->spawn == NULL)
		return;
	p->backoff_ms =
	    p->backoff_ms == 0 ? IPC_BACKOFF_MIN_MS : p->backoff_ms * 2;
	if (p->backoff_ms > IPC_BACKOFF_MAX_MS)
		p->backoff_ms = IPC_BACKOFF_MAX_MS;
	timer_in(p, p->backoff_ms);
}

/* Keeps for doctor the layers of a pool that could not start, until a pool has
 * started. Logs the missing layer once, with its fix. */
static void
refused(struct pool *p, struct ipc_bytes layers)
{
	const char *line;
	size_t n;

	free(p->refused);
	p->refused = ipc_strdup(layers);
	if (p->refused != NULL &&
	    (line = layer_missing(p->refused, &n)) != NULL)
		log_event(LOG_LV_ERR, "layer_missing",
		    "the pool does not start without it: %.*s. %s", (int)n,
		    line, layer_fix(line, strcspn(line, "=")));
}

/* Keeps spawn's reason for a refusal as a layer's line. */
static void
spawn_refused(struct pool *p, struct ipc_frame *f)
{
	struct ipc_refused m;
	struct buf line;

	buf_init(&line, 1024);
	if (f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &m, NULL) == 0) {
		buf_puts(&line, "pool_namespaces=missing ");
		buf_put(&line, m.message.p, m.message.n);
		if (!line.failed)
			refused(p, ipc_bytes(line.p, line.len));
	}
	buf_free(&line);
}

static void
on_started(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_pool_started m = {.channel = -1};
	struct pool *p = arg;
	struct err e;

	p->asked = false;
	if (f == NULL || f->type != IPC_POOL_STARTED) {
		log_event(LOG_LV_WARN, "pool_refused",
		    "spawn could not start a pool");
		spawn_refused(p, f);
		start_later(p);
		return;
	}
	if (ipc_decode(f, &m, &e) != 0) {
		log_event(LOG_LV_ERR, "pool_malformed", "%s", e.text);
		start_later(p);
		return;
	}
	if (m.generation != p->pool_generation || p->peer != NULL) {
		close(m.channel);
		return;
	}
	if (pool_adopt(p, m.channel, m.uids) != 0)
		start_later(p);
}

static void
start(struct pool *p)
{
	struct ipc_pool_start m = {.generation = p->pool_generation + 1};
	struct ipc_peer *spawn;

	if (p->spawn == NULL || p->peer != NULL || p->asked ||
	    (spawn = ipc_client_peer(p->spawn)) == NULL)
		return;
	p->pool_generation++;
	/* spawn first waits for the old pool's end, which may take a while. */
	if (ipc_request(
		spawn, IPC_POOL_START, &m, 30 * 1000, on_started, p, NULL) != 0)
		start_later(p);
	else
		p->asked = true;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct pool *p = arg;

	if (p->peer == NULL)
		start(p);
	else if (!p->ready)
		pool_restart(p, "the zygote did not report");
	else if (p->recycling) {
		p->recycling = false;
		log_event(LOG_LV_ERR, "recycle_failed",
		    "the new zygote did not report; the old one stays");
	}
}

static void
on_spawn_up(struct ipc_peer *peer, void *arg)
{
	struct pool *p = arg;

	/* A pool ends with its spawn. Don't wait until that end is seen. */
	if (p->peer != NULL)
		pool_restart(p, "spawn was restarted");
	else
		start(p);
}

static int
on_spawn_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	return -1; /* spawn only answers */
}

static int
on_exited(struct pool *p, struct ipc_frame *f)
{
	struct ipc_exited m;
	struct pool_entry *s;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0 ||
	    (s = pool_entry(p, m.slot, m.generation)) == NULL)
		return -1;
	p->events.exited(pool_release(p, s), &m);
	return 0;
}

static int
on_fork_failed(struct pool *p, struct ipc_frame *f)
{
	struct ipc_fork_failed m;
	struct pool_entry *s;
	char *step;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0 ||
	    (s = pool_entry(p, m.slot, m.generation)) == NULL)
		return -1;
	step = ipc_strdup(m.step);
	log_event(LOG_LV_ERR, "fork_failed", "slot %u: %s: %s",
	    (unsigned)m.slot, step != NULL ? step : "?",
	    strerror((int)m.error));
	p->events.fork_failed(
	    pool_release(p, s), step != NULL ? step : "?", (int)m.error);
	free(step);
	return 0;
}

static int
on_limited(struct pool *p, struct ipc_frame *f)
{
	struct ipc_limited m;
	struct pool_entry *s;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0 ||
	    (s = pool_entry(p, m.slot, m.generation)) == NULL)
		return -1;
	p->events.limited(s->owner, (int)m.error);
	return 0;
}

/* Takes a zygote's report. The first report makes the pool ready. A later
 * report comes from a zygote that replaces another zygote. */
static int
on_report(struct pool *p, struct ipc_frame *f)
{
	uint64_t recycles = p->recycles;
	struct ipc_pool_report m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	/* This zygote can't fork. pool-init ends the pool, or keeps its old
	 * zygote. At the next attempt the cause may be gone. */
	if (m.interpreter.n == 0) {
		refused(p, m.layers);
		return 0;
	}
	free(p->refused);
	p->refused = NULL;
	free(p->layers);
	p->layers = ipc_strdup(m.layers);
	free(p->interpreter);
	p->interpreter = ipc_strdup(m.interpreter);
	p->zygote++;
	p->zygote_forks = 0;
	p->zygote_ms = now_boot_ms();
	p->recycling = false;
	(void)evtimer_del(p->timer);
	if (!p->ready) {
		p->ready = true;
		p->ready_ms = now_boot_ms();
		log_event(LOG_LV_INFO, "pool_ready", "%u slots, %u uids",
		    p->nslots, (unsigned)p->uids);
	} else {
		p->recycles++;
		log_event(LOG_LV_INFO, "zygote_replaced", "forks are its now");
	}
	if (p->recycle_again)
		pool_recycle(p, "asked for again");
	if (p->recycles == recycles && p->first != NULL)
		p->first(p->first_arg);
	p->events.reported(p->arg);
	return 0;
}

/* Takes a message of pool-init. pool-init is trusted, but its messages are
 * checked: a message that names no current use of a slot ends the pool. */
static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	struct pool *p = arg;

	if (peer != p->peer)
		return -1;
	switch (f->type) {
	case IPC_EXITED:
		return on_exited(p, f);
	case IPC_FORK_FAILED:
		return on_fork_failed(p, f);
	case IPC_LIMITED:
		return on_limited(p, f);
	case IPC_POOL_REPORT:
		return on_report(p, f);
	default:
		return -1;
	}
}

/* Forgets the pool, which has ended, and tells each slot's owner. */
static void
forget(struct pool *p)
{
	if (p->ready && now_boot_ms() - p->ready_ms >= POOL_STEADY_MS)
		p->backoff_ms = 0;
	p->peer = NULL;
	p->ready = p->recycling = p->recycle_again = false;
	free(p->layers);
	free(p->interpreter);
	p->layers = p->interpreter = NULL;
	for (unsigned i = 0; i < p->nslots; i++)
		if (p->slot[i].owner != NULL)
			p->events.lost(pool_release(p, &p->slot[i]));
	start_later(p);
}

/* Closes the socket to pool-init. on_down() then ignores the socket's end. */
static void
give_up(struct pool *p)
{
	ipc_peer_set_data(p->peer, NULL);
	ipc_peer_close(p->peer);
	p->peer = NULL;
}

static void
on_down(struct ipc_peer *peer, void *arg)
{
	struct pool *p = arg;

	/* give_up() was called before; p itself may be freed. */
	if (ipc_peer_data(peer) == NULL)
		return;
	log_event(LOG_LV_WARN, "pool_lost", "pool-init is gone");
	forget(p);
}

struct pool *
pool_new(struct event_base *base, const char *spawn_path, unsigned slots,
    const struct pool_events *events, void *arg, struct err *e)
{
	static const struct ipc_handlers handlers = {
	    .up = on_spawn_up, .message = on_spawn_message};
	struct pool *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		goto bad;
	p->base = base;
	p->events = *events;
	p->arg = arg;
	p->nslots = slots < POOL_SLOTS_MAX ? slots : POOL_SLOTS_MAX;
	if ((p->timer = evtimer_new(base, on_timer, p)) == NULL)
		goto bad;
	if (spawn_path != NULL &&
	    (p->spawn = ipc_client_new(base, spawn_path, "sandboxd-spawn",
		 IPC_ROLE_SANDBOXD, IPC_ROLE_SPAWN, &handlers, p, e)) == NULL) {
		pool_free(p);
		return NULL;
	}
	return p;
bad:
	free(p);
	(void)err_set(e, FAILURE_INTERNAL, "no memory for the pool");
	return NULL;
}

void
pool_free(struct pool *p)
{
	if (p == NULL)
		return;
	if (p->peer != NULL)
		give_up(p);
	if (p->spawn != NULL)
		ipc_client_free(p->spawn);
	event_free(p->timer);
	free(p->layers);
	free(p->interpreter);
	free(p->refused);
	free(p);
}

int
pool_adopt(struct pool *p, int sock, uint32_t uids)
{
	static const struct ipc_handlers handlers = {
	    .message = on_message, .down = on_down};
	struct err e;

	/* With fewer uids than slots, two runners would share a uid. */
	if (uids < p->nslots + POOL_UID_FIRST - 1) {
		log_event(LOG_LV_ERR, "pool_uids",
		    "%u uids are too few for %u slots", (unsigned)uids,
		    p->nslots);
		close(sock);
		return -1;
	}
	p->peer = ipc_peer_adopt(p->base, sock, "pool-init", IPC_ROLE_SANDBOXD,
	    IPC_ROLE_POOL, false, IPC_STATE_OPEN, &handlers, p, &e);
	if (p->peer == NULL) {
		close(sock);
		return -1;
	}
	ipc_peer_set_data(p->peer, p);
	p->uids = uids;
	if (p->next_uid < POOL_UID_FIRST || p->next_uid > uids)
		p->next_uid = POOL_UID_FIRST;
	timer_in(p, POOL_REPORT_MS);
	return 0;
}

bool
pool_ready(const struct pool *p)
{
	return p->ready;
}

void
pool_recycle(struct pool *p, const char *why)
{
	struct ipc_recycle m = {0};

	/* If a new zygote is starting, it must be replaced, too: the reason in
	 * `why` may be newer than that zygote. */
	p->recycle_again = p->recycling;
	if (!p->ready || p->recycling)
		return;
	p->recycle_not_before_ms = now_boot_ms() + POOL_RECYCLE_RETRY_MS;
	if (ipc_send(p->peer, IPC_RECYCLE, &m) != 0)
		return;
	p->recycling = true;
	log_event(LOG_LV_INFO, "zygote_recycle", "%s", why);
	timer_in(p, POOL_REPORT_MS);
}

int
pool_peek_link(struct pool *p, int sock)
{
	struct ipc_peek_link m = {.link = sock};

	return p->peer != NULL ? ipc_send(p->peer, IPC_PEEK_LINK, &m) : -1;
}

void
pool_on_first_report(struct pool *p, void (*told)(void *), void *arg)
{
	p->first = told;
	p->first_arg = arg;
}

void
pool_recycle_after(struct pool *p, uint64_t forks)
{
	p->recycle_after = forks;
}

uint64_t
pool_zygote(const struct pool *p)
{
	return p->zygote;
}

const char *
pool_interpreter(const struct pool *p)
{
	return p->interpreter != NULL ? p->interpreter : "";
}

struct pool_counts
pool_counts(const struct pool *p)
{
	return (struct pool_counts){.forks = p->forks,
	    .recycles = p->recycles,
	    .slots = p->nslots,
	    .busy = p->busy};
}

void
pool_restart(struct pool *p, const char *why)
{
	if (p->peer == NULL)
		return;
	log_event(LOG_LV_ERR, "pool_restart", "%s", why);
	give_up(p);
	forget(p);
}

const char *
pool_layers(const struct pool *p)
{
	if (p->layers == NULL && p->refused != NULL)
		return p->refused;
	return p->layers != NULL ? p->layers : "";
}

const char *
pool_spawn_layers(const struct pool *p)
{
	struct ipc_peer *peer =
	    p->spawn != NULL ? ipc_client_peer(p->spawn) : NULL;

	return peer != NULL ? ipc_peer_layers(peer) : "";
}

/* Tells whether a line begins with this text. */
static bool
says(const char *lines, const char *begin)
{
	const char *at = strstr(lines, begin);

	return at != NULL && (at == lines || at[-1] == '\n');
}

bool
pool_memory_bound(const struct pool *p)
{
	return says(pool_spawn_layers(p), "cgroup=enforced") &&
	    says(pool_layers(p), "call_cgroup=enforced");
}
