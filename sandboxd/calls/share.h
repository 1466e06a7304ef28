/*
 * Limits what one principal may hold of the sandbox, so that the client of one
 * token starves neither other tokens nor local clients. No I/O.
 *
 * `local` has no share: only the sandbox's own bounds apply to it. Every other
 * principal has a part of each thing, and all of them together have a larger
 * part, which still leaves the rest to `local`. The parts of one principal and
 * of all together are:
 *
 *	slots			a half		three quarters
 *	calls that wait		a quarter	a half
 *	calls parked		a quarter	a half
 *	results to be judged	a quarter	a half
 *
 * A part of few is at least one. A call over its part of slots waits in the
 * queue, and others pass it.
 *
 * The principal is the one in the intent, which the vault sealed into the
 * context, so a gateway can't choose it. It is used for this counting only.
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

/* May the share have n more of `all`? */
bool share_fits(const struct share *, enum share_of, size_t n, size_t all);
void share_take(struct share *, enum share_of, size_t n);
void share_leave(struct share *, enum share_of, size_t n);
size_t share_has(const struct share *, enum share_of);
/* Returns the principal's part of `all`. */
size_t share_part(const struct share *, enum share_of, size_t all);

#endif
