/* See denied.h. */
#include <errno.h>
#include <stddef.h>

#include "denied.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Each call is a way into the kernel or out to the host. They fail with EPERM,
 * so a library that probes for a call falls back and does not die.
 */
static const int calls[] = {SCMP_SYS(acct), SCMP_SYS(add_key),
    SCMP_SYS(adjtimex), SCMP_SYS(bpf), SCMP_SYS(clock_adjtime),
    SCMP_SYS(clock_settime), SCMP_SYS(delete_module), SCMP_SYS(fanotify_init),
    SCMP_SYS(finit_module), SCMP_SYS(init_module), SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register), SCMP_SYS(io_uring_setup), SCMP_SYS(ioperm),
    SCMP_SYS(iopl), SCMP_SYS(kexec_file_load), SCMP_SYS(kexec_load),
    SCMP_SYS(keyctl), SCMP_SYS(lookup_dcookie), SCMP_SYS(modify_ldt),
    SCMP_SYS(name_to_handle_at), SCMP_SYS(open_by_handle_at),
    SCMP_SYS(perf_event_open), SCMP_SYS(quotactl), SCMP_SYS(reboot),
    SCMP_SYS(request_key), SCMP_SYS(setns), SCMP_SYS(settimeofday),
    SCMP_SYS(swapoff), SCMP_SYS(swapon), SCMP_SYS(syslog),
    SCMP_SYS(userfaultfd), SCMP_SYS(vhangup)};

/* process_vm_readv is not here, because peek needs it: peek alone keeps the
 * right to use it (pool/peek/peek_confine.c). */
static const int tracing[] = {
    SCMP_SYS(kcmp), SCMP_SYS(process_vm_writev), SCMP_SYS(ptrace)};

static int
add(scmp_filter_ctx ctx, const int *call, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call[i], 0) !=
		    0)
			return -1;
	return 0;
}

int
denied_add(scmp_filter_ctx ctx)
{
	return add(ctx, calls, LENGTH(calls));
}

int
denied_add_tracing(scmp_filter_ctx ctx)
{
	return add(ctx, tracing, LENGTH(tracing));
}
