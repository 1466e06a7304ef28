/*
 * What an approval request is about, as a JSON object for people and REST: of
 * whatever kind its own first bytes say, whatever admind calls it.
 */
#ifndef CONTENT_SHOW_H
#define CONTENT_SHOW_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

/* 0; -1: it is none of version.h, callreq.h, grantreq.h, or too large. */
int content_show_json(
    const void *preimage, size_t n, struct buf *out, struct err *);

#endif
