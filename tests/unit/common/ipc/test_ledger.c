/* ledger.h: what a death leaves, wherever it strikes. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ids.h"
#include "ledger.h"

enum { AREA = 16 * 1024, MANY = 64 };

struct kept {
	struct ledger_note note;
	struct ipc_id id;
	uint8_t outcome;
	size_t text; /* bytes of its output */
	bool there;
};

/* The records that one opening told. */
struct told {
	struct kept kept[MANY];
	unsigned n;
};

static char dir[32];
static char path[64], copy[64];

static struct ledger_note *
found(void *arg, const struct ipc_record *m)
{
	struct told *t = arg;
	struct kept *k = NULL;

	for (unsigned i = 0; i < t->n && k == NULL; i++)
		if (memcmp(&t->kept[i].id, &m->execution,
			sizeof(m->execution)) == 0)
			k = &t->kept[i];
	if (k == NULL) {
		assert_true(t->n < MANY);
		k = &t->kept[t->n++];
	}
	k->id = m->execution;
	k->outcome = m->outcome;
	k->text = m->stdout_result.n;
	/* No byte of another entry came with it. */
	for (size_t i = 0; i < m->stdout_result.n; i++)
		assert_int_equal(m->stdout_result.p[i], m->execution.b[0]);
	return &k->note;
}

static struct ledger *
opened(const char *at, struct told *t)
{
	struct ledger *l = NULL;
	size_t unreadable;
	struct err e;

	memset(t, 0, sizeof(*t));
	if (ledger_open(&l, at, AREA, found, t, &unreadable, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(unreadable, 0);
	return l;
}

/* Writes record number i, with so much output. */
static int
put(struct ledger *l, struct kept *k, uint8_t i, uint8_t outcome, size_t text)
{
	static uint8_t out[AREA * 2];
	struct ipc_record m = {.outcome = outcome};

	memset(out, i, text);
	memset(&m.execution, i, sizeof(m.execution));
	m.stdout_result = ipc_bytes(out, text);
	k->id = m.execution;
	return ledger_put(l, &k->note, &m);
}

static int
start(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/mcpbox-ledger-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/ledger", dir);
	(void)snprintf(copy, sizeof(copy), "%s/copy", dir);
	return 0;
}

static int
stop(void **state)
{
	(void)unlink(path);
	(void)unlink(copy);
	return rmdir(dir);
}

static void
test_what_is_written_is_there(void **state)
{
	struct kept a = {0}, b = {0}, c = {0};
	struct told t;
	struct ledger *l = opened(path, &t);

	assert_int_equal(t.n, 0);
	assert_int_equal(put(l, &a, 1, 1, 10), 0);
	assert_int_equal(put(l, &b, 2, 2, 5000), 0);
	assert_int_equal(put(l, &c, 3, 3, 0), 0);
	ledger_drop(l, &b.note);
	ledger_drop(l, &b.note); /* harmless */
	assert_int_equal(put(l, &a, 1, 4, 20), 0);
	assert_int_equal(ledger_count(l), 2);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.kept[0].id.b[0], 3);
	assert_int_equal(t.kept[1].id.b[0], 1);
	assert_int_equal(t.kept[1].outcome, 4);
	assert_int_equal(t.kept[1].text, 20);
	/* And is kept until it is dropped, over any number of lives. */
	ledger_drop(l, &t.kept[0].note);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.kept[0].id.b[0], 1);
	ledger_drop(l, &t.kept[0].note);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 0);
	ledger_close(l);
}

/* Bytes of a file. */
static size_t
slurp(const char *at, uint8_t *p, size_t max)
{
	int fd = open(at, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, p, max);

	assert_true(n >= 0);
	(void)close(fd);
	return (size_t)n;
}

static void
spill(const char *at, const uint8_t *p, size_t n)
{
	int fd = open(at, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, p, n), n);
	(void)close(fd);
}

/*
 * A death in the middle of a write: for each of its bytes, those before it are
 * the new ones and those from it on the old ones. What was there before is
 * there, the new one as a whole or not at all, and the next life can go on.
 */
