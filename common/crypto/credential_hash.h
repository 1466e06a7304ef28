/*
 * The digest by which processes name a credential to each other: gatewayd
 * remembers an identity by it, and CREDENTIAL_ENDED carries it.
 */
#ifndef CREDENTIAL_HASH_H
#define CREDENTIAL_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

/* Writes SHA-256 of the text alone if via is 0 (VIA_AUTHORIZATION), as API
 * tokens are stored; otherwise SHA-256 of the byte via and then the text. via:
 * enum credential_via of ipc_values.h. Aborts without memory, like sha256(). */
void credential_hash(
    uint8_t via, const void *text, size_t n, struct ipc_hash *out);

#endif
