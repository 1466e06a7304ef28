/*
 * Counts how much of this process each principal uses, so that each leaves room
 * for other principals. No I/O.
 *
 * `local` is every client of a listener that asks for no credential. Its part
 * is not limited, since a limit would only keep out clients that are `local`,
 * too. Each other principal has at most a quarter of the requests served at
 * once, of their bytes, and of the results that are kept for clients that are
 * away. All principals but `local` together have at most three quarters, so
 * that the last quarter is left for `local`.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>

struct shares;
struct share;

struct shares *share_new(void);
void share_free(struct shares *); /* no share may be held any more */

/* Returns the principal's share, referenced; NULL without memory. */
struct share *share_get(struct shares *, const char *principal);
struct share *share_ref(struct share *);
void share_put(struct share *); /* NULL is harmless */

/* Counts one more request of so many bytes. `requests` and `all_bytes` are the
 * limits of the whole process. false: the part of the principal, or of all
 * principals but `local`, is used up, and nothing was counted. */
bool share_enter(
    struct share *, size_t bytes, unsigned requests, size_t all_bytes);
void share_leave(struct share *, size_t bytes);
/* Counts the bytes of a kept result in the same way. */
bool share_keep(struct share *, size_t bytes, size_t all_bytes);
void share_drop(struct share *, size_t bytes);

#endif
