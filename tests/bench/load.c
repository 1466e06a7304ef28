/*
 * bench-load [-c CLIENTS] (-n CALLS | -t MS) [-T TOOL] [-a ARGUMENTS]
 *            [-e EXPECTED] [-f FIRST] [-o FILE] [-p MS] [-r FILE] HOST PORT
 *
 * Clients of /mcp, each on one kept-alive connection, each sending its next
 * request as soon as it has the answer to the last: `ping` without -T, else
 * tools/call. In ARGUMENTS (a JSON object) and in EXPECTED (bytes that the
 * answer of a call that worked must contain) each @ becomes the call's
 * number, counted from FIRST.
 *
 * Prints how long the calls took, and how many ended in which way: `done`, a
 * failure mode of the suite's, or `odd`, which is anything that a server must
 * not answer. With -o a line a call goes to FILE: number, ending, execution
 * id. One epoll loop; a call costs this process about ten microseconds.
 *
 * With -r every request is FILE, head and all, and every answer after the first
 * must be as long as the first one and have its body byte for byte: no more is
 * looked at, so that a request costs this process little else than the kernel's
 * part of it. Such answers need status 200 and, with -e, EXPECTED.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "times.h"

#define META                                                             \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"        \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":" \
	"{},\"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\"," \
	"\"version\":\"1\"}}"

enum {
	CLIENTS_MAX = 256,
	CALLS_MAX = 10000000,
	REQUEST_MAX = 8192,
	ANSWER_MAX = 2 * 1024 * 1024, /* over the largest result */
	ENDINGS_MAX = 32,
	ENDING_MAX = 40,
	WAIT_MS = 60 * 1000 /* no answer at all for this long: give up */
};

struct client {
	int fd;
	bool busy;
	unsigned long number;
	uint64_t begin;
	char *in;
	size_t got;
};

struct ending {
	char name[ENDING_MAX];
	unsigned long n;
};

/* One request for all (-r), and its first answer. */
struct same {
	char *request, *answer;
	size_t request_len, answer_len, body; /* body: where it begins */
};

struct load {
	struct sockaddr_in to;
	struct same same;
	const char *tool, *arguments, *expected;
	unsigned long clients, calls, ms, next, pause_ms;
	uint64_t end; /* of -t */
	FILE *out;
	struct times times;
	struct ending endings[ENDINGS_MAX];
};

/* Copies a template with each @ replaced; ends the process if it's too long. */
static size_t
expand(char *to, size_t size, const char *from, unsigned long number)
{
	size_t n = 0;

	for (; *from != '\0' && n < size; from++) {
		if (*from == '@')
			n += (size_t)snprintf(to + n, size - n, "%lu", number);
		else
			to[n++] = *from;
	}
	if (n >= size)
		errx(2, "arguments are too long");
	to[n] = '\0';
	return n;
}

static void
connect_client(const struct load *l, struct client *c)
{
	const int on = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd == -1 ||
	    connect(c->fd, (const void *)&l->to, sizeof(l->to)) == -1 ||
	    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1)
		err(1, "connect");
	if (c->in == NULL && (c->in = malloc(ANSWER_MAX)) == NULL)
		err(1, "malloc");
}

