/*
 * The address policy: what an address is, whatever anybody is granted.
 * Data, no I/O: the blocks stand in judge.c with the document that has each.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "address.h"

enum judge_class {
	JUDGE_PUBLIC = 0,   /* global unicast */
	JUDGE_LAN = 1,      /* only by a grant of that address and port */
	JUDGE_LOOPBACK = 2, /* likewise */
	JUDGE_NEVER = 3     /* whatever is granted */
};

struct judge_verdict {
	enum judge_class class;
	const char *what;   /* "private use": what the block is for */
	const char *source; /* "RFC 1918" */
};

/* The verdict on one address, after every IPv4 address inside it was judged. */
struct judge_verdict judge_address(const struct address *);

/* The IPv4 addresses inside an IPv6 one, at most so many; how many. */
enum { JUDGE_INSIDE = 5 };
size_t judge_inside(const struct address *, struct address out[JUDGE_INSIDE]);

#endif
