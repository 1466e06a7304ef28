/*
 * Synthetic addresses: the addresses of names inside a runner. Each net has its
 * own, given out in the order of asking; a connect to one means the name. They
 * lie in 240.0.0.0/4 (RFC 1112, reserved), where no real address is and the
 * policy refuses every other use.
 */
#ifndef NAMES_H
#define NAMES_H

#include "address.h"

/* Names of one call, and the bytes of each, at most. */
enum { NAMES_MAX = 1024, NAMES_NAME_MAX = 253 };

struct names {
	char **name; /* owned; index i is 240.0.0.1 + i */
	size_t n, cap;
};

void names_free(struct names *);
/* Gives a name (lower case, no final dot) its address. 0; -1: too many names,
 * or no memory. */
int names_address(struct names *, const char *name, struct address *);
/* Returns the name of an address, or NULL: no name was given it. */
const char *names_of(const struct names *, const struct address *);
/* Is it an address of that block at all? */
bool names_synthetic(const struct address *);

#endif
