/*
 * Shows the content of an approval request as a JSON object for people and
 * REST. Its own first bytes decide its kind, whatever admind calls it.
 */
#ifndef CONTENT_SHOW_H
#define CONTENT_SHOW_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

/* 0; -1: a content of none of version.h, callreq.h, grantreq.h, or too
 * large. */
int content_show_json(
    const void *preimage, size_t n, struct buf *out, struct err *);

#endif
