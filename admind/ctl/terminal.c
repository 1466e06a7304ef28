#include <sys/ioctl.h>

#include <stdio.h>
#include <unistd.h>

#include "ctl.h"

void
show_out(const struct buf *b)
{
	if (b->len != 0)
		(void)fwrite(b->p, 1, b->len, stdout);
	if (b->failed)
		fputs("\nmcpboxctl: too long to show whole\n", stderr);
}

unsigned
show_width(void)
{
	struct winsize w;

	if (isatty(STDOUT_FILENO) &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		return w.ws_col;
	return SHOW_WIDTH;
}
