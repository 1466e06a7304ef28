/* See demand.h. */
#include "demand.h"

static void
period(struct demand *d, unsigned waiting, uint64_t now_ms)
{
	d->least = waiting;
	d->missed = false;
	d->since_ms = now_ms;
}

void
demand_init(struct demand *d, unsigned min, unsigned max, uint64_t now_ms)
{
	d->min = d->target = min;
	d->max = max < min ? min : max;
	period(d, 0, now_ms);
}

void
demand_taken(struct demand *d, unsigned left)
{
	if (left < d->least)
		d->least = left;
}

void
demand_missed(struct demand *d)
{
	d->missed = true;
	d->least = 0;
	if (d->target < d->max)
		d->target++;
}

void
demand_tick(struct demand *d, unsigned waiting, uint64_t now_ms)
{
	unsigned give;

	if (now_ms - d->since_ms < DEMAND_PERIOD_MS)
		return;
	if (!d->missed && d->least > 0) {
		give = (d->least + 1) / 2;
		d->target =
		    d->target > d->min + give ? d->target - give : d->min;
	}
	period(d, waiting, now_ms);
}
