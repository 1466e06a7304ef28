/*
 * What a program that runs as another user has of ours. As root.
 */
#include <fcntl.h>
#include <unistd.h>

#include "child.h"
#include "unit.h"

enum { NOBODY = 65534 };

/* $6 of its line is its session (proc(5)); and what it reads, writes. */
static const char look[] =
    "read -r a b c d e session rest </proc/$$/stat\n"
    "[ $session = $$ ] && s=own || s=ours\n"
    "echo $s $(id -u) $(readlink /proc/$$/fd/0 /proc/$$/fd/1) >&2\n";

static char *
said_by(uid_t uid)
{
	const char *const args[] = {"-c", look, NULL};
	struct child c = {.program = "/bin/sh",
	    .args = args,
	    .in = -1,
	    .out = -1,
	    .uid = uid,
	    .gid = uid};
	struct buf said;
	struct err err;

	buf_init(&said, CHILD_SAID_MAX);
	assert_int_equal(child_run(&c, &said, &err), 0);
	buf_putc(&said, '\0');
	return (char *)said.p;
}

static void
another_user_s_has_nothing_of_our_terminal(void **state)
{
	int in = dup(STDIN_FILENO), zero = open("/dev/zero", O_RDONLY);
	char *other, *same;

	assert_int_equal(dup2(zero, STDIN_FILENO), STDIN_FILENO);
	other = said_by(NOBODY);
	same = said_by(0);
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	close(zero);
	close(in);
	assert_string_equal(other, "own 65534 /dev/null /dev/null\n");
	assert_ptr_equal(strstr(same, "ours 0 /dev/zero "), same);
	free(other);
	free(same);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(another_user_s_has_nothing_of_our_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
