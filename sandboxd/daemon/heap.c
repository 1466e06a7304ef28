#include "heap.h"

#include <malloc.h>

#include "log.h"

/*
 * Unless glibc is told a threshold, glibc raises the threshold to the largest
 * block seen (up to 32 MiB) and keeps twice as much freed memory (mallopt(3)).
 */
void
heap_start(void)
{
	if (mallopt(M_MMAP_THRESHOLD, HEAP_OWN_MAPPING) != 1)
		log_event(LOG_LV_WARN, "start",
		    "malloc takes no threshold: memory of a flood is kept");
}

/*
 * Many small blocks, such as events that waited for a slow gateway, keep their
 * pages if a block in use lies above them. malloc counts returned pages as
 * free, so gone_back has their size: they are no reason to trim again. A call
 * can use such pages and free them: after a call, gone_back says nothing.
 */
void
heap_rest(struct heap *h, uint64_t ended)
{
	size_t unused = mallinfo2().fordblks;

	if (h->ended != ended)
		h->gone_back = 0;
	h->ended = ended;
	if (unused > h->gone_back + HEAP_KEPT) {
		(void)malloc_trim(0);
		h->gone_back = mallinfo2().fordblks;
	} else if (unused < h->gone_back) {
		h->gone_back = unused;
	}
}
