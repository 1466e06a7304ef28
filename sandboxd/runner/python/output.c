/*
 * The output of a tool, from any thread or child of its own, by any means.
 *
 * Descriptors 1 and 2 are one pipe. A thread of ours reads the pipe and sends
 * STDOUT frames up to the call's limit. Then it goes on reading and throws the
 * rest away, so that no print ever blocks. The thread touches nothing of
 * Python. It is started after the confinement, which is per thread, and before
 * the call is known, because there is no output until then.
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
	CHUNK = 16 * 1024, /* most bytes of one frame of output */
	NOTE_MAX = 64,     /* kept free for the note about dropped bytes */
	/* A pipe's capacity. At the end of the tool we read at most this many
	 * bytes, so a thread that prints for ever does not keep us. */
	PIPE_BYTES = 64 * 1024,
	STACK = 64 * 1024, /* of the reader thread: one frame and buffer */
};

static struct {
	/* Held while bytes are read and sent. output_stop() never unlocks. */
	pthread_mutex_t lock;
	bool running;
	atomic_bool stopped; /* read by any thread, without the lock */
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
	/* Both ends are above 2, because 0 to 3 are taken. So dup2 replaces
	 * neither end. */
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
		/* no memory to keep the text: count it as dropped */
		buf_clear(&out.sent);
		out.max = 0;
		out.dropped += n;
		return;
	}
	m.data = ipc_bytes(p, n);
	(void)output_send(IPC_STDOUT, &m);
}

/* Reads until the pipe is empty, or about `most` bytes. Returns false at the
 * end of the stream. */
static bool
drain(size_t most)
{
	ssize_t n;

	while (most > 0) {
		/* Only the tool could clear O_NONBLOCK, and then only the end
		 * of its own call would wait here.
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
	/* If output_stop() takes the lock first, we wait for the lock until the
	 * call ends, which ends this thread, too. */
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
	 * All earlier output is in the pipe, or the reader has sent it under
	 * the lock. So we take the lock for good and empty the pipe here. The
	 * reader need not be woken and waited for.
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
