/*
 * An id as a person gives it: whole, or its first digits.
 */
#ifndef PREFIX_H
#define PREFIX_H

#include "ctl.h"

enum {
	PREFIX_DIGITS_MIN = 4, /* hexadecimal digits */
	/* twice the longest name that clients see, a slash and two version
	 * numbers (NAME/1-2) */
	PREFIX_PATH_MAX = 600
};
/* Finds the whole id that begins with word. `kind` is one of the kinds in
 * prefix.c (approval, execution, source ...). CTL_DONE; otherwise stderr says
 * why and what to do. */
enum ctl_status prefix_whole(
    const struct ctl *, const char *kind, const char *word, struct ipc_id *);
enum ctl_status prefix_request(
    const struct ctl *, const char *word, struct ipc_id *);
/* Does as prefix_whole() for a server or tool, which may also be given by name.
 * A word that is such a name, or can't be the beginning of an id, is copied as
 * it is. out has room for n bytes. */
enum ctl_status prefix_named(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);

/* Does as prefix_named() for the part of a word before its first slash
 * (TOOL/3). The rest of the word is copied. */
enum ctl_status prefix_path(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);
/* Finds the only one of n ids (as text) that begins with word, and puts it into
 * *id. If none or several do, a message names `what`, the kind of object, and
 * `list`, the command that lists such objects. */
enum ctl_status prefix_among(const char *word, const char *const *ids, size_t n,
    const char *what, const char *list, struct ipc_id *id);

#endif
