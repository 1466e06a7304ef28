/*
 * The task of installers, and the hosts to which they may connect. Only this
 * machine's configuration decides about these.
 */
#ifndef DEPOT_CONF_H
#define DEPOT_CONF_H

#include <stdint.h>

#include "buf.h"
#include "err.h"

struct held;

/* spec: an installer's specification (mcpbox_wheel.py). hosts: the hosts to
 * which installers may connect, as lines of common/request/netgrant.h.
 * spec.len 0: there is no installer. */
struct depot_conf {
	struct buf spec, hosts;
	uint64_t timeout_ms;
};
/* Makes the configuration from the URLs of sandboxd.conf. files: hosts with
 * commas between them. -1 with err if a URL is not http or https, or a host is
 * not valid. */
int depot_configure(struct depot_conf *, const char *index, const char *files,
    const char *advisories, uint64_t wheel_bytes, struct err *);
/* Turns h, a context of kind MODULE, into one that runs the installer. -1: no
 * installer is configured. */
int depot_fill(const struct depot_conf *, struct held *h, struct err *);

#endif
