/* The source of an issuer's keys: given ones, an address, or discovery. */
#ifndef ACCESS_SOURCE_H
#define ACCESS_SOURCE_H

#include "access_read.h"

/* Reports a string whose bytes in the document are not the string itself. */
void access_source_plain(struct access_doc *, const struct access_at *);
/* Checks that the issuer has exactly one source. Puts ISSUER_KEYS_URL,
 * ISSUER_DISCOVERY and ISSUER_KEYS_HOST. Returns whether its keys are to be
 * fetched. */
bool access_source_read(
    struct access_doc *, const struct access_at *issuer, struct buf *record);

#endif
