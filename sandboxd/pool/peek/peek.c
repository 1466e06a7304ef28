/*
 * mcpbox-peek: answers the runners' connect(2).
 *
 * peek is a process of the pool. The starter starts it with one socket, fd 3,
 * to pool-init. It holds the listeners of all runners that are granted hosts,
 * and is the only process that may look into a runner. It knows no grant, no
 * name and no policy: it copies the request (peek_look.c), asks
 * sandboxd-egress, and puts egress' socket in place (peek_put.c).
 *
 * It has one thread and one poll(2). It never waits for egress, and only some
 * ms for a runner (peek_put.c). So a slow answer delays only the runner that
 * asked.
 *
 * Its peers are pool-init (sends the door (door.h) and links to egress), the
 * zygote's children before they know a call (send listeners), egress, and
 * runners, by notifications only. A forbidden frame of the first two peers ends
 * peek, and so the pool. A forbidden frame of egress only closes the connection
 * (peek_link.c), and the pool goes on without egress.
 */
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bounds.h"
#include "buf.h"
#include "ipc_io.h"
#include "log.h"
#include "peek_confine.h"
#include "peek_link.h"
#include "peek_look.h"
#include "peek_put.h"
#include "peek_table.h"

enum {
	POOL_FD = 3, /* the socket to pool-init */
	/* Time that a connect waits while egress is not connected. */
	LINK_MS = 2000,
	/* Time for egress' answer. egress itself ends an attempt, its look-up
	 * included, after its connect_timeout, which peek does not know. So
	 * peek waits longer than the longest, and only an egress that hangs is
	 * not waited for. */
	ANSWER_MS = NET_CONNECT_MAX_MS + 5 * 1000,
	/* Time for the runner to take its socket. */
	TAKE_MS = 30 * 1000,
	/* The first and the longest pause between tries, while a runner doesn't
	 * take its socket. */
	STALL_MS = 40,
	STALL_MAX_MS = 1280,
	/* Descriptors in addition to the listeners and the waiting sockets. */
	SPARE_FILES = 32,
	/* Frames of egress that are read before listeners are served. */
	FRAMES_MAX = 64
};

static struct peek_table table;
static struct peek_link egress = {.fd = -1};
static int door = -1;
/* The number of waits in PEEK_PUTTING, each with a descriptor, and the maximum
 * of that number. Some descriptors must stay free: a frame whose descriptor
 * can't be received would end the connection to egress. */
static unsigned putting, putting_max;

static uint64_t
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
done(struct peek_listener *l, struct peek_wait *w)
{
	if (w->state == PEEK_PUTTING)
		putting--;
	peek_table_done(l, w);
}

static void
fail(struct peek_listener *l, struct peek_wait *w, int error)
{
	peek_look_answer(l->fd, w->connect.id, error);
	done(l, w);
}

static void
gone(struct peek_listener *l)
{
	for (unsigned i = 0; i < PEEK_WAITS_MAX; i++)
		if (l->wait[i].state == PEEK_PUTTING)
			putting--;
	peek_table_remove(&table, l);
}

/* Puts the questions that egress has not answered back into ASKING. They are
 * asked again when egress is back. Their runners got nothing by the lost
 * connection, so no runner gets anything twice. */
static void
link_lost(void)
{
	const uint64_t until = now_ms() + LINK_MS;

	for (unsigned i = 0; i < table.end; i++)
		for (unsigned j = 0; j < PEEK_WAITS_MAX; j++)
			if (table.listener[i].wait[j].state == PEEK_ASKED) {
				table.listener[i].wait[j].state = PEEK_ASKING;
				table.listener[i].wait[j].deadline_ms = until;
			}
}

static void
ask(struct peek_listener *l, struct peek_wait *w)
{
	const uint64_t request = peek_table_request(&table, l, w);

	switch (peek_link_ask(&egress, request, l->net, &w->connect)) {
	case 0:
		w->state = PEEK_ASKED;
		w->request = request;
		w->deadline_ms = now_ms() + ANSWER_MS;
		break;
	case -1:
		link_lost();
		break;
	default:
		break;
	}
}

static void
put(struct peek_listener *l, struct peek_wait *w)
{
	switch (peek_put(l->fd, w)) {
	case PEEK_PUT_LATER:
		l->stall_ms = l->stall_ms == 0   ? STALL_MS
		    : l->stall_ms < STALL_MAX_MS ? 2 * l->stall_ms
						 : STALL_MAX_MS;
		l->stalled_ms = now_ms() + l->stall_ms;
		return;
	case PEEK_PUT_BAD:
		log_event(LOG_LV_ERR, "egress_confused",
		    "egress passed what is no socket for a runner");
		break;
	case PEEK_PUT_DONE:
		l->stall_ms = 0;
		break;
	}
	done(l, w);
}

