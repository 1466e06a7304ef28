/* See door.h. */
#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "door.h"
#include "ipc_io.h"
#include "layer.h"
#include "starter.h"

enum {
	/* The wait for peek's report. peek first mounts two things and loads a
	 * filter, which takes some ms. */
	REPORT_MS = 10 * 1000,
	/* A peek that does not read for this long is stuck. */
	SEND_S = 10
};

/* Returns -1 with err if these lines say that a mandatory layer is missing,
 * else 0. */
static int
judge(struct ipc_bytes lines, struct err *e)
{
	char *text = ipc_strdup(lines);
	const char *line;
	size_t n;
	int rc = 0;

	if (text == NULL)
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE, "no memory");
	if ((line = layer_missing(text, &n)) != NULL)
		rc = err_set(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "%.*s", (int)n, line);
	free(text);
	return rc;
}

static int
read_report(int sock, struct buf *layers, struct err *e)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct ipc_pool_report m;
	struct ipc_frame f;
	int rc;

	if (poll(&p, 1, REPORT_MS) != 1)
		return err_set(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "peek does not report");
	rc = ipc_read(sock, &f, e);
	if (rc == 0)
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE, "peek ended");
	if (rc < 0)
		return -1;
	rc =
	    ipc_permit(f.type, IPC_ROLE_PEEK, IPC_ROLE_POOL, IPC_STATE_OPEN, e);
	if (rc == 0)
		rc = ipc_decode(&f, &m, e);
	if (rc == 0) {
		buf_put(layers, m.layers.p, m.layers.n);
		rc = judge(m.layers, e);
	}
	ipc_frame_free(&f);
	return rc;
}

int
door_start(struct door *d, struct buf *layers, struct err *e)
{
	const struct timeval tv = {.tv_sec = SEND_S};
	struct ipc_peek_door m;
	int sv[2], rc;

	if (starter_peek(&d->peek, &d->pid, e) != 0)
		return -1;
	if (setsockopt(d->peek, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) !=
		0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "socketpair");
	d->way = sv[0];
	m = (struct ipc_peek_door){.door = sv[1]};
	rc = ipc_write(d->peek, IPC_PEEK_DOOR, 0, &m, e);
	close(sv[1]);
	return rc == 0 ? read_report(d->peek, layers, e) : -1;
}

int
door_give(const struct door *d, int zygote, struct err *e)
{
	const struct ipc_peek_door m = {.door = d->way};

	return ipc_write(zygote, IPC_PEEK_DOOR, 0, &m, e);
}

int
door_link(const struct door *d, struct ipc_frame *f, struct err *e)
{
	struct ipc_peek_link m;
	int rc;

	if (ipc_decode(f, &m, e) != 0)
		return -1;
	rc = ipc_write(d->peek, IPC_PEEK_LINK, 0, &m, e);
	close(m.link);
	return rc;
}
