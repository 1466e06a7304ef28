/*
 * systemd-creds(1) as a child: bytes sealed to this machine, by its TPM or the
 * key of its systemd. Plain bytes go through pipes and memory only.
 */
#ifndef CREDS_H
#define CREDS_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"

/* Can it be used here: is it installed, and does systemd run this machine? */
bool creds_usable(void);
/* Seals n bytes under a name, which opening must give again. What is appended
 * to out was opened once. 0 or -1 with err. */
int creds_seal(const char *name, const void *plain, size_t n, struct buf *out,
    struct err *);
/* 0 or -1 with err. out is born with its maximum and holds a secret. */
int creds_open(const char *name, const void *sealed, size_t n, struct buf *out,
    struct err *);

#endif
