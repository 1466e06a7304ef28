/* See deny.h. */
#include <sys/socket.h>

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>

#include "deny.h"

/*
 * Our code, from spawn to the runners, makes none of these calls. Each call is
 * a way into the kernel or out to the host: code loading, other processes'
 * memory, tracing, keys, file handles that skip path checks, clocks,
 * whole-machine switches. They fail with EPERM, so a library that probes for a
 * call falls back and does not die. process_vm_readv is not here, because peek
 * needs it: peek alone keeps the right to use it (pool/peek/peek_confine.c).
 * The runners' own list allows neither process_vm_readv nor any call below.
 */
static const int denied[] = {SCMP_SYS(acct), SCMP_SYS(add_key),
    SCMP_SYS(adjtimex), SCMP_SYS(bpf), SCMP_SYS(clock_adjtime),
    SCMP_SYS(clock_settime), SCMP_SYS(delete_module), SCMP_SYS(fanotify_init),
    SCMP_SYS(finit_module), SCMP_SYS(init_module), SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register), SCMP_SYS(io_uring_setup), SCMP_SYS(ioperm),
    SCMP_SYS(iopl), SCMP_SYS(kcmp), SCMP_SYS(kexec_file_load),
    SCMP_SYS(kexec_load), SCMP_SYS(keyctl), SCMP_SYS(lookup_dcookie),
    SCMP_SYS(modify_ldt), SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_by_handle_at), SCMP_SYS(perf_event_open),
    SCMP_SYS(process_vm_writev), SCMP_SYS(ptrace), SCMP_SYS(quotactl),
    SCMP_SYS(reboot), SCMP_SYS(request_key), SCMP_SYS(setns),
    SCMP_SYS(settimeofday), SCMP_SYS(swapoff), SCMP_SYS(swapon),
    SCMP_SYS(syslog), SCMP_SYS(userfaultfd), SCMP_SYS(vhangup)};

/* The pool speaks through socketpairs alone. Runners that are granted hosts
 * make internet sockets in empty namespaces, and peek replaces these sockets
 * (runner/confine/filter_net.c). No process needs the families below. */
static const int families[] = {AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP};

/* spawn makes its one listener before it loads this list. From then on spawn
 * and its children need no other listener, and no raw internet sockets. */
static const int listening[] = {SCMP_SYS(bind), SCMP_SYS(listen)};
static const int internet[] = {AF_INET, AF_INET6};

int
deny_load(struct err *e)
{
	scmp_filter_ctx ctx;
	int rc = -1;

	if ((ctx = seccomp_init(SCMP_ACT_ALLOW)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "no memory for seccomp");
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		if (seccomp_rule_add(
			ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0) != 0)
			goto bad;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT),
			SCMP_SYS(socket), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff,
			    (scmp_datum_t)families[i])) != 0)
			goto bad;
	for (size_t i = 0; i < 2; i++)
		if (seccomp_rule_add(
			ctx, SCMP_ACT_ERRNO(EPERM), listening[i], 0) != 0 ||
		    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM),
			SCMP_SYS(socket), 2,
			SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff,
			    (scmp_datum_t)internet[i]),
			SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW)) != 0)
			goto bad;
	if (seccomp_load(ctx) == 0)
		rc = 0;
bad:
	seccomp_release(ctx);
	if (rc != 0)
		return err_set(
		    e, FAILURE_INTERNAL, "spawn's seccomp list does not load");
	return 0;
}
