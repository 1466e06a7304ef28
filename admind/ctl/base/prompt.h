/* Secrets come by prompt, standard input or file, never by argument: every
 * local user can read a command line (proc(5)). */
#ifndef PROMPT_H
#define PROMPT_H

#include "ctl.h"

/* Reads a password: from --password-file, a prompt (twice), or standard input.
 * 0, or -1 (stderr says why). */
int prompt_password(const struct ctl *, struct buf *out);
/* Reads a secret's value without its last newline: from a terminal, with `what`
 * as the prompt and without echo, or from standard input. 0 or -1. */
int prompt_secret(const char *what, struct buf *out);

#endif
