/*
 * A client in the same thread as the server it tests: sends bytes, then turns
 * the server's loop until what it waits for has come, or fails after
 * LC_DEADLINE_MS.
 */
#ifndef LOOP_CLIENT_H
#define LOOP_CLIENT_H

#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "unit.h"

#define LC_DEADLINE_MS unit_patience(5000)

enum { LC_MAX = 4 * 1024 * 1024 };

struct lc {
	int fd;
	char *p; /* what has arrived, NUL-terminated */
	size_t n;
	int eof;
};

static inline long
lc_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* address: "127.0.0.1:PORT". */
static inline struct lc
lc_open(const char *address)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	const char *colon = strrchr(address, ':');
	struct lc c = {-1, NULL, 0, 0};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c.p = calloc(1, LC_MAX + 1);
	if (c.fd < 0 || c.p == NULL ||
	    connect(c.fd, (struct sockaddr *)&in, sizeof(in)) < 0)
		fail_msg("connect: %s", strerror(errno));
	fcntl(c.fd, F_SETFL, O_NONBLOCK);
	return c;
}

static inline void
lc_close(struct lc *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->p);
	c->fd = -1;
	c->p = NULL;
}

/* One turn of the loop, then whatever has arrived. */
static inline void
lc_turn(struct lc *c, struct event_base *base)
{
	static const struct timespec nap = {0, 500 * 1000};
	ssize_t k;

	event_base_loop(base, EVLOOP_NONBLOCK);
	if (c != NULL && !c->eof) {
		k = recv(c->fd, c->p + c->n, LC_MAX - c->n, 0);
		if (k > 0) {
			c->n += (size_t)k;
			c->p[c->n] = '\0';
			return;
		}
		if (k == 0 || (errno != EAGAIN && errno != EINTR))
			c->eof = 1;
	}
	nanosleep(&nap, NULL);
}

static inline void
lc_run(struct event_base *base, long ms)
{
	long end = lc_ms() + ms;

	while (lc_ms() < end)
		lc_turn(NULL, base);
}

static inline void
lc_send(struct lc *c, struct event_base *base, const void *p, size_t n)
{
	const char *s = p;
	long end = lc_ms() + LC_DEADLINE_MS;
	ssize_t k;

	while (n > 0) {
		k = send(c->fd, s, n, MSG_NOSIGNAL);
		if (k > 0) {
			s += k;
			n -= (size_t)k;
		} else if (errno != EAGAIN || lc_ms() > end) {
			fail_msg("send: %s", strerror(errno));
		} else {
			lc_turn(NULL, base);
		}
	}
}

static inline void
lc_sends(struct lc *c, struct event_base *base, const char *s)
{
	lc_send(c, base, s, strlen(s));
}

/* Is a whole answer there? Its length, or 0. */
static inline size_t
lc_whole(const struct lc *c)
{
	const char *head = strstr(c->p, "\r\n\r\n"), *f, *end;
	size_t len;

	if (head == NULL)
		return 0;
	head += 4;
	f = strstr(c->p, "Content-Length: ");
	if (f != NULL && f < head) {
		len = strtoul(f + 16, NULL, 10);
		return (size_t)(head - c->p) + len <= c->n
		    ? (size_t)(head - c->p) + len
		    : 0;
	}
	f = strstr(c->p, "Transfer-Encoding: chunked");
	if (f != NULL && f < head) {
		end = strstr(head, "0\r\n\r\n");
		return end != NULL ? (size_t)(end + 5 - c->p) : 0;
	}
	return (size_t)(head - c->p);
}

/* Waits for one answer and returns its status; it stays in c->p. */
static inline int
lc_answer(struct lc *c, struct event_base *base)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (lc_whole(c) == 0) {
		if (c->eof || lc_ms() > end)
			fail_msg("no answer; got: %s", c->p);
		lc_turn(c, base);
	}
	return (int)strtol(c->p + 9, NULL, 10);
}

/* Drops the answer at the front. */
static inline void
lc_next(struct lc *c)
{
	size_t n = lc_whole(c);

	memmove(c->p, c->p + n, c->n - n + 1);
	c->n -= n;
}

static inline void
lc_until_eof(struct lc *c, struct event_base *base)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (!c->eof) {
		if (lc_ms() > end)
			fail_msg("the connection stayed open");
		lc_turn(c, base);
	}
}

#endif
