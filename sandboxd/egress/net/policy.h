/*
 * The rules for a connection: both lists of the net must have its host, and
 * each address must be one that may be connected to. If it is not open, why
 * says what is missing, in one sentence for the tool's author and the record.
 */
#ifndef POLICY_H
#define POLICY_H

#include "net.h"

enum policy {
	POLICY_OPEN = 0,
	POLICY_MISSING = 1, /* a grant or a declaration would open it */
	POLICY_NEVER = 2    /* nothing would */
};

/* host: a name, or an address's text. */
enum policy policy_granted(const struct net *, enum netgrant_proto,
    const char *host, bool is_address, uint16_t port, char *why, size_t n);
/* Judges every address of an answer, after it came and before anything is
 * sent. */
enum policy policy_address(const struct net *, enum netgrant_proto,
    const struct address *, uint16_t port, char *why, size_t n);
/* Does both for an address that a tool named itself. */
enum policy policy_literal(const struct net *, enum netgrant_proto,
    const struct address *, uint16_t port, char *why, size_t n);

#endif
