/* One endpoint of an access document as a record ACCESS_ENDPOINT. */
#ifndef ACCESS_ENDPOINT_H
#define ACCESS_ENDPOINT_H

#include "access_read.h"

/* Checks the endpoints and appends their records. sets: the document's
 * permission sets, which an endpoint may name. */
void access_endpoints_read(struct access_doc *, const struct access_at *list,
    const struct access_at *sets);

#endif
