/* Contexts as the vault seals them, and a set that holds them. */
#ifndef HELD_RIG_H
#define HELD_RIG_H

#include "held.h"

extern const uint8_t held_rig_key[KEY_LEN];
extern const struct ipc_id held_rig_epoch;
extern const struct ipc_bytes held_rig_args; /* of every context */
extern uint64_t held_rig_counter;            /* the last one's number */

int held_rig_setup(void **state); /* a struct held_set with the key */
int held_rig_teardown(void **state);
struct ipc_id held_rig_id(uint8_t n);
/* A context with these extra fields (a TLV list may be appended). */
void held_rig_seal(struct buf *out, const struct ipc_id *epoch, struct ipc_id,
    uint8_t listener, uint8_t kind, uint64_t number, const struct buf *more);
/* Seals one with the next number and hands it in. */
int held_rig_add(struct held_set *, uint8_t n, uint8_t listener, uint8_t kind,
    const struct buf *more, struct err *);
/* A context with these fields and no code of its own; NULL if refused. */
struct held *held_rig_with(
    struct held_set *, uint8_t kind, const struct buf *more);

#endif
