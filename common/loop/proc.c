#include <sys/resource.h>
#include <sys/stat.h>

#include <event2/event.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal.h"
#include "log.h"
#include "proc.h"
#include "service.h"
#include "waits.h"

enum { SOCKET_PATH_MAX = 80, FILES_MAX = 16384 };

/* The signals that end a process in order. Their events live as long as the
 * process. */
static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { STOP_SIGNALS = sizeof(stop_signals) / sizeof(stop_signals[0]) };
static struct event *ev_stop[STOP_SIGNALS];

static int (*check_more)(const struct conf *, struct err *);

static void
usage(const char *argv0)
{
	fprintf(stderr, "usage: %s [-t] [-T] [-d] [-V] -f FILE\n", argv0);
	exit(1);
}

static enum log_level
level_of(const char *name)
{
	if (strcmp(name, "error") == 0)
		return LOG_LV_ERR;
	if (strcmp(name, "warning") == 0)
		return LOG_LV_WARN;
	if (strcmp(name, "debug") == 0)
		return LOG_LV_DEBUG;
	return LOG_LV_INFO;
}

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct proc *p = arg;
	bool again = p->stopping;

	(void)what;
	p->stopping = true;
	log_event(LOG_LV_INFO, "stopping", "%s%s",
	    sig == SIGTERM      ? "SIGTERM"
		: sig == SIGINT ? "SIGINT"
				: "SIGHUP",
	    p->stop == NULL ? ""
		: again     ? ", the second signal: at once"
			    : ": what is under way may end");
	service_stopping();
	if (p->stop == NULL || again)
		proc_end(p);
	else
		p->stop(p->stop_arg);
}

void
proc_on_stop(struct proc *p, void (*fn)(void *arg), void *arg)
{
	p->stop = fn;
	p->stop_arg = arg;
}

void
proc_end(struct proc *p)
{
	event_base_loopbreak(p->base);
}

/*
 * Handles -T: prints the settings that the process would run with, in a form
 * that -f reads back.
 */
static void
dump_and_exit(const struct conf *c)
{
	struct buf b;

	buf_init(&b, 1024 * 1024);
	conf_dump(c, &b);
	if (b.failed || fwrite(b.p, 1, b.len, stdout) != b.len ||
	    fflush(stdout) != 0)
		exit(1);
	exit(0);
}

/*
 * No process of the suite may run as root: each is confined as a user of its
 * own, and a service file that forgot to set this user must not go unnoticed.
 * All three ids count, since a saved uid of 0 can be taken back. Root may only
 * check a configuration (-t, -T), so that an installer can do this.
 */
static void
refuse_root(void)
{
	uid_t r, e, s;

	if (getresuid(&r, &e, &s) != 0 || r == 0 || e == 0 || s == 0)
		log_fatal("root",
		    "refusing to run as uid 0; the service manager must set a "
		    "user of its own");
}

/*
 * Raises the limit of descriptors. The usual soft limit of 1024 exists for
 * select(2), which we don't use. The limit also bounds the descriptors that one
 * user may have on their way through sockets (unix(7), ETOOMANYREFS), so a peer
 * that reads nothing would soon keep us from sending descriptors to other
 * peers.
 */
static void
raise_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= FILES_MAX)
		return;
	r.rlim_cur = r.rlim_max < FILES_MAX ? r.rlim_max : FILES_MAX;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

void
proc_check_with(int (*fn)(const struct conf *, struct err *))
{
	check_more = fn;
}

