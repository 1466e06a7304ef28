/* What open calls may connect to, and which may go on, after a change. */
#ifndef REGRANT_H
#define REGRANT_H

#include "admind.h"

/*
 * Servers' network grants may have changed: tells the sandbox what servers of
 * its open calls are granted now, for their next connect. done(arg) once it
 * knows, or the calls it could not be told for are cancelled; may be NULL.
 * Without calls at the sandbox nothing is asked, and done is called from
 * inside.
 */
void regrant_run(struct admind *, void (*done)(void *), void *arg);

/* withdraw.c. Versions stopped being callable: cancels what runs or is about
 * to. */
void withdraw_calls(struct admind *);

#endif
