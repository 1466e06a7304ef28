/*
 * Resource limits of the program (setrlimit(2)). In a user namespace
 * RLIMIT_NPROC counts the processes of this namespace alone, so other runs and
 * the user's own processes do not count.
 *
 * RLIMIT_DATA bounds each process, not their sum, and is used only if no cgroup
 * bounds the sum. RLIMIT_AS would end each program that reserves addresses, as
 * Node.js and JVMs do.
 */
#include <sys/resource.h>

#include "inside.h"

static int
limit(int what, uint64_t value, struct err *e, const char *name)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)what, &r) == -1)
		return err_sys(e, FAILURE_INTERNAL, "limit of %s", name);
	/* A limit of the caller that is lower stays. */
	if (r.rlim_max > value)
		r.rlim_max = value;
	if (r.rlim_cur > r.rlim_max)
		r.rlim_cur = r.rlim_max;
	if (setrlimit((__rlimit_resource_t)what, &r) == -1)
		return err_sys(e, FAILURE_INTERNAL, "limit of %s", name);
	return 0;
}

int
limits_set(const struct plan *p, bool cgroup, struct err *e)
{
	/* A core file would be written by the host's handler, outside. The
	 * kernel skips a handler only at 1 (fs/coredump.c). */
	if (limit(RLIMIT_CORE, 1, e, "core files") == -1 ||
	    limit(RLIMIT_NPROC, p->processes, e, "processes") == -1)
		return -1;
	if (p->file_size != 0 &&
	    limit(RLIMIT_FSIZE, p->file_size, e, "a file") == -1)
		return -1;
	if (p->memory != 0 && !cgroup &&
	    limit(RLIMIT_DATA, p->memory, e, "memory") == -1)
		return -1;
	return 0;
}
