/*
 * The stack guard and the pointer guard of a runner.
 *
 * The C library draws both when a program starts. The first lies before each
 * return address of a function with buffers, the second is mixed into pointers
 * of its own that it jumps by (setjmp(3), atexit(3)). A fork has its parent's.
 * A tool reads its own, and with shared guards knew those of every other runner
 * of its zygote: an attacker with an overflow in a library that another call
 * uses would have had nothing left to guess. So each runner draws its own.
 *
 * A changed stack guard ends the process when a function returns that was
 * entered before. None does here: child_main calls this and never returns. A
 * changed pointer guard makes pointers mixed before it useless. That concerns
 * pthread_exit(3) in main's thread, and the functions that libraries have
 * registered for exit(3). No code calls the first. Before the second comes
 * leave(), registered last, which ends the process without them. (A runner ends
 * by _exit(2) anyway.)
 *
 * Threads copy the guards of the thread that starts them. Both are at a fixed
 * place of glibc's thread control block on x86-64 (sysdeps/x86_64/nptl/tls.h,
 * an ABI: compilers write the first into each program). On other machines they
 * are constants of the dynamic linker, and stay the zygote's.
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
	/* Its first byte in memory is 0, as in glibc: no string that is copied
	 * over it goes on after it. */
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
