/*
 * What one principal holds of this process, so that it leaves room for others.
 * No I/O.
 *
 * `local` is whoever reaches a listener that asks for no credential; it has no
 * share, since whoever could be kept out by it is `local` too. Everybody else
 * has a quarter at most: of the requests served at once, of their bytes, of the
 * results that are kept for clients that are away; and all of them together
 * three quarters, so that the last one is `local`'s.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>

struct shares;
struct share;

struct shares *share_new(void);
void share_free(struct shares *); /* nobody may hold one any more */

/* The principal's, referenced; NULL without memory. */
struct share *share_get(struct shares *, const char *principal);
struct share *share_ref(struct share *);
void share_put(struct share *); /* NULL is harmless */

/*
 * One request more, of so many bytes, when all of them may be `requests` and
 * `all_bytes`. false: it has its part already, and nothing was counted.
 */
bool share_enter(
    struct share *, size_t bytes, unsigned requests, size_t all_bytes);
void share_leave(struct share *, size_t bytes);
/* The same of bytes kept. */
bool share_keep(struct share *, size_t bytes, size_t all_bytes);
void share_drop(struct share *, size_t bytes);

#endif
