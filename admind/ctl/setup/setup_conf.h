/* The machine's own configuration files (decision 0062): setup changes a line
 * of some, and writes others whole. Everything else in them stays as it is. */
#ifndef SETUP_CONF_H
#define SETUP_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"

/* Reads the value of a keyword (conf.h's lines), or "" if no line sets it. 0,
 * or -1: it does not fit. */
int setup_conf_get(
    const struct buf *text, const char *keyword, char *out, size_t len);
/*
 * Appends the text with that value to out: in place of the line that sets it,
 * else after all others. keep: that line was the owner's and stays as a
 * comment. A NULL value brings that comment's line back, or else takes the line
 * away.
 */
void setup_conf_set(const struct buf *text, const char *keyword,
    const char *value, bool keep, struct buf *out);

/* Appends a whole file to *out. 1; 0: there is none; -1 with err. */
int setup_conf_read(const char *path, struct buf *out, struct err *);
/*
 * Writes a file beside, brings it to the disk, and renames it. An existing file
 * keeps its owner and mode unless it is secret; a new one is root's with
 * `mode`. A missing directory is made (0755). 1; 0: it is so already; -1 with
 * err.
 */
int setup_conf_write(
    const char *path, const void *bytes, size_t n, mode_t mode, struct err *);
/* Removes a file. 1: it is gone; 0: it was not there; -1 with err. */
int setup_conf_remove(const char *path, struct err *);

#endif
