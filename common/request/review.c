#include "review.h"

#include <string.h>

static const char *const modes[] = {[REVIEW_REQUIRE] = "require",
    [REVIEW_SECOND] = "second",
    [REVIEW_AUTOMATIC] = "automatic"};

static const char *const queues[REVIEW_QUEUES] = {"tool", "module", "network"};

static const struct {
	const char *name;
	uint8_t mode[REVIEW_QUEUES];
} profiles[] = {
    {"strict", {REVIEW_SECOND, REVIEW_SECOND, REVIEW_SECOND}},
    {"balanced", {REVIEW_REQUIRE, REVIEW_AUTOMATIC, REVIEW_REQUIRE}},
    {"permissive", {REVIEW_AUTOMATIC, REVIEW_AUTOMATIC, REVIEW_AUTOMATIC}},
};

enum { NPROFILES = sizeof(profiles) / sizeof(profiles[0]) };

const char *
review_mode_name(uint64_t mode)
{
	return mode >= REVIEW_REQUIRE && mode <= REVIEW_AUTOMATIC ? modes[mode]
								  : NULL;
}

const char *
review_queue_name(unsigned queue)
{
	return queue < REVIEW_QUEUES ? queues[queue] : NULL;
}

int
review_mode_find(struct ipc_bytes name, uint8_t *mode)
{
	for (unsigned m = REVIEW_REQUIRE; m <= REVIEW_AUTOMATIC; m++)
		if (ipc_streq(name, modes[m])) {
			*mode = (uint8_t)m;
			return 0;
		}
	return -1;
}

int
review_profile(struct ipc_bytes name, uint8_t mode[REVIEW_QUEUES])
{
	for (size_t i = 0; i < NPROFILES; i++)
		if (ipc_streq(name, profiles[i].name)) {
			memcpy(mode, profiles[i].mode, REVIEW_QUEUES);
			return 0;
		}
	return -1;
}

const char *
review_profile_name(const uint8_t mode[REVIEW_QUEUES])
{
	for (size_t i = 0; i < NPROFILES; i++)
		if (memcmp(mode, profiles[i].mode, REVIEW_QUEUES) == 0)
			return profiles[i].name;
	return NULL;
}
