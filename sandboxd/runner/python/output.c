/*
 * The output of a tool, from any thread or child of its own, by any means.
 *
 * Descriptors 1 and 2 are one pipe; a thread of ours reads it and sends STDOUT
 * frames up to the call's limit, then goes on reading and throws away, so that
 * no print ever blocks. It touches nothing of Python. It is made after the
 * confinement, which is per thread, and before the call is known: until then
 * there is no output.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpreter.h"
#include "ipc_io.h"
#include "runner.h"

enum {
	CHUNK = 16 * 1024, /* a frame of output: seen soon, not torn small */
	NOTE_MAX = 64,     /* kept free for the note about the cut */
	/* A pipe's capacity: no more than this can be in it when the tool has
	 * ended, so a thread that prints for ever does not keep us. */
	PIPE_BYTES = 64 * 1024,
	STACK = 64 * 1024, /* the reader's: a frame and its buffer */
};

static struct {
	/* Held while read bytes are sent on; taken for good at the end. */
	pthread_mutex_t lock;
	bool running;
	atomic_bool stopped; /* asked by any thread, without the lock */
	size_t
	    max; /* bytes to send, note included; 0 until the call is known */
	size_t dropped;
	struct buf sent; /* for error reports */
	char chunk[CHUNK];
} out = {.lock = PTHREAD_MUTEX_INITIALIZER};

int
output_pipe(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	/* Both ends are above 2, because 0 to 3 are taken. */
	if (dup2(fds[1], STDOUT_FILENO) == -1 ||
	    dup2(fds[1], STDERR_FILENO) == -1)
		return -1;
	(void)close(fds[1]);
	if (fds[0] != RUNNER_PIPE_FD) {
		errno = EBADF;
		return -1;
	}
	return fcntl(fds[0], F_SETFL, O_NONBLOCK);
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
		/* Only the tool could take O_NONBLOCK away, and then only the
		 * tool's own end would wait here.
		 * NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection) */
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
	struct pollfd p = {.fd = RUNNER_PIPE_FD, .events = POLLIN};

	(void)arg;
	for (;;) {
		if (poll(&p, 1, -1) == -1 && errno != EINTR)
			break;
		/* The tool may have closed or replaced any descriptor: give up
		 * reading rather than spin. */
		if (p.revents & (POLLNVAL | POLLERR))
			break;
		(void)pthread_mutex_lock(&out.lock);
		if (!drain(PIPE_BYTES))
			p.fd = -1;
		(void)pthread_mutex_unlock(&out.lock);
	}
	return NULL;
}

int
output_start(void)
{
	pthread_attr_t attr;
	int rc;

	if ((rc = pthread_attr_init(&attr)) != 0)
		goto fail;
	rc = pthread_attr_setstacksize(&attr, STACK);
	if (rc == 0) {
		pthread_t thread;

		rc = pthread_create(&thread, &attr, reader, NULL);
	}
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
output_limit(size_t max)
{
	out.max = max;
	buf_init(&out.sent, max);
}

void
output_flush(void)
{
	/* Stopped while we wait for the lock: the call's end is on its way, and
	 * ends the waiting thread too. */
	if (!out.running || out.stopped)
		return;
	(void)pthread_mutex_lock(&out.lock);
	(void)drain(PIPE_BYTES);
	(void)pthread_mutex_unlock(&out.lock);
}

void
output_stop(const char **text, size_t *n, bool *truncated)
{
	struct ipc_stdout m = {0};
	char note[NOTE_MAX];

	/*
	 * All earlier output is in the pipe or was read under the lock: with
	 * the lock in hand, the rest can be read here, and the reader never
	 * gets the lock again. No thread has to be woken and waited for.
	 */
	if (out.running && !out.stopped) {
		(void)pthread_mutex_lock(&out.lock);
		out.stopped = true;
		(void)drain(PIPE_BYTES);
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
