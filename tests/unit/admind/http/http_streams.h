/* Streams of keys whose admind is too busy to judge the key. */
#ifndef HTTP_STREAMS_H
#define HTTP_STREAMS_H

#include "ipc_peer.h"

/* Answers ACTIVITY_FOLLOW and SCRIPT_KEY_CHECK as admind might. 0, or -1: the
 * message broke the protocol. */
int http_streams_message(struct ipc_peer *, struct ipc_frame *);
/* The test: guesses keep admind busy, and end no stream of a good key at
 * once. */
void http_streams_busy(void **state);

#endif
