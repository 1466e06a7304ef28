/*
 * The zygote's memory, made cheap to fork.
 *
 * A fork copies one page-table entry for every page of anonymous memory that
 * was written, and removes each entry again when the child ends. There are
 * 4,000 such pages, and the child never looks at most of them. For pages of a
 * file no entry is copied: the child's first touch finds them. So when the
 * zygote is warm, its written memory is copied into a memfd, and the memfd is
 * mapped privately over the memory that was copied. Every byte is where it was.
 * A runner pays for the pages that it touches, and all runners share one copy
 * of the other pages in the page cache.
 *
 * Nothing becomes shared for writing: the mapping is private, and the memfd is
 * sealed against writes before it is closed. A page that the zygote itself
 * writes later is anonymous memory again, and a fork copies its entry. So the
 * zygote runs no Python after this.
 *
 * Only memory that does not grow in place may be replaced: if mremap(2)
 * extended a mapping, the file's next bytes would appear there. mremap(2) never
 * extends the heap or CPython's arenas. It could extend blocks that malloc
 * mapped one by one, but there are none (M_MMAP_THRESHOLD in python.c).
 *
 * The interpreter's text is put into the memfd as well, to have it in huge
 * pages. From its own file the kernel maps the text 16 pages at a time, and
 * takes the pages down one by one at the end, some 600 for each runner. In huge
 * pages the text takes two faults. Writable memory gains, too: a fault maps
 * neighbouring pages of one large folio together. And a library's four mappings
 * without write access become one (fixed_line()), because a fork copies
 * mappings one by one.
 *
 * The memory is replaced while this code runs in it. Between the copy and the
 * mapping only this stack may change. So the stack is not replaced, and only
 * system calls are made between the two.
 */
#include <Python.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"
#include "runner.h"

enum {
	PAGE = 4096,
	/* Smaller regions without a file stay as they are: a fork copies their
	 * page-table entries in less time than a mapping. */
	REGION_MIN = 128 * 1024,
	/* CPython's arenas are 1 MiB each and merge into a dozen regions. The
	 * 25 libraries have two regions each. */
	REGIONS_MAX = 128,
	/* Larger libraries stay mapped from their files. They are cryptography
	 * that few calls need, and their copy would be memory that no process
	 * outside the pool shares. */
	LIBRARY_MAX = 2 * 1024 * 1024,
	MAPS_MAX = 1024 * 1024, /* of /proc/self/smaps: 700 bytes a mapping */
	HUGE = 2 * 1024 * 1024, /* a huge page, with pages of 4 KiB */
};

/* Linux 6.1: makes huge pages now, whatever the system's settings say about
 * making them automatically. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct region {
	char *from, *to;
	int prot;
};

struct regions {
	struct region text; /* the interpreter's library, or empty */
	struct region rest[REGIONS_MAX];
	size_t n; /* of rest */
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

/* A line of smaps (proc(5)): "from-to perms offset dev inode path". */
struct line {
	struct region r;
	char perms[8];
	unsigned long long inode;
};

static bool
line_read(const char *text, struct line *l)
{
	uintptr_t from, to;

	if (sscanf(text, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %llu", &from,
		&to, l->perms, &l->inode) != 4)
		return false;
	l->r = (struct region){(char *)from, (char *)to, 0};
	return true;
}

/* Tells whether the mapping is private, writable, large enough, and not our
 * stack. */
static bool
is_data(const struct line *l)
{
	const char *here = __builtin_frame_address(0);

	return strcmp(l->perms, "rw-p") == 0 &&
	    l->r.to - l->r.from >= (l->inode != 0 ? PAGE : REGION_MIN) &&
	    (here < l->r.from || here >= l->r.to);
}

static bool
holds(const struct region *r, uintptr_t function)
{
	return (char *)function >= r->from && (char *)function < r->to;
}

/* A library's mappings without write access, gathered while smaps is read. */
struct fixed {
	struct region r;
	unsigned long long inode;
};

/* Records a library's mappings, which are gathered by now. The mappings of this
 * program, which is no library, are not recorded and stay where they are. */
static void
fixed_end(struct fixed *f, struct regions *found)
{
	if (holds(&f->r, (uintptr_t)&PyObject_CallObject))
		found->text = f->r;
	else if ((f->r.prot & PROT_EXEC) != 0 && found->n < REGIONS_MAX &&
	    f->r.to - f->r.from <= LIBRARY_MAX &&
	    !holds(&f->r, (uintptr_t)&snapshot_take))
		found->rest[found->n++] = f->r;
	*f = (struct fixed){0};
}

/*
 * Takes a line of smaps. A library's mappings without write access follow each
 * other: its text, and read-only mappings before and after the text. They
 * become one mapping that may be read and executed, because huge pages need
 * room and each mapping costs time. So constants may be executed, too. That
 * gives an attacker nothing: in this process a tool can call any function
 * anyway.
 */
