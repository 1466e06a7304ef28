/*
 * Sockets whose other end a runner has, and the descriptors that come by them.
 *
 * A tool may attach descriptors to its messages (SCM_RIGHTS, unix(7)). The tool
 * may have made them itself, such as an epoll set of a million entries, whose
 * last close takes seconds. The kernel has that work done by the process that
 * drops the last reference: that process receives the packet, reads the packet
 * without room for descriptors, or closes the socket with the packet unread.
 * This must never be sandboxd or egress, which have one thread for all calls
 * (decision 0074).
 *
 * If the kernel can (SO_PASSRIGHTS, Linux 6.16), it refuses the sender. On
 * other kernels a packet that brings descriptors is noticed without being
 * received. Then the socket, with the packet in it, goes to a process that may
 * wait (closer.h).
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

/* Tells whether the kernel can refuse descriptors at a socket of ours. */
bool rights_refusable(void);

/* Sets the socket that leads to the closer, which closes sockets for us if the
 * kernel can't refuse descriptors. sock is owned from now on. Called once,
 * before the first rights_guard. */
void rights_closer(int sock);

/*
 * Guards a new AF_UNIX socket (stream or packets), before any process has the
 * other end. We never take descriptors from a guarded socket. 0, or -1 with
 * errno (ENOPROTOOPT: the kernel can't refuse, and there is no closer).
 */
int rights_guard(int sock);

/* Tells whether the next packet (not of a stream) would bring descriptors.
 * Receives nothing, so no descriptor is closed here. If true, close the socket
 * by rights_close. */
bool rights_come(int sock);

/* Receives from a guarded socket as recv(2) does, without waiting. -1 with
 * EPROTO: descriptors came with the bytes, and nothing was received. */
ssize_t rights_recv(int sock, void *p, size_t n, int flags);

/* Closes a guarded socket. The other end sees the close at once. */
void rights_close(int sock);

#endif
