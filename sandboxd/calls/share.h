/*
 * Limits the part of the sandbox that one principal may use, so that the client
 * of one token starves neither other tokens nor local clients. No I/O.
 *
 * `local` has no limit here: only the sandbox's own bounds apply to it. Every
 * other principal may use a part of each resource. All principals but `local`
 * together may use a larger part, and the rest is left for `local`. The parts
 * of one principal, and of all but `local` together, are:
 *
 *	slots			a half		three quarters
 *	calls that wait		a quarter	a half
 *	calls parked		a quarter	a half
 *	results to be judged	a quarter	a half
 *
 * A part is never less than one. A call whose principal has used its part of
 * the slots waits in the queue, and other calls pass it.
 *
 * The principal is taken from the intent, which the vault sealed into the
 * context, so a gateway can't choose the principal, which is used for this
 * counting only.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc.h"

enum share_of { SHARE_SLOTS, SHARE_QUEUE, SHARE_PARKED, SHARE_VERIFY, SHARES };

struct shares;
struct share;

struct shares *share_new(void);
void share_free(struct shares *);
/* Returns the principal's share, referenced; NULL without memory. */
struct share *share_get(struct shares *, struct ipc_bytes principal);
void share_put(struct share *); /* NULL is harmless */

/* Tells whether the principal may take n more of a resource of which there are
 * `all`: its own part, and the part of all principals but `local`, must have
 * room. */
bool share_fits(const struct share *, enum share_of, size_t n, size_t all);
void share_take(struct share *, enum share_of, size_t n);
void share_leave(struct share *, enum share_of, size_t n);
size_t share_has(const struct share *, enum share_of);
/* Returns the principal's part of `all`, the whole for `local`. */
size_t share_part(const struct share *, enum share_of, size_t all);

#endif
