#include <sys/socket.h>
#include <sys/un.h>

#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "service.h"

enum {
	FDS_FIRST = 3, /* SD_LISTEN_FDS_START */
	FDS_MAX = 8,   /* more descriptors than any program here names */
	NAME_MAX_BYTES = 64,
	STATUS_MAX = 256,
	/* Time between two looks at the status. A person reads the status, so
	 * it may be some seconds old. A connection that is over by the next
	 * look wakes no other process. */
	STATUS_EVERY_S = 5
};

static struct {
	int notify; /* connected datagram socket; -1: no manager */
	struct sockaddr_un manager;
	socklen_t manager_len;

	int nfds;
	bool taken[FDS_MAX];
	char names[FDS_MAX][NAME_MAX_BYTES];

	uint64_t watchdog_us; /* 0: not watched */
	struct event *watchdog, *look;
	void (*say)(char *, size_t, void *);
	void *say_arg;
	char status[STATUS_MAX]; /* the status that was sent last */
	bool stopping;
} sv = {.notify = -1};

/* Copies an environment variable and removes it. The copy is "" if the variable
 * is unset, or too long to be right. */
static bool
take(const char *name, char *buf, size_t len)
{
	const char *v = getenv(name);
	size_t n = v != NULL ? strlen(v) : 0;
	bool fits = v != NULL && n < len;

	buf[0] = '\0';
	if (fits)
		memcpy(buf, v, n + 1);
	if (v != NULL)
		(void)unsetenv(name);
	return fits && n > 0;
}

/* Takes a number from the environment in the same way. Returns 0 if the
 * variable is unset or wrong. */
