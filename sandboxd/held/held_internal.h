/* Shared by held.c and held_read.c only. */
#ifndef HELD_INTERNAL_H
#define HELD_INTERNAL_H

#include "held.h"
#include "tlv.h"

/*
 * Reads h->plain into h, and fills limits up from the defaults. The plaintext
 * comes from the vault, which is trusted, but the vault made it from material
 * that admind chose. So numbers are bounded, and code without an approval gets
 * neither secrets nor network. 0, or -1 with the failure.
 */
int held_read(struct held *h, uint64_t now_ms, const uint64_t dflt[LIMIT_COUNT],
    struct err *);
/* Appends the host of a field as a line. */
int held_read_host(struct buf *list, const struct tlv *, struct err *);
int held_read_server(struct ipc_id *server, const struct tlv *, struct err *);

#endif
