/* One issuer of an access document as a record ACCESS_ISSUER. */
#ifndef ACCESS_ISSUER_H
#define ACCESS_ISSUER_H

#include "access_read.h"

/* Checks an issuer and appends its record. resource: the document's; its v is
 * NULL if it is absent. */
void access_issuer_read(struct access_doc *, const struct access_at *issuer,
    const struct access_at *resource);

#endif
