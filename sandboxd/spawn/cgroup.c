/* See cgroup.h. */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"

/* The mechanisms that hold without a cgroup. */
#define CARRIED                                                        \
	"rlimits and the pid namespace carry processes and CPU time, " \
	"sandboxd's memory_budget the memory of a call's processes together"

enum {
	PATH_BYTES = 4096,
	/* A cgroup may be busy for an instant after its last process was
	 * reaped: the kernel takes it apart asynchronously. */
	REMOVE_TRIES = 100,
	REMOVE_PAUSE_MS = 2
};

/* Reads a small file whole, NUL-terminated. 0 or -1. */
static int
slurp(int dir, const char *path, char *buf, size_t len)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	while (used + 1 < len && (n = read(fd, buf + used, len - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	buf[used] = '\0';
	return 0;
}

/* Writes text in one write, as the kernel's files need. 0 or -1 with errno. */
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

/* Tells whether `word` is one of the space-separated words of text. */
static bool
has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)) != NULL; p += n)
		if ((p == text || p[-1] == ' ') &&
		    (p[n] == ' ' || p[n] == '\n' || p[n] == '\0'))
			return true;
	return false;
}

/*
 * Finds the mount point of the whole version 2 hierarchy: /sys/fs/cgroup, or
 * another place if version 1 is mounted, too (proc(5), mountinfo: id parent
 * device root point options [tags] - type source options). 0 or -1.
 */
static int
mount_point(char *out, size_t len)
{
	char *line = NULL, root[PATH_BYTES], point[PATH_BYTES];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	size_t cap = 0;
	int rc = -1;

	if (f == NULL)
		return -1;
	while (rc != 0 && getline(&line, &cap, f) > 0) {
		if (strstr(line, " - cgroup2 ") == NULL ||
		    strlen(line) >= PATH_BYTES ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) !=
			2 ||
		    strcmp(root, "/") != 0 || strlen(point) >= len)
			continue;
		memcpy(out, point, strlen(point) + 1);
		rc = 0;
	}
	free(line);
	fclose(f);
	return rc;
}

/* Opens this process's own version 2 cgroup. -1 and *why if it is missing or
 * not delegated. */
static int
open_own(const char **why)
{
	char text[PATH_BYTES], point[PATH_BYTES], path[2 * PATH_BYTES];
	char *own, *end;
	int fd;

	/* "0::/path" is the version 2 line (cgroups(7)). */
	*why = "there is no cgroup v2";
	if (slurp(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) != 0 ||
	    (own = strstr(text, "0::/")) == NULL ||
	    (own != text && own[-1] != '\n') ||
	    mount_point(point, sizeof(point)) != 0)
		return -1;
	own += 3;
	if ((end = strchr(own, '\n')) != NULL)
		*end = '\0';
	(void)snprintf(path, sizeof(path), "%s%s", point, own);
	*why = "this unit's cgroup can't be opened";
	if ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -1;
	if (faccessat(fd, "cgroup.procs", W_OK, 0) == 0 &&
	    faccessat(fd, "cgroup.subtree_control", W_OK, 0) == 0)
		return fd;
	*why = errno == EROFS
	    ? "cgroups are mounted read-only (ProtectControlGroups=)"
	    : "this unit's cgroup is not delegated";
	close(fd);
	return -1;
}

/* Hands all three controllers down to the cgroups below unit, if unit was
 * delegated with them. Returns NULL or the error. */
static const char *
hand_down(int unit)
{
	static const struct {
		const char *name, *missing;
	} wanted[] = {{"memory", "delegated without the memory controller"},
	    {"pids", "delegated without the pids controller"},
	    {"cpu", "delegated without the cpu controller"}};
	char text[PATH_BYTES];

	if (slurp(unit, "cgroup.controllers", text, sizeof(text)) != 0)
		text[0] = '\0';
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!has_word(text, wanted[i].name))
			return wanted[i].missing;
	/* No process may be in a cgroup that hands controllers down, so this
	 * process moves first. If another process is in `unit`, the last write
	 * below fails. `unit` is ours alone, so only an administrator can have
	 * put another process there. */
	if (mkdirat(unit, "supervisor", 0755) != 0 && errno != EEXIST)
		return "its cgroup could not be divided";
	if (put(unit, "supervisor/cgroup.procs", "0") != 0)
		return "this process could not move to a cgroup of its own";
	if (put(unit, "cgroup.subtree_control", "+memory +pids +cpu") != 0)
		return "its controllers could not be handed down: is another "
		       "process in this unit?";
	return NULL;
}

