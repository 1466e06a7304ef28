/* See ledger.h. */
#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "ledger.h"

enum {
	AREAS_AT = 4096, /* one page, so that areas begin at a page */
	GENERATION_LEN = 8,
	ENTRY_HEAD = 16, /* length, state, number */
	ENTRY_TAIL = 8,  /* the commit word */
	ALIGN = 8,       /* no word of an entry lies in two pages */
	STATE_AT = 4,
	LIVES = 1,
	DROPPED = 2,
	/* Bytes of the longest short entry: a call's record with its arguments
	 * (4 KiB), without text. */
	SHORT = 8 * 1024,
	/* Lower bits of an entry's number; the upper bits are its generation.
	 * An area holds fewer entries than these bits count, and 2^40
	 * generations last 34 years at a thousand a second. */
	NUMBER_BITS = 24,
	/* Generations that a process skips at its start: more than its
	 * predecessor can have failed to write. The bytes of a failed write lie
	 * where the next entries are written, so these entries must not have
	 * the same generation. */
	TRIED_MAX = 1 << 20
};

static const char magic[8] = "mcpbxLG1";

struct head {
	char magic[8];
	struct ipc_hash build;
	uint64_t area;
	uint64_t mark; /* random: see ledger.h */
};

struct ledger {
	int fd;
	size_t area;
	unsigned active; /* index of the area that is used */
	uint64_t generation, number, mark;
	uint64_t tried; /* the newest generation, written or not */
	bool broken;    /* no entry lives, and no generation could be written */
	size_t tail;    /* offset of the next entry in the active area */
	size_t longest; /* highest tail since pages were given back */
	size_t live;    /* bytes of entries that live, with head and tail */
	size_t count;
	TAILQ_HEAD(, ledger_note) notes; /* living entries, oldest first */
	struct buf entry;                /* the entry that is being written */
	struct buf frame;
};

static size_t
taken(size_t len)
{
	return (ENTRY_HEAD + len + ENTRY_TAIL + ALIGN - 1) / ALIGN * ALIGN;
}

/* --- Content of an area. -------------------------------------------------- */

uint64_t
ledger_begin(
    struct ledger_scan *s, const uint8_t *area, size_t n, uint64_t mark)
{
	uint64_t generation = 0;

	if (n >= GENERATION_LEN)
		memcpy(&generation, area, sizeof(generation));
	if (generation >> (64 - NUMBER_BITS) != 0)
		generation = 0;
	*s = (struct ledger_scan){.p = area,
	    .n = n,
	    .at = GENERATION_LEN,
	    .generation = generation,
	    .number = generation << NUMBER_BITS,
	    .mark = mark};
	return generation;
}

int
ledger_next(struct ledger_scan *s, struct ipc_bytes *bytes, bool *lives)
{
	uint32_t len, state;
	uint64_t number, tail;
	const uint8_t *p = s->p + s->at;

	if (s->generation == 0 || s->n < s->at ||
	    s->n - s->at < ENTRY_HEAD + ENTRY_TAIL)
		return 0;
	memcpy(&len, p, sizeof(len));
	memcpy(&state, p + STATE_AT, sizeof(state));
	memcpy(&number, p + 2 * STATE_AT, sizeof(number));
	if (len == 0 || len > s->n || taken(len) > s->n - s->at ||
	    number >> NUMBER_BITS != s->generation || number <= s->number ||
	    (state != LIVES && state != DROPPED))
		return 0;
	memcpy(&tail, p + taken(len) - ENTRY_TAIL, sizeof(tail));
	if (tail != (number ^ s->mark))
		return 0;
	*bytes = ipc_bytes(p + ENTRY_HEAD, len);
	*lives = state == LIVES;
	s->number = number;
	s->at += taken(len);
	return 1;
}

