/* Shared by the two halves of redact.h: redact.c finds secrets, redact_json.c
 * knows the parts of a JSON text. */
#ifndef REDACT_INTERNAL_H
#define REDACT_INTERNAL_H

#include "redact.h"
#include "views.h"

/* How many encodings inside each other are undone, as for a header in a URL. */
enum { REDACT_DEPTH = 2 };

struct redact {
	struct needles *needles;
	size_t longest; /* bytes of the longest needle */
	bool blanks;    /* a value has a blank, which may be written + */
	bool digits;    /* a value has digits only */
	bool high;      /* a value is not ASCII */
	bool wide;      /* a value has a character above U+00FF */
	/* a value has no ASCII, but a character above U+00FF: its UTF-16 may
	 * have no zero bytes */
	bool bare;
	bool failed; /* this search had too little memory or too much work */
	size_t work; /* bytes of views still to be searched */
	bool places; /* true: search for places; false: only for presence */
	bool any;    /* a secret was seen in a search for presence */
	struct view_mem mem[REDACT_DEPTH + 1];
	/* Places found in this search. base: the index of the first place of
	 * this scan. */
	struct place *found;
	size_t nfound, cap, base;
	const struct view *view; /* being scanned */
};

/* Finds all secrets of a text: sorted places that may touch, but do not
 * overlap. Returns the number of places. r->failed: too little memory or too
 * much work. */
size_t redact_find(struct redact *, struct ipc_bytes text);
/* Appends text with a mark in place of each of the n places that redact_find
 * found. */
void redact_splice(
    struct redact *, struct ipc_bytes text, size_t n, struct buf *out);

#endif
