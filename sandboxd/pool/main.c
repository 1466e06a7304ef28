/*
 * mcpbox-pool-init: pid 1 of the pool.
 *
 *	mcpbox-pool-init LIBEXEC_DIR MODULE_STORE COMMANDS
 *
 * Descriptor 3 is sandboxd's socket, 4 the liveness socket to spawn. Both are
 * socketpair ends, so holding them is the right to use them. pool-init lets the
 * starter start zygotes (starter.h), passes FORK to the current zygote
 * (zygotes.h), holds the runners' pidfds, obeys KILL, reaps, and reports. It
 * exits when sandboxd, spawn, the starter, peek or the current zygote ends.
 * Then the kernel kills all processes of the pid namespace, so that nothing of
 * the pool outlives pool-init.
 *
 * It is plain C on poll(2), with no library but common/'s base, because it has
 * a capability over every runner. A runner can't reach pool-init: the runner
 * has no descriptor to it, and can't name it from a nested pid namespace.
 */
#include <sys/poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cgroup.h"
#include "door.h"
#include "err.h"
#include "ipc.h"
#include "ipc_io.h"
#include "layer.h"
#include "log.h"
#include "setup.h"
#include "slots.h"
#include "starter.h"
#include "zygotes.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static struct slots slots;
static struct cgroup cgroup;      /* a leaf for each slot */
static bool leaf_told[SLOTS_MAX]; /* the current zygote has this leaf */
static struct zygotes zygotes;
static pid_t starter_pid;
static struct door door;  /* to peek */
static struct buf layers; /* the layers, for POOL_REPORT */

/* Ends the process and with it the whole pool. */
static _Noreturn void
die(const char *event, const char *text)
{
	log_event(LOG_LV_ERR, event, "%s; the pool ends", text);
	_exit(1);
}

/* Makes blocking sends fail after 10 s: no healthy receiver needs so long. */
static void
send_timeout(int sock)
{
	struct timeval tv = {.tv_sec = 10};

	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0)
		die("setsockopt", strerror(errno));
	if (fcntl(sock, F_SETFD, FD_CLOEXEC) != 0)
		die("fcntl", strerror(errno));
}

/*
 * Ends before there is a zygote. Reports the missing layer to sandboxd, which
 * shows it. An empty interpreter says that no runner will be forked. Logs the
 * error with the layer's remedy.
 */
static _Noreturn void
die_without(const char *layer, const struct err *e)
{
	struct ipc_pool_report m = {.interpreter = ipc_str("")};
	char text[sizeof(e->text) + 512];

	buf_putf(&layers, "%s=missing %s\n", layer, e->text);
	m.layers = ipc_bytes(layers.p, layers.failed ? 0 : layers.len);
	(void)ipc_write(SETUP_BROKER_FD, IPC_POOL_REPORT, 0, &m, NULL);
	(void)snprintf(text, sizeof(text), "%s. %s", e->text,
	    layer_fix(layer, strlen(layer)));
	die("setup", text);
}

/*
 * Sends to sandboxd, blocking. A sandboxd that does not read counts as gone:
 * ipc_write fails after the 10 s of send_timeout.
 */
static void
to_broker(enum ipc_type type, const void *msg)
{
	struct err e;

	if (ipc_write(SETUP_BROKER_FD, type, 0, msg, &e) != 0)
		die("broker_gone", e.text);
}

static void
to_zygote(enum ipc_type type, const void *msg)
{
	struct err e;

	if (ipc_write(zygotes.current.sock, type, 0, msg, &e) != 0)
		die("zygote_gone", e.text);
}

/* Kills a runner: SIGKILL to its pid namespace's init takes its whole tree. */
static void
kill_slot(struct slot *s)
{
	s->killed = true;
	if (s->state != SLOT_LIVE)
		return;
	if (syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0) != 0 &&
	    errno != ESRCH)
		die("kill_failed", strerror(errno));
}

