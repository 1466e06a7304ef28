/*
 * A runner's share of the thread that all calls share. After that share the
 * runner is not read for the rest of the turn: a runner that sends without
 * pause costs time only to itself.
 */
#ifndef TURN_H
#define TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc_peer.h"

struct event;

struct turn {
	struct event *event; /* a timer: resumes reading */
	uint64_t began_ms;
	unsigned frames; /* in this turn */
	size_t bytes;    /* in this turn */
};

/* Counts a frame of this peer; pauses the peer when its share is used up. */
void turn_frame(struct turn *, struct ipc_peer *, const struct ipc_frame *);
/* Returns this thread's processor time in microseconds: clock_gettime(2). */
uint64_t turn_now_us(void);
/*
 * Pauses the peer for as long as the thread was busy with it since began_us
 * (turn_now_us), if that took CHANNEL_TURN_MS or more. A tool with a secret may
 * write events that take long to search (decision 0078). With the pause at
 * least half of the thread's time is left to other calls.
 */
void turn_charge(struct turn *, struct ipc_peer *, uint64_t began_us);

/* Events of one kind that a call may send in a second. */
struct turn_rate {
	unsigned most, passed; /* in this second */
	uint64_t second_ms;    /* its beginning */
	uint64_t dropped;      /* in all */
};

/* Tells whether another event may pass in the second of now_ms, and counts the
 * event either way. */
bool turn_rate_due(struct turn_rate *, uint64_t now_ms);

#endif
