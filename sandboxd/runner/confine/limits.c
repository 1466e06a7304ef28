/*
 * Resource limits of one call (setrlimit(2)). They apply to the call's own uid,
 * which no other running call has. So RLIMIT_NPROC counts this call alone.
 * Limits that are the same for every call are set while the runner confines
 * itself. Our code sets the others when EXECUTE names them, before any code of
 * the tool runs. Soft and hard limit are the same, except RLIMIT_CPU of a
 * command. To raise a hard limit needs the host's CAP_SYS_RESOURCE, which no
 * process in the pool has.
 *
 * RLIMIT_AS bounds each process, not the sum of a call's processes. So sandboxd
 * keeps processes x address space under its budget, and reports memory as
 * degraded if there is no cgroup.
 */
#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "confinement.h"
#include "runner.h"
#include "steps_path.h"

enum {
	STACK_BYTES = 8 * 1024 * 1024, /* the usual size for a main thread */
	SIGNALS_PENDING = 256, /* queued real-time signals, kernel memory */
	LOCKS = 256,
};

static int
limit(int what, uint64_t value)
{
	struct rlimit r;

	r.rlim_cur = r.rlim_max = (rlim_t)value;
	return setrlimit((__rlimit_resource_t)what, &r);
}

/*
 * Sets this process' oom_score_adj. To raise the score needs no privilege
 * (proc(5)). A runner can't lower its score again: a runner is not dumpable, so
 * the file belongs to the pool's root.
 */
static int
oom(int score)
{
	static const char path[] = "/proc/self/oom_score_adj";
	char text[16];
	int fd, n, rc = -1;

	steps_path(path);
	n = snprintf(text, sizeof(text), "%d", score);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	if (write(fd, text, (size_t)n) == n)
		rc = 0;
	(void)close(fd);
	return rc;
}

int
limits_oom(struct runner *r)
{
	(void)r;
	return oom(LIMITS_OOM_RUNNER);
}

int
limits_oom_zygote(struct err *err)
{
	if (oom(LIMITS_OOM_ZYGOTE) == -1)
		return err_sys(err, FAILURE_INTERNAL, "oom_score_adj");
	return 0;
}

int
limits_fixed(struct runner *r)
{
	(void)r;
	/*
	 * RLIMIT_CORE is 1, not 0. If core_pattern is a pipe, the kernel
	 * ignores a limit of 0, and skips the pipe only at 1 (fs/coredump.c). A
	 * core file of one byte cannot be written either, because dumpable is
	 * 0.
	 */
	if (limit(RLIMIT_CORE, 1) == -1 ||
	    limit(RLIMIT_STACK, STACK_BYTES) == -1 ||
	    limit(RLIMIT_MEMLOCK, 0) == -1 || limit(RLIMIT_MSGQUEUE, 0) == -1 ||
	    limit(RLIMIT_SIGPENDING, SIGNALS_PENDING) == -1 ||
	    limit(RLIMIT_LOCKS, LOCKS) == -1 || limit(RLIMIT_RTPRIO, 0) == -1 ||
	    limit(RLIMIT_NICE, 0) == -1)
		return -1;
	return 0;
}

int
limits_call(const struct ipc_execute *x, bool command)
{
	struct rlimit cpu;

	/* A call without a limit comes from a broken sandboxd: refuse it. */
	if (x->memory_bytes == 0 || x->cpu_ms == 0 || x->processes == 0 ||
	    x->files == 0 || x->file_bytes == 0) {
		errno = EINVAL;
		return -1;
	}
	if (limit(RLIMIT_AS, x->memory_bytes) == -1 ||
	    limit(RLIMIT_NPROC, x->processes) == -1 ||
	    limit(RLIMIT_NOFILE, x->files) == -1 ||
	    limit(RLIMIT_FSIZE, x->file_bytes) == -1)
		return -1;
	/*
	 * At the soft limit a command gets SIGXCPU, which tells pid 1 why the
	 * command died. A command that caught SIGXCPU gets SIGKILL a second
	 * later. A tool in Python is pid 1 itself, which only SIGKILL ends, so
	 * its hard limit is the same as the soft one.
	 */
	cpu.rlim_cur = (x->cpu_ms + 999) / 1000;
	cpu.rlim_max = cpu.rlim_cur + (command ? 1 : 0);
	return setrlimit(RLIMIT_CPU, &cpu);
}
