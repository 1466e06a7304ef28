/*
 * See cgroup.h.
 *
 * A runner can't reach the cgroup files, for these reasons. The runner's root
 * holds no cgroup filesystem, and the runner can't mount one. It gets no
 * descriptor of such a file. Its cgroup namespace begins at its own leaf. The
 * files belong to the pool's root user, and the runner has another uid. The
 * zygote gets descriptors of the leaves, in which runners are born, and could
 * write to the leaves. But the zygote runs no tool's code.
 */
#include <sys/stat.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

enum {
	/* The period of cpu.max, which is the kernel's default. A call that
	 * used up its share of a period waits this long at most. */
	CPU_PERIOD_US = 100 * 1000,
	/* The weight of the leaves `init` and `zygote`. The leaf of a slot has
	 * the default of 100. So forking and reaping go on, however many
	 * runners spin. */
	OWN_CPU_WEIGHT = 1000,
	/* Two zygotes while one replaces the other, and the processes they
	 * start to look at modules. */
	ZYGOTE_PROCESSES = 32
};

/*
 * 512 MiB: room for two warm interpreters of some tens of MiB, and for the page
 * tables that the kernel charges to the forking process: half a MiB for each
 * runner, of which there are 256 at most.
 */
#define ZYGOTE_MEMORY "536870912"

static int
put(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC), saved;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	saved = errno;
	close(fd);
	errno = saved;
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

static int
put_number(int dir, const char *path, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return put(dir, path, text);
}

/* Forbids swap, which doesn't count as memory: a call could use swap beyond its
 * memory limit. memory.swap.max is absent on kernels and machines without swap.
 */
static int
no_swap(int dir)
{
	return put(dir, "memory.swap.max", "0") == 0 || errno == ENOENT ? 0
									: -1;
}

/* Returns N of the line "KEY N" with this key in a file; 0 if there is no such
 * line. */
