/*
 * A Landlock domain without rules (landlock(7)): nothing may be opened,
 * executed, made or removed, no TCP port bound or connected to, no abstract
 * unix socket reached. Connecting to a named unix socket stays possible.
 *
 * System calls and constants are written out, so that the binary uses what
 * the running kernel has, whichever headers it was built with.
 */
#ifndef LANDLOCK_H
#define LANDLOCK_H

#include <stdbool.h>

#include "err.h"

/* What the domain holds, for the report. */
struct landlock_state {
	int abi; /* of the kernel; 0: no Landlock */
	bool fs, net, scope;
};

/* ABI of this kernel, 0 if it has none or it is switched off. */
int landlock_abi(void);
/* Puts this process into such a domain; needs no_new_privs. connect_tcp: TCP
 * connections stay possible, binding does not. A kernel without Landlock is no
 * error: st->abi is 0. */
int landlock_enter(bool scope_signals, bool connect_tcp,
    struct landlock_state *st, struct err *);

#endif
