/*
 * The address policy: gives each address a class, without looking at grants. No
 * I/O. judge.c has the blocks of addresses and the document that defines each
 * block.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "address.h"

enum judge_class {
	JUDGE_PUBLIC = 0,   /* global unicast */
	JUDGE_LAN = 1,      /* open only by a grant of the address and port */
	JUDGE_LOOPBACK = 2, /* open only by such a grant */
	JUDGE_NEVER = 3     /* closed, whatever is granted */
};

struct judge_verdict {
	enum judge_class class;
	const char *what;   /* the block's use: "private use" */
	const char *source; /* "RFC 1918" */
};

/* The lengths that a NAT64 prefix may have, in bits (RFC 6052, section 2.2). */
enum { JUDGE_PREFIX_LENGTHS = 6 };
extern const uint8_t judge_prefix_bits[JUDGE_PREFIX_LENGTHS];
/* Extracts the IPv4 address that follows a NAT64 prefix of `bits` bits in an
 * IPv6 address. */
void judge_embedded(const uint8_t b[16], unsigned bits, uint8_t out[4]);

/* NAT64 prefixes of this network (nat64.h). A network has one or two; while it
 * changes them, a few more. */
enum { JUDGE_PREFIXES_MAX = 8 };
struct judge_prefix {
	uint8_t b[16]; /* zeros after the first `bits` bits */
	uint8_t bits;
};
struct judge_prefixes {
	size_t n;
	struct judge_prefix prefix[JUDGE_PREFIXES_MAX];
};

/* Judges one address, and every IPv4 address inside it. */
struct judge_verdict judge_address(
    const struct address *, const struct judge_prefixes *);

/* Finds the IPv4 addresses inside an IPv6 address. Returns their number, at
 * most JUDGE_INSIDE. */
enum { JUDGE_INSIDE = 5 + JUDGE_PREFIXES_MAX };
size_t judge_inside(const struct address *, const struct judge_prefixes *,
    struct address out[JUDGE_INSIDE]);

#endif