static void
fixed_line(const struct line *l, struct fixed *f, struct regions *found)
{
	const bool text = strcmp(l->perms, "r-xp") == 0;

	if (l->inode == 0 || (!text && strcmp(l->perms, "r--p") != 0)) {
		fixed_end(f, found);
		return;
	}
	if (l->inode != f->inode || l->r.from != f->r.to) {
		fixed_end(f, found);
		*f = (struct fixed){l->r, l->inode};
	}
	f->r.to = l->r.to;
	f->r.prot |= PROT_READ | (text ? PROT_EXEC : 0);
}

/* Tells whether the memory must stay. At a fork some memory, such as a
 * generator's state, is wiped, dropped or not copied (madvise(2)). Replaced
 * memory would lose that property. */
static bool
special(const char *flags)
{
	return strstr(flags, " wf") != NULL || strstr(flags, " dc") != NULL ||
	    strstr(flags, " dp") != NULL;
}

static int
regions_find(struct regions *found, struct err *err)
{
	struct fixed fixed = {0};
	bool data = false;
	struct line l = {0};
	struct buf text;
	char *line, *next;
	int rc = -1;

	buf_init(&text, MAPS_MAX);
	if (maps_read(&text) == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "/proc/self/smaps");
		goto out;
	}
	for (line = (char *)text.p; *line != '\0'; line = next) {
		next = strchr(line, '\n');
		if (next == NULL)
			break;
		*next++ = '\0';
		if (line_read(line, &l)) {
			data = is_data(&l);
			fixed_line(&l, &fixed, found);
		} else if (data && strncmp(line, "VmFlags:", 8) == 0) {
			data = false;
			l.r.prot = PROT_READ | PROT_WRITE;
			if (!special(line) && found->n < REGIONS_MAX)
				found->rest[found->n++] = l.r;
		}
	}
	fixed_end(&fixed, found);
	rc = 0;
out:
	buf_free(&text);
	return rc;
}

/* Writes one region at a place in the memfd. */
static int
region_write(int fd, const struct region *r, off_t at)
{
	size_t left = (size_t)(r->to - r->from);
	const char *p = r->from;
	ssize_t n;

	while (left > 0) {
		n = pwrite(fd, p, left, at);
		if (n <= 0)
			return -1;
		p += n;
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Copies one region and maps the copy over it. Between copy and mapping no
 * library function is called that could write to memory. Code in the region
 * goes on with the same bytes. If the system does not let text be replaced (a
 * sealed mapping, a security module), the library stays as it was. */
static int
region_replace(int fd, const struct region *r, off_t at)
{
	if (region_write(fd, r, at) == -1)
		return -1;
	if (mmap(r->from, (size_t)(r->to - r->from), r->prot,
		MAP_PRIVATE | MAP_FIXED, fd, at) == MAP_FAILED)
		return (r->prot & PROT_EXEC) != 0 ? 0 : -1;
	return 0;
}

/*
 * Turns a part of the memfd into huge pages, through a temporary mapping. Both
 * ends of the part are multiples of the size of a huge page. If the kernel
 * can't do this, or has no free huge page, the pages stay small: runners are
 * slower, nothing else.
 */
static void
collapse(int fd, off_t from, off_t to)
{
	const size_t n = (size_t)(to - from);
	char *room, *p;

	if (n == 0)
		return;
	room =
	    mmap(NULL, n + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return;
	p = room + (HUGE - (uintptr_t)room % HUGE) % HUGE;
	if (mmap(p, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		from) != MAP_FAILED)
		(void)madvise(p, n, MADV_COLLAPSE);
	(void)munmap(room, n + HUGE);
}

static off_t
huge(off_t at)
{
	return (at + HUGE - 1) / HUGE * HUGE;
}

/* Replaces the interpreter's text. In the memfd the text comes first, and has
 * the same offset within a huge page as in memory. *end is the memfd's next
 * free offset. */
static int
text_replace(int fd, const struct region *text, off_t *end)
{
	const off_t from = (off_t)((uintptr_t)text->from % HUGE);
	const off_t to = from + (text->to - text->from);

	*end = 0;
	if (text->from == NULL)
		return 0;
	*end = huge(to);
	if (ftruncate(fd, *end) == -1 || region_write(fd, text, from) == -1)
		return -1;
	collapse(fd, huge(from), to / HUGE * HUGE);
	return region_replace(fd, text, from);
}

/* Replaces the regions that are not the interpreter's text, one after the
 * other, from file offset `at` on. */
static int
rest_replace(int fd, const struct regions *r, off_t at)
{
	const off_t begin = at;
	size_t i;

	for (i = 0; i < r->n; i++) {
		if (region_replace(fd, &r->rest[i], at) == -1)
			return -1;
		at += r->rest[i].to - r->rest[i].from;
	}
	if (ftruncate(fd, huge(at)) == -1)
		return -1;
	collapse(fd, begin, huge(at));
	return 0;
}

int
snapshot_take(struct err *err)
{
	struct regions regions = {0};
	off_t at;
	int fd, rc = -1;

	if (regions_find(&regions, err) == -1)
		return -1;
	fd = memfd_create("zygote", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return err_sys(err, FAILURE_INTERNAL, "memfd");
	if (text_replace(fd, &regions.text, &at) == -1 ||
	    rest_replace(fd, &regions, at) == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "snapshot");
		goto out;
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
