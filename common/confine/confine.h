/*
 * Self-confinement at start: no_new_privs, dumpable 0, no capabilities (or the
 * listed ones), a Landlock domain without file rules, a seccomp allow-list.
 * Called once, after sockets are listening and files are read.
 *
 * Features are probed, never derived from a kernel version. The layers that are
 * in force are reported, for the log and for `mcpboxctl doctor`; a missing
 * mandatory layer is an error.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/* One allowed system call; declared next to the code that needs the call. With
 * arg >= 0, argument number `arg` must satisfy (value & mask) == equals. */
struct confine_rule {
	int syscall; /* SCMP_SYS(name) */
	int arg;     /* -1: any arguments */
	uint64_t mask, equals;
};

struct confine_spec {
	const char *process;
	/* Rules in addition to the base list that every daemon has (read,
	 * write, recvmsg, sendmsg, epoll, clocks, memory without PROT_EXEC,
	 * signals to itself, futex, exit, getrandom, close, fcntl,
	 * memfd_create, accept4, ...). */
	const struct confine_rule *rules;
	size_t nrules;
	bool connect_unix; /* allows socket(AF_UNIX) and connect, for clients
			    * that reconnect */
	bool connect_tcp;  /* Landlock allows TCP connections; `rules` limit the
			    * sockets */
	/*
	 * For a client of one server on another machine, over TLS. Allows
	 * stream sockets of AF_INET and AF_INET6 to connect_ports (NULL: none),
	 * and reading read_file, the certificate of the server's authority,
	 * which the library opens for each connection. The seccomp filter must
	 * let openat for reading pass, and only a Landlock rule limits openat
	 * to that one file. So with read_file Landlock is mandatory.
	 */
	const char *read_file;
	const uint16_t *connect_ports;
	size_t nports;
	bool landlock; /* false only if the design excludes Landlock */
	bool landlock_signal_scope; /* forbids signals outside the domain (ABI
				     * 6) */
	bool seccomp;         /* false for processes that build a sandbox */
	const int *keep_caps; /* CAP_*, ended by -1; NULL: none */
};

/* Applies the layers in order. `layers` receives "name=state" lines; may be
 * NULL. 0, or -1 with err. */
int confine_self(const struct confine_spec *, struct buf *layers, struct err *);

/* Writes the compiled filter, without loading it, as an array of struct
 * sock_filter into out. The unit test evaluates the filter over a table of
 * (arch, number, arguments). 0, or -1 with err. */
int confine_export(const struct confine_spec *, struct buf *out, struct err *);

/* Returns this kernel's Landlock ABI, 0 if absent
 * (landlock_create_ruleset(2)). */
int confine_landlock_abi(void);

#endif
