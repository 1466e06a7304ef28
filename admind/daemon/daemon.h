/* The top room: connections, dispatch of messages, the tick, and the orderly
 * end. */
#ifndef DAEMON_H
#define DAEMON_H

#include "op.h"

/* links_listen() opens the four sockets that admind listens on; called before
 * confinement. links_connect() connects to the three other processes; called
 * after confinement. 0, or -1 with err. */
int links_listen(struct admind *, struct err *);
int links_connect(struct admind *, struct err *);

/* drain.c: makes SIGTERM and SIGHUP wait for the requests in work. */
void drain_start(struct admind *);
/* Returns whether admind is ending and this frame is a new request of a client.
 * If so, the request was refused. */
bool drain_refuses(struct link *, const struct ipc_frame *);

/* ---- tick.c ---- */
int tick_start(struct admind *, struct err *);
void tick_db_up(struct admind *);

#endif