/* Takes egress' answer to one question. If the wait is over, the answer's
 * socket is closed, which ends the socket's connection. */
static void
on_answer(struct ipc_frame *f)
{
	static const struct linger at_once;
	struct ipc_net_connected yes = {.socket = -1};
	struct ipc_net_failed no;
	struct peek_listener *l;
	struct peek_wait *w = peek_table_asked(&table, f->request, &l);
	struct err e;

	if (f->type == IPC_NET_FAILED) {
		if (ipc_decode(f, &no, &e) != 0)
			peek_link_close(&egress, e.text);
		else if (w != NULL)
			fail(l, w,
			    no.error > 0 && no.error < 4096 ? (int)no.error
							    : EIO);
		return;
	}
	if (ipc_decode(f, &yes, &e) != 0) {
		peek_link_close(&egress, e.text);
		return;
	}
	/* close must not block, whatever linger time egress set. */
	(void)setsockopt(
	    yes.socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (w == NULL) {
		close(yes.socket);
		return;
	}
	if (putting >= putting_max) {
		close(yes.socket);
		fail(l, w, ENOBUFS);
		return;
	}
	w->state = PEEK_PUTTING;
	w->deadline_ms = now_ms() + TAKE_MS;
	w->socket = yes.socket;
	w->error = yes.error == EINPROGRESS ? EINPROGRESS : 0;
	putting++;
	if (l->stalled_ms <= now_ms())
		put(l, w);
}

static void
on_egress(void)
{
	struct ipc_frame f;
	int rc = 1;

	for (unsigned i = 0; i < FRAMES_MAX && egress.fd >= 0; i++) {
		const bool was_open = egress.open;

		rc = peek_link_read(&egress, &f);
		if (rc == 1) {
			on_answer(&f);
			ipc_frame_free(&f);
		} else if (rc < 0 || was_open == egress.open)
			break;
	}
	if (egress.fd < 0)
		link_lost();
}

/* Takes one notification. */
static void
on_listener(struct peek_listener *l)
{
	const uint64_t now = now_ms();
	struct peek_wait *w;
	bool answered;
	int rc;

	if ((w = peek_table_wait(l, now + LINK_MS)) == NULL)
		return;
	rc = peek_look(l->fd, &w->connect, &answered);
	peek_table_took(l, now, now_ms());
	if (rc == 1 || answered)
		peek_table_spend(l);
	if (rc != 1)
		peek_table_done(l, w);
	if (rc < 0)
		gone(l);
	else if (rc == 1 && egress.open && !egress.full)
		ask(l, w);
}

/* Receives a frame from pool-init or from a child of the zygote. Exits if the
 * frame is not permitted. */
static void
receive(int sock, enum ipc_role from, struct ipc_frame *f)
{
	struct err e;
	int rc = ipc_read(sock, f, &e);

	if (rc == 0)
		_exit(0); /* the pool ends */
	if (rc < 0)
		log_fatal("malformed", "%s", e.text);
	if (ipc_permit(f->type, from, IPC_ROLE_PEEK, IPC_STATE_OPEN, &e) != 0)
		log_fatal("not_permitted", "%s", e.text);
}

static void
on_pool(void)
{
	struct ipc_frame f;
	struct ipc_peek_link m;
	struct err e;

	receive(POOL_FD, IPC_ROLE_POOL, &f);
	if (f.type != IPC_PEEK_LINK || ipc_decode(&f, &m, &e) != 0)
		log_fatal("not_permitted", "%s", ipc_name(f.type));
	peek_link_set(&egress, m.link);
	link_lost();
	ipc_frame_free(&f);
}

/* Takes a runner's listener. A failure can't be reported to the runner, but its
 * connect(2) fails when the listener is closed. */
static void
on_door(void)
{
	struct ipc_frame f;
	struct ipc_listener m;
	struct err e;

	receive(door, IPC_ROLE_RUNNER, &f);
	if (ipc_decode(&f, &m, &e) != 0)
		log_fatal("malformed", "%s", e.text);
	if (peek_table_add(&table, m.net, m.listener, now_ms()) == NULL) {
		log_event(LOG_LV_ERR, "listener",
		    "no place for the listener of net %llu",
		    (unsigned long long)m.net);
		close(m.listener);
	}
	ipc_frame_free(&f);
}

/* Does the due work of one listener. Lowers *wait_ms to the time until more
 * work is due. */
static void
due(struct peek_listener *l, uint64_t now, int *wait_ms)
{
	struct peek_wait *w;
	uint64_t at;

	for (unsigned i = 0; i < PEEK_WAITS_MAX && l->waiting > 0; i++) {
		w = &l->wait[i];
		if (w->state == PEEK_FREE)
			continue;
		if (w->state == PEEK_ASKING && egress.open && !egress.full)
			ask(l, w);
		if (w->state == PEEK_PUTTING && l->stalled_ms <= now)
			put(l, w);
		if (w->state != PEEK_FREE && w->deadline_ms <= now)
			fail(l, w,
			    w->state == PEEK_ASKING ? ENETUNREACH : ETIMEDOUT);
		if (w->state == PEEK_FREE)
			continue;
		at = w->deadline_ms;
		if (w->state == PEEK_PUTTING && l->stalled_ms < at)
			at = l->stalled_ms;
		at = at > now ? at - now : 1;
		if (*wait_ms < 0 || at < (uint64_t)*wait_ms)
			*wait_ms = (int)at;
	}
}

enum { AT_POOL, AT_DOOR, AT_EGRESS, AT_LISTENERS };

static _Noreturn void
serve(void)
{
	static struct pollfd p[AT_LISTENERS + PEEK_LISTENERS_MAX];
	static unsigned number[AT_LISTENERS + PEEK_LISTENERS_MAX];
	nfds_t n;
	uint64_t now;
	int wait_ms;

	for (;;) {
		now = now_ms();
		wait_ms = -1;
		n = AT_LISTENERS;
		p[AT_POOL] = (struct pollfd){.fd = POOL_FD, .events = POLLIN};
		p[AT_DOOR] = (struct pollfd){.fd = door, .events = POLLIN};
		for (unsigned i = 0; i < table.end; i++) {
			struct peek_listener *l = &table.listener[i];

			if (l->fd < 0)
				continue;
			due(l, now, &wait_ms);
			p[n] = (struct pollfd){.fd = l->fd};
			if (peek_table_may_read(l, now, &wait_ms))
				p[n].events = POLLIN;
			number[n++] = i;
		}
		p[AT_EGRESS] = (struct pollfd){.fd = egress.fd,
		    .events = (short)(POLLIN | (egress.full ? POLLOUT : 0))};
		if (poll(p, n, wait_ms) < 0) {
			if (errno != EINTR)
				log_fatal("poll", "%s", strerror(errno));
			continue;
		}
		if (p[AT_POOL].revents != 0)
			on_pool();
		if (p[AT_EGRESS].revents != 0 && p[AT_EGRESS].fd == egress.fd) {
			egress.full = false;
			on_egress();
		}
		for (nfds_t i = AT_LISTENERS; i < n; i++) {
			struct peek_listener *l = &table.listener[number[i]];

			if ((p[i].revents & POLLIN) != 0)
				on_listener(l);
			else if (p[i].revents != 0)
				gone(l);
		}
		/* Comes last: a new listener may get a place that was just
		 * freed, and p still has the events of the old listener. */
		if (p[AT_DOOR].revents != 0)
			on_door();
	}
}

/* Sends the report that pool-init waits for. */
static void
report(struct buf *layers)
{
	struct ipc_pool_report m = {.interpreter = ipc_str("")};
	struct err e;

	m.layers = ipc_bytes(layers->p, layers->failed ? 0 : layers->len);
	if (ipc_write(POOL_FD, IPC_POOL_REPORT, 0, &m, &e) != 0)
		log_fatal("pool_init_gone", "%s", e.text);
}

int
main(void)
{
	struct ipc_frame f;
	struct ipc_peek_door m;
	struct buf layers;
	struct err e;
	unsigned files;
	bool reads;

	log_init("peek", LOG_TEXT, LOG_LV_INFO);
	(void)prctl(PR_SET_NAME, "mcpbox-peek", 0, 0, 0);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || peek_put_start() != 0 ||
	    fcntl(POOL_FD, F_SETFD, FD_CLOEXEC) != 0)
		log_fatal("usage", "started by mcpbox-pool-init only");
	buf_init(&layers, 4096);
	peek_table_init(&table);
	receive(POOL_FD, IPC_ROLE_POOL, &f);
	if (f.type != IPC_PEEK_DOOR || ipc_decode(&f, &m, &e) != 0)
		log_fatal("not_permitted", "%s", ipc_name(f.type));
	door = m.door;
	ipc_frame_free(&f);

	reads = peek_look_start(&e) == 0;
	if (!reads)
		buf_putf(&layers, "peek_reads=missing %s\n", e.text);
	if (peek_confine(&layers, &files, &e) != 0) {
		report(&layers); /* pool-init names the remedy */
		return 1;
	}
	if (reads && peek_look_try(&e) != 0)
		buf_putf(&layers, "peek_reads=missing %s\n", e.text);
	else if (reads)
		buf_puts(&layers, "peek_reads=enforced\n");
	putting_max = files > PEEK_LISTENERS_MAX + SPARE_FILES
	    ? files - PEEK_LISTENERS_MAX - SPARE_FILES
	    : 0;
	report(&layers);
	serve();
}
