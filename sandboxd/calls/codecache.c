/* See codecache.h. */
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>

#include "codecache.h"
#include "log.h"

/*
 *	WANTED	has its source; waits to be compiled, or is being compiled
 *	MADE	has its source and its compiled form
 *	NONE	has no compiled form: the source does not compile, the two
 *		forms differed, or the runners failed
 */
enum code_state { CODE_WANTED, CODE_MADE, CODE_NONE };

struct code {
	struct table_node node;
	struct ipc_id id;       /* the first half of the version's hash */
	TAILQ_ENTRY(code) link; /* most recently used first */
	enum code_state state;
	struct ipc_hash version;
	struct buf name;
	struct buf code; /* the source, then its compiled form */
	size_t source_len;
	struct buf first; /* the first runner's answer */
	unsigned said, tries;
};

struct codecache {
	struct event_base *base;
	struct runners *runners;
	struct pool *pool;
	uint64_t memory_bytes;
	struct table by_version;
	TAILQ_HEAD(code_list, code) list;
	unsigned wanted;
	size_t bytes;
	struct codecache_counts told;
	/* The interpreter that compiled the code. zygote is the present zygote.
	 * All zygotes from since_zygote on had this interpreter. */
	char *interpreter;
	uint64_t zygote, since_zygote;
	/* The one compilation under way. */
	struct code *job;      /* NULL: dropped since it began */
	struct runner *runner; /* NULL: reaped; its frames may still come */
	uint64_t job_zygote;   /* the zygote that forked the runner */
	struct ipc_peer *peer;
	struct buf pieces;
	struct event *timer;
};

/* --- Entries. ------------------------------------------------------------- */

static size_t
size_of(const struct code *k)
{
	return sizeof(*k) + k->name.len + k->code.len + k->first.len;
}

static void
drop(struct codecache *cc, struct code *k)
{
	if (cc->job == k)
		cc->job = NULL;
	if (k->state == CODE_WANTED)
		cc->wanted--;
	cc->bytes -= size_of(k);
	TAILQ_REMOVE(&cc->list, k, link);
	table_del(&cc->by_version, &k->node);
	buf_free(&k->name);
	buf_free(&k->code);
	buf_free(&k->first);
	free(k);
}

static void
drop_all(struct codecache *cc)
{
	struct code *k;

	while ((k = TAILQ_FIRST(&cc->list)) != NULL)
		drop(cc, k);
}

/* Drops the least recently used entries until the bounds hold. */
static void
shrink(struct codecache *cc)
{
	while (cc->by_version.count > CODECACHE_ENTRIES ||
	    cc->bytes > CODECACHE_BYTES)
		drop(cc, TAILQ_LAST(&cc->list, code_list));
}

/* Changes a WANTED entry to MADE with the compiled form, or to NONE if compiled
 * is NULL. */
static void
decide(struct codecache *cc, struct code *k, const struct buf *compiled)
{
	cc->bytes -= size_of(k);
	if (compiled != NULL)
		buf_put(&k->code, compiled->p, compiled->len);
	if (compiled != NULL && !k->code.failed)
		k->state = CODE_MADE;
	else {
		k->state = CODE_NONE;
		buf_free(&k->code);
	}
	buf_free(&k->first);
	cc->wanted--;
	cc->bytes += size_of(k);
	shrink(cc);
}

/* Returns the table's key, the first half of the hash. find() compares the
 * whole hash. */
static struct ipc_id
key_of(const struct ipc_hash *version)
{
	struct ipc_id id;

	memcpy(&id, version, sizeof(id));
	return id;
}

static bool
equal(const struct buf *a, struct ipc_bytes b)
{
	return a->len == b.n && (b.n == 0 || memcmp(a->p, b.p, b.n) == 0);
}

static struct code *
find(struct codecache *cc, const struct held *h)
{
	struct ipc_id id = key_of(&h->version);
	struct code *k = TABLE_OBJECT(
	    struct code, node, table_find(&cc->by_version, &id, sizeof(id)));

	if (k == NULL ||
	    memcmp(&k->version, &h->version, sizeof(h->version)) != 0)
		return NULL;
	TAILQ_REMOVE(&cc->list, k, link);
	TAILQ_INSERT_HEAD(&cc->list, k, link);
	return k;
}

/* Drops all code if the interpreter has changed: code that another interpreter
 * compiled must not be loaded. */
static void
follow_zygote(struct codecache *cc)
{
	const char *now = pool_interpreter(cc->pool);

	if (cc->zygote == pool_zygote(cc->pool) || !pool_ready(cc->pool))
		return;
	cc->zygote = pool_zygote(cc->pool);
	if (cc->interpreter != NULL && *now != '\0' &&
	    strcmp(cc->interpreter, now) == 0)
		return;
	drop_all(cc);
	free(cc->interpreter);
	cc->interpreter = strdup(now);
	cc->since_zygote = cc->zygote;
}

/* Tells whether a runner of this zygote may load the cache's compiled code. */
static bool
may_load(const struct codecache *cc, uint64_t zygote)
{
	return zygote >= cc->since_zygote;
}

