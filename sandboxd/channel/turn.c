/* See turn.h. */
#include <event2/event.h>

#include <time.h>

#include "channel.h"
#include "ids.h"
#include "turn.h"

static void
rest(struct turn *t, struct ipc_peer *peer, uint64_t us)
{
	const struct timeval tv = {.tv_sec = (time_t)(us / 1000000),
	    .tv_usec = (suseconds_t)(us % 1000000)};

	if (evtimer_add(t->event, &tv) == 0)
		ipc_peer_pause(peer);
}

void
turn_frame(struct turn *t, struct ipc_peer *peer, const struct ipc_frame *f)
{
	uint64_t now = now_boot_ms();

	if (now - t->began_ms >= CHANNEL_TURN_MS) {
		t->began_ms = now;
		t->frames = 0;
		t->bytes = 0;
	}
	t->frames++;
	t->bytes += IPC_HEADER_LEN + f->payload_len + f->blob_len;
	if (t->frames >= CHANNEL_BURST || t->bytes >= CHANNEL_TURN_BYTES)
		rest(t, peer, CHANNEL_TURN_MS * 1000);
}

uint64_t
turn_now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void
turn_charge(struct turn *t, struct ipc_peer *peer, uint64_t began_us)
{
	uint64_t took = turn_now_us() - began_us;

	if (took >= CHANNEL_TURN_MS * 1000)
		rest(t, peer, took);
}

bool
turn_rate_due(struct turn_rate *r, uint64_t now_ms)
{
	if (now_ms - r->second_ms >= 1000) {
		r->second_ms = now_ms;
		r->passed = 0;
	}
	if (r->passed < r->most) {
		r->passed++;
		return true;
	}
	r->dropped++;
	return false;
}
