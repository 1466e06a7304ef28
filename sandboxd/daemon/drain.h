/*
 * The end of sandboxd in order (docs/decisions/0055).
 *
 *	at once		new work is refused (`upgrading`, main.c), and so is
 *			what is held and was not RUN: nothing of it ran
 *	until the time	calls that run, or wait for a runner, go on; their
 *			records go to admind
 *	time is over	what runs is killed, with a record that says why
 *	then		a moment for runners to be reaped and records to be
 *			acknowledged
 *	last		gateways are listened to no more: what they sent until
 *			then is refused, what they send later fails at once on
 *			their side (ipc_server_finish); who does not read its
 *			answers is waited for DRAIN_GATEWAYS_MS, no longer
 *
 * A record that admind does not acknowledge in all that time is in the ledger
 * (common/ipc/ledger.h), and goes to it from the next process.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include "call.h"
#include "proc.h"

enum {
	DRAIN_GATEWAYS = 2, /* local, tunnel */
	DRAIN_TURN_MS = 10, /* how often it is looked what is left */
	/* To reap what was killed (a tree of processes at most) and have its
	 * records committed, all of them together. */
	DRAIN_LAST_MS = 3000,
	/* For gateways to take their last answers, which wait in sockets: one
	 * that does not read keeps the others without a sandbox so long. */
	DRAIN_GATEWAYS_MS = 500,
	/* When nothing runs any more and only admind is missing, it may be in
	 * the middle of a restart: that takes about a second. */
	DRAIN_ADMIND_MS = 3000
};

struct event;
struct ipc_server;

struct drain {
	struct proc *proc;
	struct held_set *held;
	struct calls *calls;
	struct records *records;
	struct ipc_server *gateways[DRAIN_GATEWAYS];
	struct event *turn;
	/* CLOCK_BOOTTIME; since when there is no admind, or nothing left to
	 * do; or 0 */
	uint64_t until_ms, alone_ms, done_ms;
	bool late;
};

/* Becomes proc's hook; the gateways' listeners are set by whoever opens them.
 * 0, or -1 without memory. */
int drain_init(struct drain *, struct proc *, struct held_set *, struct calls *,
    struct records *);

#endif
