/*
 * The end of sandboxd in order (docs/decisions/0055).
 *
 *	at once		new work is refused (`upgrading`, main.c), and so are
 *			held contexts without a RUN: none of them ran
 *	until the time	calls that run, or wait for a runner, go on; their
 *			records go to admind
 *	time is over	running calls are killed, with a record that says why
 *	then		a moment for runners to be reaped and records to be
 *			acknowledged
 *	last		gateways are listened to no more: their earlier
 *			messages are refused, later ones fail at once on their
 *			side (ipc_server_finish); a gateway that does not read
 *			its answers is waited for DRAIN_GATEWAYS_MS, no longer
 *
 * A record that admind does not acknowledge in all that time is in the ledger
 * (common/ipc/ledger.h), and the next process sends it.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include "call.h"
#include "proc.h"

enum {
	DRAIN_GATEWAYS = 2, /* local, tunnel */
	DRAIN_TURN_MS = 10, /* pause between looks at the work left */
	/* Time for all killed calls together: to reap them (each is at most a
	 * tree of processes) and to have their records committed. */
	DRAIN_LAST_MS = 3000,
	/* Time for gateways to take their last answers, which wait in sockets.
	 * A gateway that does not read delays the next sandboxd by this time.
	 */
	DRAIN_GATEWAYS_MS = 500,
	/* Time to wait for admind when no call runs any more. admind may be in
	 * the middle of a restart, which takes about a second. */
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
	/* CLOCK_BOOTTIME, or 0. until_ms: when drain_timeout ends. alone_ms:
	 * since when admind is away. done_ms: since when there is nothing left
	 * to do. */
	uint64_t until_ms, alone_ms, done_ms;
	bool late;
};

/* Makes proc begin the drain when the process is to stop. The code that opens
 * the gateways' listeners sets `gateways`. 0, or -1 without memory. */
int drain_init(struct drain *, struct proc *, struct held_set *, struct calls *,
    struct records *);

#endif
