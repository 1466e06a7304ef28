/*
 * Landlock rulesets (landlock(7)) with rules for paths. Each function returns
 * -1 with errno on failure.
 *
 * The numbers are the kernel's ABI (include/uapi/linux/landlock.h). Debian 12's
 * header ends at ABI 2, so the newer ones are defined here.
 */
#ifndef RULES_H
#define RULES_H

#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>

#define RULES_TRUNCATE  (1ULL << 14) /* ABI 3 */
#define RULES_IOCTL_DEV (1ULL << 15) /* ABI 5 */

/* Returns this kernel's Landlock ABI; 0: the kernel has no Landlock. */
int rules_abi(void);
/* Returns all file rights that this ABI knows. */
uint64_t rules_known(int abi);
/* Makes a ruleset that takes all file rights of this ABI, signals to outside
 * and abstract unix sockets outside (ABI 6), and with `tcp` TCP's bind and
 * connect (ABI 4). Returns its descriptor, which the caller closes. */
int rules_new(int abi, bool tcp);
/* Gives rights below a path back; rights that the ABI does not know must not be
 * in it. 0 or -1. */
int rules_allow(int ruleset, const char *path, uint64_t rights);
/* Puts the calling thread into the domain; needs no_new_privs. 0 or -1. */
int rules_enter(int ruleset);

#endif
