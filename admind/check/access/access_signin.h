/* Administrators that sign in by an issuer (docs/decisions/0105). */
#ifndef ACCESS_SIGNIN_H
#define ACCESS_SIGNIN_H

#include "access_read.h"

/* Checks `sign_in` of each issuer, and `administrators` of the document.
 * Appends a record ACCESS_SIGN_IN or ACCESS_ADMINISTRATOR for each. */
void access_signin_read(struct access_doc *, const struct access_at *document,
    const struct access_at *issuers);

#endif
