/*
 * An id as a person gives it: whole, or its first digits.
 */
#ifndef PREFIX_H
#define PREFIX_H

#include "ctl.h"

enum {
	PREFIX_DIGITS_MIN = 4, /* hexadecimal digits */
	/* a name that clients see, a slash, two versions: twice their
	 * lengths */
	PREFIX_PATH_MAX = 600
};
/* Finds the whole id. `kind` is a kind that the question `ids` knows (approval,
 * execution, source). CTL_DONE; otherwise stderr says why and what to do. */
enum ctl_status prefix_whole(
    const struct ctl *, const char *kind, const char *word, struct ipc_id *);
enum ctl_status prefix_request(
    const struct ctl *, const char *word, struct ipc_id *);
/* Does the same for a server or tool, which may also be named by its name. A
 * word that is the name of one, or could be no id, stays as it is. out holds n
 * bytes. */
enum ctl_status prefix_named(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);

/* Does the same for the part of a word before its first slash: TOOL, TOOL/3. */
enum ctl_status prefix_path(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);
/* Finds the one of ids (n of them, as text) that begins with word, in *id.
 * `what`, `list`: the kind's name and the command that lists it, for the
 * message if there is not just one. */
enum ctl_status prefix_among(const char *word, const char *const *ids, size_t n,
    const char *what, const char *list, struct ipc_id *id);

#endif
