/* The slots of the pool: their owners and uids. See pool.h. */
#include "ids.h"
#include "pool_internal.h"

struct pool_entry *
pool_entry(struct pool *p, uint32_t slot, uint64_t generation)
{
	if (slot >= p->nslots || p->slot[slot].owner == NULL ||
	    p->slot[slot].generation != generation)
		return NULL;
	return &p->slot[slot];
}

void *
pool_release(struct pool *p, struct pool_entry *s)
{
	void *owner = s->owner;

	s->owner = NULL;
	p->busy--;
	return owner;
}

/* Returns the next uid of the rotation that no busy slot has. Such a uid
 * exists, because the pool has at least as many uids as slots, and one slot is
 * free. */
static uint32_t
pick_uid(struct pool *p)
{
	for (;;) {
		uint32_t uid = p->next_uid;
		bool busy = false;

		p->next_uid = uid >= p->uids ? POOL_UID_FIRST : uid + 1;
		for (unsigned i = 0; i < p->nslots && !busy; i++)
			busy =
			    p->slot[i].owner != NULL && p->slot[i].uid == uid;
		if (!busy)
			return uid;
	}
}

int
pool_take(struct pool *p, void *owner, struct pool_slot *out)
{
	struct pool_entry *s;

	if (!p->ready)
		return -1;
	for (unsigned i = 0; i < p->nslots; i++) {
		unsigned n = (p->next_slot + i) % p->nslots;

		s = &p->slot[n];
		if (s->owner != NULL)
			continue;
		p->next_slot = n + 1;
		s->uid = pick_uid(p);
		s->generation = ++p->slot_generation;
		s->owner = owner;
		p->busy++;
		out->slot = n;
		out->uid = s->uid;
		out->generation = s->generation;
		return 0;
	}
	return -1;
}

void
pool_untake(struct pool *p, const struct pool_slot *s)
{
	(void)pool_release(p, &p->slot[s->slot]);
}

/* Replaces a zygote that has reached its bounds, because data that the runners
 * of one zygote share should not live long. Called at each fork. */
static void
replace_zygote(struct pool *p)
{
	const uint64_t now = now_boot_ms();

	if (p->recycle_after == 0 || p->recycling ||
	    now < p->recycle_not_before_ms)
		return;
	if (p->zygote_forks >= p->recycle_after)
		pool_recycle(p, "it has forked as often as it may");
	else if (now - p->zygote_ms >= POOL_ZYGOTE_MS)
		pool_recycle(p, "it has forked for as long as it may");
}

int
pool_fork(struct pool *p, const struct pool_slot *s,
    const struct pool_profile *profile, const struct pool_limits *limits,
    int channel)
{
	struct ipc_fork m = {
	    .slot = s->slot,
	    .generation = s->generation,
	    .uid = s->uid,
	    .kind = (uint8_t)profile->kind,
	    .network = profile->network,
	    .tmp_bytes = profile->tmp_bytes,
	    .tmp_inodes = profile->tmp_inodes,
	    .memory_bytes = limits->memory_bytes,
	    .processes = limits->processes,
	    .cpu_percent = limits->cpu_percent,
	    .modules = profile->modules,
	    .channel = channel,
	};

	if (p->peer == NULL || ipc_send(p->peer, IPC_FORK, &m) != 0) {
		pool_untake(p, s);
		return -1;
	}
	p->forks++;
	p->zygote_forks++;
	replace_zygote(p);
	return 0;
}

int
pool_limit(
    struct pool *p, const struct pool_slot *s, const struct pool_limits *limits)
{
	struct ipc_limit m = {
	    .slot = s->slot,
	    .generation = s->generation,
	    .memory_bytes = limits->memory_bytes,
	    .processes = limits->processes,
	    .cpu_percent = limits->cpu_percent,
	};

	return p->peer != NULL ? ipc_send(p->peer, IPC_LIMIT, &m) : -1;
}

void
pool_kill(struct pool *p, const struct pool_slot *s)
{
	struct ipc_kill m = {.slot = s->slot, .generation = s->generation};

	if (p->peer != NULL)
		(void)ipc_send(p->peer, IPC_KILL, &m);
}
