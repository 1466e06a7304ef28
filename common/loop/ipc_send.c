/*
 * The sending half of a connection: frames leave in their order, as far as the
 * socket takes them, and a peer that does not read is closed at a bound.
 *
 * A daemon that ends stops listening before it goes (ipc_server_finish). It
 * still reads and answers all messages that were sent before. A later message
 * fails here with EPIPE, so it has certainly not been read. The same holds for
 * frames that the socket had no room for (ipc_peer_drop_out). So no process has
 * to guess the fate of a request, and the connection stays for the answers that
 * are on their way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "ipc_peer_internal.h"
#include "log.h"

static void
drop_first(struct ipc_peer *p)
{
	struct ipc_out *o = TAILQ_FIRST(&p->out);

	TAILQ_REMOVE(&p->out, o, link);
	p->queued -= o->packet.bytes.len;
	p->queued_fds -= o->packet.nfds;
	ipc_packet_free(&o->packet);
	free(o);
}

void
ipc_peer_drop_out(struct ipc_peer *p)
{
	struct ipc_out *o;

	while ((o = TAILQ_FIRST(&p->out)) != NULL) {
		if (o->waiter != 0)
			ipc_peer_unsent(p, o->waiter);
		drop_first(p);
	}
}

/* Notes that the other side has stopped listening. That side may still answer
 * for IPC_DEAF_MS. A peer that only pretends this just gets no requests for
 * that time. */
static void
gone_deaf(struct ipc_peer *p)
{
	static const struct timeval tv = {
	    IPC_DEAF_MS / 1000, IPC_DEAF_MS % 1000 * 1000};

	p->deaf = true;
	ipc_peer_drop_out(p);
	event_add(p->again, &tv);
}

/* Sends as much as the socket takes. */
void
ipc_peer_writable(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = {.tv_usec = 10 * 1000};
	struct ipc_peer *p = arg;
	struct ipc_out *o;

	if (p->deaf) {
		ipc_peer_close(p);
		return;
	}
	while ((o = TAILQ_FIRST(&p->out)) != NULL) {
		if (ipc_packet_send(p->fd, &o->packet) == -1) {
			if (errno == EAGAIN || errno == EWOULDBLOCK) {
				event_add(p->writable, NULL);
				return;
			}
			/* epoll still reports the socket as writable, so only
			 * waiting helps. */
			if (errno == ETOOMANYREFS || errno == ENOBUFS) {
				event_add(p->again, &again);
				return;
			}
			if (errno == EPIPE && p->client != NULL)
				gone_deaf(p);
			else
				ipc_peer_close(p);
			return;
		}
		drop_first(p);
	}
	if (p->ended)
		ipc_peer_close(p);
}

/* Queues one frame, and sends it at once if no frame is before it. */
int
ipc_peer_enqueue(
    struct ipc_peer *p, enum ipc_type type, uint64_t request, const void *msg)
{
	struct ipc_out *o;
	struct err e;

	if (p->closing || p->deaf)
		return -1;
	if (ipc_permit(type, p->local, p->peer, p->state, &e) == -1) {
		log_event(LOG_LV_ERR, "ipc_bug", "to %s: %s", p->name, e.text);
		return -1;
	}
	if ((o = calloc(1, sizeof(*o))) == NULL)
		return -1;
	if (ipc_packet_make(&o->packet, type, request, msg, &e) == -1) {
		log_event(
		    LOG_LV_WARN, "ipc_send", "to %s: %s", p->name, e.text);
		free(o);
		return -1;
	}
	o->waiter = ipc_info(type)->kind == IPC_KIND_REQ ? request : 0;
	if (p->queued + o->packet.bytes.len > IPC_QUEUE_MAX ||
	    p->queued_fds + o->packet.nfds > IPC_QUEUE_FDS_MAX) {
		log_event(LOG_LV_WARN, "ipc_slow",
		    "%s does not read; closing it", p->name);
		ipc_packet_free(&o->packet);
		free(o);
		ipc_peer_close(p);
		return -1;
	}
	log_event(LOG_LV_DEBUG, "ipc_send", "%s: %s #%llu %zu bytes", p->name,
	    ipc_name(type), (unsigned long long)request, o->packet.bytes.len);
	p->queued += o->packet.bytes.len;
	p->queued_fds += o->packet.nfds;
	TAILQ_INSERT_TAIL(&p->out, o, link);
	if (TAILQ_FIRST(&p->out) == o)
		ipc_peer_writable(p->fd, EV_WRITE, p);
	return p->closing || p->deaf ? -1 : 0;
}

int
ipc_send(struct ipc_peer *p, enum ipc_type type, const void *msg)
{
	return ipc_peer_enqueue(p, type, 0, msg);
}

int
ipc_answer(
    struct ipc_peer *p, uint64_t request, enum ipc_type type, const void *msg)
{
	if (ipc_peer_enqueue(p, type, request, msg) == 0)
		return 0;
	/* There are no descriptors or no memory for a large answer: send a
	 * small one, so that the other process does not wait for nothing. The
	 * work that it asked for has been done. */
	if (!p->closing && type != IPC_REFUSED &&
	    ipc_info(type)->kind == IPC_KIND_ANS)
		(void)ipc_refuse(p, request, FAILURE_LOST,
		    "the answer could not be sent", 0);
	return -1;
}

int
ipc_refuse(struct ipc_peer *p, uint64_t request, enum failure f,
    const char *message, uint64_t retry_after_ms)
{
	struct ipc_refused m = {.failure = (uint16_t)f,
	    .message = ipc_str(message),
	    .retry_after_ms = retry_after_ms};

	return ipc_peer_enqueue(p, IPC_REFUSED, request, &m);
}

int
ipc_answer_ok(struct ipc_peer *p, uint64_t request)
{
	struct ipc_ok m = {0};

	return ipc_peer_enqueue(p, IPC_OK, request, &m);
}
