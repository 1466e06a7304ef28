/*
 * The zygote's memory, made cheap to fork.
 *
 * A fork copies one page-table entry for every page of anonymous memory that
 * was written, and the child's end takes each of them down again: 4,000 of
 * them, most of which the child never looks at. Pages of a file need no copy:
 * the child's first touch finds them. So when the zygote is warm, what it has
 * written is put into a memfd, and the memfd is mapped privately over the very
 * memory it came from. Every byte is where it was; a runner pays for the pages
 * it touches, and the others are one copy in the page cache for all.
 *
 * Nothing becomes shared for writing: the mapping is private, and the memfd is
 * sealed against writes before it is closed. What the zygote itself writes
 * later is its own copy again, and is what a fork copies: so it runs no Python
 * from here on.
 *
 * Only memory that nobody grows in place may be replaced: what mremap(2) adds
 * to a region would show the file behind it. The heap and CPython's arenas are
 * never grown so; blocks that malloc mapped by themselves could be, and there
 * are none (python.c, M_MMAP_THRESHOLD).
 *
 * The memory is replaced while this code runs in it. Between the copy and the
 * mapping nothing but this stack may change, which is why the stack stays as
 * it is and only system calls happen there.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

enum {
	/* Smaller ones are copied sooner than mapped. */
	REGION_MIN = 128 * 1024,
	/* CPython's arenas are 1 MiB each and grow together: a dozen regions in
	 * all. */
	REGIONS_MAX = 64,
	MAPS_MAX = 1024 * 1024 /* text of /proc/self/smaps: 700 bytes each */
};

struct region {
	char *from, *to;
};

/* Reads /proc/self/smaps whole: the list must not be read while it changes. */
static int
maps_read(struct buf *out)
{
	char chunk[8192];
	ssize_t n;
	int fd;

	fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_put(out, chunk, (size_t)n);
	(void)close(fd);
	buf_putc(out, '\0');
	if (n == -1 || out->failed)
		return -1;
	return 0;
}

/* A line of smaps (proc(5)): "from-to perms offset dev inode path". Private,
 * writable, no stack. */
static bool
maps_line(const char *line, struct region *r)
{
	unsigned long long from, to;
	char perms[8];

	if (sscanf(line, "%llx-%llx %7s", &from, &to, perms) != 3 ||
	    strcmp(perms, "rw-p") != 0 || to - from < REGION_MIN)
		return false;
	r->from = (char *)(uintptr_t)from;
	r->to = (char *)(uintptr_t)to;
	return (char *)__builtin_frame_address(0) < r->from ||
	    (char *)__builtin_frame_address(0) >= r->to;
}

/* Memory that a fork must not hand on as it is (generators' states: wiped,
 * dropped or not copied, madvise(2)) would lose that when it is replaced. */
static bool
special(const char *flags)
{
	return strstr(flags, " wf") != NULL || strstr(flags, " dc") != NULL ||
	    strstr(flags, " dp") != NULL;
}

static int
regions_find(struct region *regions, size_t *n, struct err *err)
{
	struct region r = {NULL, NULL};
	bool found = false;
	struct buf text;
	char *line, *next;
	int rc = -1;

	buf_init(&text, MAPS_MAX);
	if (maps_read(&text) == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "/proc/self/smaps");
		goto out;
	}
	for (line = (char *)text.p; *line != '\0' && *n < REGIONS_MAX;
	    line = next) {
		next = strchr(line, '\n');
		if (next == NULL)
			break;
		*next++ = '\0';
		if (maps_line(line, &r))
			found = true;
		else if (found && strncmp(line, "VmFlags:", 8) == 0) {
			found = false;
			if (!special(line))
				regions[(*n)++] = r;
		}
	}
	rc = 0;
out:
	buf_free(&text);
	return rc;
}

/* Copies one region behind what the memfd has, and maps it over itself. No
 * library function that could write to memory comes between. */
static int
region_replace(int fd, const struct region *r, off_t at)
{
	size_t left = (size_t)(r->to - r->from);
	const char *p = r->from;
	ssize_t n;

	while (left > 0) {
		n = write(fd, p, left);
		if (n <= 0)
			return -1;
		p += n;
		left -= (size_t)n;
	}
	return mmap(r->from, (size_t)(r->to - r->from), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_FIXED, fd, at) == MAP_FAILED
	    ? -1
	    : 0;
}

int
snapshot_take(struct err *err)
{
	struct region regions[REGIONS_MAX];
	size_t n = 0, i;
	off_t at = 0;
	int fd, rc = -1;

	if (regions_find(regions, &n, err) == -1)
		return -1;
	fd = memfd_create("zygote", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "memfd");
	for (i = 0; i < n; i++) {
		if (region_replace(fd, &regions[i], at) == -1) {
			(void)err_sys(err, FAILURE_INTERNAL, "snapshot");
			goto out;
		}
		at += regions[i].to - regions[i].from;
	}
	if (fcntl(fd, F_ADD_SEALS,
		F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) ==
	    -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "snapshot's seals");
		goto out;
	}
	rc = 0;
out:
	(void)close(fd);
	return rc;
}
