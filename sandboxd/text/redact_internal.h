/* Shared by the two halves of redact.h: redact.c finds, redact_json.c knows the
 * parts of a JSON text. */
#ifndef REDACT_INTERNAL_H
#define REDACT_INTERNAL_H

#include "redact.h"
#include "views.h"

/* Decoders inside each other: a header in a URL, JSON in a repr. */
enum { REDACT_DEPTH = 2 };

struct redact {
	struct needles *needles;
	size_t longest; /* of the values */
	bool blanks;    /* one has a blank, which may be written + */
	bool digits;    /* one has digits only */
	bool high;      /* one is not ASCII */
	bool wide;      /* one has a character above U+00FF */
	/* one has only such characters: no zeros in its UTF-16 */
	bool bare;
	bool failed; /* memory or work, in this search */
	size_t work; /* bytes of views still to be searched */
	bool places; /* are the places asked for, or only presence? */
	bool any;    /* one was seen, when only presence is asked for */
	struct view_mem mem[REDACT_DEPTH + 1];
	/* Places found in this search; base: the first of this scan's. */
	struct place *found;
	size_t nfound, cap, base;
	const struct view *view; /* being scanned */
};

/* Finds all secrets of a text: sorted places that neither touch nor overlap,
 * but for equal neighbours. Returns their number; r->failed without memory. */
size_t redact_find(struct redact *, struct ipc_bytes text);
/* Appends text with a mark in place of each of the n places that redact_find
 * found. */
void redact_splice(
    struct redact *, struct ipc_bytes text, size_t n, struct buf *out);

#endif