/*
 * Tells whether the version 2 cgroup at `own`, or a cgroup above it, has a
 * share of the processors. The hierarchy's root has none. A container's root
 * has the share that the container was given.
 */
static bool
has_weight(const char *own)
{
	char point[PATH_BYTES], path[2 * PATH_BYTES + 16];
	size_t n = strlen(own);

	if (mount_point(point, sizeof(point)) != 0)
		return false;
	for (;;) {
		(void)snprintf(path, sizeof(path), "%s%.*s/cpu.weight", point,
		    (int)n, own);
		if (access(path, F_OK) == 0)
			return true;
		if (n == 0)
			return false;
		do
			n--;
		while (n > 0 && own[n] != '/');
	}
}

/*
 * Tells whether this process is in a cgroup that has a share of the processors.
 * Among processes without such a cgroup, the kernel divides the processors by
 * session (sched(7)). A line of /proc/self/cgroup is "id:controllers:path"; the
 * line of version 2 names no controllers.
 */
static bool
own_share(void)
{
	char text[PATH_BYTES], *next;

	if (slurp(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) != 0)
		return true;
	for (char *line = text; *line != '\0'; line = next) {
		char *end = strchrnul(line, '\n'), *names, *path;

		next = *end == '\0' ? end : end + 1;
		*end = '\0';
		if ((names = strchr(line, ':')) == NULL ||
		    (path = strchr(names + 1, ':')) == NULL)
			continue;
		*path++ = '\0';
		for (char *c = ++names; *c != '\0'; c++)
			if (*c == ',')
				*c = ' ';
		if (*names == '\0'
			? has_weight(path)
			: has_word(names, "cpu") && strcmp(path, "/") != 0)
			return true;
	}
	return false;
}

/* Appends the line call_share for slots without cgroups. The line says whether
 * sessions keep a call with many threads from taking other calls' processors
 * (decision 0072). */
static void
put_share(struct buf *layers)
{
	char on[16];

	buf_puts(layers, "call_share=");
	if (slurp(AT_FDCWD, "/proc/sys/kernel/sched_autogroup_enabled", on,
		sizeof(on)) != 0 ||
	    strcmp(on, "1\n") != 0)
		buf_puts(layers,
		    "degraded kernel.sched_autogroup_enabled is not 1: each "
		    "thread of a call has a share of the processors\n");
	else if (own_share())
		buf_puts(layers,
		    "degraded this process is in a cgroup with a share of its "
		    "own, within which each thread of a call has one\n");
	else
		buf_puts(layers,
		    "enforced the kernel divides the processors by session, "
		    "of which a call is one\n");
}

int
cgroup_enter(struct buf *layers)
{
	const char *why;
	int unit = open_own(&why);

	if (unit >= 0 && (why = hand_down(unit)) != NULL) {
		close(unit);
		unit = -1;
	}
	if (unit >= 0)
		buf_puts(layers,
		    "cgroup=enforced memory, processes and CPU share of a "
		    "call are bounded together by a cgroup of its slot\n"
		    "call_share=enforced that cgroup has one\n");
	else {
		buf_putf(layers, "cgroup=degraded %s: " CARRIED "\n", why);
		put_share(layers);
	}
	return unit;
}

/* Removes a directory. Waits while the kernel keeps the directory busy. 0, also
 * if there is no such directory, or -1. */
static int
remove_dir(int dir, const char *name)
{
	static const struct timespec pause = {0, REMOVE_PAUSE_MS * 1000000L};

	for (int i = 0; i < REMOVE_TRIES; i++) {
		if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -1;
		(void)nanosleep(&pause, NULL);
	}
	return -1;
}

/* Removes a pool's subtree, which is one level deep: leaves below UNIT/pool. */
static int
remove_pool(int unit)
{
	int fd = openat(unit, "pool", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *d;
	DIR *list;
	int rc = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if ((list = fdopendir(fd)) == NULL) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (d = readdir(list)) != NULL)
		if (d->d_type == DT_DIR && d->d_name[0] != '.')
			rc = remove_dir(fd, d->d_name);
	closedir(list);
	return rc == 0 ? remove_dir(unit, "pool") : -1;
}

int
cgroup_renew(int unit, struct err *e)
{
	int fd;

	if (remove_pool(unit) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "remove the earlier pool's cgroup");
	if (mkdirat(unit, "pool", 0755) != 0)
		return err_sys(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "make the pool's cgroup");
	fd = openat(unit, "pool", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "open the pool's cgroup");
	return fd;
}