/* Reaps the runner of one slot if the runner ended. true: it was reaped. */
static bool
reap_slot(uint32_t number)
{
	struct slot *s = &slots.s[number];
	struct ipc_exited m = {0};
	struct cgroup_usage used;
	struct rusage ru;
	siginfo_t si;

	memset(&si, 0, sizeof(si));
	memset(&ru, 0, sizeof(ru));
	/* The system call, unlike the library's function, returns rusage. */
	if (syscall(SYS_waitid, P_PIDFD, s->pidfd, &si,
		WEXITED | WNOHANG | __WALL, &ru) != 0)
		die("reap_failed", strerror(errno));
	if (si.si_pid == 0)
		return false;
	m.slot = number;
	m.generation = s->generation;
	m.status =
	    (uint32_t)si.si_code << 16 | ((uint32_t)si.si_status & 0xffff);
	m.cpu_us =
	    (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 +
	    (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
	m.peak_kib = (uint64_t)ru.ru_maxrss;
	/* rusage omits processes killed with the namespace; `used` has them. */
	if (cgroup_end(&cgroup, number, &used))
		log_event(LOG_LV_ERR, "leaf_populated",
		    "something lived on in slot %u's cgroup and was killed",
		    (unsigned)number);
	if (used.cpu_us > m.cpu_us)
		m.cpu_us = used.cpu_us;
	m.memory_peak = used.memory_peak;
	m.oom_kills = used.oom_kills;
	if (slots_set(&slots, number, SLOT_FREE, s->generation, -1) != 0)
		die("slot_state", "a live slot could not be freed");
	to_broker(IPC_EXITED, &m);
	return true;
}

static bool
reap_slots(void)
{
	bool any = false;

	for (uint32_t i = 0; i < SLOTS_MAX; i++)
		if (slots.s[i].state == SLOT_LIVE && reap_slot(i))
			any = true;
	return any;
}

/*
 * Reaps all children but the runners: replaced zygotes, and orphans that became
 * ours. The end of the current zygote, the starter or peek ends the pool. A
 * zombie may also be a runner whose FORKED is under way, and its exit status
 * must be kept. So nothing is done while a fork is pending. For the same reason
 * a zombie is first only looked at, and then reap_slots() is called. If it
 * reaps none, the zombie is not a runner.
 */
static void
reap_strays(void)
{
	siginfo_t si;

	while (slots.forking == 0) {
		memset(&si, 0, sizeof(si));
		if (waitid(P_ALL, 0, &si,
			WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 ||
		    si.si_pid == 0)
			return;
		if (si.si_pid == zygotes.current.pid)
			die("zygote_gone", "the zygote ended");
		if (si.si_pid == starter_pid)
			die("starter_gone", "no zygote could be started");
		if (si.si_pid == door.pid)
			die("peek_gone", "peek ended");
		if (reap_slots())
			continue;
		if (si.si_pid == zygotes.coming.pid)
			zygotes.coming.pid = 0;
		(void)waitpid(si.si_pid, NULL, WNOHANG | __WALL);
	}
}

static void
refuse_fork(const struct ipc_fork *m, const char *step, int error)
{
	struct ipc_fork_failed f = {
	    .slot = m->slot,
	    .generation = m->generation,
	    .error = (uint32_t)error,
	    .step = ipc_str(step),
	};

	to_broker(IPC_FORK_FAILED, &f);
}

/*
 * Prepares the slot's leaf, and gives it to the current zygote, unless the
 * zygote has the leaf already. 0 or -1 with errno.
 */
static int
ready_leaf(const struct ipc_fork *m)
{
	const struct cgroup_limits limits = {
	    m->memory_bytes, m->processes, m->cpu_percent};
	struct ipc_leaf leaf = {.slot = m->slot};
	int rc;

	if ((rc = cgroup_take(&cgroup, m->slot, &limits)) < 0)
		return -1;
	if (rc == 1)
		leaf_told[m->slot] = false;
	if (cgroup_on(&cgroup) && !leaf_told[m->slot]) {
		leaf.directory = cgroup_dir(&cgroup, m->slot);
		to_zygote(IPC_LEAF, &leaf);
		leaf_told[m->slot] = true;
	}
	return 0;
}

static void
on_fork(struct ipc_frame *f)
{
	struct ipc_fork m = {.channel = -1};
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		die("broker_malformed", e.text);
	if (slots_set(&slots, m.slot, SLOT_FORKING, m.generation, -1) != 0)
		refuse_fork(&m, "slot in use", EBUSY);
	else if (ready_leaf(&m) != 0) {
		const int error = errno;

		(void)slots_set(&slots, m.slot, SLOT_FREE, m.generation, -1);
		refuse_fork(&m, "cgroup of the slot", error);
	} else {
		to_zygote(IPC_FORK, &m);
		zygotes_asked(&zygotes, m.slot);
	}
	close(m.channel);
}

/*
 * Starts another zygote. If that fails, the current zygote goes on, and
 * sandboxd asks again when the report of a new zygote does not come.
 */
static void
on_recycle(void)
{
	struct err e;

	if (zygotes_start(&zygotes, &e) != 0 ||
	    door_give(&door, zygotes.coming.sock, &e) != 0)
		log_event(LOG_LV_ERR, "zygote_failed", "%s", e.text);
}

/*
 * Sets other limits for the call that a waiting runner is about to get. Does
 * nothing if slot and generation are not those of a present use: then EXITED is
 * on its way. sandboxd may set any limits here, because it controls every call
 * anyway, and the limits of the service unit hold for all calls together.
 */
static void
on_limit(struct ipc_frame *f)
{
	struct ipc_limit m;
	struct ipc_limited done;
	struct cgroup_limits limits;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		die("broker_malformed", e.text);
	if (slots_get(&slots, m.slot, m.generation, SLOT_LIVE) == NULL &&
	    slots_get(&slots, m.slot, m.generation, SLOT_FORKING) == NULL)
		return;
	limits =
	    (struct cgroup_limits){m.memory_bytes, m.processes, m.cpu_percent};
	done = (struct ipc_limited){
	    .slot = m.slot,
	    .generation = m.generation,
	};
	if (cgroup_limit(&cgroup, m.slot, &limits) != 0)
		done.error = (uint32_t)errno;
	to_broker(IPC_LIMITED, &done);
}

/*
 * Kills the runner that KILL names by slot and generation. A KILL for an
 * earlier use is ignored: it must not hit the runner that has the slot now. A
 * runner still being forked is marked, and killed when its pidfd arrives.
 */
static void
on_kill(struct ipc_frame *f)
{
	struct ipc_kill m;
	struct slot *s;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		die("broker_malformed", e.text);
	if ((s = slots_get(&slots, m.slot, m.generation, SLOT_LIVE)) != NULL ||
	    (s = slots_get(&slots, m.slot, m.generation, SLOT_FORKING)) != NULL)
		kill_slot(s);
}

static void
on_forked(struct zygote *z, struct ipc_frame *f)
{
	struct ipc_forked m = {.pidfd = -1};
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		die("zygote_malformed", e.text);
	if (zygotes_answered(&zygotes, z, m.slot) != 0)
		die("zygote_confused", "it answers for a slot of another's");
	if (slots_set(&slots, m.slot, SLOT_LIVE, m.generation, m.pidfd) != 0)
		die("zygote_confused", "FORKED for a slot that isn't forking");
	if (slots.s[m.slot].killed)
		kill_slot(&slots.s[m.slot]);
	if (slots.forking == 0)
		reap_strays();
}

static void
on_fork_failed(struct zygote *z, struct ipc_frame *f)
{
	struct ipc_fork_failed m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		die("zygote_malformed", e.text);
	if (zygotes_answered(&zygotes, z, m.slot) != 0)
		die("zygote_confused", "it answers for a slot of another's");
	if (slots_get(&slots, m.slot, m.generation, SLOT_FORKING) == NULL ||
	    slots_set(&slots, m.slot, SLOT_FREE, m.generation, -1) != 0)
		die("zygote_confused",
		    "FORK_FAILED for a slot that isn't forking");
	to_broker(IPC_FORK_FAILED, &m);
	if (slots.forking == 0)
		reap_strays();
}

/* Takes a zygote's report. If it names an interpreter, FORKs go to this zygote
 * from now on. Sends our layers and the zygote's to sandboxd, which sends no
 * FORK before the first report. */
static void
on_report(struct zygote *z, struct ipc_frame *f)
{
	struct ipc_pool_report m;
	struct buf all;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		die("zygote_malformed", e.text);
	/* A report without an interpreter names a missing layer. Its zygote
	 * forks nothing and ends. */
	if (m.interpreter.n > 0) {
		if (zygotes_reported(&zygotes, z) != 0)
			die("zygote_confused", "it reports a second time");
		/* A new zygote knows no leaf. */
		memset(leaf_told, 0, sizeof(leaf_told));
	}
	buf_init(&all, IPC_FRAME_MAX / 2);
	buf_put(&all, layers.p, layers.len);
	buf_put(&all, m.layers.p, m.layers.n);
	if (!all.failed) {
		m.layers = ipc_bytes(all.p, all.len);
		to_broker(IPC_POOL_REPORT, &m);
	}
	buf_free(&all);
}

/* Reads a frame that this role may send us. 1; 0: nothing there; -1: the sender
 * is gone or breaks the protocol, and e says how. */
static int
read_frame(int sock, enum ipc_role from, struct ipc_frame *f, struct err *e)
{
	int r = ipc_read(sock, f, e);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (r == 0)
		(void)err_set(e, FAILURE_INTERNAL, "it closed its socket");
	if (r <= 0)
		return -1;
	if (ipc_permit(f->type, from, IPC_ROLE_POOL, IPC_STATE_OPEN, e) != 0)
		die("not_permitted", e->text);
	return 1;
}

static void
on_broker(void)
{
	struct ipc_frame f;
	struct err e;
	int r = read_frame(SETUP_BROKER_FD, IPC_ROLE_SANDBOXD, &f, &e);

	if (r < 0)
		die("broker_gone", e.text);
	if (r == 0)
		return;
	switch (f.type) {
	case IPC_FORK:
		on_fork(&f);
		break;
	case IPC_KILL:
		on_kill(&f);
		break;
	case IPC_LIMIT:
		on_limit(&f);
		break;
	case IPC_RECYCLE:
		on_recycle();
		break;
	case IPC_PEEK_LINK:
		if (door_link(&door, &f, &e) != 0)
			die("peek_gone", e.text);
		break;
	default:
		die("not_permitted", ipc_name(f.type));
	}
	ipc_frame_free(&f);
}

/* Takes a zygote's frame. A coming zygote may fail. If the current or the
 * leaving zygote fails, the state of FORKs is not known, so the pool ends. */
static void
on_zygote(struct zygote *z)
{
	struct ipc_frame f;
	struct err e;
	int r = read_frame(z->sock, IPC_ROLE_ZYGOTE, &f, &e);

	if (r < 0 && zygotes_gone(&zygotes, z, e.text) != 0)
		die("zygote_gone", e.text);
	if (r <= 0)
		return;
	switch (f.type) {
	case IPC_FORKED:
		on_forked(z, &f);
		break;
	case IPC_FORK_FAILED:
		on_fork_failed(z, &f);
		break;
	case IPC_POOL_REPORT:
		on_report(z, &f);
		break;
	default:
		die("not_permitted", ipc_name(f.type));
	}
	ipc_frame_free(&f);
}

enum {
	AT_BROKER,
	AT_LIVENESS,
	AT_PEEK,
	AT_CURRENT,
	AT_COMING,
	AT_LEAVING,
	AT_CHILD,
	AT_SLOTS
};

/* Fills the poll set: the fixed descriptors (poll ignores -1), then the live
 * slots' pidfds, which become readable when the runner ends (pidfd_open(2)). */
static nfds_t
poll_set(struct pollfd *p, uint32_t *number, int child)
{
	nfds_t n = AT_SLOTS;

	p[AT_BROKER].fd = SETUP_BROKER_FD;
	p[AT_LIVENESS].fd = SETUP_LIVENESS_FD;
	p[AT_PEEK].fd = door.peek;
	p[AT_CURRENT].fd = zygotes.current.sock;
	p[AT_COMING].fd = zygotes.coming.sock;
	p[AT_LEAVING].fd = zygotes.leaving.sock;
	p[AT_CHILD].fd = child;
	for (uint32_t i = 0; i < SLOTS_MAX; i++)
		if (slots.s[i].state == SLOT_LIVE) {
			number[n] = i;
			p[n++].fd = slots.s[i].pidfd;
		}
	for (nfds_t i = 0; i < n; i++) {
		p[i].events = POLLIN;
		p[i].revents = 0;
	}
	return n;
}

static _Noreturn void
serve(int child)
{
	static struct pollfd p[AT_SLOTS + SLOTS_MAX];
	static uint32_t number[AT_SLOTS + SLOTS_MAX];
	struct signalfd_siginfo ssi;
	nfds_t n;

	for (;;) {
		n = poll_set(p, number, child);
		if (poll(p, n, -1) < 0) {
			if (errno == EINTR)
				continue;
			die("poll", strerror(errno));
		}
		/* spawn never writes: any event here is spawn's end. */
		if (p[AT_LIVENESS].revents != 0)
			die("spawn_gone", "spawn closed the liveness socket");
		/* peek sends nothing after its report. */
		if (p[AT_PEEK].revents != 0)
			die("peek_gone", "peek closed its socket");
		for (nfds_t i = AT_SLOTS; i < n; i++)
			if (p[i].revents != 0)
				(void)reap_slot(number[i]);
		/* `coming` is last: its report replaces the current zygote. */
		if (p[AT_LEAVING].revents != 0)
			on_zygote(&zygotes.leaving);
		if (p[AT_CURRENT].revents != 0)
			on_zygote(&zygotes.current);
		if (p[AT_COMING].revents != 0)
			on_zygote(&zygotes.coming);
		if (p[AT_BROKER].revents != 0)
			on_broker();
		if (p[AT_CHILD].revents != 0) {
			while (read(child, &ssi, sizeof(ssi)) > 0)
				;
			reap_strays();
		}
	}
}

int
main(int argc, char **argv)
{
	sigset_t chld;
	struct err e;
	int child;

	log_init("pool-init", LOG_TEXT, LOG_LV_INFO);
	if (argc != 4 || getpid() != 1 || getuid() != 0)
		log_fatal("usage", "started by mcpbox-sandboxd-spawn only");
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		die("signal", strerror(errno));
	buf_init(&layers, 4096);
	/* Comes first, before a new descriptor can get SETUP_CGROUP_FD. */
	cgroup_start(&cgroup, SETUP_CGROUP_FD, &layers);
	send_timeout(SETUP_BROKER_FD);
	send_timeout(SETUP_LIVENESS_FD);
	if (setup_namespaces(&layers, &e) != 0)
		die_without("pool_namespaces", &e);

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) != 0 ||
	    (child = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		die("signalfd", strerror(errno));
	slots_init(&slots);
	if ((starter_pid = starter_start(&cgroup, argv, &e)) < 0)
		die("setup", e.text);
	if (door_start(&door, &layers, &e) != 0)
		die_without("peek", &e);
	zygotes_init(&zygotes);
	if (zygotes_start(&zygotes, &e) != 0 ||
	    door_give(&door, zygotes.coming.sock, &e) != 0)
		die("setup", e.text);
	if (setup_drop(&layers, &e) != 0)
		die_without("pool_init_capabilities", &e);
	serve(child);
}
