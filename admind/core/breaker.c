/*
 * Circuit breakers, in memory.
 *
 * A counter belongs to a session or a principal. It counts calls in a sliding
 * window, repeated calls, and errors in a row. All tables are bounded, and the
 * least recently used entry makes room. A caller who makes many sessions can
 * push out the counters of other sessions, but never a principal's counter,
 * since only credentials add entries to that table.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "breaker.h"
#include "crypto.h"

enum {
	/* A window is counted in parts, and the newest part is not over yet. So
	 * a count covers the whole window, or up to a sixth less. */
	PARTS = 6,
	/* A principal is a person or a token; a session is one conversation. */
	SESSIONS_MAX = 4096,
	PRINCIPALS_MAX = 1024,
	/* Different calls that are counted at the same time. A loop over more
	 * calls is caught by the limit on all calls. */
	SESSION_REPEATS = 64,
	PRINCIPAL_REPEATS = 256,
	/* The most calls whose records are awaited; no sandbox holds as
	 * many. */
	UNDER_WAY = 4096,
	BUCKETS = 1024 /* buckets of each hash table; a power of two */
};

struct window {
	uint32_t n[PARTS], sum;
	uint64_t part; /* number of the newest part, counted from boot */
};

struct repeat {
	struct ipc_id args; /* digest of the arguments, by json_alike.h */
	uint64_t name;
	struct window w;
	uint64_t used, open; /* boot ms; calls are refused until `open` */
};

struct counter {
	LIST_ENTRY(counter) chain;
	TAILQ_ENTRY(counter) order;
	struct ipc_id key;
	struct window calls;
	uint32_t errors;
	uint64_t calls_open, errors_open;
	struct repeat *repeat;
	unsigned nrepeats, repeats_size;
};

struct under_way {
	LIST_ENTRY(under_way) chain;
	bool used;
	struct ipc_id id;
	struct breaker_who who;
};

LIST_HEAD(counter_chain, counter);
LIST_HEAD(under_chain, under_way);
TAILQ_HEAD(counter_order, counter);

struct breakers {
	struct {
		struct counter_chain chain[BUCKETS];
		struct counter_order order; /* newest use last */
		unsigned n;
	} of[BREAKER_SCOPES];
	struct under_chain under_chain[BUCKETS];
	struct under_way under[UNDER_WAY];
	unsigned under_next;
};

static const unsigned counters_max[] = {SESSIONS_MAX, PRINCIPALS_MAX};
static const unsigned repeats_max[] = {SESSION_REPEATS, PRINCIPAL_REPEATS};

struct breakers *
breakers_new(void)
{
	struct breakers *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	for (int s = 0; s < BREAKER_SCOPES; s++)
		TAILQ_INIT(&b->of[s].order);
	return b;
}

static void
drop(struct breakers *b, int scope, struct counter *c)
{
	LIST_REMOVE(c, chain);
	TAILQ_REMOVE(&b->of[scope].order, c, order);
	b->of[scope].n--;
	free(c->repeat);
	free(c);
}

static void
drop_all(struct breakers *b)
{
	struct counter *c;

	for (int s = 0; s < BREAKER_SCOPES; s++)
		while ((c = TAILQ_FIRST(&b->of[s].order)) != NULL)
			drop(b, s, c);
}

void
breakers_free(struct breakers *b)
{
	if (b == NULL)
		return;
	drop_all(b);
	free(b);
}

void
breaker_principal(unsigned listener, const char *principal, struct ipc_id *out)
{
	uint8_t l = (uint8_t)listener;
	struct ipc_hash h;

	sha256_2(&l, 1, principal, strlen(principal), &h);
	memcpy(out->b, h.b, sizeof(out->b));
}

const char *
breaker_name(const struct breaker_trip *t)
{
	static const char *const names[BREAKER_SCOPES][3] = {
	    {"session_calls", "session_repeats", "session_errors"},
	    {"principal_calls", "principal_repeats", "principal_errors"}};

	return names[t->scope][t->kind];
}

/* ---- counters ---- */

/* Returns the bucket of a key. Keys are random or digests, so their bytes serve
 * as the hash. */
static unsigned
bucket(const struct ipc_id *key)
{
	return ((unsigned)key->b[0] << 8 | key->b[1]) & (BUCKETS - 1);
}

