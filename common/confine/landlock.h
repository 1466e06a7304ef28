/*
 * A Landlock domain (landlock(7)) without rules, or with the rules for one
 * server on another machine. Without a rule no file may be opened, executed,
 * made or removed, no TCP port bound or connected to, and no abstract unix
 * socket reached. Connecting to a named unix socket stays possible.
 *
 * System calls and constants are written out here, so that the binary uses the
 * running kernel's features, whichever headers it was built with.
 */
#ifndef LANDLOCK_H
#define LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* The parts of the domain that are in force, for the report. */
struct landlock_state {
	int abi; /* of the kernel; 0: no Landlock */
	bool fs, net, scope;
};

/* Choices for the domain. */
struct landlock_rules {
	bool scope_signals; /* no signals outside the domain (ABI 6) */
	bool connect_tcp;   /* allows TCP connections to any port, but no
			     * binding */
	/* The one file that may be opened, for reading; or NULL. The rule is
	 * for this file, not for its name: another file that takes the name may
	 * not be opened. */
	const char *read_file;
	/* The TCP ports that may be connected to. Before ABI 4 Landlock
	 * restricts no ports. */
	const uint16_t *ports;
	size_t nports;
};

/* Returns the Landlock ABI of this kernel, 0 if Landlock is missing or off. */
int landlock_abi(void);
/* Puts this process into a domain with these rules; needs no_new_privs. A
 * kernel without Landlock is not an error: st->abi is 0. 0, or -1 with err. */
int landlock_enter(
    const struct landlock_rules *, struct landlock_state *st, struct err *);

#endif
