/*
 * Seals bytes to this machine, with its TPM or the key of its systemd, by
 * systemd-creds(1) as a child. Plain bytes go through pipes and memory only.
 */
#ifndef CREDS_H
#define CREDS_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"

/* Tells whether systemd-creds can be used here: it is installed, and systemd
 * runs this machine. */
bool creds_usable(void);
/* Seals n bytes under a name, which creds_open needs again, and appends the
 * sealed bytes to out. The sealed bytes were opened once as a test. 0, or -1
 * with err. */
int creds_seal(const char *name, const void *plain, size_t n, struct buf *out,
    struct err *);
/* Opens sealed bytes and appends the plain bytes, which are secret, to out. The
 * caller sets the maximum of out. 0, or -1 with err. */
int creds_open(const char *name, const void *sealed, size_t n, struct buf *out,
    struct err *);

#endif
