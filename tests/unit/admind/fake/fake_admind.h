/*
 * admind's core for unit tests: `struct admind` as main makes it, with a fake
 * database and fake processes around it, all there and ready. A room above is
 * linked as it is.
 */
#ifndef FAKE_ADMIND_H
#define FAKE_ADMIND_H

#include "fake_db.h"
#include "fake_peer.h"
#include "op.h"

struct fake {
	struct admind *a;
	struct ipc_peer *check, *vault, *sandboxd, *local, *tunnel;
	struct link *gateway;   /* at the local listener */
	struct link *tunnelled; /* at the tunnel's */
	struct link *sandbox;
	char run_dir[32];
};

/* Its run_dir outlives it if `again` is its own. */
void fake_admind(struct fake *, const char *again);
/* Ends all statements and questions that the test left open, so that admind's
 * own code frees their owners. */
void fake_end_all(void);
/* Ends all, then frees. keep: its run_dir stays, for the next life. */
void fake_admind_free(struct fake *, bool keep);

#endif
