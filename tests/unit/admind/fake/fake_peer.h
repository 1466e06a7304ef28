/*
 * The other processes of unit tests: the functions of ipc_peer.h without a
 * socket. Each message to a peer waits until the test takes it, as a frame
 * that the codec made. The IPC table judges sender and receiver.
 */
#ifndef FAKE_PEER_H
#define FAKE_PEER_H

#include "ipc_peer.h"

/* A connected process of this role. */
struct ipc_peer *fake_peer(enum ipc_role);
/* A kept-up connection to one. */
struct ipc_client *fake_client(enum ipc_role);
void fake_client_up(struct ipc_client *, bool);
/* A listener that these peers came to. */
struct ipc_server *fake_server(struct ipc_peer *const *, size_t n);
void fake_peers_free(void); /* all of them */
/* The peer reads nothing: so many bytes wait to go out. */
void fake_peer_queue(struct ipc_peer *, size_t bytes);

/* Returns the number of messages to this peer that were not taken yet. */
unsigned fake_peer_waits(const struct ipc_peer *);
/* Takes the oldest message to this peer, which must be of this type; returns
 * its request id. The frame that msg points into lives until fake_peers_free().
 */
uint64_t fake_took(struct ipc_peer *, enum ipc_type, void *msg);
/* Answers the request that was taken last; NULL msg: with the failure instead,
 * as if the peer went. */
void fake_answers(struct ipc_peer *, enum ipc_type, const void *msg);
void fake_goes(struct ipc_peer *, enum failure);
/* Ends the oldest question that has no answer, as if its peer went. Returns
 * false if all have one. */
bool fake_peers_go(void);
/* A message as it arrives; freed with all. */
struct ipc_frame *fake_frame(enum ipc_type, uint64_t request, const void *msg);

#endif
