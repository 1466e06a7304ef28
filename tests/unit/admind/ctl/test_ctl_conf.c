/* Lines that setup changes in files that are an owner's, and the way back. */
#include <sys/stat.h>
#include <unistd.h>

#include "setup_conf.h"
#include "unit.h"

static void
changed(const char *from, const char *value, bool keep, const char *want)
{
	struct buf a, b;

	buf_init(&a, 4096);
	buf_init(&b, 4096);
	buf_puts(&a, from);
	setup_conf_set(&a, "database", value, keep, &b);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.p, want);
	buf_free(&a);
	buf_free(&b);
}

static void
lines(void **state)
{
	static const char mine[] = "# mine\n  database\thost=/a  \nnode n\n";
	static const char ours[] =
	    "# mine\n#before-setup database host=/a\ndatabase X\nnode n\n";
	char got[64];
	struct buf b;

	changed("", "X", true, "database X\n");
	changed("node n", "X", true, "node n\ndatabase X\n");
	changed("#database host=/d\n", "X", true,
	    "#database host=/d\ndatabase X\n");
	/* another keyword that begins alike */
	changed("database_password_file f\n", "X", true,
	    "database_password_file f\ndatabase X\n");
	changed(mine, "X", true, ours);
	changed(mine, "X", false, "# mine\ndatabase X\nnode n\n");
	/* What was kept stays that of the first time. */
	changed(ours, "Y", true,
	    "# mine\n#before-setup database host=/a\ndatabase Y\nnode n\n");
	/* The way back. */
	changed(ours, NULL, false, "# mine\ndatabase host=/a\nnode n\n");
	changed("node n\ndatabase X\n", NULL, false, "node n\n");
	changed("node n\n", NULL, false, "node n\n");

	buf_init(&b, 4096);
	buf_puts(&b, mine);
	assert_int_equal(setup_conf_get(&b, "database", got, sizeof(got)), 0);
	assert_string_equal(got, "host=/a");
	assert_int_equal(setup_conf_get(&b, "node", got, sizeof(got)), 0);
	assert_string_equal(got, "n");
	assert_int_equal(setup_conf_get(&b, "data", got, sizeof(got)), 0);
	assert_string_equal(got, "");
	assert_int_equal(setup_conf_get(&b, "database", got, 7), -1);
	buf_free(&b);
}

static void
files(void **state)
{
	char dir[] = "/tmp/mcpbox-conf-XXXXXX", path[64], link[64];
	struct stat st, before;
	struct err err;
	struct buf b;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/d/secret", dir);
	snprintf(link, sizeof(link), "%s/d/secret.new", dir);
	assert_int_equal(setup_conf_write(path, "one", 3, 0400, &err), 1);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 07777, 0400);
	/* It is so: nothing is written. */
	assert_int_equal(setup_conf_write(path, "one", 3, 0400, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, before.st_ino);
	/* Readable by others it is not so, whatever it says. */
	assert_int_equal(chmod(path, 0444), 0);
	assert_int_equal(setup_conf_write(path, "one", 3, 0400, &err), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	/* A configuration that was made narrower stays so. */
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(setup_conf_write(path, "two", 3, 0644, &err), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* What a killed run left, or somebody put in the way. */
	assert_int_equal(symlink("/nonexistent/elsewhere", link), 0);
	assert_int_equal(setup_conf_write(path, "three", 5, 0644, &err), 1);
	buf_init(&b, 64);
	assert_int_equal(setup_conf_read(path, &b, &err), 1);
	assert_int_equal(b.len, 5);
	buf_free(&b);
	assert_int_equal(setup_conf_remove(path, &err), 1);
	assert_int_equal(setup_conf_remove(path, &err), 0);
	buf_init(&b, 64);
	assert_int_equal(setup_conf_read(path, &b, &err), 0);
	buf_free(&b);
	snprintf(path, sizeof(path), "%s/d", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines),
	    cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
