/* The top: listeners and dispatch, the tick, the end. */
#ifndef DAEMON_H
#define DAEMON_H

#include "op.h"

/* The four listeners (before confinement), the three clients (after it). */
int links_listen(struct admind *, struct err *);
int links_connect(struct admind *, struct err *);

/* drain.c: SIGTERM and SIGHUP wait for what is in work. */
void drain_start(struct admind *);
/* It ends, and this is new work of a client: refused. */
bool drain_refuses(struct link *, const struct ipc_frame *);

/* ---- tick.c ---- */
int tick_start(struct admind *, struct err *);
void tick_db_up(struct admind *);

#endif
