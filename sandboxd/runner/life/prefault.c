/*
 * The pages that every call writes, copied in one go.
 *
 * A runner shares the zygote's memory until it writes, and Python writes
 * wherever it looks (reference counts): a trivial call takes some 500 page
 * faults, and a fault costs more than the copy of the page. The pages hardly
 * change from call to call. So the zygote rehearses: two children make a call
 * each, with all its frames and code of the harness, one plain and one
 * asynchronous. Then each child looks up in its page table which pages became
 * its own (pagemap in the kernel's admin-guide/mm). Runners ask for those
 * pages, range by range, with MADV_POPULATE_WRITE (madvise(2), Linux 5.14),
 * while they wait for a call. This takes as much processor time as the faults,
 * but no caller waits for it.
 *
 * This is about time alone. Only a list of addresses comes back from the
 * rehearsal. Without MADV_POPULATE_WRITE, or after a rehearsal that failed,
 * runners are slower, nothing else.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpreter.h"
#include "ipc_io.h"
#include "life.h"
#include "runner.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
	PAGE = 4096,
	/* RANGES_MAX: ranges kept. Two pages share a range if at most OWN_GAP
	 * or FILES_GAP other pages lie between them, because a system call
	 * costs as much as to copy a page, or to map some pages of a file. */
	RANGES_MAX = 768,
	OWN_GAP = 1,
	FILES_GAP = 16,
	/* 64 MiB of pages: four times the zygote's memory. */
	PAGES_MAX = 16384,
	/*
	 * If a runner had no call for this long, the machine is not under load.
	 * Under load processor time is the bottleneck, and it is cheaper that a
	 * call faults in only the pages that it needs.
	 */
	IDLE_MS = 70,
	TURN = 16, /* ranges between two looks at the channel: about 0.1 ms */
	/* A rehearsal takes some ms. A rehearsal that hangs must not delay the
	 * pool for longer. */
	REHEARSAL_S = 10,
	/* Limits, as each call has. No rehearsal reaches them. */
	REHEARSAL_BYTES = 1 << 30,
	REHEARSAL_FILES = 256,
};

/* OWN: pages that became the child's own. FILES: pages of files (the
 * interpreter's text) that the child looked at; the kernel maps such pages in
 * small groups only. */
enum { OWN, FILES, KINDS };

struct found {
	size_t n[KINDS];
	uint64_t page[KINDS][PAGES_MAX]; /* page numbers, in any order */
};

struct range {
	uint64_t from, to; /* page numbers */
	int advice;
};

static struct range ranges[RANGES_MAX];
static size_t nranges;

/* The rehearsed calls: a plain main and an asynchronous one. */
enum { CALLS = 2 };
static struct rehearsed {
	struct buf code; /* source and compiled form */
	uint32_t source_len;
} calls[CALLS];

/* --- In the rehearsing child. ----------------------------------------- */

/* Plays a confined runner: sets up descriptors and interpreter, and serves a
 * call. The messages go into a socket that no process reads. */
static int
play(int channel)
{
	if (child_descriptors(channel, -1) == -1 || python_child(NULL) == -1 ||
	    output_start() == -1)
		return -1;
	return child_serve(NULL, RUNNER_PYTHON, true);
}

/* Notes the pages of one mapping that are present (bit 63 of a page's entry) as
 * FILES if they belong to a file (bit 61), else as OWN. */
static int
note_mapping(struct found *f, int pagemap, uint64_t from, uint64_t to)
{
	uint64_t entry[512], at, i, n;

	for (at = from; at < to; at += n) {
		n = to - at < 512 ? to - at : 512;
		if (pread(pagemap, entry, n * sizeof(entry[0]),
			(off_t)(at * sizeof(entry[0]))) !=
		    (ssize_t)(n * sizeof(entry[0])))
			return -1;
		for (i = 0; i < n; i++) {
			const int kind = entry[i] >> 61 & 1 ? FILES : OWN;

			if ((entry[i] >> 63 & 1) != 0 && f->n[kind] < PAGES_MAX)
				f->page[kind][f->n[kind]++] = at + i;
		}
	}
	return 0;
}

static int
note(struct found *f)
{
	unsigned long long from, to;
	char line[512], perms[8];
	int pagemap, rc = 0;
	FILE *maps;

	maps = fopen("/proc/self/maps", "re");
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (maps == NULL || pagemap == -1)
		return -1;
	/* Some mappings, such as the thread's stack, lie elsewhere in each
	 * runner. They are noted all the same: to ask for an absent page fails
	 * and costs next to nothing. */
	while (rc == 0 && fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%llx-%llx %7s", &from, &to, perms) == 3 &&
		    (strcmp(perms, "rw-p") == 0 || strcmp(perms, "r-xp") == 0 ||
			strcmp(perms, "r--p") == 0))
			rc = note_mapping(f, pagemap, from / PAGE, to / PAGE);
	return rc;
}