static bool
none(const struct ipc_id *key)
{
	static const struct ipc_id zero;

	return memcmp(key, &zero, sizeof(zero)) == 0;
}

static struct counter *
find(struct breakers *b, int scope, const struct ipc_id *key)
{
	struct counter *c;

	LIST_FOREACH(c, &b->of[scope].chain[bucket(key)], chain)
		if (memcmp(&c->key, key, sizeof(*key)) == 0)
			break;
	return c;
}

/* Returns the counter of a key, and makes one if needed. Returns NULL without
 * memory. */
static struct counter *
counter(struct breakers *b, int scope, const struct ipc_id *key)
{
	struct counter *c = find(b, scope, key);

	if (c != NULL) {
		TAILQ_REMOVE(&b->of[scope].order, c, order);
		TAILQ_INSERT_TAIL(&b->of[scope].order, c, order);
		return c;
	}
	if (b->of[scope].n == counters_max[scope])
		drop(b, scope, TAILQ_FIRST(&b->of[scope].order));
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->key = *key;
	LIST_INSERT_HEAD(&b->of[scope].chain[bucket(key)], c, chain);
	TAILQ_INSERT_TAIL(&b->of[scope].order, c, order);
	b->of[scope].n++;
	return c;
}

static void
window_clear(struct window *w)
{
	memset(w, 0, sizeof(*w));
}

/* Drops the parts that are older than the window. */
static void
window_move(struct window *w, uint64_t now, uint64_t length)
{
	uint64_t part = now / (length / PARTS + 1);

	if (part - w->part >= PARTS) {
		window_clear(w);
		w->part = part;
	}
	while (w->part < part) {
		w->part++;
		w->sum -= w->n[w->part % PARTS];
		w->n[w->part % PARTS] = 0;
	}
}

static void
window_add(struct window *w)
{
	w->n[w->part % PARTS]++;
	w->sum++;
}

/* Hashes by FNV-1a. A collision makes two calls of one caller count as the
 * same, but only if their arguments are alike, too. */
static uint64_t
name_hash(unsigned kind, const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ kind;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return h;
}

/* Returns the entry of this call. A call without an entry gets a free one, or
 * the least recently used one, emptied. Returns NULL without memory. */
static struct repeat *
repeat_of(struct counter *c, int scope, uint64_t name,
    const struct ipc_id *args, uint64_t now)
{
	struct repeat *r, *oldest = NULL;
	unsigned size;

	for (unsigned i = 0; i < c->nrepeats; i++) {
		r = &c->repeat[i];
		if (r->name == name &&
		    memcmp(&r->args, args, sizeof(r->args)) == 0)
			return r;
		if (oldest == NULL || r->used < oldest->used)
			oldest = r;
	}
	if (c->nrepeats == c->repeats_size &&
	    c->nrepeats < repeats_max[scope]) {
		size = c->nrepeats == 0 ? 4 : 2 * c->nrepeats;
		r = realloc(c->repeat, size * sizeof(*r));
		if (r == NULL)
			return NULL;
		c->repeat = r;
		c->repeats_size = size;
	}
	r = c->nrepeats < c->repeats_size ? &c->repeat[c->nrepeats++] : oldest;
	memset(r, 0, sizeof(*r));
	r->args = *args;
	r->name = name;
	r->used = now;
	return r;
}

static int
refuse(struct breaker_trip *t, int scope, enum breaker_kind kind,
    uint32_t limit, uint64_t window_ms, uint64_t until, uint64_t now)
{
	t->scope = (enum breaker_scope)scope;
	t->kind = kind;
	t->limit = limit;
	t->window_ms = window_ms;
	t->wait_ms = until > now ? until - now : 1;
	return -1;
}

/* ---- calls ---- */

/* Counts a call. If the limit is reached, opens the breaker (*open), clears the
 * window and returns true. */
static bool
over(struct window *w, uint32_t limit, uint64_t length, uint64_t now,
    uint64_t reset_ms, uint64_t *open)
{
	window_move(w, now, length);
	if (w->sum < limit) {
		window_add(w);
		return false;
	}
	window_clear(w);
	*open = now + reset_ms;
	return true;
}

