/*
 * What an installer is, and where installers may connect at all: this
 * machine's configuration says so, and nobody else.
 */
#ifndef DEPOT_CONF_H
#define DEPOT_CONF_H

#include <stdint.h>

#include "buf.h"
#include "err.h"

struct held;

/* What an installer is: its specification (mcpbox_wheel.py), and the hosts it
 * may connect to as lines of common/request/netgrant.h. spec.len 0: there is
 * none. */
struct depot_conf {
	struct buf spec, hosts;
	uint64_t timeout_ms;
};
/* From the URLs of sandboxd.conf. files: hosts, commas between. -1 with a
 * sentence: one of them is no http or https URL, or no host. */
int depot_configure(struct depot_conf *, const char *index, const char *files,
    const char *advisories, uint64_t wheel_bytes, struct err *);
/* Makes h, of kind MODULE, an installer. -1: none is configured. */
int depot_fill(const struct depot_conf *, struct held *h, struct err *);

#endif
