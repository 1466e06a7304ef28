#include <stdlib.h>
#include <string.h>

#include "crypto.h"
#include "throttle.h"

struct bucket {
	struct ipc_hash who;
	uint64_t full_ms; /* time at which the bucket is full again */
};

struct throttle {
	unsigned burst;
	struct bucket all, e[THROTTLE_BUCKETS];
};

struct throttle *
throttle_new(unsigned burst)
{
	struct throttle *t = calloc(1, sizeof(*t));

	if (t != NULL)
		t->burst = burst;
	return t;
}

void
throttle_free(struct throttle *t)
{
	free(t);
}

static struct bucket *
find(struct throttle *t, const struct ipc_hash *who)
{
	for (size_t i = 0; i < THROTTLE_BUCKETS; i++)
		if (memcmp(t->e[i].who.b, who->b, sizeof(who->b)) == 0)
			return &t->e[i];
	return NULL;
}

/* Makes a bucket. A new name takes the bucket that is full soonest, so a flood
 * of names pushes out idle buckets before busy ones. */
static struct bucket *
make(struct throttle *t, const struct ipc_hash *who, uint64_t now_ms)
{
	struct bucket *b = &t->e[0];

	for (size_t i = 1; i < THROTTLE_BUCKETS; i++)
		if (t->e[i].full_ms < b->full_ms)
			b = &t->e[i];
	b->who = *who;
	b->full_ms = now_ms;
	return b;
}

static void
name(enum throttle_what what, struct ipc_bytes who, struct ipc_hash *h)
{
	uint8_t kind = (uint8_t)what;

	sha256_2(&kind, 1, who.p, who.n, h);
}

/*
 * A bucket is one number: the time at which it will be full. Each attempt moves
 * that time one period on. An attempt that would move it more than `burst`
 * periods ahead is refused.
 */
uint64_t
throttle_take(struct throttle *t, enum throttle_what what, struct ipc_bytes who,
    uint64_t now_ms)
{
	uint64_t period = THROTTLE_PERIOD_MS, limit, burst = t->burst;
	struct ipc_hash h;
	struct bucket *b;

	if (what == THROTTLE_ALL) {
		b = &t->all;
		period = THROTTLE_ALL_PERIOD_MS;
		burst *= THROTTLE_ALL_BURSTS;
	} else {
		name(what, who, &h);
		if ((b = find(t, &h)) == NULL)
			b = make(t, &h, now_ms);
	}
	limit = now_ms + burst * period;
	if (b->full_ms < now_ms)
		b->full_ms = now_ms;
	if (b->full_ms + period > limit)
		return b->full_ms + period - limit;
	b->full_ms += period;
	return 0;
}

void
throttle_give(struct throttle *t, enum throttle_what what, struct ipc_bytes who)
{
	uint64_t period = THROTTLE_PERIOD_MS;
	struct bucket *b = &t->all;
	struct ipc_hash h;

	if (what == THROTTLE_ALL) {
		period = THROTTLE_ALL_PERIOD_MS;
	} else {
		name(what, who, &h);
		b = find(t, &h);
	}
	if (b != NULL && b->full_ms >= period)
		b->full_ms -= period;
}