/* A request fits any socket buffer: the write is whole or the server's gone. */
static void
send_bytes(struct client *c, const char *p, size_t n)
{
	c->begin = times_now();
	c->got = 0;
	c->busy = true;
	if (send(c->fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		err(1, "send");
}

static void
send_next(struct load *l, struct client *c)
{
	char arguments[REQUEST_MAX / 2], body[REQUEST_MAX];
	char request[2 * REQUEST_MAX], era[192];
	int n, length;

	c->number = l->next++;
	if (l->same.request != NULL) {
		send_bytes(c, l->same.request, l->same.request_len);
		return;
	}
	if (l->tool == NULL) {
		length = snprintf(body, sizeof(body),
		    "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"method\":\"ping\"}",
		    c->number);
		(void)snprintf(
		    era, sizeof(era), "MCP-Protocol-Version: 2025-11-25\r\n");
	} else {
		(void)expand(
		    arguments, sizeof(arguments), l->arguments, c->number);
		length = snprintf(body, sizeof(body),
		    "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"method\":\"tools/call\","
		    "\"params\":{\"name\":\"%s\",\"arguments\":%s," META "}}",
		    c->number, l->tool, arguments);
		(void)snprintf(era, sizeof(era),
		    "MCP-Protocol-Version: 2026-07-28\r\n"
		    "Mcp-Method: tools/call\r\nMcp-Name: %.64s\r\n",
		    l->tool);
	}
	if (length < 0 || (size_t)length >= sizeof(body))
		errx(2, "the request is too long");
	n = snprintf(request, sizeof(request),
	    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
	    "Accept: application/json, text/event-stream\r\n"
	    "Content-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
	    ntohs(l->to.sin_port), era, length, body);
	if (n < 0 || (size_t)n >= sizeof(request))
		errx(2, "the request is too long");
	send_bytes(c, request, (size_t)n);
}

/* The answer's body once it is whole, else NULL. A call that takes long is
 * answered by a chunked event stream, others have their length in the head. */
static const char *
whole(struct client *c)
{
	static const char last[] = "\r\n0\r\n\r\n";
	const char *head_end, *length, *body;
	size_t n;

	c->in[c->got] = '\0';
	head_end = strstr(c->in, "\r\n\r\n");
	if (head_end == NULL)
		return NULL;
	length = strcasestr(c->in, "\r\ncontent-length: ");
	if (length == NULL || length > head_end) {
		n = sizeof(last) - 1;
		return memcmp(c->in + c->got - n, last, n) == 0 ? head_end + 4
								: NULL;
	}
	n = strtoul(length + sizeof("\r\ncontent-length: ") - 1, NULL, 10);
	body = head_end + 4;
	return (size_t)(c->in + c->got - body) < n ? NULL : body;
}

/* The value of the first member of that name, if it is a plain string. */
static int
member(char *to, size_t size, const char *body, const char *name)
{
	const char *p = strstr(body, name), *end;

	if (p == NULL)
		return -1;
	p += strlen(name);
	end = strchr(p, '"');
	if (end == NULL || (size_t)(end - p) >= size)
		return -1;
	memcpy(to, p, (size_t)(end - p));
	to[end - p] = '\0';
	return 0;
}

static void
judge(const struct load *l, const struct client *c, const char *body,
    char ending[ENDING_MAX])
{
	char expected[REQUEST_MAX];
	const char *text = l->tool == NULL ? "\"result\":{}" : NULL;
	/* only results of the sandbox say that they are none */
	bool management =
	    l->tool != NULL && strncmp(l->tool, "mcpbox_", 7) == 0;

	if (l->expected != NULL) {
		(void)expand(
		    expected, sizeof(expected), l->expected, c->number);
		text = expected;
	}
	if (member(ending, ENDING_MAX, body, "\"failure_mode\":\"") == 0)
		return;
	(void)snprintf(ending, ENDING_MAX, "odd");
	if (strncmp(c->in, "HTTP/1.1 200 ", 13) != 0 ||
	    (l->tool != NULL && !management &&
		strstr(body, "\"isError\":false") == NULL) ||
	    (management && strstr(body, "\"isError\":true") != NULL) ||
	    (text != NULL && strstr(body, text) == NULL))
		return;
	(void)snprintf(ending, ENDING_MAX, "done");
}

static void
answered(struct load *l, struct client *c, const char *body)
{
	char ending[ENDING_MAX], id[ENDING_MAX];
	struct ending *e;

	times_add(&l->times, c->begin);
	c->busy = false;
	judge(l, c, body, ending);
	for (e = l->endings; e->n != 0 && strcmp(e->name, ending) != 0; e++) {
		if (e == &l->endings[ENDINGS_MAX - 1])
			errx(1, "too many kinds of endings");
	}
	if (e->n++ == 0)
		(void)snprintf(e->name, sizeof(e->name), "%s", ending);
	if (strcmp(ending, "odd") == 0 && e->n <= 3)
		warnx("odd answer: %.1000s", c->in);
	if (l->out == NULL)
		return;
	if (member(id, sizeof(id), body, "\"execution_id\":\"") == -1)
		(void)snprintf(id, sizeof(id), "-");
	if (fprintf(l->out, "%lu %s %s\n", c->number, ending, id) < 0)
		err(1, "write");
}

/* -r: the first answer is judged and kept, the others must be like it. */
static void
same_answered(struct load *l, struct client *c, const char *body)
{
	struct same *s = &l->same;
	const size_t at = (size_t)(body - c->in);

	if (s->answer == NULL) {
		if (strncmp(c->in, "HTTP/1.1 200 ", 13) != 0 ||
		    (l->expected != NULL && strstr(body, l->expected) == NULL))
			errx(1, "the first answer is odd: %.1000s", c->in);
		s->answer = malloc(c->got);
		if (s->answer == NULL)
			err(1, "malloc");
		memcpy(s->answer, c->in, c->got);
		s->answer_len = c->got;
		s->body = at;
	} else if (at != s->body || c->got != s->answer_len ||
	    memcmp(body, s->answer + at, c->got - at) != 0) {
		errx(1, "an answer is unlike the first: %.1000s", c->in);
	}
	times_add(&l->times, c->begin);
	c->busy = false;
	(void)snprintf(l->endings[0].name, ENDING_MAX, "done");
	l->endings[0].n++;
}

/* What has come for a client; true: its answer is whole. */
static bool
take(struct load *l, struct client *c)
{
	const struct same *s = &l->same;
	const char *body;
	ssize_t n;

	n = recv(c->fd, c->in + c->got, ANSWER_MAX - 1 - c->got, 0);
	if (n <= 0 || !c->busy)
		err(1, "the server closed a connection");
	c->got += (size_t)n;
	if (s->answer != NULL) {
		if (c->got < s->answer_len)
			return false;
		same_answered(l, c, c->in + s->body);
		return true;
	}
	if ((body = whole(c)) == NULL)
		return false;
	if (s->request != NULL)
		same_answered(l, c, body);
	else
		answered(l, c, body);
	return true;
}

static bool
wanted(const struct load *l, unsigned long first)
{
	if (l->calls != 0)
		return l->next - first < l->calls;
	return times_now() < l->end;
}

static void
run(struct load *l, struct client *clients)
{
	struct epoll_event ready[CLIENTS_MAX];
	const unsigned long first = l->next;
	unsigned long busy = 0, i;
	int e, n;

	e = epoll_create1(EPOLL_CLOEXEC);
	if (e == -1)
		err(1, "epoll");
	for (i = 0; i < l->clients; i++) {
		connect_client(l, &clients[i]);
		ready[0].events = EPOLLIN;
		ready[0].data.ptr = &clients[i];
		if (epoll_ctl(e, EPOLL_CTL_ADD, clients[i].fd, ready) == -1)
			err(1, "epoll");
	}
	l->end = times_now() + l->ms * 1000000;
	for (i = 0; i < l->clients && wanted(l, first); i++, busy++)
		send_next(l, &clients[i]);
	while (busy > 0) {
		n = epoll_wait(e, ready, (int)l->clients, WAIT_MS);
		if (n <= 0)
			err(1, "no answer within %d ms", WAIT_MS);
		while (n-- > 0) {
			struct client *c = ready[n].data.ptr;

			if (!take(l, c))
				continue;
			busy--;
			if (wanted(l, first)) {
				/* One client only: nobody else waits. */
				if (l->pause_ms != 0)
					(void)poll(NULL, 0, (int)l->pause_ms);
				send_next(l, c);
				busy++;
			}
		}
	}
	(void)close(e);
}

static void
read_request(struct same *s, const char *path)
{
	FILE *f = fopen(path, "re");

	s->request = malloc(REQUEST_MAX);
	if (f == NULL || s->request == NULL)
		err(2, "%s", path);
	s->request_len = fread(s->request, 1, REQUEST_MAX, f);
	if (s->request_len == 0 || s->request_len == REQUEST_MAX)
		errx(2, "%s: no request", path);
	(void)fclose(f);
}

static void
print(struct load *l, double seconds)
{
	const struct ending *e;

	(void)printf("{");
	times_print(&l->times, seconds);
	(void)printf(", \"endings\": {");
	for (e = l->endings; e < l->endings + ENDINGS_MAX && e->n != 0; e++)
		(void)printf("%s\"%s\": %lu", e == l->endings ? "" : ", ",
		    e->name, e->n);
	(void)printf("}}\n");
}

int
main(int argc, char **argv)
{
	static struct client clients[CLIENTS_MAX];
	struct load l = {.clients = 1, .arguments = "{}", .next = 1};
	uint64_t begin;
	int c;

	while ((c = getopt(argc, argv, "c:n:t:T:a:e:f:o:p:r:")) != -1) {
		switch (c) {
		case 'c':
			l.clients = times_number(optarg, 1, CLIENTS_MAX);
			break;
		case 'n':
			l.calls = times_number(optarg, 1, CALLS_MAX);
			break;
		case 't':
			l.ms = times_number(optarg, 1, 3600 * 1000);
			break;
		case 'T':
			l.tool = optarg;
			break;
		case 'a':
			l.arguments = optarg;
			break;
		case 'e':
			l.expected = optarg;
			break;
		case 'f':
			l.next = times_number(optarg, 0, CALLS_MAX);
			break;
		case 'p':
			l.pause_ms = times_number(optarg, 1, 60 * 1000);
			break;
		case 'r':
			read_request(&l.same, optarg);
			break;
		case 'o':
			if ((l.out = fopen(optarg, "we")) == NULL)
				err(1, "%s", optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind + 2 != argc || (l.calls == 0) == (l.ms == 0))
		errx(2, "usage: bench-load (-n CALLS | -t MS) HOST PORT");
	if (l.pause_ms != 0 && l.clients != 1)
		errx(2, "-p is for one client");
	l.to.sin_family = AF_INET;
	if (inet_pton(AF_INET, argv[optind], &l.to.sin_addr) != 1)
		errx(2, "%s: not an address", argv[optind]);
	l.to.sin_port =
	    htons((uint16_t)times_number(argv[optind + 1], 1, 65535));
	begin = times_now();
	run(&l, clients);
	print(&l, (double)(times_now() - begin) / 1e9);
	if (l.out != NULL && fclose(l.out) != 0)
		err(1, "write");
	return 0;
}
