/* Shared by held.c and held_read.c only. */
#ifndef HELD_INTERNAL_H
#define HELD_INTERNAL_H

#include "held.h"
#include "tlv.h"

/*
 * Reads h->plain into h, with limits filled up from the defaults. It comes from
 * the vault, which is trusted, but from material that admind chose: numbers are
 * bounded, and what no approval is behind gets neither secrets nor network. 0,
 * or -1 with the failure.
 */
int held_read(struct held *h, uint64_t now_ms, const uint64_t dflt[LIMIT_COUNT],
    struct err *);
/* A field with a host, as a line more. */
int held_read_host(struct buf *list, const struct tlv *, struct err *);
int held_read_server(struct ipc_id *server, const struct tlv *, struct err *);

#endif
