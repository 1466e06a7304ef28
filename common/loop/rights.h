/*
 * Sockets whose other end a runner has, and the descriptors that come by them.
 *
 * A tool may attach descriptors to its messages (SCM_RIGHTS, unix(7)). They may
 * be of its own making, such as an epoll set of a million entries, whose last
 * close takes seconds. The kernel has that work done by the process that drops
 * the last reference: one that receives, one that reads without room for
 * descriptors, or one that closes the socket with the packet unread. That must
 * never be sandboxd or egress, which have one thread for all calls (decision
 * 0074).
 *
 * Where the kernel can (SO_PASSRIGHTS, Linux 6.16), the sender is refused.
 * Elsewhere a packet that brings descriptors is seen without being received,
 * and the socket, as it is, goes to a process that may wait (closer.h).
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

/* Can the kernel refuse descriptors at a socket of ours? */
bool rights_refusable(void);

/* Where the kernel can't: sets the socket to the process that closes for us
 * (owned from now on). Called once, before the first rights_guard. */
void rights_closer(int sock);

/*
 * Guards a new AF_UNIX socket, stream or packets, before any process has its
 * other end: descriptors are not taken from it any more. 0; -1 with errno
 * (ENOPROTOOPT: the kernel can't, and there is no closer).
 */
int rights_guard(int sock);

/* Would the next packet (not of a stream) bring descriptors? Receives nothing,
 * so it costs nothing; true: close it by rights_close. */
bool rights_come(int sock);

/* Receives from a guarded socket as recv(2) does, without waiting. -1 with
 * EPROTO: descriptors came with it, and nothing was received. */
ssize_t rights_recv(int sock, void *p, size_t n, int flags);

/* Closes a guarded socket. The other end is told at once. */
void rights_close(int sock);

#endif
