/*
 * The rules for a connection: both lists of the net must have its host, and
 * each address of the host must be allowed. If the connection is not allowed,
 * why (n bytes) gets the reason: a sentence for the tool's author and the
 * record.
 */
#ifndef POLICY_H
#define POLICY_H

#include "net.h"

enum policy {
	POLICY_OPEN = 0,
	POLICY_MISSING = 1, /* a grant or a declaration would open it */
	POLICY_NEVER = 2    /* nothing would open it */
};

/* Judges a host by the two lists. host: a name, or the text of an address. */
enum policy policy_granted(const struct net *, enum netgrant_proto,
    const char *host, bool is_address, uint16_t port, char *why, size_t n);
/* Judges one address. Called for every address of an answer before anything is
 * sent to any of these addresses. */
enum policy policy_address(const struct net *, enum netgrant_proto,
    const struct address *, uint16_t port, char *why, size_t n);
/* Does what policy_granted and policy_address do, for an address that a tool
 * named itself. */
enum policy policy_literal(const struct net *, enum netgrant_proto,
    const struct address *, uint16_t port, char *why, size_t n);

#endif
