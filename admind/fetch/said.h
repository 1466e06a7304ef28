/* The word of a run that sent something (CHECK_SENT), out of the fields of
 * admind-check. No I/O. */
#ifndef SAID_H
#define SAID_H

#include <stdint.h>

#include "bytes.h"

/* enum sent_field has their meanings. A field that is absent is 0, or empty. */
struct said {
	uint64_t sent, status, retry_s, rejected;
	struct ipc_bytes why; /* borrowed from the fields */
};

/* Reads the fields. 0, or -1 if they are malformed. */
int said_read(struct ipc_bytes fields, struct said *);

#endif
