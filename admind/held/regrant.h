/* After a change: the hosts that open calls may connect to, and the calls that
 * must end. */
#ifndef REGRANT_H
#define REGRANT_H

#include "admind.h"

/*
 * Tells the sandbox the present network grants of the servers of its open
 * calls, for the next connect of those calls. Call this when grants may have
 * changed. done(arg) comes when the sandbox knows the grants, or when the calls
 * are cancelled whose grants could not be sent. done may be NULL. Without calls
 * at the sandbox nothing is asked, and done is called from inside
 * regrant_run(). If memory runs out, done is called as well, and the next tick
 * tries again.
 */
void regrant_run(struct admind *, void (*done)(void *), void *arg);

/* withdraw.c: cancels running calls, and calls that are about to run, after
 * their versions stopped being callable. */
void withdraw_calls(struct admind *);

#endif
