/* Reads the two lists by which a client says which form of a file it wants
 * (RFC 9110). These functions depend on the parsed fields only, so tests call
 * them alone. */
#ifndef NEGOTIATE_H
#define NEGOTIATE_H

#include <stdbool.h>

#include "http1.h"

/* True if the client takes gzip, and not less gladly than the plain bytes
 * (Accept-Encoding, section 12.5.3). Without that field, or with a malformed
 * one, the answer is false: plain bytes suit every client. */
bool negotiate_gzip(const struct http1_request *);
/* True if the client already has the bytes of this strong tag, which includes
 * its quotes (If-None-Match, section 13.1.2, by the weak comparison). A
 * malformed list names no tag after its first error. */
bool negotiate_known(const struct http1_request *, const char *tag);

#endif