/* Tells whether the context's code can have a compiled form at all. */
static bool
compiles(const struct held *h)
{
	return h->has_version && h->runner == RUNNER_PYTHON &&
	    h->driver == DRIVER_CODE && h->code.n > 0;
}

struct ipc_bytes
codecache_find(
    struct codecache *cc, const struct held *h, const struct runner *r)
{
	struct code *k;

	if (!compiles(h))
		return h->code;
	follow_zygote(cc);
	k = find(cc, h);
	if (k != NULL && k->state == CODE_MADE &&
	    may_load(cc, runners_zygote(r)) && equal(&k->name, h->name) &&
	    k->source_len == h->code.n &&
	    memcmp(k->code.p, h->code.p, h->code.n) == 0) {
		cc->told.hits++;
		return ipc_bytes(k->code.p, k->code.len);
	}
	cc->told.misses++;
	return h->code;
}

void
codecache_want(struct codecache *cc, const struct held *h)
{
	struct code *k;

	if (!compiles(h) || cc->wanted >= CODECACHE_WANTED ||
	    find(cc, h) != NULL || (k = calloc(1, sizeof(*k))) == NULL)
		return;
	k->id = key_of(&h->version);
	/* Two versions whose hashes have the same first half are not to be
	 * expected. If there are two, the second gets no compiled form. */
	if (table_find(&cc->by_version, &k->id, sizeof(struct ipc_id)) !=
	    NULL) {
		free(k);
		return;
	}
	k->version = h->version;
	k->source_len = h->code.n;
	buf_init(&k->name, h->name.n + 1);
	buf_init(&k->code, h->code.n + CODECACHE_COMPILED_MAX);
	buf_init(&k->first, CODECACHE_COMPILED_MAX);
	buf_put(&k->name, h->name.p, h->name.n);
	buf_put(&k->code, h->code.p, h->code.n);
	if (k->name.failed || k->code.failed) {
		buf_free(&k->name);
		buf_free(&k->code);
		free(k);
		return;
	}
	table_add(&cc->by_version, &k->node, &k->id, sizeof(k->id));
	TAILQ_INSERT_HEAD(&cc->list, k, link);
	cc->wanted++;
	cc->bytes += size_of(k);
	shrink(cc);
	runners_nudge(cc->runners);
}

/* --- A compilation. ---------------------------------------------------------
 */

/* Ends the job and its runner, whether an answer came or not. */
static void
end_job(struct codecache *cc)
{
	static const struct ipc_handlers nobody;

	(void)evtimer_del(cc->timer);
	if (cc->peer != NULL) {
		ipc_peer_handlers(cc->peer, &nobody, NULL);
		ipc_peer_close(cc->peer);
	}
	cc->peer = NULL;
	if (cc->runner != NULL)
		runners_discard(cc->runner);
	cc->runner = NULL;
	cc->job = NULL;
	buf_free(&cc->pieces);
	runners_nudge(cc->runners);
}

static void
fail_job(struct codecache *cc)
{
	struct code *k = cc->job;

	if (k != NULL && ++k->tries >= CODECACHE_TRIES)
		decide(cc, k, NULL);
	end_job(cc);
}

/* Takes the answer of one of the two runners. */
static void
take_result(struct codecache *cc)
{
	struct code *k;

	follow_zygote(cc);
	/* The entry was dropped since the job began, or the runner's
	 * interpreter is not the present one. */
	if ((k = cc->job) == NULL || !may_load(cc, cc->job_zygote)) {
		end_job(cc);
		return;
	}
	if (cc->pieces.len == 0) {
		/* The source does not compile: each call will report the error.
		 */
		decide(cc, k, NULL);
	} else if (k->said == 0) {
		cc->bytes -= size_of(k);
		buf_put(&k->first, cc->pieces.p, cc->pieces.len);
		cc->bytes += size_of(k);
		if (k->first.failed)
			decide(cc, k, NULL);
		else
			k->said = 1;
	} else if (equal(&k->first, ipc_bytes(cc->pieces.p, cc->pieces.len))) {
		cc->told.made++;
		decide(cc, k, &cc->pieces);
	} else {
		cc->told.differed++;
		log_event(LOG_LV_WARN, "code_differs",
		    "two runners compiled %.*s differently: it has no "
		    "compiled form",
		    (int)k->name.len, (const char *)k->name.p);
		decide(cc, k, NULL);
	}
	end_job(cc);
}

/* Takes the frames that a compiling runner may send: output (warnings, which
 * are not read), pieces of the compiled form, and the end of the pieces. */
static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	struct codecache *cc = arg;
	struct ipc_content_part part;
	struct ipc_run_result result;

	switch (f->type) {
	case IPC_STDOUT:
		return 0;
	case IPC_CONTENT_PART:
		if (ipc_decode(f, &part, NULL) != 0)
			break;
		buf_put(&cc->pieces, part.data.p, part.data.n);
		if (cc->pieces.failed)
			break;
		return 0;
	case IPC_RUN_RESULT:
		if (ipc_decode(f, &result, NULL) != 0 ||
		    result.length != cc->pieces.len)
			break;
		take_result(cc);
		return 0;
	default:
		break;
	}
	fail_job(cc);
	return 0;
}