/* --- In the zygote. ---------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Merges the pages of all rehearsals into ranges. Two pages share a range if at
 * most `gap` other pages lie between them. After RANGES_MAX ranges the
 * remaining pages are left to page faults. */
static void
merge(uint64_t *pages, size_t n, uint64_t gap, int advice)
{
	struct range *r = NULL;
	size_t i;

	qsort(pages, n, sizeof(pages[0]), compare);
	for (i = 0; i < n; i++) {
		if (r != NULL && pages[i] <= r->to + gap)
			r->to = pages[i] < r->to ? r->to : pages[i] + 1;
		else if (nranges < RANGES_MAX) {
			r = &ranges[nranges++];
			*r = (struct range){pages[i], pages[i] + 1, advice};
		} else
			break;
	}
}

/* Sends the frames of a call, as sandboxd does. */
static int
send_call(int fd, const struct rehearsed *c)
{
	struct ipc_execute x = {.kind = CONTEXT_TOOL,
	    .name = ipc_str("rehearsal"),
	    .source_len = c->source_len,
	    .code = ipc_bytes(c->code.p, c->code.len),
	    .memory_bytes = REHEARSAL_BYTES,
	    .cpu_ms = REHEARSAL_S * 1000,
	    .processes = REHEARSAL_FILES,
	    .files = REHEARSAL_FILES,
	    .file_bytes = REHEARSAL_BYTES,
	    .stdout_max = RUNNER_PIECE_MAX,
	    .result_max = RUNNER_PIECE_MAX};
	struct ipc_arguments arguments = {.json = ipc_str("{\"n\":1}")};
	struct ipc_secrets secrets = {0};

	return ipc_write(fd, IPC_EXECUTE, 0, &x, NULL) == -1 ||
		ipc_write(fd, IPC_ARGUMENTS, 0, &arguments, NULL) == -1 ||
		ipc_write(fd, IPC_SECRETS, 0, &secrets, NULL) == -1
	    ? -1
	    : 0;
}

static int
rehearse(const struct rehearsed *c, struct found *f)
{
	int sv[2], status;
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	if (send_call(sv[1], c) == 0)
		pid = fork();
	if (pid == 0) {
		(void)alarm(REHEARSAL_S);
		_exit(play(sv[0]) == -1 || note(f) == -1);
	}
	if (pid > 0 && waitpid(pid, &status, 0) != pid)
		pid = -1;
	(void)close(sv[0]);
	(void)close(sv[1]);
	return pid > 0 && status == 0 ? 0 : -1;
}

int
prefault_prepare(struct err *err)
{
	size_t i;

	for (i = 0; i < CALLS; i++)
		if (pyfork_rehearsal(i == 1, &calls[i].code,
			&calls[i].source_len, err) == -1)
			return -1;
	return 0;
}

int
prefault_learn(void)
{
	struct found *f;
	size_t i;
	int rc = 0;

	/* Memory shared with the children, which write their pages into it. */
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f == MAP_FAILED)
		return -1;
	for (i = 0; i < CALLS && rc == 0; i++)
		rc = rehearse(&calls[i], f);
	if (rc == 0) {
		/* Own pages come first: a page that is first mapped for reading
		 * would be mapped a second time for writing. */
		merge(f->page[OWN], f->n[OWN], OWN_GAP, MADV_POPULATE_WRITE);
		merge(
		    f->page[FILES], f->n[FILES], FILES_GAP, MADV_POPULATE_READ);
	}
	(void)munmap(f, sizeof(*f));
	return rc;
}

/* Tells whether the call comes within timeout_ms. */
static bool
called(int timeout_ms)
{
	struct pollfd p = {.fd = RUNNER_CHANNEL_FD, .events = POLLIN};

	return poll(&p, 1, timeout_ms) != 0;
}

void
prefault_while_idle(void)
{
	size_t i;

	if (called(IDLE_MS))
		return;
	for (i = 0; i < nranges; i++) {
		(void)madvise((void *)(uintptr_t)(ranges[i].from * PAGE),
		    (size_t)(ranges[i].to - ranges[i].from) * PAGE,
		    ranges[i].advice);
		if (i % TURN == TURN - 1 && called(0))
			return;
	}
}
