/*
 * The end of a rotation, on files as they may be found: plain ones, since
 * nothing here can seal (tests/systemd has the others).
 */
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "keyfile.h"
#include "unit.h"

static const uint8_t one[KEY_LEN] = {1}, two[KEY_LEN] = {2};

struct world {
	char dir[64], path[96];
	struct keyfile k;
};

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	assert_non_null(w);
	snprintf(w->dir, sizeof(w->dir), "/tmp/mcpbox-key-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/k", w->dir);
	assert_int_equal(keyfile_open(w->path, &w->k, &err), 0);
	*state = w;
	return 0;
}

static int
take(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

static int
teardown(void **state)
{
	struct world *w = *state;

	keyfile_close(&w->k);
	assert_int_equal(nftw(w->dir, take, 8, FTW_PHYS | FTW_DEPTH), 0);
	free(w);
	return 0;
}

static void
put(const struct world *w, const char *name, const uint8_t key[KEY_LEN])
{
	int fd = openat(w->k.dir, name, O_WRONLY | O_CREAT, 0400);

	assert_int_equal(write(fd, key, KEY_LEN), KEY_LEN);
	close(fd);
}

static void
assert_key(const struct world *w, const uint8_t key[KEY_LEN])
{
	uint8_t have[KEY_LEN];
	struct err err;

	assert_int_equal(keyfile_read(&w->k, KEYFILE_KEY, have, &err), 1);
	assert_memory_equal(have, key, KEY_LEN);
	assert_int_equal(keyfile_find(&w->k, KEYFILE_NEXT, NULL, &err), 0);
}

static void
the_next_takes_its_place_and_the_old_one_is_kept(void **state)
{
	struct world *w = *state;
	char kept[NAME_MAX + 1];
	uint8_t have[KEY_LEN];
	struct err err;
	int fd;

	put(w, "k", one);
	put(w, "k.next", two);
	assert_int_equal(keyfile_change(&w->k, kept, &err), 0);
	assert_key(w, two);
	fd = openat(w->k.dir, kept, O_RDONLY);
	assert_int_equal(read(fd, have, KEY_LEN), KEY_LEN);
	close(fd);
	assert_memory_equal(have, one, KEY_LEN);
}

/* The vault has it, so it was moved away: what everything opens with by now
 * must not be left under a name that the next start does not read. */
static void
without_the_old_one_the_next_takes_its_place(void **state)
{
	struct world *w = *state;
	char kept[NAME_MAX + 1];
	struct err err;

	put(w, "k.next", two);
	assert_int_equal(keyfile_change(&w->k, kept, &err), 0);
	assert_string_equal(kept, "");
	assert_key(w, two);
}

static void
without_a_next_one_nothing_changes(void **state)
{
	struct world *w = *state;
	char kept[NAME_MAX + 1];
	struct err err = {0};

	put(w, "k", one);
	assert_int_equal(keyfile_change(&w->k, kept, &err), -1);
	assert_string_equal(err.text, "k.next: not there");
	assert_int_equal(err.failure, FAILURE_NOT_FOUND);
	assert_key(w, one);
	err.text[0] = '\0';
	assert_int_equal(keyfile_next_fd(&w->k, &err), -1);
	assert_string_equal(err.text, "k.next: not there");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		the_next_takes_its_place_and_the_old_one_is_kept, setup,
		teardown),
	    cmocka_unit_test_setup_teardown(
		without_the_old_one_the_next_takes_its_place, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		without_a_next_one_nothing_changes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