int
ledger_decode(struct ipc_bytes b, struct ipc_frame *f, struct ipc_record *m)
{
	uint32_t n;

	memset(f, 0, sizeof(*f));
	f->fd = -1;
	if (b.n < sizeof(n))
		return -1;
	memcpy(&n, b.p, sizeof(n));
	b.p += sizeof(n);
	b.n -= sizeof(n);
	if (n > b.n || n < IPC_HEADER_LEN ||
	    ipc_decode_header(b.p, n, f, NULL) != 0 || f->type != IPC_RECORD)
		return -1;
	f->payload_len = n - IPC_HEADER_LEN;
	f->blob_len = b.n - n;
	/* If the blob is inside the frame, no bytes follow the frame. */
	if ((f->flags & IPC_FLAG_MEMFD) == 0 && f->blob_len != 0)
		return -1;
	if ((f->payload = malloc(f->payload_len + 1)) == NULL)
		return -1;
	memcpy(f->payload, b.p + IPC_HEADER_LEN, f->payload_len);
	if ((f->flags & IPC_FLAG_MEMFD) != 0) {
		if ((f->blob = malloc(f->blob_len + 1)) == NULL)
			return -1;
		memcpy(f->blob, b.p + n, f->blob_len);
	}
	return ipc_decode(f, m, NULL);
}

/* --- Writing. ------------------------------------------------------------- */

static off_t
place(const struct ledger *l, unsigned area, size_t at)
{
	return (off_t)(AREAS_AT + (size_t)area * l->area + at);
}

/* Writes n bytes. A short write counts as failed: the tmpfs has no room. */
static int
put_at(
    const struct ledger *l, unsigned area, size_t at, const void *p, size_t n)
{
	ssize_t w;

	do
		w = pwrite(l->fd, p, n, place(l, area, at));
	while (w == -1 && errno == EINTR);
	return w == (ssize_t)n ? 0 : -1;
}

/* Makes g the generation of an area. Then no entry of an earlier generation
 * counts any more, in either area. g is ++l->tried: if a generation were tried
 * twice, the bytes of a failed write would be taken for entries. */
static int
new_generation(struct ledger *l, unsigned area, uint64_t g)
{
	if (put_at(l, area, 0, &g, sizeof(g)) != 0)
		return -1;
	l->active = area;
	l->generation = g;
	return 0;
}

/* Begins a new generation when no entry lives, and truncates a long file. */
static void
reset(struct ledger *l)
{
	unsigned area = l->active;

	if (l->longest > LEDGER_REST && ftruncate(l->fd, AREAS_AT) == 0) {
		area = 0;
		l->longest = 0;
	}
	/* If this write fails, ledger_put writes nothing until a later try
	 * succeeds. */
	l->broken = new_generation(l, area, ++l->tried) != 0;
	if (!l->broken) {
		l->number = l->generation << NUMBER_BITS;
		l->tail = GENERATION_LEN;
	}
}

/* Writes an entry of len bytes, which l->entry has after the entry's head. */
static int
append(
    struct ledger *l, unsigned area, size_t at, uint64_t number, uint32_t len)
{
	uint64_t tail = number ^ l->mark;
	uint32_t state = LIVES;
	struct buf *b = &l->entry;

	while (b->len < taken(len) - ENTRY_TAIL)
		buf_putc(b, 0);
	buf_put(b, &tail, sizeof(tail));
	if (b->failed)
		return -1;
	memcpy(b->p, &len, sizeof(len));
	memcpy(b->p + STATE_AT, &state, sizeof(state));
	memcpy(b->p + 2 * STATE_AT, &number, sizeof(number));
	return put_at(l, area, at, b->p, b->len);
}

static void
entry_begin(struct buf *b)
{
	static const uint8_t head[ENTRY_HEAD];

	buf_clear(b);
	buf_put(b, head, sizeof(head));
}

/* Copies the entries that live into the other area. */
static int
compact(struct ledger *l)
{
	uint64_t g = ++l->tried, number = g << NUMBER_BITS;
	unsigned other = !l->active;
	size_t at = GENERATION_LEN;
	struct ledger_note *n;
	struct buf b;
	int rc = -1;

	buf_init(&b, l->area);
	/* The notes get their new places only when all entries are there. */
	TAILQ_FOREACH(n, &l->notes, link) {
		buf_clear(&b);
		buf_reserve(&b, n->len);
		if (b.failed ||
		    pread(l->fd, b.p, n->len,
			place(l, l->active, n->at + ENTRY_HEAD)) !=
			(ssize_t)n->len)
			goto out;
		b.len = n->len;
		entry_begin(&l->entry);
		buf_put(&l->entry, b.p, b.len);
		if (append(l, other, at, ++number, n->len) != 0)
			goto out;
		at += taken(n->len);
	}
	if (new_generation(l, other, g) != 0)
		goto out;
	l->number = number;
	l->tail = GENERATION_LEN;
	TAILQ_FOREACH(n, &l->notes, link) {
		n->at = l->tail;
		l->tail += taken(n->len);
	}
	rc = 0;
out:
	buf_free(&b);
	return rc;
}

