#include "latest.h"

#include "ids.h"
#include "log.h"

/* A clock that goes back by more is told in the log. */
#define BACK_US (UINT64_C(60) * 1000 * 1000)
/* A clock that is ahead by more was wrong (decision 0090). */
#define AHEAD_MAX_US (UINT64_C(24) * 3600 * 1000 * 1000)

/*
 * The latest time that was known, plus the time since then by the clock since
 * boot. Otherwise a wall clock that is set back (by a time server that lies, by
 * an administrator, by an empty battery) would bring tokens back that are over.
 * If the wall clock is ahead, it counts.
 *
 * A clock that was ahead by mistake must not lock people out for years. So a
 * time that is more than a day ahead of all that is known counts only as long
 * as the clock shows it. A clock that was ahead for less makes tokens end early
 * until the true time is there; the log says so.
 */
uint64_t
latest_now(struct latest *x)
{
	uint64_t wall = now_us(), boot = now_boot_ms();
	uint64_t late = x->us + (boot - x->boot_ms) * 1000;

	if (x->us != 0 && wall < late)
		return late;
	if (x->us == 0 || wall - late <= AHEAD_MAX_US) {
		x->us = wall;
		x->boot_ms = boot;
	}
	return wall;
}

void
latest_was(struct latest *x, uint64_t us)
{
	uint64_t now = latest_now(x);

	if (us <= now || us - now > AHEAD_MAX_US)
		return;
	if (us - now > BACK_US)
		log_event(LOG_LV_WARN, "clock",
		    "the newest record is %llu s ahead of this machine's "
		    "clock: signed tokens are judged by its time",
		    (unsigned long long)((us - now) / 1000000));
	x->us = us;
	x->boot_ms = now_boot_ms();
}

void
latest_look(struct latest *x)
{
	uint64_t now = latest_now(x), wall = now_us();

	if (now > wall && now - wall > BACK_US)
		log_event(LOG_LV_WARN, "clock",
		    "this machine's clock is %llu s behind a time that it "
		    "showed: signed tokens are judged by the later time",
		    (unsigned long long)((now - wall) / 1000000));
}
