/* Shared by the two halves of views.h: views.c has escapes and UTF-16,
 * views_runs.c runs of digits. */
#ifndef VIEWS_INTERNAL_H
#define VIEWS_INTERNAL_H

#include "ids.h"
#include "views.h"

/* Appends one byte made of in[first..last]. */
static inline void
view_put(struct view_mem *m, struct view *out, int c, const struct view *in,
    size_t first, size_t last)
{
	m->p[out->n] = (uint8_t)c;
	if (m->places) {
		m->at[out->n].from = view_from(in, first);
		m->at[out->n].to = view_to(in, last);
	}
	out->n++;
}

/* Begins an empty view in m. */
static inline void
view_start(struct view_mem *m, struct view *out)
{
	out->p = m->p;
	out->at = m->places ? m->at : NULL;
	out->base = 0;
	out->n = 0;
}

#endif