static void
torn(size_t text, unsigned lives)
{
	enum { FILE_MAX = 4096 + 2 * AREA };
	static uint8_t before[FILE_MAX], after[FILE_MAX], half[FILE_MAX];
	struct kept k[MANY] = {0}, one = {0};
	size_t n, end, whole = 0;
	struct ledger *l;
	struct told t;

	(void)unlink(path);
	l = opened(path, &t);
	/* Old bytes below the new ones, of an earlier generation. */
	for (uint8_t i = 0; i < 20; i++)
		assert_int_equal(put(l, &k[i], i, 1, 400), 0);
	for (uint8_t i = 0; i < 20; i++)
		ledger_drop(l, &k[i].note);
	for (unsigned i = 0; i < lives; i++)
		assert_int_equal(put(l, &k[i], (uint8_t)(30 + i), 1, 100), 0);
	memset(before, 0, sizeof(before));
	n = slurp(path, before, sizeof(before));
	assert_int_equal(put(l, &one, 99, 2, text), 0);
	memset(after, 0, sizeof(after));
	end = slurp(path, after, sizeof(after));
	if (end < n)
		end = n;
	ledger_close(l);
	for (size_t i = 0; i <= end; i++) {
		struct kept next = {0};
		unsigned got;

		if (i < end && before[i] == after[i])
			continue; /* as the one before it */
		memcpy(half, before, end);
		memcpy(half, after, i);
		spill(copy, half, end);
		l = opened(copy, &t);
		got = t.n;
		assert_in_range(got, lives, lives + 1);
		for (unsigned j = 0; j < lives; j++)
			assert_int_equal(t.kept[j].id.b[0], 30 + j);
		if (got > lives) {
			whole++;
			assert_int_equal(t.kept[lives].id.b[0], 99);
			assert_int_equal(t.kept[lives].text, text);
			assert_int_equal(t.kept[lives].outcome, 2);
		}
		assert_int_equal(put(l, &next, 98, 3, 300), 0);
		ledger_close(l);
		l = opened(copy, &t);
		assert_int_equal(t.n, got + 1);
		assert_int_equal(t.kept[got].id.b[0], 98);
		ledger_close(l);
	}
	/* With its last byte, and with none before. */
	assert_int_equal(whole, 1);
}

static void
test_torn_writes(void **state)
{
	torn(0, 0);
	torn(1, 1);
	torn(350, 3);
	torn(4096, 2);
}

/* A tool's output can't make an entry of a torn one: without the mark. */
static void
test_forged_commit_words(void **state)
{
	struct told t;
	struct ledger *l = opened(path, &t), *other;
	uint8_t a[72], b[72];

	other = opened(copy, &t);
	assert_int_equal(slurp(path, a, sizeof(a)), sizeof(a));
	assert_int_equal(slurp(copy, b, sizeof(b)), sizeof(b));
	assert_memory_equal(a, b, 48);
	assert_memory_not_equal(a + 48, b + 48, 8);
	ledger_close(other);
	ledger_close(l);
}

static void
test_it_never_grows_beyond_its_areas(void **state)
{
	struct told t;
	struct ledger *l = opened(path, &t);
	static struct kept k[MANY];
	struct stat st;
	unsigned full = 0;

	memset(k, 0, sizeof(k));
	/* A hundred areas of records, of which eight live at any time. */
	for (unsigned i = 0; i < 100 * AREA / 1000; i++) {
		struct kept *x = &k[i % 8];

		ledger_drop(l, &x->note);
		assert_int_equal(put(l, x, (uint8_t)i, 1, 1000), 0);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= 4096 + 2 * AREA);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 8);
	/* Full: refused, and what it has is as it was. */
	for (unsigned i = 8; i < MANY && full == 0; i++)
		if (put(l, &t.kept[i], (uint8_t)(200 + i), 1, 1000) != 0)
			full = i;
	assert_in_range(full, 9, 16);
	assert_int_equal(put(l, &k[9], 90, 1, AREA * 2), -1);
	assert_int_equal(ledger_count(l), full);
	/* As is one in place of an earlier one of the same record. */
	assert_int_equal(put(l, &t.kept[0], 1, 2, 9000), -1);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, full);
	/* With room again, it goes on. */
	for (unsigned i = 0; i < full; i++)
		ledger_drop(l, &t.kept[i].note);
	memset(&k[9], 0, sizeof(k[9]));
	assert_int_equal(put(l, &k[9], 90, 1, 9000), 0);
	ledger_close(l);
}

/* A death between the steps of making room: the old area still says it all. */
static void
test_a_death_while_room_is_made(void **state)
{
	static uint8_t file[4096 + 2 * AREA];
	struct told t;
	struct ledger *l = opened(path, &t);
	struct kept k[MANY] = {0};
	size_t n;

	for (uint8_t i = 0; i < 12; i++)
		assert_int_equal(put(l, &k[i], i, 1, 1000), 0);
	for (uint8_t i = 0; i < 12; i += 2)
		ledger_drop(l, &k[i].note);
	ledger_close(l);
	n = slurp(path, file, sizeof(file));
	l = opened(path, &t);
	assert_int_equal(t.n, 6);
	assert_int_equal(put(l, &k[0], 100, 1, 5000), 0); /* copies */
	ledger_close(l);
	memset(file + n, 0, sizeof(file) - n);
	/* Its other area as it is now, but for the generation, written last. */
	{
		static uint8_t now[sizeof(file)];

		assert_true(slurp(path, now, sizeof(now)) > 4096 + AREA);
		memcpy(file + 4096 + AREA + 8, now + 4096 + AREA + 8, AREA - 8);
	}
	spill(copy, file, sizeof(file));
	l = opened(copy, &t);
	assert_int_equal(t.n, 6);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(t.kept[i].id.b[0], 2 * i + 1);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 7);
	ledger_close(l);
}

