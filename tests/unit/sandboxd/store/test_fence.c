/*
 * What the store's writer could still do if it were taken over: with its
 * Landlock domain, as the owner of every entry, but without its system-call
 * filter, which a sanitized build lacks too. Each attack works before.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "deposit.h"
#include "fence.h"
#include "landlock.h"
#include "unit.h"

enum { NOBODY = 65534, TRIES = 10 };

/* An entry as deposit.c leaves it, but for its write bits: here Landlock stands
 * alone. */
static void
make_store(const char *top)
{
	char p[256];
	int fd;

	assert_int_equal(mkdir(DEPOSIT_INCOMING, 0755), 0);
	assert_int_equal(mkdir(DEPOSIT_INCOMING "/new", 0755), 0);
	assert_int_equal(mkdir("entry", 0755), 0);
	assert_int_equal(mkdir("entry/pkg", 0755), 0);
	(void)snprintf(p, sizeof(p), "%s/entry/pkg/m.py", top);
	fd = open(p, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	close(fd);
	fd = open(DEPOSIT_INCOMING "/new/f", O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* One thing that may not be: 0 if it worked, else errno. */
static int
attack(int which)
{
	int rc = -1;

	errno = 0;
	switch (which) {
	case 0:
		rc = open("entry/pkg/m.py", O_WRONLY | O_CLOEXEC);
		break;
	case 1:
		rc = open("entry/pkg/new.py", O_WRONLY | O_CREAT, 0644);
		break;
	case 2:
		rc = unlink("entry/pkg/m.py");
		break;
	case 3:
		rc = rename("entry", "other");
		break;
	case 4:
		rc = rename("entry/pkg", DEPOSIT_INCOMING "/pkg");
		break;
	case 5:
		rc = rename(DEPOSIT_INCOMING "/new/f", "entry/pkg/f.py");
		break;
	case 6:
		rc = symlink("/etc/passwd", "entry/pkg/l.py");
		break;
	case 7:
		rc = symlink("/etc/passwd", DEPOSIT_INCOMING "/l");
		break;
	case 8:
		rc = link("entry/pkg/m.py", DEPOSIT_INCOMING "/hard");
		break;
	case 9:
		rc = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		break;
	}
	return rc >= 0 ? 0 : errno;
}

/* In a child, as nobody: exit status 0 all as expected, else 1 + which. */
static int
child(const char *top, int which, bool fenced)
{
	int store, incoming, e;

	if (chdir(top) == -1 || setresgid(NOBODY, NOBODY, NOBODY) == -1 ||
	    setresuid(NOBODY, NOBODY, NOBODY) == -1)
		return 100;
	store = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	incoming = open(DEPOSIT_INCOMING, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fenced && !fence_enter(store, incoming))
		return 101;
	e = attack(which);
	if (!fenced)
		return e == 0 ? 0 : 102;
	if (e != EACCES && e != EXDEV && e != EPERM)
		return 103;
	/* what it is for still works */
	return mkdir("another", 0755) == 0 &&
		rename(DEPOSIT_INCOMING "/new", "moved") == 0
	    ? 0
	    : 104;
}

static int
give(const char *path, const struct stat *st, int type, struct FTW *w)
{
	return lchown(path, NOBODY, NOBODY);
}

static int
take(const char *path, const struct stat *st, int type, struct FTW *w)
{
	return remove(path);
}

static void
test_attacks(void **state)
{
	char top[] = "/tmp/mcpbox-fence-XXXXXX";
	int status;

	if (landlock_abi() < 2 || geteuid() != 0)
		skip();
	for (int i = 0; i < 2 * TRIES; i++) {
		memcpy(top + strlen(top) - 6, "XXXXXX", 6);
		assert_non_null(mkdtemp(top));
		assert_int_equal(chdir(top), 0);
		make_store(top);
		assert_int_equal(nftw(top, give, 8, FTW_PHYS), 0);
		if (fork() == 0)
			_exit(child(top, i / 2, i % 2));
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) != 0)
			fail_msg("attack %d, %s: %d", i / 2,
			    i % 2 ? "fenced" : "before", WEXITSTATUS(status));
		assert_int_equal(chdir("/"), 0);
		assert_int_equal(nftw(top, take, 8, FTW_PHYS | FTW_DEPTH), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_attacks)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