static uint64_t
number_of(int dir, const char *path, const char *key)
{
	char text[4096];
	const char *at;
	size_t used = 0;
	ssize_t n;
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	while (used + 1 < sizeof(text) &&
	    (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = '\0';
	for (at = text; (at = strstr(at, key)) != NULL; at++)
		if ((at == text || at[-1] == '\n') && at[strlen(key)] == ' ')
			return strtoull(at + strlen(key), NULL, 10);
	return 0;
}

static uint64_t
peak_of(const struct cgroup_leaf *l)
{
	char text[24];
	ssize_t n = -1;

	if (l->peak >= 0)
		n = pread(l->peak, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

static int
open_dir(int dir, const char *name)
{
	if (mkdirat(dir, name, 0755) != 0 && errno != EEXIST)
		return -1;
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the zygotes' leaf. A zygote's oom_score is 900, a runner's 1000. But a
 * zygote is only killed for the memory of its own leaf, because calls have
 * other leaves. */
static int
make_zygote(struct cgroup *c)
{
	if ((c->zygote = open_dir(c->pool, "zygote")) < 0)
		return -1;
	if (put(c->zygote, "memory.max", ZYGOTE_MEMORY) != 0 ||
	    no_swap(c->zygote) != 0 ||
	    put_number(c->zygote, "pids.max", ZYGOTE_PROCESSES) != 0)
		return -1;
	return put_number(c->zygote, "cpu.weight", OWN_CPU_WEIGHT);
}

/* Divides the pool's cgroup. NULL, or the step that failed, with errno. */
static const char *
divide(struct cgroup *c)
{
	int init = open_dir(c->pool, "init");

	if (init < 0)
		return "make its cgroup";
	/* This process leaves the pool's own cgroup, which may hold no process
	 * while it hands controllers down. */
	if (put(init, "cgroup.procs", "0") != 0) {
		close(init);
		return "move to it";
	}
	if (put(c->pool, "cgroup.subtree_control", "+memory +pids +cpu") != 0) {
		close(init);
		return "hand the controllers down";
	}
	if (put_number(init, "cpu.weight", OWN_CPU_WEIGHT) != 0) {
		close(init);
		return "weigh it";
	}
	close(init);
	return make_zygote(c) == 0 ? NULL : "make the zygote's cgroup";
}

void
cgroup_start(struct cgroup *c, int fd, struct buf *layers)
{
	const char *step;
	struct statfs fs;

	memset(c, 0, sizeof(*c));
	c->pool = c->zygote = -1;
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		c->leaf[i].dir = c->leaf[i].peak = -1;
	if (fstatfs(fd, &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		return;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		c->pool = fd;
	step = c->pool < 0 ? "keep its descriptor" : divide(c);
	if (step == NULL) {
		buf_puts(layers, "call_cgroup=enforced\n");
		return;
	}
	buf_putf(layers, "call_cgroup=degraded pool-init could not %s: %s\n",
	    step, strerror(errno));
	if (c->zygote >= 0)
		close(c->zygote);
	close(fd);
	c->pool = c->zygote = -1;
}

bool
cgroup_on(const struct cgroup *c)
{
	return c->pool >= 0;
}

int
cgroup_enter_zygote(const struct cgroup *c)
{
	return cgroup_on(c) ? put(c->zygote, "cgroup.procs", "0") : 0;
}

/* Tells whether the leaf is empty. If not, kills its processes and marks the
 * leaf as spent. */
static bool
cleared(struct cgroup_leaf *l)
{
	if (number_of(l->dir, "cgroup.events", "populated") == 0)
		return true;
	(void)put(l->dir, "cgroup.kill", "1");
	l->spent = true;
	return false;
}

/* Removes a spent leaf. 0, or -1 if killed processes are not gone yet. */
static int
drop_leaf(const struct cgroup *c, struct cgroup_leaf *l, const char *name)
{
	if (unlinkat(c->pool, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		return -1;
	close(l->dir);
	if (l->peak >= 0)
		close(l->peak);
	memset(l, 0, sizeof(*l));
	l->dir = l->peak = -1;
	return 0;
}

/*
 * Makes the leaf of a slot, without swap. If one process is killed for want of
 * memory, the kernel kills all processes of the leaf, since half a call is of
 * no use.
 */
static int
make_leaf(struct cgroup *c, uint32_t slot)
{
	struct cgroup_leaf *l = &c->leaf[slot];
	char name[16];
	int saved;

	(void)snprintf(name, sizeof(name), "slot-%03u", (unsigned)slot);
	if (l->dir >= 0 && drop_leaf(c, l, name) != 0)
		return -1;
	if ((l->dir = open_dir(c->pool, name)) < 0)
		return -1;
	if (no_swap(l->dir) != 0 || put(l->dir, "memory.oom.group", "1") != 0) {
		saved = errno;
		close(l->dir);
		l->dir = -1;
		errno = saved;
		return -1;
	}
	/* Since Linux 6.12 writing to a descriptor of memory.peak resets the
	 * value for that descriptor. In earlier kernels the file is read-only.
	 */
	l->peak = openat(l->dir, "memory.peak", O_RDWR | O_CLOEXEC);
	l->resets = l->peak >= 0;
	if (!l->resets)
		l->peak = openat(l->dir, "memory.peak", O_RDONLY | O_CLOEXEC);
	return 0;
}

int
cgroup_limit(struct cgroup *c, uint32_t slot, const struct cgroup_limits *w)
{
	struct cgroup_leaf *l;
	char text[64];

	if (!cgroup_on(c))
		return 0;
	l = &c->leaf[slot];
	/* To the kernel 0 does not mean "no limit", and a call with a limit of
	 * 0 can't run. So sandboxd is broken if it sends 0. */
	if (l->dir < 0 || w->memory_bytes == 0 || w->processes == 0 ||
	    w->cpu_percent == 0) {
		errno = EINVAL;
		return -1;
	}
	if (w->memory_bytes != l->has.memory_bytes &&
	    put_number(l->dir, "memory.max", w->memory_bytes) != 0)
		return -1;
	l->has.memory_bytes = w->memory_bytes;
	if (w->processes != l->has.processes &&
	    put_number(l->dir, "pids.max", w->processes) != 0)
		return -1;
	l->has.processes = w->processes;
	(void)snprintf(text, sizeof(text), "%llu %d",
	    (unsigned long long)w->cpu_percent * CPU_PERIOD_US / 100,
	    CPU_PERIOD_US);
	if (w->cpu_percent != l->has.cpu_percent &&
	    put(l->dir, "cpu.max", text) != 0)
		return -1;
	l->has.cpu_percent = w->cpu_percent;
	return 0;
}

int
cgroup_take(struct cgroup *c, uint32_t slot, const struct cgroup_limits *w)
{
	struct cgroup_leaf *l;
	bool made;

	if (!cgroup_on(c))
		return 0;
	l = &c->leaf[slot];
	made = l->dir < 0 || l->spent;
	if (made && make_leaf(c, slot) != 0)
		return -1;
	/*
	 * The previous runner was pid 1 of its namespace and is reaped, so none
	 * of its processes can live. If this is ever wrong, the next call must
	 * not share the leaf with the remaining processes.
	 */
	if (!cleared(l)) {
		errno = EBUSY;
		return -1;
	}
	if (cgroup_limit(c, slot, w) != 0)
		return -1;
	l->before.oom_kills =
	    (uint32_t)number_of(l->dir, "memory.events", "oom_kill");
	l->before.cpu_us = number_of(l->dir, "cpu.stat", "usage_usec");
	if (l->resets && pwrite(l->peak, "r", 1, 0) != 1)
		l->resets = false;
	l->before.memory_peak = l->resets ? 0 : peak_of(l);
	return made ? 1 : 0;
}

int
cgroup_dir(const struct cgroup *c, uint32_t slot)
{
	return cgroup_on(c) ? c->leaf[slot].dir : -1;
}

bool
cgroup_end(struct cgroup *c, uint32_t slot, struct cgroup_usage *u)
{
	struct cgroup_leaf *l;
	uint64_t peak;

	memset(u, 0, sizeof(*u));
	if (!cgroup_on(c) || (l = &c->leaf[slot])->dir < 0)
		return false;
	u->oom_kills =
	    (uint32_t)number_of(l->dir, "memory.events", "oom_kill") -
	    l->before.oom_kills;
	u->cpu_us =
	    number_of(l->dir, "cpu.stat", "usage_usec") - l->before.cpu_us;
	/* Without a reset the peak of this use is known only if it is larger
	 * than all peaks before. */
	peak = peak_of(l);
	if (peak > l->before.memory_peak)
		u->memory_peak = peak;
	return !cleared(l);
}
