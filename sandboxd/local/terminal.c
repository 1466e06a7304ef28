/*
 * See terminal.h. The bytes of the program reach the user's terminal as they
 * are: a program can draw there, and set titles and colours, as it can without
 * a sandbox. It has no descriptor of the user's terminal, and so no ioctl on
 * it.
 */
#include "terminal.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void
terminal_size(const struct terminal *t)
{
	struct winsize size;

	if (t->master != -1 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
		(void)ioctl(t->master, TIOCSWINSZ, &size);
}

void
terminal_open(struct terminal *t, int master)
{
	int flags = fcntl(master, F_GETFL);

	t->master = master;
	(void)fcntl(master, F_SETFL, flags | O_NONBLOCK);
	if (tcgetattr(STDIN_FILENO, &t->saved) == 0)
		(void)tcsetattr(master, TCSANOW, &t->saved);
	terminal_size(t);
	terminal_raw(t);
}

void
terminal_raw(struct terminal *t)
{
	struct termios raw = t->saved;

	if (t->master == -1 || t->raw || t->hung_up)
		return;
	cfmakeraw(&raw);
	t->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void
terminal_restore(struct terminal *t)
{
	if (t->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->saved);
	t->raw = false;
}

void
terminal_flush(struct terminal *t)
{
	ssize_t n;

	while (t->ninput > 0) {
		n = write(t->master, t->input, t->ninput);
		if (n <= 0)
			return;
		t->ninput -= (size_t)n;
		memmove(t->input, t->input + n, t->ninput);
	}
}

void
terminal_input(struct terminal *t)
{
	ssize_t n = read(
	    STDIN_FILENO, t->input + t->ninput, sizeof(t->input) - t->ninput);

	if (n > 0) {
		t->ninput += (size_t)n;
		terminal_flush(t);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		t->hung_up = true;
}

bool
terminal_output(struct terminal *t)
{
	char bytes[TERMINAL_BYTES];
	ssize_t n = read(t->master, bytes, sizeof(bytes)), w;

	if (n <= 0)
		return false;
	for (ssize_t at = 0; at < n; at += w) {
		w = write(STDOUT_FILENO, bytes + at, (size_t)(n - at));
		if (w == -1 && errno == EINTR)
			w = 0;
		else if (w <= 0)
			break; /* the user's terminal is gone */
	}
	return true;
}

void
terminal_close(struct terminal *t)
{
	if (t->master == -1)
		return;
	while (terminal_output(t))
		continue;
	terminal_restore(t);
	close(t->master);
	t->master = -1;
}
