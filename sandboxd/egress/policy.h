/*
 * What a connection needs: its host in both lists of the net, and each address
 * one that may be connected to. False: why says which is missing, in one
 * sentence for the tool's author and the record.
 */
#ifndef POLICY_H
#define POLICY_H

#include "net.h"

/* host: a name, or an address's text. */
bool policy_granted(const struct net *, enum netgrant_proto, const char *host,
    bool is_address, uint16_t port, char *why, size_t n);
/* Is it closed, whatever is granted? True: why says for what reason. */
bool policy_never(const struct egress *, const struct address *, uint16_t port,
    char *why, size_t n);
/* That, or a listener of ours: would no grant help? */
bool policy_closed(const struct net *, enum netgrant_proto,
    const struct address *, uint16_t port);
/* Asked of every address of an answer, after it came and before anything is
 * sent. */
bool policy_address(const struct net *, enum netgrant_proto,
    const struct address *, uint16_t port, char *why, size_t n);

#endif
