/* See peek_link.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "ipc_io.h"
#include "log.h"
#include "peek_link.h"

void
peek_link_close(struct peek_link *l, const char *why)
{
	if (l->fd < 0)
		return;
	log_event(LOG_LV_WARN, "egress_gone", "%s", why);
	close(l->fd);
	l->fd = -1;
	l->open = l->full = false;
}

void
peek_link_set(struct peek_link *l, int fd)
{
	struct ipc_hello m = {.table = ipc_table_hash,
	    .process = ipc_str("peek"),
	    .build = ipc_str(MCPBOX_VERSION)};
	struct err e;
	int flags;

	peek_link_close(l, "there is a new connection");
	l->fd = fd;
	id_random(&m.epoch);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
		peek_link_close(l, strerror(errno));
	else if (ipc_write(fd, IPC_HELLO, 0, &m, &e) != 0)
		peek_link_close(l, e.text);
}

int
peek_link_ask(struct peek_link *l, uint64_t request, uint64_t net,
    const struct peek_connect *c)
{
	const struct ipc_net_connect m = {
	    .net = net,
	    .family = c->family,
	    .type = c->type,
	    .nonblocking = c->nonblocking,
	    .address = ipc_bytes(c->address, c->naddress),
	};
	struct err e;

	if (ipc_write(l->fd, IPC_NET_CONNECT, request, &m, &e) == 0)
		return 0;
	if (errno == EAGAIN || errno == EWOULDBLOCK) {
		l->full = true;
		return 1;
	}
	peek_link_close(l, e.text);
	return -1;
}

static int
take_hello(struct peek_link *l, struct ipc_frame *f, struct err *e)
{
	struct ipc_hello m;

	if (ipc_decode(f, &m, e) != 0)
		return -1;
	if (memcmp(&m.table, &ipc_table_hash, sizeof(ipc_table_hash)) != 0)
		return err_set(
		    e, FAILURE_UPGRADING, "egress is of another build");
	l->open = true;
	return 0;
}

int
peek_link_read(struct peek_link *l, struct ipc_frame *f)
{
	struct err e;
	int r = ipc_read(l->fd, f, &e);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (r <= 0) {
		peek_link_close(
		    l, r == 0 ? "it closed the connection" : e.text);
		return -1;
	}
	if (ipc_permit(f->type, IPC_ROLE_EGRESS, IPC_ROLE_PEEK,
		l->open ? IPC_STATE_OPEN : IPC_STATE_NEW, &e) != 0)
		r = -1;
	else if (f->type == IPC_HELLO)
		r = take_hello(l, f, &e) != 0 ? -1 : 0;
	if (r == 1)
		return 1;
	ipc_frame_free(f);
	if (r < 0)
		peek_link_close(l, e.text);
	return r;
}
