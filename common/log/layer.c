/* See layer.h. */
#include <string.h>

#include "layer.h"

#define USERNS                                                               \
	"A kernel with user namespaces that users may make: "                \
	"user.max_user_namespaces above 0, kernel.unprivileged_userns_clone" \
	"=1 where it exists, no RestrictNamespaces= in sandboxd-spawn's unit."
#define MOUNTS                                                            \
	"Mounting must be allowed in sandboxd-spawn's unit: no "          \
	"SystemCallFilter= without @mount, no RestrictNamespaces=; in a " \
	"container, one that may nest others."
#define PROC                                                              \
	"An unmasked /proc must be visible to sandboxd-spawn: no "        \
	"ProtectKernelTunables=, ProtectProc=, ProcSubset= in its unit, " \
	"and no masked paths in a container."
#define CAPS                                                              \
	"sandboxd-spawn needs CAP_SETUID and CAP_SETGID as ambient "      \
	"capabilities, and no service manager's filter in the pool's way" \
	" (SystemCallFilter=)."
#define CGROUP                                                               \
	"Run sandboxd-spawn in a unit with Delegate=yes and without "        \
	"ProtectControlGroups=, on cgroup v2 with the memory, pids and cpu " \
	"controllers."
#define LANDLOCK                                              \
	"A kernel with Landlock (Linux 5.13), named in lsm= " \
	"on its command line."
#define SECCOMP "A kernel with seccomp filters (CONFIG_SECCOMP_FILTER)."

static const struct {
	const char *name, *fix;
	bool optional;
} table[] = {
    {"cgroup", CGROUP, true},
    {"call_cgroup", CGROUP, true},
    {"call_memory", CGROUP, true},
    {"call_share",
	CGROUP " Or kernel.sched_autogroup_enabled=1, and no cgroup with a "
	       "processor share around the suite, as a container's is.",
	true},
    {"runner-cgroup_namespace", CGROUP, false},
    {"pool_namespaces", USERNS, false},
    {"pool_no_user_namespaces", PROC, false},
    {"pool_init_capabilities", CAPS, false},
    {"zygote",
	"The interpreter and its standard library must be readable by user "
	"mcpbox-pool, and what sandboxd-spawn's unit allows must include "
	"mounting and seccomp filters.",
	false},
    {"runner-namespaces", USERNS, false},
    {"runner-oom_score", PROC, false},
    {"runner-hostname", CAPS, false},
    {"runner-mounts", MOUNTS, false},
    {"runner-toolbox", MOUNTS, false},
    {"runner-proc", PROC, false},
    {"runner-tmp", MOUNTS, false},
    {"runner-pivot_root", MOUNTS, false},
    {"runner-bounding_set", CAPS, false},
    {"runner-securebits", CAPS, false},
    {"runner-ids", CAPS, false},
    {"runner-capabilities", CAPS, false},
    {"runner-no_new_privs", SECCOMP, false},
    {"runner-landlock", LANDLOCK, true},
    {"runner-landlock-scope",
	"A kernel with Landlock ABI 6 (Linux 6.12); namespaces keep "
	"abstract sockets and signals apart meanwhile.",
	true},
    {"runner-seccomp", SECCOMP, false},
    {"runner-names", MOUNTS, false},
    {"runner-network",
	"A kernel with seccomp notifications (Linux 5.14) that no filter of a "
	"container around the suite uses already; tools that are granted "
	"hosts can't run meanwhile.",
	true},
    {"peek",
	"mcpbox-peek must be beside mcpbox-pool-init, and what "
	"sandboxd-spawn's unit allows must include mounting and seccomp "
	"filters.",
	false},
    {"peek_root", MOUNTS, false},
    {"peek_capabilities", CAPS, false},
    {"peek_seccomp", SECCOMP, false},
    {"peek_reads",
	"kernel.yama.ptrace_scope below 3, and Linux 5.14; tools that are "
	"granted hosts can't connect meanwhile.",
	true},
    {"seccomp", SECCOMP, false},
    {"landlock_files", LANDLOCK, true},
    {"landlock_tcp", "A kernel with Landlock ABI 4 (Linux 6.7).", true},
    {"landlock_scope", "A kernel with Landlock ABI 6 (Linux 6.12).", true},
    {"own_listeners",
	"/proc/self/net must be readable by user mcpbox-egress, and AF_NETLINK "
	"allowed by RestrictAddressFamilies= in sandboxd-egress's unit.",
	false},
    {"byte_counts",
	"A kernel with CONFIG_INET_DIAG; limits of bytes hold for UDP only "
	"meanwhile.",
	true},
    {"egress",
	"Start sandboxd-egress and look at its log; calls whose version "
	"declares no host do without it.",
	true},
    {"dns_servers", "Setting dns_servers of egress, or /etc/resolv.conf.",
	true},
    {"key_memory", "LimitMEMLOCK= in admind-vault's unit, or no swap.", true},
    {"context_key", "Start admind-vault.", true},
    {"bounding_set",
	"CapabilityBoundingSet= in the process's unit; without one setpriv "
	"--bounding-set, or CAP_SETPCAP at its start, which it drops.",
	true},
    {"securebits",
	"SecureBits= in the process's unit; without one setpriv --securebits, "
	"or CAP_SETPCAP at its start, which it drops.",
	true},
};

static int
find(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].name) == n &&
		    memcmp(table[i].name, name, n) == 0)
			return (int)i;
	return -1;
}

const char *
layer_fix(const char *name, size_t n)
{
	int i = find(name, n);

	return i < 0 ? "See docs/OPERATIONS.md, Layers." : table[i].fix;
}

bool
layer_optional(const char *name, size_t n)
{
	int i = find(name, n);

	return i >= 0 && table[i].optional;
}

const char *
layer_missing(const char *lines, size_t *n)
{
	static const char missing[] = "=missing";
	const char *eq;

	for (; *lines != '\0'; lines += *n + (lines[*n] == '\n')) {
		*n = strcspn(lines, "\n");
		eq = memchr(lines, '=', *n);
		if (eq != NULL &&
		    strncmp(eq, missing, sizeof(missing) - 1) == 0 &&
		    !layer_optional(lines, (size_t)(eq - lines)))
			return lines;
	}
	return NULL;
}
