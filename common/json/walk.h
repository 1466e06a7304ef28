/*
 * Goes through the members of a JSON object or the elements of an array, in
 * text that json_scan accepted. No parser: values are slices of the text, and
 * whoever takes one looks at its first byte.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>

#include "bytes.h"

struct walk {
	const uint8_t *p, *end;
	bool object;
};

/* 0, or -1 if the value is not what opens with this bracket: '{' or '['. */
int walk_open(struct walk *, struct ipc_bytes value, char bracket);
/* The next member or element; false at the end. name: as written between the
 * quotes, empty in an array. */
bool walk_next(struct walk *, struct ipc_bytes *name, struct ipc_bytes *value);
/* Is it this name? One written with escapes is none that is known here; no
 * second of the same meaning can stand beside it (json_scan). */
bool walk_is(struct ipc_bytes name, const char *);

#endif