/* Room could not be made, since the tmpfs was full half-way; later it could,
 * for fewer. What the vain try wrote lies after that, and is no entry. */
static void
test_a_vain_try_to_make_room(void **state)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY},
			    half = {4096 + AREA + 5000, RLIM_INFINITY};
	struct told t;
	struct ledger *l;
	static struct kept k[MANY];
	unsigned i = 0;

	memset(k, 0, sizeof(k));
	(void)unlink(path);
	l = opened(path, &t);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &half), 0);
	while (i < MANY && put(l, &k[i], (uint8_t)(i + 1), 1, 1000) == 0)
		if (++i > 6)
			ledger_drop(l, &k[i - 7].note);
	assert_in_range(i, 7, MANY - 1);
	assert_int_equal(ledger_count(l), 6);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	for (unsigned n = i - 6; n < i - 2; n++)
		ledger_drop(l, &k[n].note);
	assert_int_equal(put(l, &k[i], (uint8_t)(i + 1), 1, 1000), 0);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 3);
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(t.kept[n].id.b[0], i - 1 + n);
	ledger_close(l);
}

/* Nothing lives, and not even that can be written: no record is taken until it
 * can, since it could not be read again. */
static void
test_a_beginning_that_fails(void **state)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY},
			    short_ = {4096, RLIM_INFINITY};
	struct kept a = {0}, b = {0}, c = {0};
	struct told t;
	struct ledger *l;

	(void)unlink(path);
	l = opened(path, &t);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(put(l, &a, 1, 1, 10), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &short_), 0);
	ledger_drop(l, &a.note);
	assert_int_equal(put(l, &b, 2, 1, 10), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(put(l, &c, 3, 1, 10), 0);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.kept[0].id.b[0], 3);
	ledger_close(l);
}

static void
refused(const char *word)
{
	struct ledger *l;
	size_t unreadable;
	struct told t = {0};
	struct err e;

	assert_int_equal(
	    ledger_open(&l, path, AREA, found, &t, &unreadable, &e), -1);
	if (strstr(e.text, word) == NULL)
		fail_msg("%s", e.text);
}

static void
test_whose_file_it_is(void **state)
{
	struct told t;
	struct ledger *l;

	l = opened(path, &t);
	refused("another process");
	ledger_close(l);
	assert_int_equal(chmod(path, 0640), 0);
	refused("remove it");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(link(path, copy), 0);
	refused("remove it");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(copy, path), 0);
	refused("open");
	assert_int_equal(unlink(path), 0);
	if (geteuid() == 0) {
		assert_int_equal(rename(copy, path), 0);
		assert_int_equal(chown(path, 12345, 12345), 0);
		refused("remove it");
	}
}

static void
test_of_another_build(void **state)
{
	static uint8_t file[4096 + 2 * AREA];
	struct kept k = {0};
	struct told t;
	struct ledger *l = opened(path, &t);
	size_t unreadable, n;
	struct err e;

	assert_int_equal(put(l, &k, 1, 1, 10), 0);
	ledger_close(l);
	n = slurp(path, file, sizeof(file));
	file[20] ^= 1; /* of the messages' hash */
	spill(path, file, n);
	memset(&t, 0, sizeof(t));
	assert_int_equal(
	    ledger_open(&l, path, AREA, found, &t, &unreadable, &e), 0);
	assert_int_equal(t.n, 0);
	assert_int_equal(unreadable, n);
	memset(&k, 0, sizeof(k));
	assert_int_equal(put(l, &k, 2, 1, 10), 0);
	ledger_close(l);
	l = opened(path, &t);
	assert_int_equal(t.n, 1);
	ledger_close(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
	    T(test_what_is_written_is_there),
	    T(test_torn_writes),
	    T(test_forged_commit_words),
	    T(test_it_never_grows_beyond_its_areas),
	    T(test_a_death_while_room_is_made),
	    T(test_a_vain_try_to_make_room),
	    T(test_a_beginning_that_fails),
	    T(test_whose_file_it_is),
	    T(test_of_another_build),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
