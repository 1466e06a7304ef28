/* Secrets come by prompt, standard input or file, never by argument: every
 * local user can read a command line (proc(5)). */
#ifndef PROMPT_H
#define PROMPT_H

#include "ctl.h"

/* Reads a password: from --password-file, a prompt (twice), or standard input.
 * 0, or -1 with a word on stderr. */
int prompt_password(const struct ctl *, struct buf *out);
/* A secret's value, from a terminal (asked for as `what`, not shown) or
 * standard input, without its last newline. 0, or -1 and said why. */
int prompt_secret(const char *what, struct buf *out);

#endif
