/*
 * What pool-init writes to a slot's cgroup and when, over a directory of
 * plain files. That the kernel obeys is proven in tests/vm.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cgroup.h"
#include "unit.h"

enum { SLOT = 7 };
static const struct cgroup_limits limits = {64 << 20, 16, 150};
static char dir[64];
static struct cgroup cg;

static void
path_of(char *out, size_t n, const char *name)
{
	(void)snprintf(out, n, "%s/slot-007/%s", dir, name);
}

static void
put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	path_of(path, sizeof(path), name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The whole text of a file; it is emptied, so that the next look tells
 * whether it was written again. */
static const char *
taken(const char *name)
{
	static char text[256];
	char path[128];
	FILE *f;

	path_of(path, sizeof(path), name);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
	put(name, "");
	return text;
}

static void
stats(const char *oom, const char *cpu, const char *peak)
{
	put("memory.events", oom);
	put("cpu.stat", cpu);
	put("memory.peak", peak);
}

static int
setup(void **state)
{
	static const char *const files[] = {"memory.max", "memory.swap.max",
	    "memory.oom.group", "pids.max", "cpu.max", "cgroup.kill"};
	char path[128];

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/test-cgroup.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	path_of(path, sizeof(path), "");
	if (mkdir(path, 0700) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(files[i], "");
	put("cgroup.events", "populated 0\nfrozen 0\n");
	stats("oom 3\noom_kill 2\n", "usage_usec 1000\nuser_usec 1\n", "500\n");
	memset(&cg, 0, sizeof(cg));
	cg.zygote = -1;
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		cg.leaf[i].dir = cg.leaf[i].peak = -1;
	cg.pool = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return cg.pool < 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	static const char *const files[] = {"memory.max", "memory.swap.max",
	    "memory.oom.group", "pids.max", "cpu.max", "cgroup.kill",
	    "cgroup.events", "memory.events", "cpu.stat", "memory.peak", ""};
	char path[128];

	(void)state;
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		if (cg.leaf[i].dir >= 0)
			close(cg.leaf[i].dir);
		if (cg.leaf[i].peak >= 0)
			close(cg.leaf[i].peak);
	}
	close(cg.pool);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		path_of(path, sizeof(path), files[i]);
		(void)remove(path);
	}
	return rmdir(dir);
}

static void
test_limits_are_written_once(void **state)
{
	struct cgroup_limits more = limits;

	(void)state;
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 1);
	assert_string_equal(taken("memory.max"), "67108864");
	assert_string_equal(taken("memory.swap.max"), "0");
	assert_string_equal(taken("memory.oom.group"), "1");
	assert_string_equal(taken("pids.max"), "16");
	assert_string_equal(taken("cpu.max"), "150000 100000");
	assert_true(cgroup_dir(&cg, SLOT) >= 0);

	/* The next use with the same limits writes nothing. */
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 0);
	assert_string_equal(taken("memory.max"), "");
	assert_string_equal(taken("pids.max"), "");
	assert_string_equal(taken("cpu.max"), "");

	/* One call's own limits, and back at the next fork. */
	more.memory_bytes *= 2;
	assert_int_equal(cgroup_limit(&cg, SLOT, &more), 0);
	assert_string_equal(taken("memory.max"), "134217728");
	assert_string_equal(taken("pids.max"), "");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 0);
	assert_string_equal(taken("memory.max"), "67108864");
}

static void
test_a_leaf_in_use_is_refused(void **state)
{
	(void)state;
	put("cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), -1);
	assert_int_equal(errno, EBUSY);
	assert_string_equal(taken("cgroup.kill"), "1");
	assert_string_equal(taken("memory.max"), "");
	/* It is spent, and can't go as long as it can't be removed. */
	put("cgroup.events", "populated 0\nfrozen 0\n");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), -1);
	assert_int_equal(errno, ENOTEMPTY);
}

static void
test_what_lives_on_is_killed_and_the_leaf_made_anew(void **state)
{
	struct cgroup_usage u;
	char path[128], old[128];

	(void)state;
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 1);
	assert_false(cgroup_end(&cg, SLOT, &u));
	assert_string_equal(taken("cgroup.kill"), "");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 0);
	put("cgroup.events", "populated 1\nfrozen 0\n");
	assert_true(cgroup_end(&cg, SLOT, &u));
	assert_string_equal(taken("cgroup.kill"), "1");
	/* As if the kernel had removed it: the next use makes another, whose
	 * files are absent here. */
	path_of(path, sizeof(path), "");
	(void)snprintf(old, sizeof(old), "%s/old", dir);
	assert_int_equal(rename(path, old), 0);
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(old, path), 0);
	put("cgroup.events", "populated 0\nfrozen 0\n");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 1);
}

