/*
 * Sockets whose other end a runner has, and the descriptors that come by them.
 *
 * A tool may attach descriptors to what it sends (SCM_RIGHTS, unix(7)): of its
 * own making, such as an epoll set of a million entries, whose last close takes
 * seconds. The kernel has that work done by whoever drops the last reference:
 * who receives, who reads without room for descriptors, who closes the socket
 * with the packet unread. That must never be sandboxd or egress, of which all
 * calls have one thread (decision 0074).
 *
 * Where the kernel can (SO_PASSRIGHTS, Linux 6.16), the sender is refused.
 * Elsewhere what brings descriptors is seen without being received, and the
 * socket, as it is, goes to a process that may wait (closer.h).
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

/* Can the kernel refuse descriptors at a socket of ours? */
bool rights_refusable(void);

/* Where it can't: the socket to the process that closes for us (owned from now
 * on), once, before the first rights_guard. */
void rights_closer(int sock);

/*
 * For a new AF_UNIX socket, stream or packets, before anybody has its other
 * end: descriptors are not taken from it any more. 0; -1 with errno
 * (ENOPROTOOPT: the kernel can't, and there is no closer).
 */
int rights_guard(int sock);

/* Would the next packet (not of a stream) bring descriptors? Receives nothing,
 * so it costs nothing; true: close it by rights_close. */
bool rights_come(int sock);

/* recv(2) without waiting, of a guarded socket. -1 with EPROTO: descriptors
 * came with it, and nothing was received. */
ssize_t rights_recv(int sock, void *p, size_t n, int flags);

/* close(2) of a guarded socket. The other end is told at once. */
void rights_close(int sock);

#endif
