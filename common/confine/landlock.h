/*
 * A Landlock domain (landlock(7)) without rules, or with those for one server
 * elsewhere: nothing may be opened, executed, made or removed, no TCP port
 * bound or connected to, no abstract unix socket reached. Connecting to a named
 * unix socket stays possible.
 *
 * System calls and constants are written out, so that the binary uses the
 * running kernel's features, whichever headers it was built with.
 */
#ifndef LANDLOCK_H
#define LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* The parts of the domain that hold, for the report. */
struct landlock_state {
	int abi; /* of the kernel; 0: no Landlock */
	bool fs, net, scope;
};

/* Acts that the domain leaves possible. */
struct landlock_rules {
	bool scope_signals; /* ABI 6: no signals outside the domain */
	bool connect_tcp;   /* TCP connections to any port, but no binding */
	/* The one file that may be opened, for reading; or NULL. The rule is
	 * for this file, not for its name: another file that takes the name may
	 * not be opened. */
	const char *read_file;
	/* The ports that may be connected to (ABI 4; before it, all). */
	const uint16_t *ports;
	size_t nports;
};

/* Returns the ABI of this kernel, 0 if it has none or it is switched off. */
int landlock_abi(void);
/* Puts this process into such a domain; needs no_new_privs. A kernel without
 * Landlock is not an error: st->abi is 0. */
int landlock_enter(
    const struct landlock_rules *, struct landlock_state *st, struct err *);

#endif
