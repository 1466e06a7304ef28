/*
 * See cgroup.h. The cgroup is made beside the caller's, or in it: a cgroup with
 * processes can't pass controllers on, so only the first has memory.max where
 * the caller's own is a session's.
 */
#include "cgroup.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Places where version 2 is mounted: alone, and beside version 1. */
static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

static int
set(int dir, const char *name, const char *value)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1)
		return -1;
	n = write(fd, value, strlen(value));
	close(fd);
	return n == (ssize_t)strlen(value) ? 0 : -1;
}

/* Reads the path of the caller's cgroup of version 2. */
static int
own_path(char *out, size_t n)
{
	char text[PLAN_PATH_MAX], *line, *end;
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd == -1)
		return -1;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return -1;
	text[got] = '\0';
	line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	if (line == NULL || (line = strchr(line, '/')) == NULL)
		return -1;
	if ((end = strchr(line, '\n')) != NULL)
		*end = '\0';
	return (size_t)snprintf(out, n, "%s", line) < n ? 0 : -1;
}

static bool
try_below(struct cgroup *c, const char *parent, const struct plan *p)
{
	char value[32];

	if (snprintf(c->path, sizeof(c->path), "%s/mcpbox-run-%d", parent,
		(int)getpid()) >= (int)sizeof(c->path) ||
	    mkdir(c->path, 0755) == -1) {
		c->path[0] = '\0';
		return false;
	}
	c->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(
	    value, sizeof(value), "%llu", (unsigned long long)p->memory);
	if (c->fd != -1 && set(c->fd, "memory.max", value) == 0) {
		/* Absent without swap accounting. */
		(void)set(c->fd, "memory.swap.max", "0");
		(void)set(c->fd, "memory.oom.group", "1");
		return true;
	}
	cgroup_remove(c);
	return false;
}

bool
cgroup_make(struct cgroup *c, const struct plan *p)
{
	char own[PLAN_PATH_MAX], parent[PLAN_PATH_MAX + 32];
	char *slash;

	*c = (struct cgroup){.fd = -1};
	if (p->memory == 0 || own_path(own, sizeof(own)) == -1)
		return false;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		(void)snprintf(parent, sizeof(parent), "%s%s", roots[i], own);
		for (int up = 0; up < 2; up++) {
			if (try_below(c, parent, p))
				return true;
			if ((slash = strrchr(parent, '/')) == NULL ||
			    slash < parent + strlen(roots[i]))
				break;
			*slash = '\0';
		}
	}
	return false;
}

void
cgroup_remove(struct cgroup *c)
{
	if (c->fd != -1)
		close(c->fd);
	if (c->path[0] != '\0')
		(void)rmdir(c->path);
	*c = (struct cgroup){.fd = -1};
}
