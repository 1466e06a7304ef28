/*
 * Facts that a reviewer sees next to the difference of two versions.
 */
#ifndef VERSION_BESIDE_H
#define VERSION_BESIDE_H

#include "buf.h"
#include "bytes.h"

/*
 * Adds members to the JSON object in *json: `marks` of this version
 * (version_marks.h), and rejections, rejected_before and secrets_missing from
 * circumstances. circumstances comes from admind: JSON members without braces.
 * No other member of circumstances is added, and none at all if circumstances
 * is not JSON. A failure sets json->failed.
 */
void version_beside(struct buf *json, const uint8_t *preimage, size_t n,
    struct ipc_bytes circumstances);

#endif