static void
test_limits_that_are_none(void **state)
{
	struct cgroup_limits none = limits;

	(void)state;
	assert_int_equal(cgroup_limit(&cg, SLOT, &limits), -1); /* no leaf */
	none.memory_bytes = 0;
	assert_int_equal(cgroup_take(&cg, SLOT, &none), -1);
	none = limits;
	none.processes = 0;
	assert_int_equal(cgroup_take(&cg, SLOT, &none), -1);
	none = limits;
	none.cpu_percent = 0;
	assert_int_equal(cgroup_take(&cg, SLOT, &none), -1);
	assert_int_equal(errno, EINVAL);
}

/* A limit the kernel did not take is tried again, not taken for written. */
static void
test_a_failed_write_is_an_error(void **state)
{
	char path[128];

	(void)state;
	path_of(path, sizeof(path), "pids.max");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), -1);
	assert_int_equal(errno, ENOENT);
	put("pids.max", "");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 0);
	assert_string_equal(taken("pids.max"), "16");
	assert_string_equal(taken("cpu.max"), "150000 100000");
}

static void
test_swap_may_be_absent(void **state)
{
	char path[128];

	(void)state;
	path_of(path, sizeof(path), "memory.swap.max");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 1);
}

static void
test_usage_is_of_one_use(void **state)
{
	struct cgroup_usage u;

	(void)state;
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 1);
	(void)cgroup_end(&cg, SLOT, &u);
	assert_int_equal(u.oom_kills, 0);
	assert_int_equal(u.cpu_us, 0);
	stats("oom 4\noom_kill 5\noom_group_kill 1\n",
	    "usage_usec 251000\nuser_usec 1\n", "9000\n");
	(void)cgroup_end(&cg, SLOT, &u);
	assert_int_equal(u.oom_kills, 3);
	assert_int_equal(u.cpu_us, 250000);
	assert_int_equal(u.memory_peak, 9000);
	/* A slot that was never used. */
	(void)cgroup_end(&cg, SLOT + 1, &u);
	assert_int_equal(u.oom_kills + u.cpu_us + u.memory_peak, 0);
}

static void
test_without_a_peak_that_starts_anew(void **state)
{
	struct cgroup_usage u;

	(void)state;
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 1);
	cg.leaf[SLOT].resets = false; /* a kernel before 6.12 */
	stats("oom_kill 2\n", "usage_usec 1\n", "4000\n");
	assert_int_equal(cgroup_take(&cg, SLOT, &limits), 0);
	(void)cgroup_end(&cg, SLOT, &u);
	assert_int_equal(u.memory_peak, 0); /* not known: no new maximum */
	stats("oom_kill 2\n", "usage_usec 1\n", "5000\n");
	(void)cgroup_end(&cg, SLOT, &u);
	assert_int_equal(u.memory_peak, 5000);
}

static void
test_nothing_without_a_cgroup(void **state)
{
	struct cgroup none;
	struct cgroup_usage u;
	struct buf layers;
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	buf_init(&layers, 1024);
	/* Descriptor 5 may be anything, or closed: only a cgroup is one. */
	cgroup_start(&none, fd, &layers);
	assert_false(cgroup_on(&none));
	assert_int_equal(layers.len, 0);
	assert_int_equal(cgroup_take(&none, SLOT, &limits), 0);
	assert_int_equal(cgroup_limit(&none, SLOT, &limits), 0);
	assert_int_equal(cgroup_dir(&none, SLOT), -1);
	assert_int_equal(cgroup_enter_zygote(&none), 0);
	assert_false(cgroup_end(&none, SLOT, &u));
	assert_int_equal(u.oom_kills + u.cpu_us + u.memory_peak, 0);
	close(fd);
	cgroup_start(&none, fd, &layers);
	assert_false(cgroup_on(&none));
	buf_free(&layers);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_limits_are_written_once),
	    T(test_a_leaf_in_use_is_refused),
	    T(test_what_lives_on_is_killed_and_the_leaf_made_anew),
	    T(test_limits_that_are_none),
	    T(test_a_failed_write_is_an_error),
	    T(test_swap_may_be_absent),
	    T(test_usage_is_of_one_use),
	    T(test_without_a_peak_that_starts_anew),
	    T(test_nothing_without_a_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
