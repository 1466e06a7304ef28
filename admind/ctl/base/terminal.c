#include <sys/ioctl.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "terminal.h"

void
terminal_out(const struct buf *b)
{
	if (b->len != 0)
		(void)fwrite(b->p, 1, b->len, stdout);
	if (b->failed)
		fputs("\nmcpboxctl: too long to show whole\n", stderr);
}

unsigned
terminal_width(void)
{
	/* If standard output is a pipe to a pager, standard error or input is
	 * the terminal. */
	static const int fds[] = {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO};
	struct winsize w;

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (isatty(fds[i]) && ioctl(fds[i], TIOCGWINSZ, &w) == 0 &&
		    w.ws_col > 0)
			return w.ws_col;
	return SHOW_WIDTH;
}

bool
terminal_agreed(bool yes, const char *question)
{
	char line[16];

	if (yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return true;
	fprintf(stderr, "%s [y/N] ", question);
	return fgets(line, sizeof(line), stdin) != NULL &&
	    (strcmp(line, "y\n") == 0 || strcmp(line, "yes\n") == 0);
}
