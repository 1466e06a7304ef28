/*
 * Self-confinement at start: no_new_privs, dumpable 0, no capabilities (or the
 * listed ones), a Landlock domain without file rules, a seccomp allow-list.
 * Called once, after sockets are listening and files are read.
 *
 * Features are probed, never derived from a kernel version. The layers that
 * hold are reported, for the log and for `mcpboxctl doctor`; a missing
 * mandatory layer is an error.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/* One allowed system call; declared beside the code that needs it. With
 * arg >= 0, argument number `arg` must satisfy (value & mask) == equals. */
struct confine_rule {
	int syscall; /* SCMP_SYS(name) */
	int arg;     /* -1: any arguments */
	uint64_t mask, equals;
};

struct confine_spec {
	const char *process;
	/* Rules beyond the base list every daemon has (read, write, recvmsg,
	 * sendmsg, epoll, clocks, memory without PROT_EXEC, signals to itself,
	 * futex, exit, getrandom, close, fcntl, memfd_create, accept4, ...). */
	const struct confine_rule *rules;
	size_t nrules;
	bool connect_unix; /* socket(AF_UNIX) and connect: reconnecting clients
			    */
	bool connect_tcp;  /* TCP connections pass Landlock; the rules above
			    * bound the sockets */
	/*
	 * For a client of one server elsewhere, over TLS: stream sockets of
	 * AF_INET and AF_INET6 to these ports (NULL: none), and read_file, the
	 * certificate of its authority. The library opens read_file at each
	 * connection. openat for reading passes the filter, and only a Landlock
	 * rule limits it to that one file, so Landlock is then mandatory.
	 */
	const char *read_file;
	const uint16_t *connect_ports;
	size_t nports;
	bool landlock; /* false only where the design says it cannot be */
	bool landlock_signal_scope; /* ABI 6: no signals outside the domain */
	bool seccomp;         /* false for processes that build a sandbox */
	const int *keep_caps; /* CAP_*, -1 terminated, or NULL for none */
};

/* Applies the layers in order. `layers` receives "name=state" lines. */
int confine_self(const struct confine_spec *, struct buf *layers, struct err *);

/* Writes the compiled filter, without loading it, as an array of struct
 * sock_filter into out. For the unit test that evaluates it over a table of
 * (arch, number, arguments). */
int confine_export(const struct confine_spec *, struct buf *out, struct err *);

/* Landlock ABI of this kernel, 0 if absent (landlock_create_ruleset(2)). */
int confine_landlock_abi(void);

#endif
