/*
 * sock_diag(7): the kernel's counts for a TCP socket that another process
 * holds, found by its addresses and cookie. Reading needs no capability.
 */
#ifndef DIAG_H
#define DIAG_H

#include "address.h"

struct diag {
	int ask;  /* netlink socket for questions; -1: the kernel has none */
	int gone; /* netlink socket for messages on destroyed sockets; or -1 */
};

/* A socket's identity in this network namespace. */
struct diag_socket {
	struct address local, remote;
	uint16_t local_port, remote_port;
	uint64_t cookie;
};

struct diag_counts {
	uint64_t in, out; /* bytes of payload */
	bool established; /* is, or was, connected */
};

void diag_open(struct diag *);
void diag_close(struct diag *);
/* Reads the identity of this socket. 0 or -1. */
int diag_socket(int sock, struct diag_socket *);
/* Asks for the counts. 1: counted, 0: there is no such socket any more, -1: no
 * answer. */
int diag_ask(struct diag *, const struct diag_socket *, struct diag_counts *);
/* Takes the cookie and counts of the next destroyed socket. 1, or 0 if there is
 * none now. */
int diag_next_gone(struct diag *, uint64_t *cookie, struct diag_counts *);

#endif
