/*
 * The setting `never`: addresses that no tool reaches, whatever it is granted.
 * Comma-separated: 10.0.0.5, 10.1.0.0/16, 192.0.2.1:5432, [2001:db8::1]:5432,
 * 2001:db8::/32.
 */
#ifndef NEVER_H
#define NEVER_H

#include "address.h"
#include "err.h"

enum { NEVER_MAX = 64 }; /* a person writes the list */

struct never_entry {
	struct address address;
	unsigned bits;
	uint16_t port; /* 0: every port */
};

struct never {
	struct never_entry entries[NEVER_MAX];
	size_t n;
};

/* Reads the setting. 0, or -1 with the error. */
int never_read(const char *text, struct never *, struct err *);
bool never_has(const struct never *, const struct address *, uint16_t port);

#endif