static void
on_down(struct ipc_peer *peer, void *arg)
{
	struct codecache *cc = arg;

	cc->peer = NULL;
	fail_job(cc);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	fail_job(arg);
}

static void
on_exited(void *owner, const struct ipc_exited *m)
{
	struct codecache *cc = owner;

	/* The job goes on: the runner's last frames may still come, and then
	 * its channel ends (on_down). */
	cc->runner = NULL;
}

static void
on_lost(void *owner)
{
	struct codecache *cc = owner;

	cc->runner = NULL;
	end_job(cc);
}

static void
on_limited(void *owner, int error)
{
}

/* Returns the version that has waited longest. */
static struct code *
next_job(struct codecache *cc)
{
	struct code *k;

	TAILQ_FOREACH_REVERSE(k, &cc->list, code_list, link)
		if (k->state == CODE_WANTED)
			return k;
	return NULL;
}

static int
send_job(struct codecache *cc, const struct code *k)
{
	struct ipc_execute x = {
	    .kind = CONTEXT_COMPILE,
	    .name = ipc_bytes(k->name.p, k->name.len),
	    .memory_bytes = cc->memory_bytes,
	    .cpu_ms = CODECACHE_COMPILE_MS,
	    .processes = 8, /* the runner's own, and spare ones */
	    .files = 64,
	    .file_bytes = 4096,
	    .stdout_max = 4096,
	    .result_max = CODECACHE_COMPILED_MAX,
	    .source_len = (uint32_t)k->source_len,
	    .code = ipc_bytes(k->code.p, k->source_len),
	};
	struct ipc_arguments a = {.json = ipc_str("{}")};
	struct ipc_secrets s = {.tlv = ipc_bytes(NULL, 0)};

	return ipc_send(cc->peer, IPC_EXECUTE, &x) == 0 &&
		ipc_send(cc->peer, IPC_ARGUMENTS, &a) == 0 &&
		ipc_send(cc->peer, IPC_SECRETS, &s) == 0
	    ? 0
	    : -1;
}

void
codecache_work(struct codecache *cc)
{
	static const struct runner_owner owner = {
	    .exited = on_exited, .lost = on_lost, .limited = on_limited};
	static const struct ipc_handlers handlers = {
	    .message = on_message, .down = on_down};
	static const struct timeval tv = {CODECACHE_COMPILE_MS / 1000, 0};
	struct code *k;

	if (cc->peer != NULL || cc->runner != NULL || cc->wanted == 0 ||
	    !runners_spare(cc->runners))
		return;
	follow_zygote(cc);
	if ((k = next_job(cc)) == NULL)
		return;
	cc->runner = runners_take(
	    cc->runners, runners_standard(cc->runners), &owner, cc, &cc->peer);
	if (cc->runner == NULL)
		return;
	cc->job = k;
	cc->job_zygote = runners_zygote(cc->runner);
	buf_init(&cc->pieces, CODECACHE_COMPILED_MAX);
	ipc_peer_handlers(cc->peer, &handlers, cc);
	if (evtimer_add(cc->timer, &tv) != 0 || send_job(cc, k) != 0)
		fail_job(cc);
}

/* --- The whole cache.
 * --------------------------------------------------------------- */

struct codecache *
codecache_new(struct event_base *base, struct runners *runners,
    const uint64_t limit[LIMIT_COUNT])
{
	struct codecache *cc;

	if ((cc = calloc(1, sizeof(*cc))) == NULL)
		return NULL;
	cc->base = base;
	cc->runners = runners;
	cc->memory_bytes = limit[LIMIT_MEMORY_BYTES];
	TAILQ_INIT(&cc->list);
	cc->timer = evtimer_new(base, on_timer, cc);
	if (cc->timer == NULL ||
	    table_init(&cc->by_version, CODECACHE_ENTRIES) != 0) {
		codecache_free(cc);
		return NULL;
	}
	return cc;
}

void
codecache_pool(struct codecache *cc, struct pool *pool)
{
	cc->pool = pool;
}

void
codecache_free(struct codecache *cc)
{
	static const struct ipc_handlers nobody;

	if (cc == NULL)
		return;
	if (cc->peer != NULL) {
		ipc_peer_handlers(cc->peer, &nobody, NULL);
		ipc_peer_close(cc->peer);
	}
	drop_all(cc);
	table_free(&cc->by_version);
	buf_free(&cc->pieces);
	free(cc->interpreter);
	if (cc->timer != NULL)
		event_free(cc->timer);
	free(cc);
}

struct codecache_counts
codecache_counts(const struct codecache *cc)
{
	struct codecache_counts n = cc->told;

	n.entries = (unsigned)cc->by_version.count;
	n.bytes = cc->bytes;
	return n;
}
