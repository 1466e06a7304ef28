/*
 * An id as a person gives it: whole, or its first digits.
 */
#ifndef PREFIX_H
#define PREFIX_H

#include "ctl.h"

enum {
	PREFIX_DIGITS_MIN = 4, /* hexadecimal digits */
	/* a name clients see, a slash, two versions: twice what they take */
	PREFIX_PATH_MAX = 600
};
/* The whole id. `kind` is the question `ids` knows (approval, execution,
 * source); CTL_DONE, else it said why and what to do. */
enum ctl_status prefix_whole(
    const struct ctl *, const char *kind, const char *word, struct ipc_id *);
enum ctl_status prefix_request(
    const struct ctl *, const char *word, struct ipc_id *);
/* The same of a server or tool, which a name names, too: a word that is one's
 * name, or could be no id, is left as it is. out holds n bytes. */
enum ctl_status prefix_named(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);

/* The same of the part of a word before its first slash: TOOL, TOOL/3. */
enum ctl_status prefix_path(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);
/* The one of ids (n of them, as text) that begins so, in *id; `what`, `list`:
 * the kind's name and the command that lists them, for who is told why not. */
enum ctl_status prefix_among(const char *word, const char *const *ids, size_t n,
    const char *what, const char *list, struct ipc_id *id);

#endif
