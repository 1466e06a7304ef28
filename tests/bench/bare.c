/*
 * bench-bare FILE
 *
 * What libevent's core alone can do: answers every request with the bytes of
 * FILE, head and all, without looking at what was asked. It reads until a
 * request is whole by its Content-Length and keeps connections. No
 * bufferevents, no timers, no parser: one recv(2) and one send(2) a request.
 *
 * Prints its port on 127.0.0.1 and serves until standard input ends.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

enum { REQUEST_MAX = 16 * 1024, ANSWER_MAX = 4 * 1024 * 1024 };

struct connection {
	struct event *readable, *writable;
	char in[REQUEST_MAX + 1];
	size_t got, sent; /* sent: of the answer on its way, 0: none */
};

static char answer[ANSWER_MAX];
static size_t answer_len;

static void
connection_free(struct connection *c)
{
	(void)close(event_get_fd(c->readable));
	event_free(c->readable);
	event_free(c->writable);
	free(c);
}

/* true: gone; else what the socket does not take at once waits for room. */
static bool
answer_on(struct connection *c, int fd)
{
	ssize_t n = send(fd, answer + c->sent, answer_len - c->sent,
	    MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN) {
		connection_free(c);
		return true;
	}
	c->sent += n > 0 ? (size_t)n : 0;
	if (c->sent == answer_len)
		c->sent = 0;
	else if (event_add(c->writable, NULL) < 0)
		err(1, "event_add");
	return false;
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	(void)answer_on(arg, fd);
}

/* The length of the first request if all of it is there, else 0. */
static size_t
whole(struct connection *c)
{
	const char *end, *length;
	size_t n;

	c->in[c->got] = '\0';
	end = strstr(c->in, "\r\n\r\n");
	if (end == NULL)
		return 0;
	n = (size_t)(end + 4 - c->in);
	length = strstr(c->in, "\r\nContent-Length: ");
	if (length != NULL && length < end)
		n += strtoul(
		    length + sizeof("\r\nContent-Length: ") - 1, NULL, 10);
	return n <= c->got ? n : 0;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	ssize_t got;
	size_t n;

	(void)what;
	got = recv(fd, c->in + c->got, REQUEST_MAX - c->got, 0);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		connection_free(c);
		return;
	}
	c->got += (size_t)got;
	if ((n = whole(c)) == 0)
		return;
	c->got -= n;
	memmove(c->in, c->in + n, c->got);
	(void)answer_on(c, fd);
}

static void
on_connection(evutil_socket_t listener, short what, void *arg)
{
	struct event_base *base = arg;
	struct connection *c;
	const int on = 1;
	int fd;

	(void)what;
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd == -1)
		return;
	c = calloc(1, sizeof(*c));
	if (c == NULL ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1)
		err(1, "connection");
	c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(base, fd, EV_WRITE, on_writable, c);
	if (c->readable == NULL || c->writable == NULL ||
	    event_add(c->readable, NULL) < 0)
		errx(1, "out of memory");
}

static void
on_input(evutil_socket_t fd, short what, void *arg)
{
	char text[64];

	(void)what;
	if (read(fd, text, sizeof(text)) <= 0)
		event_base_loopbreak(arg);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	struct event_base *base;
	struct event *listening, *input;
	FILE *f;
	int fd;

	if (argc != 2 || (f = fopen(argv[1], "re")) == NULL)
		err(2, "usage: bench-bare FILE");
	answer_len = fread(answer, 1, sizeof(answer), f);
	if (answer_len == 0 || answer_len == sizeof(answer) || fclose(f) != 0)
		errx(2, "%s: no answer", argv[1]);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1 || bind(fd, (const void *)&a, sizeof(a)) == -1 ||
	    listen(fd, SOMAXCONN) == -1 ||
	    getsockname(fd, (void *)&a, &len) == -1)
		err(1, "listen");
	base = event_base_new();
	if (base == NULL)
		errx(1, "event_base_new");
	listening =
	    event_new(base, fd, EV_READ | EV_PERSIST, on_connection, base);
	input =
	    event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, base);
	if (listening == NULL || input == NULL ||
	    event_add(listening, NULL) < 0 || event_add(input, NULL) < 0)
		errx(1, "out of memory");
	(void)printf("%u\n", ntohs(a.sin_port));
	(void)fflush(stdout);
	return event_base_dispatch(base) == -1 ? 1 : 0;
}
