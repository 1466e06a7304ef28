#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "ctl.h"
#include "setup.h"

/* Secrets come by prompt, standard input or file, never by argument: every
 * local user can read a command line (proc(5)). */

/* Reads fd to its end, at most max bytes, and drops one newline at the end.
 * 0, or -1 with a word on stderr. */
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

/* Restores the echo: ^C at a prompt must not leave the shell without it. Both
 * calls are async-signal-safe (signal-safety(7)). */
static void
interrupted(int sig)
{
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

/* Reads one line from the terminal without showing it. The echo goes off
 * before the prompt comes: input after the prompt is neither shown nor flushed
 * away. */
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
setup_password(const struct ctl *c, struct buf *out)
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

/* Has the vault make the first administrator. Returns as calls_ask does. */
static enum ctl_status
make(const struct ctl *c, const char *username, const struct buf *password)
{
	struct ipc_setup m = {.username = ipc_str(username),
	    .password = ipc_bytes(password->p, password->len)};
	enum ctl_status status;
	struct ipc_frame f;

	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, IPC_SETUP, &m, IPC_OK, &f);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

/* An installed system has its run directory; there setup makes all first steps
 * (setup_system.c). Any other instance was laid out by its maker (quickstart):
 * only its first administrator is missing. */
enum ctl_status
setup_command(const struct ctl *c)
{
	enum ctl_status status;
	struct buf password;

	if (strcmp(c->run_dir, CTL_RUN_DIR) == 0)
		return setup_system_run(c);
	if (c->username == NULL || c->database != NULL)
		return CTL_USAGE;
	buf_init(&password, 4096);
	if (setup_password(c, &password) == -1) {
		buf_free(&password);
		return CTL_USAGE;
	}
	status = make(c, c->username, &password);
	buf_free(&password);
	if (status != CTL_DONE)
		return status;
	if (c->json)
		puts("{\"ok\":true}");
	else
		printf("administrator %s was made\n", c->username);
	return CTL_DONE;
}

int
setup_read(const char *what, struct buf *out)
{
	return isatty(STDIN_FILENO)
	    ? prompt(what, out)
	    : slurp(STDIN_FILENO, "standard input", out);
}