void
proc_start(struct proc *p, const char *name, int argc, char **argv)
{
	const char *file = NULL;
	bool check = false, dump = false, debug = false;
	struct event_config *cfg;
	struct err e;
	size_t i;
	int c;

	memset(p, 0, sizeof(*p));
	p->name = name;
	raise_files();
	log_init(name, LOG_TEXT, LOG_LV_INFO);
	service_start();
	log_journal(JOURNAL_SOCKET);
	while ((c = getopt(argc, argv, "f:tTdV")) != -1)
		switch (c) {
		case 'f':
			file = optarg;
			break;
		case 't':
			check = true;
			break;
		case 'T':
			dump = true;
			break;
		case 'd':
			debug = true;
			break;
		case 'V':
			printf("mcpbox-%s %s\n", name, MCPBOX_VERSION);
			exit(fflush(stdout) == 0 ? 0 : 1);
		default:
			usage(argv[0]);
		}
	if (file == NULL || optind != argc)
		usage(argv[0]);

	if ((p->conf = conf_new(name)) == NULL)
		log_fatal("memory", "out of memory");
	if (conf_load(p->conf, file, &e) < 0) {
		if (check || dump) {
			fprintf(stderr, "%s\n", e.text);
			exit(1);
		}
		log_fatal("configuration", "%s", e.text);
	}
	if (dump)
		dump_and_exit(p->conf);
	if (check) {
		if (check_more != NULL && check_more(p->conf, &e) < 0) {
			fprintf(stderr, "%s%s: %s\n", file,
			    conf_has_local(p->conf) ? " and its .local" : "",
			    e.text);
			exit(1);
		}
		puts("OK");
		exit(fflush(stdout) == 0 ? 0 : 1);
	}
	wait_factor_set((int)conf_int(p->conf, "wait_factor"));
	log_init(name,
	    strcmp(conf_str(p->conf, "log_format"), "json") == 0 ? LOG_JSON
								 : LOG_TEXT,
	    debug ? LOG_LV_DEBUG : level_of(conf_str(p->conf, "log_level")));
	refuse_root();
	umask(077);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		log_fatal("signal", "SIGPIPE: %s", strerror(errno));

	/*
	 * sandboxd keeps the limits of calls, which are promised to the ms.
	 * With this flag libevent reads the exact clock, not the one with steps
	 * of 4 ms, and waits by a timerfd. The other daemons only have
	 * time-outs of seconds, so they don't set the flag: setting the timerfd
	 * in each round of the loop would be a fifth of their system calls.
	 */
	if ((cfg = event_config_new()) == NULL ||
	    (strcmp(name, "sandboxd") == 0 &&
		event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER) <
		    0) ||
	    (p->base = event_base_new_with_config(cfg)) == NULL)
		log_fatal("loop", "libevent: no event loop");
	event_config_free(cfg);
	for (i = 0; i < STOP_SIGNALS; i++) {
		ev_stop[i] =
		    evsignal_new(p->base, stop_signals[i], on_signal, p);
		if (ev_stop[i] == NULL || event_add(ev_stop[i], NULL) < 0)
			log_fatal("loop", "libevent: no signal events");
	}
}

int
proc_socket_path(const struct proc *p, const char *process, const char *name,
    char *buf, size_t len, struct err *e)
{
	char path[SOCKET_PATH_MAX + 1];
	int n;

	n = snprintf(path, sizeof(path), "%s/%s/%s.sock",
	    conf_str(p->conf, "run_dir"), process, name);
	if (n < 0 || (size_t)n >= sizeof(path) || (size_t)n >= len)
		return err_set(e, FAILURE_INTERNAL,
		    "socket path %s/%s/%s.sock is longer than %d bytes; choose "
		    "a shorter run_dir",
		    conf_str(p->conf, "run_dir"), process, name,
		    SOCKET_PATH_MAX);
	memcpy(buf, path, (size_t)n + 1);
	return 0;
}

/*
 * event_base_dispatch returns 1 when no event is left, which can't be while the
 * signal events exist, and -1 when epoll fails. After the loop the process only
 * ends. A further stop signal is blocked until that end: without libevent's
 * handler the signal would kill the process before its end is complete.
 */
int
proc_run(struct proc *p)
{
	int rc = event_base_dispatch(p->base);
	sigset_t stop;
	size_t i;

	sigemptyset(&stop);
	for (i = 0; i < STOP_SIGNALS; i++)
		sigaddset(&stop, stop_signals[i]);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	for (i = 0; i < STOP_SIGNALS; i++)
		event_free(ev_stop[i]);
	if (rc != 0) {
		log_event(
		    LOG_LV_ERR, "loop", "libevent: the event loop failed");
		return 1;
	}
	return 0;
}
