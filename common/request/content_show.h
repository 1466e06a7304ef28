/*
 * Shows the content of an approval request as a JSON object for people and
 * REST. The first bytes of the content decide its kind, not the kind that
 * admind says.
 */
#ifndef CONTENT_SHOW_H
#define CONTENT_SHOW_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

/* Appends the object to out. 0, or -1 if the content has no form of version.h,
 * callreq.h or grantreq.h, or is too large. */
int content_show_json(
    const void *preimage, size_t n, struct buf *out, struct err *);

#endif
