/* See drain.h. */
#include <event2/event.h>

#include "drain.h"
#include "ids.h"
#include "ipc_peer.h"
#include "log.h"

/* Tells whether admind has been away for so long that it will not come back. */
static bool
admind_is_away(struct drain *d, uint64_t now)
{
	if (records_connected(d->records)) {
		d->alone_ms = 0;
		return false;
	}
	if (d->alone_ms == 0)
		d->alone_ms = now;
	return now - d->alone_ms >= DRAIN_ADMIND_MS;
}

static bool
gateways_gone(struct drain *d)
{
	bool gone = true;

	for (int i = 0; i < DRAIN_GATEWAYS; i++)
		if (d->gateways[i] != NULL &&
		    !ipc_server_finish(d->gateways[i]))
			gone = false;
	return gone;
}

static void
look(struct drain *d)
{
	size_t calls = calls_count(d->calls);
	size_t records = records_count(d->records);
	uint64_t now = now_boot_ms();

	if (calls == 0 && records == 0) {
		if (d->done_ms == 0)
			d->done_ms = now;
		if (gateways_gone(d) || now - d->done_ms >= DRAIN_GATEWAYS_MS)
			proc_end(d->proc);
		return;
	}
	if (now < d->until_ms) {
		if (calls > 0 || records == 0 || !admind_is_away(d, now))
			return;
	} else if (!d->late) {
		log_event(LOG_LV_WARN, "drain_timeout",
		    "%zu calls are not waited for any longer", calls);
		d->late = true;
		d->until_ms = now + DRAIN_LAST_MS;
		calls_stop(d->calls);
		return;
	}
	log_event(LOG_LV_WARN, "records_left",
	    "%zu calls are left to admind's sweep, %zu records to the next "
	    "start",
	    calls, records);
	proc_end(d->proc);
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	look(arg);
}

static void
begin(void *arg)
{
	static const struct timeval tv = {.tv_usec = DRAIN_TURN_MS * 1000};
	struct drain *d = arg;
	struct held *h;

	d->until_ms =
	    now_boot_ms() + (uint64_t)conf_int(d->proc->conf, "drain_timeout");
	while ((h = held_expired(d->held, UINT64_MAX)) != NULL)
		calls_refuse_held(
		    d->calls, h, OUTCOME_REFUSED, FAILURE_UPGRADING);
	if (event_add(d->turn, &tv) != 0)
		proc_end(d->proc);
	else
		look(d);
}

int
drain_init(struct drain *d, struct proc *proc, struct held_set *held,
    struct calls *calls, struct records *records)
{
	d->proc = proc;
	d->held = held;
	d->calls = calls;
	d->records = records;
	d->turn = event_new(proc->base, -1, EV_PERSIST, on_turn, d);
	if (d->turn == NULL)
		return -1;
	proc_on_stop(proc, begin, d);
	return 0;
}
