/* See cgroup.h. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

/* What holds instead. */
#define CARRIED                                                       \
	"rlimits and the pid namespace carry the limits, sandboxd's " \
	"memory_budget the memory of a call's processes together"

/* Reads a small file whole, NUL-terminated. 0 or -1. */
static int
slurp(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
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

/* Is `word` one of the space-separated words of text? */
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

void
cgroup_probe(struct buf *layers)
{
	static const char *const wanted[] = {"memory", "pids", "cpu"};
	char text[4096], path[4300], *own, *end;

	/* "0::/path" is the version 2 line (cgroups(7)). */
	if (slurp("/proc/self/cgroup", text, sizeof(text)) != 0 ||
	    (own = strstr(text, "0::/")) == NULL ||
	    (own != text && own[-1] != '\n')) {
		buf_puts(layers, "cgroup=degraded no cgroup v2: " CARRIED "\n");
		return;
	}
	own += 3;
	if ((end = strchr(own, '\n')) != NULL)
		*end = '\0';
	(void)snprintf(
	    path, sizeof(path), "/sys/fs/cgroup%s/cgroup.subtree_control", own);
	if (access(path, W_OK) != 0) {
		buf_puts(layers,
		    "cgroup=degraded this unit's cgroup is not "
		    "delegated: " CARRIED "\n");
		return;
	}
	(void)snprintf(
	    path, sizeof(path), "/sys/fs/cgroup%s/cgroup.controllers", own);
	if (slurp(path, text, sizeof(text)) != 0)
		text[0] = '\0';
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!has_word(text, wanted[i])) {
			buf_putf(layers,
			    "cgroup=degraded delegated without the %s "
			    "controller: " CARRIED "\n",
			    wanted[i]);
			return;
		}
	buf_puts(layers,
	    "cgroup=degraded delegated but not divided by this "
	    "version: " CARRIED "\n");
}
