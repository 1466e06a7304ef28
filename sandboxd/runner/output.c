/*
 * What a tool prints, from any thread or child of its own, by any means.
 *
 * Descriptors 1 and 2 are one pipe; a thread of ours reads it and sends
 * STDOUT frames up to the call's limit, then goes on reading and throws away,
 * so that no print ever blocks. It touches nothing of Python. It is made
 * after the confinement, which is per thread.
 */
#include <sys/eventfd.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc_io.h"
#include "runner.h"

enum {
	CHUNK = 16 * 1024, /* a frame of output: seen soon, not torn small */
	NOTE_MAX = 64,     /* kept free for the note about what was cut */
	/* A pipe's capacity: more than this cannot be in it when the tool has
	 * ended, so a thread that prints for ever does not keep us. */
	PIPE_BYTES = 64 * 1024,
	STACK = 64 * 1024, /* the reader's: a frame and its buffer */
};

static struct {
	pthread_t thread;
	int stop; /* eventfd */
	bool running;
	size_t max; /* bytes to send, note included */
	size_t dropped;
	struct buf sent; /* for error reports */
	char chunk[CHUNK];
} out = {.stop = -1};

int
output_pipe(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	/* Both ends are above 2: 0 to 3 are taken. */
	if (dup2(fds[1], STDOUT_FILENO) == -1 ||
	    dup2(fds[1], STDERR_FILENO) == -1)
		return -1;
	(void)close(fds[1]);
	if (fds[0] != RUNNER_PIPE_FD) {
		errno = EBADF;
		return -1;
	}
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == -1)
		return -1;
	out.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return out.stop == -1 ? -1 : 0;
}

int
output_send(enum ipc_type type, const void *msg)
{
	struct pollfd p = {.fd = RUNNER_CHANNEL_FD, .events = POLLOUT};

	while (ipc_write(RUNNER_CHANNEL_FD, type, 0, msg, NULL) == -1) {
		if (errno != EAGAIN)
			return -1;
		(void)poll(&p, 1, -1);
	}
	return 0;
}

static void
emit(const char *p, size_t n)
{
	struct ipc_stdout m = {0};
	const size_t limit = out.max > NOTE_MAX ? out.max - NOTE_MAX : 0;
	const size_t room = limit - out.sent.len;

	if (n > room) {
		out.dropped += n - room;
		n = room;
	}
	if (n == 0)
		return;
	buf_put(&out.sent, p, n);
	if (out.sent.failed) {
		/* no memory to remember it: count it as lost */
		buf_clear(&out.sent);
		out.max = 0;
		out.dropped += n;
		return;
	}
	m.data = ipc_bytes(p, n);
	(void)output_send(IPC_STDOUT, &m);
}

/* Reads until the pipe is empty, at most `most` bytes. false at its end. */
static bool
drain(size_t most)
{
	ssize_t n;

	while (most > 0) {
		n = read(RUNNER_PIPE_FD, out.chunk, sizeof(out.chunk));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN;
		if (n == 0)
			return false;
		emit(out.chunk, (size_t)n);
		most = (size_t)n < most ? most - (size_t)n : 0;
	}
	return true;
}

static void *
reader(void *arg)
{
	struct pollfd p[2] = {
	    {.fd = RUNNER_PIPE_FD, .events = POLLIN},
	    {.fd = out.stop, .events = POLLIN},
	};
	(void)arg;
	for (;;) {
		if (poll(p, 2, -1) == -1 && errno != EINTR)
			break;
		if (p[1].revents != 0) {
			(void)drain(PIPE_BYTES);
			break;
		}
		/* The tool may have closed or replaced any descriptor: give
		 * up reading rather than spin. */
		if ((p[0].revents & (POLLNVAL | POLLERR)) || !drain(PIPE_BYTES))
			p[0].fd = -1;
	}
	return NULL;
}

int
output_start(size_t max)
{
	pthread_attr_t attr;
	int rc;

	out.max = max;
	buf_init(&out.sent, max);
	if ((rc = pthread_attr_init(&attr)) != 0)
		goto fail;
	rc = pthread_attr_setstacksize(&attr, STACK);
	if (rc == 0)
		rc = pthread_create(&out.thread, &attr, reader, NULL);
	(void)pthread_attr_destroy(&attr);
	if (rc != 0)
		goto fail;
	out.running = true;
	return 0;
fail:
	errno = rc;
	return -1;
}

void
output_stop(const char **text, size_t *n, bool *truncated)
{
	static const uint64_t one = 1;
	struct ipc_stdout m = {0};
	char note[NOTE_MAX];

	if (out.running) {
		out.running = false;
		if (write(out.stop, &one, sizeof(one)) == sizeof(one))
			(void)pthread_join(out.thread, NULL);
		if (out.dropped > 0 && out.max > NOTE_MAX) {
			(void)snprintf(note, sizeof(note),
			    "\n[%zu more bytes were printed]\n", out.dropped);
			m.data = ipc_bytes(note, strlen(note));
			(void)output_send(IPC_STDOUT, &m);
		}
	}
	*text = out.sent.p == NULL ? "" : (const char *)out.sent.p;
	*n = out.sent.len;
	*truncated = out.dropped > 0;
}
