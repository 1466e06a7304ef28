/*
 * Configuration files of the machine's own (decision 0062) that setup changes a
 * line of, and files that it writes whole. Everything else in them stays as it
 * is.
 */
#ifndef SETUP_CONF_H
#define SETUP_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "err.h"

/* The value of a keyword (conf.h's lines), or "" if no line sets it. 0; -1: it
 * does not fit. */
int setup_conf_get(
    const struct buf *text, const char *keyword, char *out, size_t len);
/*
 * The text with that value: in place of the line that sets it, else behind all
 * others. keep: that line was somebody's and stays as a comment, which NULL for
 * a value brings back (else it takes the line away). Appended to out.
 */
void setup_conf_set(const struct buf *text, const char *keyword,
    const char *value, bool keep, struct buf *out);

/* A whole file behind *out. 1; 0: there is none; -1 with err. */
int setup_conf_read(const char *path, struct buf *out, struct err *);
/* Written beside, brought to the disk, renamed. An existing file keeps its
 * owner and mode unless it is secret; a new one is root's with `mode`. The
 * directory is made (0755) where it is missing. 1; 0: it is so already; -1 with
 * err. */
int setup_conf_write(
    const char *path, const void *bytes, size_t n, mode_t mode, struct err *);
/* 1: it is gone; 0: it was not there; -1 with err. */
int setup_conf_remove(const char *path, struct err *);

#endif
