/*
 * The stack guard and the pointer guard of a runner.
 *
 * The C library draws both guards when a program starts. The stack guard lies
 * before each return address of a function with buffers. The pointer guard is
 * mixed into the code pointers that the C library stores (setjmp(3),
 * atexit(3)). A forked process has its parent's guards. A tool can read its own
 * guards, so with shared guards it would know those of every other runner of
 * its zygote. An attacker with an overflow in a library that another call uses
 * would then have nothing left to guess. So each runner draws its own guards.
 *
 * A changed stack guard ends the process when a function returns that was
 * entered before the change. No such function returns here: child_main() calls
 * guards_renew() and never returns. After a change of the pointer guard, the
 * pointers that were mixed before are useless. They belong to pthread_exit(3)
 * in main's thread, which no code calls, and to the functions that libraries
 * have registered for exit(3). exit(3) calls leave() before those functions,
 * because leave() was registered last, and leave() ends the process without
 * them. (A runner ends by _exit(2) anyway.)
 *
 * Threads copy the guards of the thread that starts them. On x86-64 both guards
 * are at a fixed place of glibc's thread control block
 * (sysdeps/x86_64/nptl/tls.h). This is an ABI: compilers write the place of the
 * stack guard into each program. On other machines the guards are constants of
 * the dynamic linker, and stay those of the zygote.
 */
#include <sys/random.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confinement.h"
#include "runner.h"

#ifdef __x86_64__

static void
leave(int status, void *unused)
{
	(void)unused;
	(void)fflush(NULL);
	_exit(status);
}

__attribute__((noinline, no_stack_protector)) int
guards_renew(void)
{
	uint64_t fresh[2];

	if (getrandom(fresh, sizeof(fresh), 0) != (ssize_t)sizeof(fresh))
		return -1;
	/* The stack guard's first byte in memory is 0, as in glibc. So a string
	 * copy that writes the guard's own value ends there. */
	fresh[0] &= ~UINT64_C(0xff);
	__asm__ volatile("movq %0, %%fs:0x28\n\t"
			 "movq %1, %%fs:0x30"
	    :
	    : "r"(fresh[0]), "r"(fresh[1])
	    : "memory");
	explicit_bzero(fresh, sizeof(fresh));
	return on_exit(leave, NULL) == 0 ? 0 : -1;
}

#else

int
guards_renew(void)
{
	return 0;
}

#endif
