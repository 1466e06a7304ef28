/* One issuer of an access document as a record ACCESS_ISSUER. */
#ifndef ACCESS_ISSUER_H
#define ACCESS_ISSUER_H

#include "access_read.h"

/* Checks an issuer and appends its record. resource, endpoints: the document's;
 * v is NULL of one that is absent. */
void access_issuer_read(struct access_doc *, const struct access_at *issuer,
    const struct access_at *resource, const struct access_at *endpoints);

#endif
