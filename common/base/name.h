/*
 * Valid names, and names with a special meaning.
 */
#ifndef NAME_H
#define NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Prefix of every management tool's name. No object of a user can have such a
 * name. */
#define NAME_MANAGEMENT "mcpbox_"

/* The principal, and the permission set, of local clients without a token. It
 * can't be a token's name, which always has a colon. */
#define NAME_LOCAL "local"

/* Tells whether this is a valid name, as INTERFACES defines names:
 * ^[a-z][a-z0-9]*(_[a-z0-9]+)*$, at most max bytes. */
bool name_valid(const char *, size_t, size_t max);
/* Tells whether the name has the prefix of management tools. A tool of this
 * name need not exist. */
bool name_is_management(const char *);
/* Tells whether this principal means the local clients without a token. */
bool name_is_local(const char *principal);

#endif
