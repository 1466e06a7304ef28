/* Changes of the machine's own configuration files (decision 0062). setup
 * changes single lines of some files, whose other lines stay as they are. It
 * writes other files whole. */
#ifndef SETUP_CONF_H
#define SETUP_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"

/* Reads a keyword's value from text in the format of conf.h, or "" if no line
 * sets it. 0, or -1 if the value does not fit. */
int setup_conf_get(
    const struct buf *text, const char *keyword, char *out, size_t len);
/*
 * Appends the text to out, with this value of the keyword. The new line
 * replaces the line that sets the keyword, or comes after all others. keep: the
 * replaced line was the owner's, and stays as a comment. If value is NULL, the
 * line is removed, and a line that stayed as a comment is restored.
 */
void setup_conf_set(const struct buf *text, const char *keyword,
    const char *value, bool keep, struct buf *out);

/* Appends a whole file to *out. 1; 0: no such file; -1 with err. */
int setup_conf_read(const char *path, struct buf *out, struct err *);
/*
 * Writes a file under another name, syncs it to the disk, and renames it. A new
 * file is root's with `mode`. So is a secret file, one whose `mode` gives
 * others no right, even if it existed. Any other existing file keeps its owner,
 * and gets no more rights than it had. A missing directory is made (0755). 1;
 * 0: the file is so already; -1 with err.
 */
int setup_conf_write(
    const char *path, const void *bytes, size_t n, mode_t mode, struct err *);
/* Removes a file. 1: it is gone; 0: it was not there; -1 with err. */
int setup_conf_remove(const char *path, struct err *);

#endif