static uint64_t
take_number(const char *name)
{
	char text[24], *end;
	unsigned long long v;

	if (!take(name, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' ? v : 0;
}

/*
 * Connects to a path, or with a leading '@' to an abstract name. The socket is
 * connected now: confinement takes the right to make sockets from most
 * processes, and Landlock lets a datagram socket go on sending to an abstract
 * peer it was connected to.
 *
 * A manager that can't be reached is only worth a warning. NOTIFY_SOCKET may be
 * left over from a parent that was no manager of ours, and a manager that waits
 * for READY=1 says by itself that none came.
 */
static void
connect_manager(void)
{
	char path[sizeof(sv.manager.sun_path)];
	size_t n;
	int fd;

	if (!take("NOTIFY_SOCKET", path, sizeof(path)))
		return;
	n = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || n < 2) {
		log_event(LOG_LV_WARN, "service_manager",
		    "NOTIFY_SOCKET is neither a path nor an abstract name");
		return;
	}
	sv.manager.sun_family = AF_UNIX;
	memcpy(sv.manager.sun_path, path, n);
	if (path[0] == '@')
		sv.manager.sun_path[0] = '\0';
	/* An abstract name has no NUL after it (unix(7)). */
	sv.manager_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
	    n + (path[0] == '@' ? 0 : 1));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&sv.manager, sv.manager_len) != 0) {
		log_event(LOG_LV_WARN, "service_manager",
		    "NOTIFY_SOCKET %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	sv.notify = fd;
}

/* Names the descriptors by "a:b:c". A descriptor without a name has "". */
static void
name_descriptors(const char *names)
{
	size_t n;

	for (int i = 0; i < sv.nfds && *names != '\0'; i++) {
		n = strcspn(names, ":");
		if (n < sizeof(sv.names[i]))
			memcpy(sv.names[i], names, n);
		names += n + (names[n] == ':');
	}
}

/*
 * Counts the passed descriptors. LISTEN_PID names their owner: variables that a
 * parent left behind for itself must not make us take its descriptors for
 * listeners.
 */
static void
count_descriptors(void)
{
	char names[FDS_MAX * NAME_MAX_BYTES];
	uint64_t pid = take_number("LISTEN_PID");
	uint64_t n = take_number("LISTEN_FDS");

	(void)take("LISTEN_FDNAMES", names, sizeof(names));
	(void)unsetenv("LISTEN_PIDFDID");
	if (pid != (uint64_t)getpid() || n == 0)
		return;
	if (n > FDS_MAX)
		log_fatal("service_manager",
		    "LISTEN_FDS: %llu descriptors were passed, at most %d "
		    "have a use",
		    (unsigned long long)n, FDS_MAX);
	for (int fd = FDS_FIRST; fd < FDS_FIRST + (int)n; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
			log_fatal("service_manager",
			    "LISTEN_FDS promises descriptor %d: %s", fd,
			    strerror(errno));
	sv.nfds = (int)n;
	name_descriptors(names);
}

void
service_start(void)
{
	uint64_t pid, us;

	count_descriptors(); /* before we open descriptors of our own */
	connect_manager();
	us = take_number("WATCHDOG_USEC");
	pid = take_number("WATCHDOG_PID");
	if (sv.notify >= 0 && (pid == 0 || pid == (uint64_t)getpid()))
		sv.watchdog_us = us;
}

int
service_listener(const char *name)
{
	int fd = -1;

	for (int i = 0; i < sv.nfds; i++) {
		if (strcmp(sv.names[i], name) != 0)
			continue;
		if (fd >= 0 || sv.taken[i])
			log_fatal("service_manager",
			    "more than one descriptor is named \"%s\"; this "
			    "program listens on one address",
			    name);
		sv.taken[i] = true;
		fd = FDS_FIRST + i;
	}
	if (fd < 0 && sv.nfds > 0)
		log_fatal("service_manager",
		    "of %d descriptors passed none is named \"%s\"; set "
		    "FileDescriptorName=%s in the socket unit",
		    sv.nfds, name, name);
	return fd;
}

/*
 * Sends text to the manager. Waits only with READY=1, which is sent once and
 * must arrive. After a restart the manager has a new socket of the same name,
 * so send() fails (unix(7): ECONNREFUSED, then ENOTCONN). Then the text is sent
 * by name.
 */
static bool
tell(const char *text, int flags)
{
	size_t n = strlen(text);

	flags |= MSG_NOSIGNAL;
	if (send(sv.notify, text, n, flags) >= 0)
		return true;
	return (errno == ECONNREFUSED || errno == ENOTCONN) &&
	    sendto(sv.notify, text, n, flags,
		(const struct sockaddr *)&sv.manager, sv.manager_len) >= 0;
}

/*
 * Sends the status, escaped. The line may quote text of other programs
 * (PostgreSQL's message). A newline in the text would begin another assignment,
 * such as "MAINPID=1".
 */
static void
send_status(const char *first, const char *status, int flags)
{
	char line[4 * STATUS_MAX], text[sizeof(line) + 64];

	if (*first == '\0' && strcmp(status, sv.status) == 0)
		return;
	log_escape(line, sizeof(line), status, strlen(status));
	(void)snprintf(text, sizeof(text), "%sSTATUS=%s\n", first, line);
	if (tell(text, flags) && status != sv.status)
		(void)snprintf(sv.status, sizeof(sv.status), "%s", status);
}

void
service_status(const char *fmt, ...)
{
	char status[STATUS_MAX];
	va_list ap;

	if (sv.notify < 0)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(status, sizeof(status), fmt, ap);
	va_end(ap);
	send_status("", status, MSG_DONTWAIT);
}

void
service_status_from(void (*say)(char *buf, size_t len, void *arg), void *arg)
{
	sv.say = say;
	sv.say_arg = arg;
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	char status[STATUS_MAX] = "";

	(void)fd;
	(void)what;
	(void)arg;
	if (sv.stopping)
		return;
	sv.say(status, sizeof(status), sv.say_arg);
	send_status("", status, MSG_DONTWAIT);
}

static void
on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	(void)tell("WATCHDOG=1\n", MSG_DONTWAIT);
}

/*
 * Makes a timer that fires every `us` microseconds, with the loop's highest
 * priority. Otherwise a loop that serves more urgent work would look stuck.
 */
static struct event *
every(struct event_base *base, uint64_t us, event_callback_fn f)
{
	struct timeval tv = {
	    .tv_sec = (time_t)(us / 1000000),
	    .tv_usec = (suseconds_t)(us % 1000000),
	};
	struct event *ev = event_new(base, -1, EV_PERSIST, f, NULL);

	if (ev == NULL || event_priority_set(ev, 0) != 0 ||
	    event_add(ev, &tv) != 0)
		log_fatal("loop", "libevent: no timer");
	return ev;
}

void
service_ready(struct event_base *base, const char *status)
{
	for (int i = 0; i < sv.nfds; i++)
		if (!sv.taken[i])
			log_fatal("service_manager",
			    "descriptor %d (\"%s\") was passed, but this "
			    "program takes none of that name",
			    FDS_FIRST + i, sv.names[i]);
	if (sv.notify < 0)
		return;
	send_status("READY=1\n", status, 0);
	if (sv.watchdog_us > 1)
		sv.watchdog = every(base, sv.watchdog_us / 2, on_watchdog);
	if (sv.say != NULL)
		sv.look =
		    every(base, (uint64_t)STATUS_EVERY_S * 1000000, on_look);
}

void
service_stopping(void)
{
	if (sv.notify < 0 || sv.stopping)
		return;
	sv.stopping = true;
	send_status("STOPPING=1\n", "stopping", MSG_DONTWAIT);
}
