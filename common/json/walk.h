/*
 * Goes through the members of a JSON object or the elements of an array, in
 * text that json_scan accepted. This is not a parser: values are slices of the
 * text, and their user looks at the first byte.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>

#include "bytes.h"

/* Tells whether this is white space between JSON's tokens (RFC 8259 section
 * 2). */
static inline bool
walk_space(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct walk {
	const uint8_t *p, *end;
	bool object;
};

/* Opens a value. 0, or -1 if it does not begin with this bracket: '{' or
 * '['. */
int walk_open(struct walk *, struct ipc_bytes value, char bracket);
/* Gives the next member or element; false at the end. name: as written between
 * the quotes, empty in an array. */
bool walk_next(struct walk *, struct ipc_bytes *name, struct ipc_bytes *value);
/* Tells whether a member has this name. A name written with escapes is never
 * found equal. json_scan has made sure that no other member of the object has
 * the same name. */
bool walk_is(struct ipc_bytes name, const char *);

#endif
