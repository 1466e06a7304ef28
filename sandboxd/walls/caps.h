/*
 * Capabilities (capabilities(7)) of the calling thread. Each function returns
 * 0, or -1 with errno.
 */
#ifndef CAPS_H
#define CAPS_H

#include <stdint.h>

/* More capabilities than any kernel has. PR_CAPBSET_DROP fails with EINVAL
 * after the last one. */
enum { CAPS_END = 64 };

/* Makes the effective and the permitted set these bits, and the inheritable set
 * empty. */
int caps_set(uint64_t keep);
/* Drops all capabilities but these bits from the bounding set. Needs
 * CAP_SETPCAP. */
int caps_bound(uint64_t keep);
/* Drops all capabilities, then reads all five sets back. EPERM: a set is not
 * empty, so the caller must not go on. */
int caps_none(void);

#endif
