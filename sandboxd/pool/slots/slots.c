/* See slots.h. */
#include <string.h>
#include <unistd.h>

#include "slots.h"

void
slots_init(struct slots *t)
{
	memset(t, 0, sizeof(*t));
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		t->s[i].pidfd = -1;
}

struct slot *
slots_get(struct slots *t, uint32_t number, uint64_t generation,
    enum slot_state state)
{
	if (number >= SLOTS_MAX || t->s[number].state != state ||
	    t->s[number].generation != generation)
		return NULL;
	return &t->s[number];
}

int
slots_set(struct slots *t, uint32_t number, enum slot_state to,
    uint64_t generation, int pidfd)
{
	struct slot *s;

	if (number >= SLOTS_MAX)
		return -1;
	s = &t->s[number];
	switch (to) {
	case SLOT_FORKING:
		if (s->state != SLOT_FREE)
			return -1;
		s->generation = generation;
		s->killed = false;
		t->forking++;
		break;
	case SLOT_LIVE:
		if (s->state != SLOT_FORKING || s->generation != generation ||
		    pidfd < 0)
			return -1;
		s->pidfd = pidfd;
		t->forking--;
		break;
	case SLOT_FREE:
		if (s->state == SLOT_FREE || s->generation != generation)
			return -1;
		if (s->state == SLOT_FORKING)
			t->forking--;
		if (s->pidfd >= 0)
			close(s->pidfd);
		s->pidfd = -1;
		break;
	}
	s->state = to;
	return 0;
}
