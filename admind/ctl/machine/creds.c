#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "creds.h"

static const char program[] = "/usr/bin/systemd-creds";

enum {
	/* Most bytes of a sealed credential. A master key has 175 bytes when
	 * sealed with the host's key, and under 1 KiB with a TPM2. A pipe holds
	 * 4096 bytes without a reader. */
	SEALED_MAX = 4096,
	SAID_MAX = 4096,
	NAME_ARG_MAX = 300 /* --name= and a file's name */
};

/* Looks for systemd as sd_booted(3) does. A sealed credential is of use only if
 * systemd starts the vault, since systemd opens it. */
bool
creds_usable(void)
{
	return access(program, X_OK) == 0 &&
	    access("/run/systemd/system", F_OK) == 0;
}

/* Reports the last line that systemd-creds printed, since warnings come before
 * the failure. */
static int
failed(const char *verb, struct buf *said, int status, struct err *err)
{
	const char *text = "";

	while (said->len > 0 && said->p[said->len - 1] == '\n')
		said->len--;
	buf_putc(said, '\0');
	if (!said->failed) {
		text = strrchr((const char *)said->p, '\n');
		text = text != NULL ? text + 1 : (const char *)said->p;
	}
	return err_set(err, FAILURE_INTERNAL,
	    "systemd-creds %s: %s (status %d)", verb,
	    text[0] != '\0' ? text : "failed", status);
}

/*
 * Runs systemd-creds once with n bytes as input, and appends its output to
 * *out. Both go through pipes. A pipe holds the input and the output without a
 * reader, so no process waits for another. Longer data are no credential of
 * ours.
 */
static int
run(const char *verb, const char *name, const void *bytes, size_t n,
    struct buf *out, struct err *err)
{
	char arg[NAME_ARG_MAX];
	const char *const args[] = {verb, arg, "-", "-", NULL};
	struct child c = {
	    .program = program, .args = args, .in = -1, .out = -1};
	int in[2] = {-1, -1}, back[2] = {-1, -1}, status, rc = -1;
	struct buf said;
	char chunk[SEALED_MAX];
	ssize_t got;

	buf_init(&said, CHILD_SAID_MAX + 1);
	if (n > SEALED_MAX ||
	    snprintf(arg, sizeof(arg), "--name=%s", name) >= (int)sizeof(arg)) {
		err_set(err, FAILURE_INVALID_PARAMS,
		    "%s: too long for a credential", name);
		goto out;
	}
	if (pipe2(in, O_CLOEXEC) == -1 || pipe2(back, O_CLOEXEC) == -1 ||
	    write(in[1], bytes, n) != (ssize_t)n) {
		err_sys(err, FAILURE_INTERNAL, "pipe");
		goto out;
	}
	close(in[1]);
	in[1] = -1;
	c.in = in[0];
	c.out = back[1];
	if ((status = child_run(&c, &said, err)) == -1)
		goto out;
	close(back[1]);
	back[1] = -1;
	if (status != 0) {
		(void)failed(verb, &said, status, err);
		goto out;
	}
	while ((got = read(back[0], chunk, sizeof(chunk))) != 0) {
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1) {
			err_sys(err, FAILURE_INTERNAL, "pipe");
			goto out;
		}
		buf_put(out, chunk, (size_t)got);
	}
	if (out->failed) {
		err_set(err, FAILURE_INTERNAL,
		    "systemd-creds %s: more than was expected", verb);
		goto out;
	}
	rc = 0;
out:
	explicit_bzero(chunk, sizeof(chunk));
	for (int i = 0; i < 2; i++) {
		if (in[i] != -1)
			close(in[i]);
		if (back[i] != -1)
			close(back[i]);
	}
	buf_free(&said);
	return rc;
}

int
creds_open(const char *name, const void *sealed, size_t n, struct buf *out,
    struct err *err)
{
	return run("decrypt", name, sealed, n, out, err);
}

/* Opens the sealed bytes once as a test. Otherwise a TPM that seals but does
 * not open would be found only at the next start, by a vault whose values are
 * under the key. */
int
creds_seal(const char *name, const void *plain, size_t n, struct buf *out,
    struct err *err)
{
	struct buf again;
	size_t before = out->len;
	int rc = -1;

	buf_init(&again, n);
	if (run("encrypt", name, plain, n, out, err) == -1 ||
	    creds_open(name, out->p + before, out->len - before, &again, err) ==
		-1)
		goto out;
	if (again.len != n || memcmp(again.p, plain, n) != 0) {
		err_set(err, FAILURE_INTERNAL,
		    "systemd-creds: what was sealed opens as something else");
		goto out;
	}
	rc = 0;
out:
	buf_free(&again);
	return rc;
}