/*
 * Makes room for `need` bytes. The last quarter of an area is for short
 * entries: the end of a call, without its text. Entries are copied only if this
 * frees at least an eighth of the area. Otherwise a full ledger would be copied
 * for each record.
 */
static int
make_room(struct ledger *l, size_t need)
{
	if (need > SHORT && l->live + need > l->area / 4 * 3)
		return -1;
	if (l->tail + need <= l->area)
		return 0;
	if (l->live + need > l->area / 8 * 7)
		return -1;
	return compact(l);
}

static void
forget(struct ledger *l, struct ledger_note *n)
{
	TAILQ_REMOVE(&l->notes, n, link);
	l->live -= taken(n->len);
	l->count--;
	n->len = 0;
}

int
ledger_put(struct ledger *l, struct ledger_note *n, const struct ipc_record *m)
{
	static const uint32_t dropped = DROPPED;
	struct ledger_note old = *n;
	struct ipc_bytes blob;
	uint32_t frame, len;
	size_t tail;
	int fd;

	if (l->broken)
		reset(l);
	if (l->broken ||
	    ipc_encode(IPC_RECORD, 0, m, &l->frame, &blob, &fd, NULL) != 0)
		return -1;
	frame = (uint32_t)l->frame.len;
	entry_begin(&l->entry);
	buf_put(&l->entry, &frame, sizeof(frame));
	buf_put(&l->entry, l->frame.p, l->frame.len);
	buf_put(&l->entry, blob.p, blob.n);
	if (l->entry.failed)
		return -1;
	len = (uint32_t)(l->entry.len - ENTRY_HEAD);
	tail = l->tail;
	if (make_room(l, taken(len)) != 0)
		return -1;
	/* compact() has overwritten l->entry: build the entry again. */
	if (l->tail < tail)
		return ledger_put(l, n, m);
	if (append(l, l->active, l->tail, l->number + 1, len) != 0)
		return -1;
	l->number++;
	if (old.len > 0) {
		/* If we are killed before this write, the next process finds
		 * both entries, and the later one counts. */
		(void)put_at(
		    l, l->active, old.at + STATE_AT, &dropped, sizeof(dropped));
		forget(l, n);
	}
	n->at = l->tail;
	n->len = len;
	TAILQ_INSERT_TAIL(&l->notes, n, link);
	l->tail += taken(len);
	if (l->longest < l->tail)
		l->longest = l->tail;
	l->live += taken(len);
	l->count++;
	return 0;
}

void
ledger_drop(struct ledger *l, struct ledger_note *n)
{
	static const uint32_t dropped = DROPPED;
	uint64_t at = n->at;

	if (n->len == 0)
		return;
	forget(l, n);
	if (l->count == 0)
		reset(l);
	else
		(void)put_at(
		    l, l->active, at + STATE_AT, &dropped, sizeof(dropped));
}

size_t
ledger_count(const struct ledger *l)
{
	return l->count;
}

/* --- The beginning. ------------------------------------------------------- */

/* Opens the file and locks it. Refuses a file that another user could have put
 * there. */
static int
open_file(const char *path, struct err *e)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return err_sys(e, FAILURE_INTERNAL, "open %s", path);
	if (fstat(fd, &st) != 0)
		(void)err_sys(e, FAILURE_INTERNAL, "stat %s", path);
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077) != 0 || st.st_nlink != 1)
		(void)err_set(e, FAILURE_INTERNAL,
		    "%s is not a plain file of this process' user alone "
		    "(0600); "
		    "remove it",
		    path);
	else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		(void)err_sys(e, FAILURE_INTERNAL,
		    "%s: another process of this name runs", path);
	else
		return fd;
	(void)close(fd);
	return -1;
}

/* Makes the file new. The head is written last, because a file without a head
 * is made new again. */
