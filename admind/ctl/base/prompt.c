#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "prompt.h"

/* Reads fd to its end, at most the maximum of *out, and drops one newline at
 * the end. 0, or -1 (stderr says why). */
static int
slurp(int fd, const char *name, struct buf *out)
{
	uint8_t chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			fprintf(stderr, "mcpboxctl: %s: %s\n", name,
			    strerror(errno));
			return -1;
		}
		buf_put(out, chunk, (size_t)n);
		explicit_bzero(chunk, (size_t)n);
		if (out->failed) {
			fprintf(stderr, "mcpboxctl: %s: too long\n", name);
			return -1;
		}
	}
	if (out->len > 0 && out->p[out->len - 1] == '\n')
		out->len--;
	return 0;
}

/* The terminal's state before its echo was turned off. */
static struct termios before;

/* Restores the echo: ^C at a prompt must not leave the shell without echo. The
 * three calls below are async-signal-safe (signal-safety(7)). */
static void
interrupted(int sig)
{
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

/* Reads one line from the terminal without showing it. The echo is turned off
 * before the prompt is printed, so that input after the prompt is neither shown
 * nor flushed away. */
static int
prompt(const char *what, struct buf *out)
{
	struct termios quiet;
	ssize_t n;
	char c;

	if (tcgetattr(STDIN_FILENO, &before) == -1) {
		perror("mcpboxctl: terminal");
		return -1;
	}
	quiet = before;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	(void)signal(SIGINT, interrupted);
	(void)signal(SIGTERM, interrupted);
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == -1) {
		perror("mcpboxctl: terminal");
		return -1;
	}
	fprintf(stderr, "%s: ", what);
	while ((n = read(STDIN_FILENO, &c, 1)) == 1 && c != '\n')
		buf_putc(out, c);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	fputs("\n", stderr);
	return n == -1 || out->failed ? -1 : 0;
}

/* Reads a password, twice if a person types it. */
int
prompt_password(const struct ctl *c, struct buf *out)
{
	struct buf again;
	int fd, rc;

	if (c->password_file != NULL) {
		fd = open(c->password_file, O_RDONLY | O_CLOEXEC);
		if (fd == -1) {
			fprintf(stderr, "mcpboxctl: %s: %s\n", c->password_file,
			    strerror(errno));
			return -1;
		}
		rc = slurp(fd, c->password_file, out);
		close(fd);
		return rc;
	}
	if (!isatty(STDIN_FILENO))
		return slurp(STDIN_FILENO, "standard input", out);
	buf_init(&again, 4096);
	rc = prompt("New password (12 to 128 characters)", out);
	if (rc == 0)
		rc = prompt("The same again", &again);
	if (rc == 0 &&
	    (again.len != out->len ||
		memcmp(again.p != NULL ? again.p : (uint8_t *)"",
		    out->p != NULL ? out->p : (uint8_t *)"", out->len) != 0)) {
		fputs("mcpboxctl: the passwords differ\n", stderr);
		rc = -1;
	}
	buf_free(&again);
	return rc;
}

int
prompt_secret(const char *what, struct buf *out)
{
	return isatty(STDIN_FILENO)
	    ? prompt(what, out)
	    : slurp(STDIN_FILENO, "standard input", out);
}
