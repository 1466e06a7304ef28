/* Shared by the two halves of redact.h: redact.c finds, redact_json.c knows
 * what a JSON text is made of. */
#ifndef REDACT_INTERNAL_H
#define REDACT_INTERNAL_H

#include "redact.h"
#include "views.h"

/* Decoders inside each other: a header in a URL, JSON in a repr. */
enum { REDACT_DEPTH = 2 };

struct redact {
	struct needles *needles;
	size_t longest; /* value */
	bool blanks;    /* one has a blank, which may be written + */
	bool digits;    /* one is of digits only */
	bool high;      /* one is not ASCII */
	bool wide;      /* one has a character above U+00FF */
	bool bare;      /* one has only such: no zeros in its UTF-16 */
	bool failed;    /* memory or work, in this search */
	size_t work;    /* bytes of views that it may still look through */
	bool places;    /* where they are is asked, not only whether */
	bool any;       /* one was seen, when only that is asked */
	struct view_mem mem[REDACT_DEPTH + 1];
	/* Places found in this search, and from where on by this scan. */
	struct place *found;
	size_t nfound, cap, base;
	const struct view *view; /* being scanned */
};

/* Finds all secrets of a text: sorted places that neither touch nor overlap,
 * but for equal neighbours. Returns their number; r->failed without memory. */
size_t redact_find(struct redact *, struct ipc_bytes text);
/* Appends text without the n places that redact_find found in it. */
void redact_splice(
    struct redact *, struct ipc_bytes text, size_t n, struct buf *out);

#endif