static int
call_of(struct counter *c, int scope, const struct breaker_conf *conf,
    uint64_t name, const struct ipc_id *args, uint64_t now,
    struct breaker_trip *t)
{
	const struct breaker_limits *l = &conf->of[scope];
	struct repeat *r = NULL;

	t->fresh = false;
	if (l->errors != 0 && c->errors_open > now)
		return refuse(t, scope, BREAKER_ERRORS, l->errors, 0,
		    c->errors_open, now);
	if (l->calls != 0 && c->calls_open > now)
		return refuse(t, scope, BREAKER_CALLS, l->calls, conf->calls_ms,
		    c->calls_open, now);
	if (l->repeats != 0)
		r = repeat_of(c, scope, name, args, now);
	if (r != NULL) {
		r->used = now;
		if (r->open > now)
			return refuse(t, scope, BREAKER_REPEATS, l->repeats,
			    conf->repeats_ms, r->open, now);
	}
	t->fresh = true;
	if (r != NULL &&
	    over(&r->w, l->repeats, conf->repeats_ms, now, conf->reset_ms,
		&r->open))
		return refuse(t, scope, BREAKER_REPEATS, l->repeats,
		    conf->repeats_ms, r->open, now);
	if (l->calls != 0 &&
	    over(&c->calls, l->calls, conf->calls_ms, now, conf->reset_ms,
		&c->calls_open))
		return refuse(t, scope, BREAKER_CALLS, l->calls, conf->calls_ms,
		    c->calls_open, now);
	return 0;
}

int
breaker_call(struct breakers *b, const struct breaker_conf *conf,
    const struct breaker_who *who, unsigned kind, const char *name,
    const struct ipc_id *args, uint64_t now, struct breaker_trip *t)
{
	uint64_t hash = name_hash(kind, name);
	struct counter *c;

	for (int s = 0; s < BREAKER_SCOPES; s++) {
		if (none(&who->key[s]) ||
		    (c = counter(b, s, &who->key[s])) == NULL)
			continue;
		if (call_of(c, s, conf, hash, args, now, t) == -1)
			return -1;
	}
	return 0;
}

/* Returns whether a process or the database was away. BUSY and the like are no
 * outage, since a caller in a loop can cause them itself. */
static bool
is_outage(enum failure f)
{
	return f == FAILURE_STORAGE_UNAVAILABLE ||
	    f == FAILURE_SANDBOX_UNAVAILABLE || f == FAILURE_VAULT_UNAVAILABLE;
}

void
breaker_untried(struct breakers *b, const struct breaker_conf *conf,
    const struct breaker_who *who, unsigned kind, const char *name,
    const struct ipc_id *args, enum failure f, uint64_t now)
{
	uint64_t hash = name_hash(kind, name);
	struct counter *c;
	uint32_t *n;

	for (int s = 0; s < BREAKER_SCOPES && is_outage(f); s++) {
		c = find(b, s, &who->key[s]);
		for (unsigned i = 0; c != NULL && i < c->nrepeats; i++) {
			struct repeat *r = &c->repeat[i];

			if (r->name != hash ||
			    memcmp(&r->args, args, sizeof(r->args)) != 0)
				continue;
			window_move(&r->w, now, conf->repeats_ms);
			n = &r->w.n[r->w.part % PARTS];
			r->w.sum -= *n > 0;
			*n -= *n > 0;
		}
	}
}

/* ---- endings ---- */

/*
 * Judges an ending. 1: the caller's error; 0: a success; -1: it says nothing
 * about the caller. Failures of the platform, and calls that a person ended or
 * has yet to decide, are not the caller's errors. A call of a stopped or
 * unapproved tool is the caller's error, since the tool will go on refusing.
 */
static int
judge(enum failure f)
{
	switch (f) {
	case FAILURE_NONE:
		return 0;
	case FAILURE_KILLED:
	case FAILURE_CONFIRMATION_PENDING:
		return -1;
	case FAILURE_NOT_APPROVED:
	case FAILURE_REVOKED:
	case FAILURE_STOPPED:
	case FAILURE_TOOL_PROTOCOL:
		return 1;
	default:
		return failure_info(f)->side == FAILURE_PLATFORM ? -1 : 1;
	}
}

