/* See call_internal.h. */
#include "call_internal.h"

void
slot_take(struct call *c)
{
	c->slotted = true;
	share_take(c->share, SHARE_SLOTS, 1);
}

void
slot_leave(struct call *c)
{
	if (c->slotted)
		share_leave(c->share, SHARE_SLOTS, 1);
	c->slotted = false;
}

void
slot_wait(struct call *c, bool begins)
{
	struct calls *cs = c->all;

	if (begins) {
		cs->queued++;
		share_take(c->share, SHARE_QUEUE, 1);
	} else {
		cs->queued--;
		share_leave(c->share, SHARE_QUEUE, 1);
	}
	runners_hungry(cs->runners, calls_hungry(cs));
}

bool
slot_is_due(const struct call *c)
{
	return share_fits(
	    c->share, SHARE_SLOTS, 1, pool_counts(c->all->pool).slots);
}
