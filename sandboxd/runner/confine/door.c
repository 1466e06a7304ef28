/*
 * The door: the socket by which a runner hands the listener of its filter to
 * peek (sandboxd/pool/peek), once, before it says READY and so before it knows
 * its call.
 *
 * The process that holds the listener answers the runner's connect(2). A
 * process that holds the door could hand in a listener under another call's
 * number: then its own connections would be judged by that call's grants. So no
 * code of a tool ever runs while the door is open. A runner without network
 * closes the door first of all, a runner with network closes it right after its
 * one frame. The zygote keeps the door open for the next fork, but it runs no
 * tool's code.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "confinement.h"
#include "filter.h"
#include "ipc_io.h"
#include "runner.h"

static int door = -1;

void
door_set(int fd)
{
	if (door != -1)
		(void)close(door);
	door = fd;
}

int
door_of(const struct ipc_fork *f)
{
	if (f->network != 0)
		return door;
	door_set(-1);
	return -1;
}

int
door_filter(struct runner *r)
{
	const struct zygote *z = r->zygote;
	const struct filter *f = r->fork->kind == RUNNER_COMMAND
	    ? z->command_network_filter
	    : z->network_filter;
	struct ipc_listener m = {.net = r->fork->generation};

	if (f == NULL || door == -1) {
		errno = f == NULL ? ENOSYS : ENOTCONN;
		return -1;
	}
	m.listener = filter_listen(f);
	if (m.listener == -1)
		return -1;
	/* The frame has two numbers, so ipc_write() makes one sendmsg(2) and no
	 * other call. The filter, which is loaded now, allows sendmsg(2). */
	if (ipc_write(RUNNER_DOOR_FD, IPC_LISTENER, 0, &m, NULL) == -1)
		return -1;
	return close(m.listener) == -1 || close(RUNNER_DOOR_FD) == -1 ? -1 : 0;
}