bool
breaker_ended(struct breakers *b, const struct breaker_conf *conf,
    const struct breaker_who *who, enum failure f, uint64_t now,
    struct breaker_trip *t)
{
	int error = judge(f);
	bool opened = false;
	struct counter *c;
	uint32_t limit;

	for (int s = 0; s < BREAKER_SCOPES && error != -1; s++) {
		c = find(b, s, &who->key[s]);
		limit = conf->of[s].errors;
		if (c == NULL)
			continue;
		if (error == 0) {
			c->errors = 0;
			c->errors_open = 0;
			continue;
		}
		/* Errors of calls that were under way when the breaker opened
		 * don't keep it open for longer. */
		if (limit == 0 || c->errors_open > now || ++c->errors < limit)
			continue;
		c->errors_open = now + conf->reset_ms;
		c->errors = limit - 1; /* the next error opens it again */
		if (!opened)
			(void)refuse(t, s, BREAKER_ERRORS, limit, 0,
			    c->errors_open, now);
		opened = true;
	}
	return opened;
}

/* ---- calls whose records are awaited ---- */

void
breaker_under_way(
    struct breakers *b, const struct ipc_id *id, const struct breaker_who *who)
{
	struct under_way *u = &b->under[b->under_next];

	b->under_next = (b->under_next + 1) % UNDER_WAY;
	if (u->used)
		LIST_REMOVE(u, chain);
	u->used = true;
	u->id = *id;
	u->who = *who;
	LIST_INSERT_HEAD(&b->under_chain[bucket(id)], u, chain);
}

bool
breaker_record(struct breakers *b, const struct breaker_conf *conf,
    const struct ipc_id *id, enum failure f, uint64_t now,
    struct breaker_trip *t)
{
	struct under_way *u;

	LIST_FOREACH(u, &b->under_chain[bucket(id)], chain)
		if (memcmp(&u->id, id, sizeof(*id)) == 0)
			break;
	if (u == NULL)
		return false;
	LIST_REMOVE(u, chain);
	u->used = false;
	return breaker_ended(b, conf, &u->who, f, now, t);
}

/* ---- for administrators ---- */

static void
each_of(const struct counter *c, int scope, const struct breaker_conf *conf,
    uint64_t now,
    void (*cb)(void *, const struct ipc_id *, const struct breaker_trip *),
    void *arg)
{
	const struct breaker_limits *l = &conf->of[scope];
	struct breaker_trip t = {.fresh = false};
	uint64_t repeats = 0;

	for (unsigned i = 0; i < c->nrepeats; i++)
		if (c->repeat[i].open > repeats)
			repeats = c->repeat[i].open;
	if (l->errors != 0 && c->errors_open > now) {
		(void)refuse(&t, scope, BREAKER_ERRORS, l->errors, 0,
		    c->errors_open, now);
		cb(arg, &c->key, &t);
	}
	if (l->calls != 0 && c->calls_open > now) {
		(void)refuse(&t, scope, BREAKER_CALLS, l->calls, conf->calls_ms,
		    c->calls_open, now);
		cb(arg, &c->key, &t);
	}
	if (l->repeats != 0 && repeats > now) {
		(void)refuse(&t, scope, BREAKER_REPEATS, l->repeats,
		    conf->repeats_ms, repeats, now);
		cb(arg, &c->key, &t);
	}
}

void
breakers_each(struct breakers *b, const struct breaker_conf *conf, uint64_t now,
    void (*cb)(void *, const struct ipc_id *, const struct breaker_trip *),
    void *arg)
{
	const struct counter *c;

	for (int s = 0; s < BREAKER_SCOPES; s++)
		TAILQ_FOREACH(c, &b->of[s].order, order)
			each_of(c, s, conf, now, cb, arg);
}

unsigned
breakers_reset(struct breakers *b, uint64_t now)
{
	const struct counter *c;
	unsigned open = 0;

	for (int s = 0; s < BREAKER_SCOPES; s++)
		TAILQ_FOREACH(c, &b->of[s].order, order) {
			open += c->errors_open > now;
			open += c->calls_open > now;
			for (unsigned i = 0; i < c->nrepeats; i++)
				open += c->repeat[i].open > now;
		}
	drop_all(b);
	return open;
}
