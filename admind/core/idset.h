/* 16-byte ids in a hash set. */
#ifndef IDSET_H
#define IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include "ipc.h"

struct idset {
	struct ipc_id *slot;
	uint8_t *used; /* 0 free, 1 used, 2 deleted */
	size_t size, count, filled;
};

int idset_add(struct idset *, const struct ipc_id *); /* -1 without memory */
bool idset_has(const struct idset *, const struct ipc_id *);
void idset_del(struct idset *, const struct ipc_id *);
void idset_clear(struct idset *);

#endif
