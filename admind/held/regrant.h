/* After a change: the hosts that open calls may connect to, and the calls that
 * must end. */
#ifndef REGRANT_H
#define REGRANT_H

#include "admind.h"

/*
 * Tells the sandbox the present network grants of the servers of its open
 * calls, for the next connect of those calls. Call this when grants may have
 * changed. done(arg, told) comes once each of those calls has an outcome. told:
 * the sandbox knows the grants, or the calls are cancelled whose grants could
 * not be sent. !told: calls may still have earlier grants, since memory or the
 * database was missing, and the next tick tries again. done may be NULL.
 * Without calls at the sandbox nothing is asked, and done is called from inside
 * regrant_run(), as without memory.
 */
void regrant_run(struct admind *, void (*done)(void *, bool told), void *arg);

/* withdraw.c: cancels running calls, and calls that are about to run, after
 * their versions stopped being callable. */
void withdraw_calls(struct admind *);

#endif
