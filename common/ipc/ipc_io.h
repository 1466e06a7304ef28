/*
 * Frames on a SOCK_SEQPACKET descriptor: one sendmsg or recvmsg per frame.
 * Sockets may be blocking or non-blocking. No event loop is used.
 */
#ifndef IPC_IO_H
#define IPC_IO_H

#include <sys/types.h>

#include "ipc.h"

/*
 * Sends one message. Returns 0, or -1 with err; errno is EAGAIN if the socket
 * is full (then nothing was sent). A descriptor in the message stays the
 * caller's.
 */
int ipc_write(
    int sock, enum ipc_type, uint64_t request, const void *msg, struct err *);

/*
 * Receives one frame. Returns 1 if f is filled (free it), 0 if the peer closed,
 * or -1. With -1 errno is EAGAIN if no packet is there; after any other error
 * close the socket. Checks the header, the packet's size and the number of
 * descriptors (as many as the table says). A memfd must be sealed against
 * writing, growing and shrinking, and within the message's limit. All received
 * descriptors are CLOEXEC; surplus ones are closed.
 */
int ipc_read(int sock, struct ipc_frame *f, struct err *);

/* Low level, for queues: an encoded frame ready for sendmsg. */
struct ipc_packet {
	struct buf bytes;
	int fds[2]; /* memfd and/or dup of a passed descriptor; owned */
	unsigned nfds;
};
int ipc_packet_make(struct ipc_packet *, enum ipc_type, uint64_t request,
    const void *msg, struct err *);
/* Sends a packet. 0, or -1 with errno (EAGAIN: try later). */
int ipc_packet_send(int sock, const struct ipc_packet *);
void ipc_packet_free(struct ipc_packet *);

/* Connects to a named SEQPACKET socket. Returns fd (CLOEXEC, non-blocking if
 * asked) or -1 with err. */
int ipc_connect_path(const char *path, bool nonblock, struct err *);
/* Binds and listens (mode 0666: the directory guards access) and replaces an
 * old socket of that name. fd or -1. */
int ipc_listen_path(const char *path, struct err *);
/* Gets SO_PEERCRED's uid and pid of a connection made to a listener. 0 or
 * -1. */
int ipc_peer_cred(int sock, uid_t *uid, pid_t *pid, struct err *);

/* Opens a blocking client: connects and exchanges HELLO. For mcpboxctl and
 * tests. */
int ipc_client_open(const char *path, enum ipc_role local, enum ipc_role peer,
    const char *process, struct err *);
/* Sends a request and waits for its final answer, for timeout_ms at most. Other
 * frames, PARTs too, are dropped. On 0 *answer is filled: free it. */
int ipc_client_call(int sock, enum ipc_type, const void *msg, int timeout_ms,
    struct ipc_frame *answer, struct err *);

#endif
