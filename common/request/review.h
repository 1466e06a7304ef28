/*
 * The modes in which requests are reviewed, and the profiles that name three of
 * them at once. docs/decisions/0038.
 */
#ifndef REVIEW_H
#define REVIEW_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum review_mode {
	REVIEW_REQUIRE = 1,  /* one person */
	REVIEW_SECOND = 2,   /* two different people */
	REVIEW_AUTOMATIC = 3 /* no person, if that is allowed at all */
};

enum review_queue { REVIEW_TOOL, REVIEW_MODULE, REVIEW_NETWORK, REVIEW_QUEUES };

enum {
	/* Days for which automatic modes hold. People forget such modes, so the
	 * modes end by themselves. */
	REVIEW_DAYS_MAX = 90,
	REVIEW_DAYS_DEFAULT = 30
};

/* The next two functions return NULL for a number that is no mode or no
 * queue. */
const char *review_mode_name(uint64_t);
const char *review_queue_name(unsigned);
/* Finds a mode by its name. 0 or -1. */
int review_mode_find(struct ipc_bytes name, uint8_t *mode);
/* Finds the modes of strict, balanced or permissive, by enum review_queue. 0 or
 * -1. */
int review_profile(struct ipc_bytes name, uint8_t mode[REVIEW_QUEUES]);
/* Returns the profile that has these modes, or NULL if there is none. */
const char *review_profile_name(const uint8_t mode[REVIEW_QUEUES]);

#endif
