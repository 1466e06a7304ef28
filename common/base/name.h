/*
 * Names: the valid ones, and the ones with a meaning of their own.
 */
#ifndef NAME_H
#define NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The name of a management tool begins so. No object of a user can have such a
 * name. */
#define NAME_MANAGEMENT "mcpbox_"

/* The principal, and the permission set, of local clients without a token. A
 * token's name has a colon. */
#define NAME_LOCAL "local"

/* Names as INTERFACES fixes them: ^[a-z][a-z0-9]*(_[a-z0-9]+)*$ */
bool name_valid(const char *, size_t, size_t max);
/* Is this the name of a management tool, of one that exists or of none? */
bool name_is_management(const char *);
/* Is this principal the local clients without a token? */
bool name_is_local(const char *principal);

#endif
