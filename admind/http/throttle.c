#include <stdio.h>
#include <string.h>

#include "throttle.h"

static struct throttle_entry *
find(struct throttle *t, const char *source)
{
	for (int i = 0; i < THROTTLE_SOURCES; i++)
		if (strncmp(t->e[i].source, source, THROTTLE_SOURCE_LEN - 1) ==
		    0)
			return &t->e[i];
	return NULL;
}

/*
 * A bucket is one number: the time at which it will be full. Each attempt
 * moves it one period on; more than BURST periods ahead is too much. A new
 * source takes the entry that is full soonest, so a flood of sources pushes
 * out idle entries before busy ones.
 */
uint64_t
throttle_take(struct throttle *t, const char *source, uint64_t now_ms)
{
	struct throttle_entry *e = find(t, source);
	uint64_t limit = now_ms + (uint64_t)THROTTLE_BURST * THROTTLE_PERIOD_MS;

	if (e == NULL) {
		e = &t->e[0];
		for (int i = 1; i < THROTTLE_SOURCES; i++)
			if (t->e[i].spent_until_ms < e->spent_until_ms)
				e = &t->e[i];
		snprintf(e->source, sizeof(e->source), "%s", source);
		e->spent_until_ms = now_ms;
	}
	if (e->spent_until_ms < now_ms)
		e->spent_until_ms = now_ms;
	if (e->spent_until_ms + THROTTLE_PERIOD_MS > limit)
		return e->spent_until_ms + THROTTLE_PERIOD_MS - limit;
	e->spent_until_ms += THROTTLE_PERIOD_MS;
	return 0;
}

void
throttle_reset(struct throttle *t, const char *source)
{
	struct throttle_entry *e = find(t, source);

	if (e != NULL)
		e->spent_until_ms = 0;
}