static int
begin_anew(struct ledger *l, const struct head *h)
{
	if (ftruncate(l->fd, 0) != 0)
		return -1;
	reset(l);
	return l->generation != 0 &&
		pwrite(l->fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h)
	    ? 0
	    : -1;
}

/* Reads an area. *n is the number of the area's bytes that the file has. NULL:
 * no memory. */
static uint8_t *
read_area(const struct ledger *l, unsigned area, size_t *n)
{
	uint8_t *p = malloc(l->area);
	ssize_t r;

	*n = 0;
	while (p != NULL && *n < l->area &&
	    (r = pread(l->fd, p + *n, l->area - *n, place(l, area, *n))) > 0)
		*n += (size_t)r;
	return p;
}

/* Calls found() for each record that lives in the area of the higher
 * generation, and sets the notes of the records that are kept. */
static int
tell(struct ledger *l, ledger_found *found, void *arg)
{
	struct ledger_scan s[2] = {{0}};
	uint8_t *area[2] = {NULL, NULL};
	struct ledger_note *note;
	struct ipc_record m;
	struct ipc_frame f;
	struct ipc_bytes b;
	int rc = -1;
	bool lives;
	size_t n;

	for (unsigned i = 0; i < 2; i++) {
		if ((area[i] = read_area(l, i, &n)) == NULL)
			goto out;
		(void)ledger_begin(&s[i], area[i], n, l->mark);
	}
	l->active = s[1].generation > s[0].generation;
	l->generation = s[l->active].generation;
	l->tried = l->generation + TRIED_MAX;
	while (ledger_next(&s[l->active], &b, &lives) == 1) {
		if (!lives)
			continue;
		note = ledger_decode(b, &f, &m) == 0 ? found(arg, &m) : NULL;
		ipc_frame_free(&f);
		if (note == NULL)
			continue;
		/* A later entry of the same record replaces the earlier
		 * entry. */
		if (note->len > 0)
			forget(l, note);
		note->len = (uint32_t)b.n;
		note->at = (uint64_t)(b.p - s[l->active].p) - ENTRY_HEAD;
		TAILQ_INSERT_TAIL(&l->notes, note, link);
		l->live += taken(note->len);
		l->count++;
	}
	l->tail = s[l->active].at;
	l->number = s[l->active].number;
	l->longest = l->area; /* the file may be this long */
	rc = 0;
out:
	free(area[0]);
	free(area[1]);
	return rc;
}

int
ledger_open(struct ledger **out, const char *path, size_t area,
    ledger_found *found, void *arg, size_t *unreadable, struct err *e)
{
	struct head want = {.build = ipc_table_hash, .area = area}, have;
	struct ipc_id random;
	bool known = false;
	struct ledger *l;
	ssize_t n;

	*unreadable = 0;
	memcpy(want.magic, magic, sizeof(magic));
	if ((l = calloc(1, sizeof(*l))) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory for %s", path);
	TAILQ_INIT(&l->notes);
	l->area = area;
	buf_init(&l->entry, area);
	buf_init(&l->frame, IPC_FRAME_MAX);
	if ((l->fd = open_file(path, e)) == -1)
		goto fail;
	n = pread(l->fd, &have, sizeof(have), 0);
	if (n == (ssize_t)sizeof(have)) {
		want.mark = l->mark = have.mark;
		known = memcmp(&have, &want, sizeof(have)) == 0;
	}
	if (!known) {
		id_random(&random);
		memcpy(&want.mark, random.b, sizeof(want.mark));
		l->mark = want.mark;
		*unreadable = n > 0 ? (size_t)lseek(l->fd, 0, SEEK_END) : 0;
		if (begin_anew(l, &want) != 0) {
			(void)err_sys(e, FAILURE_INTERNAL, "write %s", path);
			goto fail;
		}
	} else if (tell(l, found, arg) != 0) {
		(void)err_set(e, FAILURE_BUSY, "no memory for %s", path);
		goto fail;
	} else if (l->count == 0)
		reset(l);
	*out = l;
	return 0;
fail:
	ledger_close(l);
	return -1;
}

void
ledger_close(struct ledger *l)
{
	if (l == NULL)
		return;
	if (l->fd != -1)
		(void)close(l->fd);
	buf_free(&l->entry);
	buf_free(&l->frame);
	free(l);
}
