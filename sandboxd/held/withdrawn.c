/* See withdrawn.h. */
#include <string.h>

#include "withdrawn.h"

void
withdrawn_add(struct withdrawn *w, const struct ipc_id *id, enum failure why)
{
	unsigned at = w->next++ % WITHDRAWN_KEPT;

	w->row[at].id = *id;
	w->row[at].failure = why;
}

enum failure
withdrawn_why(const struct withdrawn *w, const struct ipc_id *id)
{
	for (unsigned i = 0; i < WITHDRAWN_KEPT; i++)
		if (memcmp(&w->row[i].id, id, sizeof(*id)) == 0)
			return w->row[i].failure;
	return FAILURE_NONE;
}
