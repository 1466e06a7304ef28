/*
 * systemd-creds(1) as a child: bytes sealed to this machine, by its TPM or the
 * key of its systemd. Plain bytes go through pipes and memory only.
 */
#ifndef CREDS_H
#define CREDS_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"

/* True if it can be used here: it is installed, and systemd runs this
 * machine. */
bool creds_usable(void);
/* Seals n bytes under a name, which opening must give again. The bytes appended
 * to out were opened once. 0, or -1 with err. */
int creds_seal(const char *name, const void *plain, size_t n, struct buf *out,
    struct err *);
/* Opens sealed bytes. out is born with its maximum and holds a secret. 0, or -1
 * with err. */
int creds_open(const char *name, const void *sealed, size_t n, struct buf *out,
    struct err *);

#endif
