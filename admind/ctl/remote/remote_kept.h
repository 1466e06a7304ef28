/*
 * The facts of a remote that are not in the access document: its kind, its URL,
 * its API token, the files that were written. STATE_DIR/remotes.json, root's
 * (docs/decisions/0101).
 */
#ifndef REMOTE_KEPT_H
#define REMOTE_KEPT_H

#include "ctl.h"
#include "err.h"

struct json_object;

/* Reads all rows: a list of {"name", "kind", "url", "token", "files"}. Without
 * a file the list is empty. 0 with *rows, which the caller puts, or -1. */
int remote_kept_read(
    const struct ctl *, struct json_object **rows, struct err *);

/* Returns the row of this name (borrowed), or NULL. */
struct json_object *remote_kept_find(
    struct json_object *rows, const char *name);

/* Writes the file with this row instead of one of the same name, or without it
 * (row NULL). Takes the reference to row. 0 or -1. */
int remote_kept_put(const struct ctl *, const char *name,
    struct json_object *row, struct err *);

#endif
