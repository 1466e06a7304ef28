/*
 * Synthetic addresses: inside a runner each name has such an address, and a
 * connect to the address means a connect to the name. Each net gives out its
 * own addresses, in the order of the questions. Synthetic addresses are in
 * 240.0.0.0/4 (RFC 1112, reserved), which has no real addresses. The policy
 * refuses an address in this block that has no name.
 */
#ifndef NAMES_H
#define NAMES_H

#include "address.h"

/* The most names of one call, and the most bytes of a name. */
enum { NAMES_MAX = 1024, NAMES_NAME_MAX = 253 };

struct names {
	char **name; /* owned; index i is 240.0.0.1 + i */
	size_t n, cap;
};

void names_free(struct names *);
/* Gives a name (lower case, no final dot) its address. 0; -1: too many names,
 * or no memory. */
int names_address(struct names *, const char *name, struct address *);
/* Returns the name that has this address, or NULL. */
const char *names_of(const struct names *, const struct address *);
/* Tells whether the address is in 240.0.0.0/4, but not the broadcast
 * address. */
bool names_synthetic(const struct address *);

#endif
